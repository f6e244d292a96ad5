//! The record of one version of an object: what stands in the `objects` table of a slice.
//!
//! ```text
//! body, version 1 (integers little-endian)
//! offset  size  what
//! 0       1     payload form: 0 inline (in the record's tail), 1 in volumes
//! 1       1     flags: bit 0 sealed; the others zero (delete marker and null version will take bits)
//! 2       1     checksum algorithms present, one bit each (bit n: algorithm number n)
//! 3       1     zero
//! 4       4     number of parts; 0: put in one piece
//! 8       8     size of the payload in bytes
//! 16      8     last modification, milliseconds since the Unix epoch
//! 24      16    MD5 of the entity tag
//! 40      8     sequence of the version within the slice
//! 48      4     length a of the attributes
//! 52      a     attributes: u16 number of headers, each u16 name length, u16 value length, name, value;
//!               then u8 number of checksums, each u8 algorithm, u8 length, digest
//! 52+a    60    only when sealed: the wrapped data key (`seal.rs`)
//! ...     ...   inline form: the check of the tail: u64 CRC-64/NVME, or when sealed the 16-byte tag
//!               volume form: 16 payload id, u8 check form (0 list, 1 table), u8 zero, u16 number e of extents,
//!               u32 number n of blocks or of table extents, e extents (u32 volume, u32 start, u32 units),
//!               then n checks (u64 CRC-64/NVME each, or 16-byte tags), or n extents of the check table
//! ```
//! The first 52 bytes are all that a list needs.

use crate::block::{BlockCheck, CheckKind, Checks};
use crate::extent::{Extent, blocks_for, units_for};
use crate::object::{Attributes, ChecksumAlgorithm, ObjectInfo};
use crate::seal::WrappedKey;
use cairn_model::{Etag, Timestamp, VersionId};

/// Version byte of the form drawn above.
pub(crate) const OBJECT_RECORD_VERSION: u8 = 1;
const FORM_INLINE: u8 = 0;
const FORM_VOLUME: u8 = 1;
const FLAG_SEALED: u8 = 1;
const CHECKS_LIST: u8 = 0;
const CHECKS_TABLE: u8 = 1;

/// Random identity of a payload in volumes: names its blocks in the cache and seeds its check table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct PayloadId(pub(crate) [u8; 16]);

/// Where the checks of a payload's blocks stand.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum BlockChecks {
    /// One for each block.
    List(Checks),
    /// Table pages (see `block.rs`) in these extents.
    Table(Vec<Extent>),
}

/// A payload that lies in the volumes of its slice.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct VolumePayload {
    pub(crate) id: PayloadId,
    /// In order; all but the last hold whole blocks.
    pub(crate) extents: Vec<Extent>,
    pub(crate) checks: BlockChecks,
}

impl VolumePayload {
    /// All space that the payload owns, its check table included.
    pub(crate) fn owned(&self) -> impl Iterator<Item = Extent> + '_ {
        let table: &[Extent] = match &self.checks {
            BlockChecks::List(_) => &[],
            BlockChecks::Table(extents) => extents,
        };
        self.extents.iter().chain(table).copied()
    }
}

/// Form and place of a payload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum PayloadForm {
    /// In the record's tail, with this check.
    Inline { check: BlockCheck },
    /// In volumes.
    Volume(VolumePayload),
}

/// The part of a record that lists need; decoded without touching the rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RecordHead {
    pub(crate) size: u64,
    pub(crate) last_modified: Timestamp,
    pub(crate) etag: Etag,
    pub(crate) sequence: u64,
    pub(crate) checksum_bits: u8,
}

/// A record as a whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ObjectRecord {
    pub(crate) info: ObjectInfo,
    pub(crate) payload: PayloadForm,
    /// The data key when the payload is sealed; the payload's checks are then tags.
    pub(crate) sealed: Option<WrappedKey>,
}

/// The bytes are not a record of this version: the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InvalidRecord(pub(crate) &'static str);

/// Takes fixed-size pieces off the front of a slice.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn bytes(&mut self, count: usize) -> Result<&'a [u8], InvalidRecord> {
        let (front, rest) = self.0.split_at_checked(count).ok_or(InvalidRecord("too short"))?;
        self.0 = rest;
        Ok(front)
    }
    fn array<const N: usize>(&mut self) -> Result<[u8; N], InvalidRecord> {
        let (front, rest) = self.0.split_first_chunk::<N>().ok_or(InvalidRecord("too short"))?;
        self.0 = rest;
        Ok(*front)
    }
    fn u8(&mut self) -> Result<u8, InvalidRecord> {
        Ok(u8::from_le_bytes(self.array()?))
    }
    fn u16(&mut self) -> Result<u16, InvalidRecord> {
        Ok(u16::from_le_bytes(self.array()?))
    }
    fn u32(&mut self) -> Result<u32, InvalidRecord> {
        Ok(u32::from_le_bytes(self.array()?))
    }
    fn u64(&mut self) -> Result<u64, InvalidRecord> {
        Ok(u64::from_le_bytes(self.array()?))
    }
    fn extent(&mut self) -> Result<Extent, InvalidRecord> {
        let extent = Extent { volume: self.u32()?, start: self.u32()?, units: self.u32()? };
        let fits = extent.units > 0 && extent.start.checked_add(extent.units).is_some();
        if fits { Ok(extent) } else { Err(InvalidRecord("an extent that is none")) }
    }
}

impl RecordHead {
    /// Decodes the first 52 bytes of a body.
    pub(crate) fn decode(version: u8, body: &[u8]) -> Result<Self, InvalidRecord> {
        Self::take(version, &mut Cursor(body)).map(|(head, ..)| head)
    }

    /// Head, payload form, and whether the payload is sealed.
    fn take(version: u8, from: &mut Cursor<'_>) -> Result<(Self, u8, bool), InvalidRecord> {
        if version != OBJECT_RECORD_VERSION {
            return Err(InvalidRecord("a record version that this program does not know"));
        }
        let [form, flags, checksum_bits, _zero] = from.array()?;
        if flags & !FLAG_SEALED != 0 {
            return Err(InvalidRecord("flags that this program does not know"));
        }
        let parts = from.u32()?;
        let head = Self {
            size: from.u64()?,
            last_modified: Timestamp(from.u64()?),
            etag: Etag { md5: from.array()?, parts },
            sequence: from.u64()?,
            checksum_bits,
        };
        Ok((head, form, flags & FLAG_SEALED != 0))
    }
}

impl ObjectRecord {
    /// Appends the body, with the sequence of `info.version`.
    ///
    /// # Errors
    /// When a header or a list is longer than its length field; the limits of the upper layers exclude it.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) -> Result<(), InvalidRecord> {
        let form = match self.payload {
            PayloadForm::Inline { .. } => FORM_INLINE,
            PayloadForm::Volume(_) => FORM_VOLUME,
        };
        let bits = self.info.attributes.checksums.iter().fold(0, |bits, (a, _)| bits | a.bit());
        let flags = if self.sealed.is_some() { FLAG_SEALED } else { 0 };
        out.extend_from_slice(&[form, flags, bits, 0]);
        out.extend_from_slice(&self.info.etag.parts.to_le_bytes());
        out.extend_from_slice(&self.info.size.to_le_bytes());
        out.extend_from_slice(&self.info.last_modified.0.to_le_bytes());
        out.extend_from_slice(&self.info.etag.md5);
        out.extend_from_slice(&self.info.version.0.to_le_bytes());
        let length_at = out.len();
        out.extend_from_slice(&[0; 4]);
        encode_attributes(out, &self.info.attributes)?;
        let length =
            u32::try_from(out.len() - length_at - 4).map_err(|_| InvalidRecord("attributes too long"))?;
        if let Some(field) = out.get_mut(length_at..length_at + 4) {
            field.copy_from_slice(&length.to_le_bytes());
        }
        if let Some(WrappedKey(wrapped)) = &self.sealed {
            out.extend_from_slice(wrapped);
        }
        match &self.payload {
            PayloadForm::Inline { check: BlockCheck::Crc64(check) } => {
                out.extend_from_slice(&check.to_le_bytes())
            }
            PayloadForm::Inline { check: BlockCheck::Tag(tag) } => out.extend_from_slice(tag),
            PayloadForm::Volume(volume) => encode_volume_payload(out, volume)?,
        }
        Ok(())
    }

    /// Decodes a body; the payload's geometry must fit its size.
    pub(crate) fn decode(version: u8, body: &[u8]) -> Result<Self, InvalidRecord> {
        let mut from = Cursor(body);
        let (head, form, sealed) = RecordHead::take(version, &mut from)?;
        let length = from.u32()?;
        let attributes = from.bytes(usize::try_from(length).map_err(|_| InvalidRecord("too long"))?)?;
        let attributes = decode_attributes(&mut Cursor(attributes))?;
        let sealed = if sealed { Some(WrappedKey(from.array()?)) } else { None };
        let kind = CheckKind::of(sealed.is_some());
        let payload = match form {
            FORM_INLINE => PayloadForm::Inline {
                check: match kind {
                    CheckKind::Crc64 => BlockCheck::Crc64(from.u64()?),
                    CheckKind::Tag => BlockCheck::Tag(from.array()?),
                },
            },
            FORM_VOLUME => PayloadForm::Volume(decode_volume_payload(&mut from, head.size, kind)?),
            _ => return Err(InvalidRecord("a payload form that this program does not know")),
        };
        if !from.0.is_empty() {
            return Err(InvalidRecord("bytes behind the end"));
        }
        let info = ObjectInfo {
            size: head.size,
            etag: head.etag,
            last_modified: head.last_modified,
            version: VersionId(head.sequence),
            attributes,
            encrypted: sealed.is_some(),
            is_null: true,
            lock: Default::default(),
            parts: Vec::new(),
        };
        Ok(Self { info, payload, sealed })
    }
}

fn encode_attributes(out: &mut Vec<u8>, attributes: &Attributes) -> Result<(), InvalidRecord> {
    let short = |length: usize| u16::try_from(length).map_err(|_| InvalidRecord("a header too long"));
    out.extend_from_slice(&short(attributes.headers.len())?.to_le_bytes());
    for (name, value) in &attributes.headers {
        out.extend_from_slice(&short(name.len())?.to_le_bytes());
        out.extend_from_slice(&short(value.len())?.to_le_bytes());
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(value);
    }
    let tiny = |length: usize| u8::try_from(length).map_err(|_| InvalidRecord("too many checksums"));
    out.push(tiny(attributes.checksums.len())?);
    for (algorithm, digest) in &attributes.checksums {
        out.extend_from_slice(&[algorithm.number(), tiny(digest.len())?]);
        out.extend_from_slice(digest);
    }
    Ok(())
}

fn decode_attributes(from: &mut Cursor<'_>) -> Result<Attributes, InvalidRecord> {
    let mut attributes = Attributes::default();
    for _ in 0..from.u16()? {
        let (name, value) = (from.u16()?, from.u16()?);
        let name =
            std::str::from_utf8(from.bytes(name.into())?).map_err(|_| InvalidRecord("a header name"))?;
        attributes.headers.push((name.to_owned(), from.bytes(value.into())?.to_vec()));
    }
    for _ in 0..from.u8()? {
        let [algorithm, length] = from.array()?;
        let algorithm =
            ChecksumAlgorithm::from_number(algorithm).ok_or(InvalidRecord("a checksum algorithm"))?;
        attributes.checksums.push((algorithm, from.bytes(length.into())?.to_vec()));
    }
    Ok(attributes)
}

fn encode_volume_payload(out: &mut Vec<u8>, payload: &VolumePayload) -> Result<(), InvalidRecord> {
    let many = InvalidRecord("too many extents or checks");
    let extents = u16::try_from(payload.extents.len()).map_err(|_| many)?;
    let (form, count) = match &payload.checks {
        BlockChecks::List(checks) => (CHECKS_LIST, checks.len()),
        BlockChecks::Table(extents) => (CHECKS_TABLE, extents.len()),
    };
    out.extend_from_slice(&payload.id.0);
    out.extend_from_slice(&[form, 0]);
    out.extend_from_slice(&extents.to_le_bytes());
    out.extend_from_slice(&u32::try_from(count).map_err(|_| many)?.to_le_bytes());
    let mut extent = |extent: &Extent| {
        for field in [extent.volume, extent.start, extent.units] {
            out.extend_from_slice(&field.to_le_bytes());
        }
    };
    payload.extents.iter().for_each(&mut extent);
    match &payload.checks {
        BlockChecks::Table(extents) => extents.iter().for_each(&mut extent),
        BlockChecks::List(checks) => out.extend_from_slice(checks.packed()),
    }
    Ok(())
}

fn decode_volume_payload(
    from: &mut Cursor<'_>,
    size: u64,
    kind: CheckKind,
) -> Result<VolumePayload, InvalidRecord> {
    let id = PayloadId(from.array()?);
    let [form, _zero] = from.array()?;
    let (extent_count, count) = (from.u16()?, from.u32()?);
    let extents = (0..extent_count).map(|_| from.extent()).collect::<Result<Vec<_>, _>>()?;
    let checks = match form {
        CHECKS_LIST => {
            let length = usize::try_from(count).ok().and_then(|count| count.checked_mul(kind.bytes()));
            let packed = from.bytes(length.ok_or(InvalidRecord("too many checks"))?)?;
            BlockChecks::List(Checks::from_packed(kind, packed))
        }
        CHECKS_TABLE => BlockChecks::Table((0..count).map(|_| from.extent()).collect::<Result<_, _>>()?),
        _ => return Err(InvalidRecord("a form of checks that this program does not know")),
    };
    let units: u64 = extents.iter().map(|extent| u64::from(extent.units)).sum();
    if units != units_for(size) {
        return Err(InvalidRecord("extents that do not fit the size"));
    }
    if matches!(&checks, BlockChecks::List(list) if list.len() as u64 != blocks_for(size)) {
        return Err(InvalidRecord("checks that do not fit the size"));
    }
    Ok(VolumePayload { id, extents, checks })
}

#[cfg(test)]
mod tests {
    use super::{BlockChecks, ObjectRecord, PayloadForm, PayloadId, RecordHead, VolumePayload};
    use crate::block::{BlockCheck, CheckKind, Checks};
    use crate::extent::Extent;
    use crate::object::{Attributes, ChecksumAlgorithm, ObjectInfo};
    use crate::seal::WrappedKey;
    use cairn_model::{Etag, Timestamp, VersionId};
    use proptest::prelude::*;

    const WRAPPED: WrappedKey = WrappedKey([4; 60]);

    fn record(size: u64, payload: PayloadForm, sealed: Option<WrappedKey>) -> ObjectRecord {
        let attributes = Attributes {
            headers: vec![("content-type".to_owned(), b"text/plain".to_vec())],
            checksums: vec![(ChecksumAlgorithm::Crc32c, vec![1, 2, 3, 4])],
        };
        let info = ObjectInfo {
            size,
            etag: Etag { md5: [9; 16], parts: 0 },
            last_modified: Timestamp(1_795_000_000_123),
            version: VersionId(77),
            attributes,
            encrypted: sealed.is_some(),
            is_null: true,
            lock: Default::default(),
            parts: Vec::new(),
        };
        ObjectRecord { info, payload, sealed }
    }

    fn volume(size: u64, sealed: Option<WrappedKey>) -> ObjectRecord {
        let units = u32::try_from(size.div_ceil(4096)).expect("small");
        let extents = vec![
            Extent { volume: 1, start: 16, units: 16 },
            Extent { volume: 1, start: 64, units: units - 16 },
        ];
        let kind = CheckKind::of(sealed.is_some());
        let packed = vec![5; usize::try_from(size.div_ceil(65_536)).expect("small") * kind.bytes()];
        let checks = BlockChecks::List(Checks::from_packed(kind, &packed));
        record(size, PayloadForm::Volume(VolumePayload { id: PayloadId([3; 16]), extents, checks }), sealed)
    }

    #[test]
    fn records_decode_to_what_was_encoded() {
        let table = BlockChecks::Table(vec![Extent { volume: 0, start: 1, units: 2 }]);
        let extents = vec![Extent { volume: 0, start: 16, units: 16 }];
        let tabled = VolumePayload { id: PayloadId([1; 16]), extents, checks: table };
        for record in [
            record(3, PayloadForm::Inline { check: BlockCheck::Crc64(12) }, None),
            record(3, PayloadForm::Inline { check: BlockCheck::Tag([1; 16]) }, Some(WRAPPED)),
            volume(200_000, None),
            volume(200_000, Some(WRAPPED)),
            record(65_000, PayloadForm::Volume(tabled), None),
        ] {
            let mut body = Vec::new();
            record.encode(&mut body).expect("encodes");
            assert_eq!(ObjectRecord::decode(1, &body).expect("decodes"), record);
            let head = RecordHead::decode(1, &body).expect("decodes");
            assert_eq!((head.size, head.sequence, head.checksum_bits), (record.info.size, 77, 0b10));
        }
    }

    /// Golden bytes: a change here is a change of the on-disk format.
    #[test]
    fn the_form_of_a_record_does_not_change() {
        let mut body = Vec::new();
        let check = BlockCheck::Crc64(0x0102_0304_0506_0708);
        record(3, PayloadForm::Inline { check }, None).encode(&mut body).expect("encodes");
        assert_eq!(body[..8], [0, 0, 2, 0, 0, 0, 0, 0]);
        assert_eq!(body[8..16], [3, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(body[40..52], [77, 0, 0, 0, 0, 0, 0, 0, 35, 0, 0, 0]);
        assert_eq!(body[52..58], [1, 0, 12, 0, 10, 0]);
        assert_eq!(body[80..], [1, 1, 4, 1, 2, 3, 4, 8, 7, 6, 5, 4, 3, 2, 1]);

        let (plain, check) = (body, BlockCheck::Tag([6; 16]));
        let mut body = Vec::new();
        record(3, PayloadForm::Inline { check }, Some(WRAPPED)).encode(&mut body).expect("encodes");
        assert_eq!(body[..4], [0, 1, 2, 0]);
        assert_eq!(body[4..87], plain[4..87]);
        assert_eq!(body[87..147], WRAPPED.0);
        assert_eq!(body[147..], [6; 16]);
    }

    #[test]
    fn a_geometry_that_does_not_fit_the_size_is_refused() {
        let mut body = Vec::new();
        volume(200_000, None).encode(&mut body).expect("encodes");
        body[8] = 0;
        body[9] = 0;
        assert!(ObjectRecord::decode(1, &body).is_err());
        assert!(ObjectRecord::decode(2, &body).is_err());
    }

    proptest! {
        /// Damaged bytes may decode to something else (the record's check excludes that), but never panic.
        #[test]
        fn damaged_bytes_never_panic(cut in 0usize..300, at in 0usize..250, byte: u8, sealed: bool) {
            let mut body = Vec::new();
            volume(200_000, sealed.then_some(WRAPPED)).encode(&mut body).expect("encodes");
            let at = at % body.len();
            body[at] = byte;
            body.truncate(cut);
            let _ = ObjectRecord::decode(1, &body);
        }
    }
}
