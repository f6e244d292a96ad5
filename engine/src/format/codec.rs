//! Codecs shared by the records of objects, uploads and parts: attributes, locks, payloads.
//!
//! ```text
//! attributes      u16 number of headers, each u16 name length, u16 value length, name, value;
//!                 then u8 number of checksums, each u8 algorithm, u8 length, digest.
//!                 Tags are the last header: name `x-amz-tagging`, value as below
//! tags            each u16 key length, u16 value length, key, value
//! lock, 10 bytes  u8 retention: 0 none, 1 governance, 2 compliance; u8 legal hold: 0 never, 1 on, 2 off; u64 end of the retention,
//!                 milliseconds since the Unix epoch
//! payload         when sealed 60 wrapped data key (`seal.rs`); then
//!                 inline form: the check of the record's tail: u64 CRC-64/NVME, or when sealed the 16-byte tag
//!                 volume form: 16 payload id, u8 check form (0 list, 1 table), u8 zero, u16 number e of extents,
//!                 u32 number n of blocks or of table extents, e extents (u32 volume, u32 start, u32 units),
//!                 then n checks (u64 CRC-64/NVME each, or 16-byte tags), or n extents of the check table
//! ```
//! Counts precede what they count, so that a decoder knows all lengths before it reads a list.

use crate::error::EngineError;
use crate::format::block::{BlockCheck, CheckKind, Checks};
use crate::format::extent::{Extent, blocks_for, units_for};
use crate::format::payload_id::PayloadId;
use crate::format::seal::WrappedKey;
use crate::types::object::{Attributes, ChecksumAlgorithm};
use crate::types::object_lock::{ObjectLock, Retention, RetentionMode};
use crate::types::tags::Tags;
use cairn_model::{ImportedId, Timestamp, u64_of, usize_of};

const CHECKS_LIST: u8 = 0;
const CHECKS_TABLE: u8 = 1;
/// Bytes of an encoded lock.
pub(crate) const LOCK_BYTES: usize = 10;
const HOLD_ON: u8 = 1;
const HOLD_OFF: u8 = 2;
/// The header that holds the tags of an object. Requests with this header never store it as a header.
const TAGS_HEADER: &str = "x-amz-tagging";

/// The checks of a payload's blocks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum BlockChecks {
    /// In the record: one for each block.
    List(Checks),
    /// In table pages (`block.rs`) in these extents.
    Table(Vec<Extent>),
}

/// A payload that is stored in the volumes of its slice.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct VolumePayload {
    pub(crate) id: PayloadId,
    /// In the order of the payload. All but the last hold whole blocks.
    pub(crate) extents: Vec<Extent>,
    pub(crate) checks: BlockChecks,
}

impl VolumePayload {
    /// Returns all extents that the payload owns, including its check table.
    pub(crate) fn owned(&self) -> impl Iterator<Item = Extent> + '_ {
        let table: &[Extent] = match &self.checks {
            BlockChecks::List(_) => &[],
            BlockChecks::Table(extents) => extents,
        };
        self.extents.iter().chain(table).copied()
    }
}

/// The reason why bytes are not a valid record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InvalidRecord(pub(crate) &'static str);

impl From<InvalidRecord> for EngineError {
    fn from(error: InvalidRecord) -> Self {
        Self::Corrupt(format!("a record is invalid: {}", error.0))
    }
}

/// Version byte of records that hold one or two numbers.
pub(crate) const SMALL_RECORD_VERSION: u8 = 1;

/// Decodes a record's body that is one number, such as a sequence. Returns `None` if it has another length.
pub(crate) fn decode_u64(body: &[u8]) -> Option<u64> {
    body.try_into().ok().map(u64::from_le_bytes)
}

/// Reads fields from the front of a byte slice.
pub(crate) struct Cursor<'a>(pub(crate) &'a [u8]);

impl<'a> Cursor<'a> {
    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], InvalidRecord> {
        let (front, rest) = self.0.split_at_checked(count).ok_or(InvalidRecord("it is too short"))?;
        self.0 = rest;
        Ok(front)
    }
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], InvalidRecord> {
        let (front, rest) = self.0.split_first_chunk::<N>().ok_or(InvalidRecord("it is too short"))?;
        self.0 = rest;
        Ok(*front)
    }
    pub(crate) fn u8(&mut self) -> Result<u8, InvalidRecord> {
        Ok(u8::from_le_bytes(self.array()?))
    }
    pub(crate) fn u16(&mut self) -> Result<u16, InvalidRecord> {
        Ok(u16::from_le_bytes(self.array()?))
    }
    pub(crate) fn u32(&mut self) -> Result<u32, InvalidRecord> {
        Ok(u32::from_le_bytes(self.array()?))
    }
    pub(crate) fn u64(&mut self) -> Result<u64, InvalidRecord> {
        Ok(u64::from_le_bytes(self.array()?))
    }
    pub(crate) fn extent(&mut self) -> Result<Extent, InvalidRecord> {
        let extent = Extent { volume: self.u32()?, start: self.u32()?, units: self.u32()? };
        let fits = extent.units > 0 && extent.start.checked_add(extent.units).is_some();
        if fits { Ok(extent) } else { Err(InvalidRecord("an extent is empty or too long")) }
    }
}

pub(crate) fn encode_attributes(out: &mut Vec<u8>, attributes: &Attributes) -> Result<(), InvalidRecord> {
    let short = |length: usize| {
        u16::try_from(length).map_err(|_| InvalidRecord("there are too many headers, or one is too long"))
    };
    let tags = encode_tags(&attributes.tags);
    let tags = (!attributes.tags.is_empty()).then_some((TAGS_HEADER, &*tags));
    let headers = attributes.headers.iter().map(|(name, value)| (&**name, &**value));
    out.extend_from_slice(&short(attributes.headers.len() + usize::from(tags.is_some()))?.to_le_bytes());
    for (name, value) in headers.chain(tags) {
        out.extend_from_slice(&short(name.len())?.to_le_bytes());
        out.extend_from_slice(&short(value.len())?.to_le_bytes());
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(value);
    }
    let tiny = |length: usize| {
        u8::try_from(length).map_err(|_| InvalidRecord("there are too many checksums, or one is too long"))
    };
    out.push(tiny(attributes.checksums.len())?);
    for (algorithm, digest) in &attributes.checksums {
        out.extend_from_slice(&[algorithm.number(), tiny(digest.len())?]);
        out.extend_from_slice(digest);
    }
    Ok(())
}

pub(crate) fn decode_attributes(from: &mut Cursor<'_>) -> Result<Attributes, InvalidRecord> {
    let mut attributes = Attributes::default();
    let headers = from.u16()?;
    for number in 1..=headers {
        let (name, value) = (from.u16()?, from.u16()?);
        let name = std::str::from_utf8(from.bytes(name.into())?)
            .map_err(|_| InvalidRecord("a header name is not UTF-8"))?;
        let value = from.bytes(value.into())?;
        if name == TAGS_HEADER {
            if number < headers || value.is_empty() {
                return Err(InvalidRecord("its tags are not its last header"));
            }
            attributes.tags = decode_tags(value)?;
        } else {
            attributes.headers.push((name.to_owned(), value.to_vec()));
        }
    }
    for _ in 0..from.u8()? {
        let [algorithm, length] = from.array()?;
        let algorithm = ChecksumAlgorithm::from_number(algorithm)
            .ok_or(InvalidRecord("a checksum algorithm is unknown"))?;
        attributes.checksums.push((algorithm, from.bytes(length.into())?.to_vec()));
    }
    Ok(attributes)
}

/// Encodes tags.
pub(crate) fn encode_tags(tags: &Tags) -> Vec<u8> {
    let mut out = Vec::new();
    for (key, value) in tags.iter() {
        for text in [key, value] {
            let length = u16::try_from(text.len()).expect("keys and values of tags are short");
            out.extend_from_slice(&length.to_le_bytes());
        }
        out.extend_from_slice(key.as_bytes());
        out.extend_from_slice(value.as_bytes());
    }
    out
}

/// Decodes tags.
pub(crate) fn decode_tags(bytes: &[u8]) -> Result<Tags, InvalidRecord> {
    let mut from = Cursor(bytes);
    let mut tags = Vec::new();
    while !from.0.is_empty() {
        let (key, value) = (from.u16()?, from.u16()?);
        let mut text = |length: u16| {
            let bytes = from.bytes(length.into())?.to_vec();
            String::from_utf8(bytes).map_err(|_| InvalidRecord("a tag is not UTF-8"))
        };
        tags.push((text(key)?, text(value)?));
    }
    Ok(Tags::of_record(tags))
}

fn encode_volume_payload(out: &mut Vec<u8>, payload: &VolumePayload) -> Result<(), InvalidRecord> {
    let too_many = InvalidRecord("there are too many extents or checks");
    let extents = u16::try_from(payload.extents.len()).map_err(|_| too_many)?;
    let (form, count) = match &payload.checks {
        BlockChecks::List(checks) => (CHECKS_LIST, checks.len()),
        BlockChecks::Table(extents) => (CHECKS_TABLE, extents.len()),
    };
    out.extend_from_slice(&payload.id.0);
    out.extend_from_slice(&[form, 0]);
    out.extend_from_slice(&extents.to_le_bytes());
    out.extend_from_slice(&u32::try_from(count).map_err(|_| too_many)?.to_le_bytes());
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
            let packed = from.bytes(usize_of(u64::from(count)) * kind.bytes())?;
            BlockChecks::List(Checks::from_packed(kind, packed))
        }
        CHECKS_TABLE => BlockChecks::Table((0..count).map(|_| from.extent()).collect::<Result<_, _>>()?),
        _ => return Err(InvalidRecord("the form of its checks is unknown")),
    };
    let units: u64 = extents.iter().map(|extent| u64::from(extent.units)).sum();
    if units != units_for(size) {
        return Err(InvalidRecord("its extents do not match the size"));
    }
    if matches!(&checks, BlockChecks::List(list) if u64_of(list.len()) != blocks_for(size)) {
        return Err(InvalidRecord("its checks do not match the size"));
    }
    Ok(VolumePayload { id, extents, checks })
}

/// Returns the number of a retention mode on disk.
pub(crate) const fn mode_number(mode: RetentionMode) -> u8 {
    match mode {
        RetentionMode::Governance => 0,
        RetentionMode::Compliance => 1,
    }
}

/// Returns the retention mode with this number on disk.
pub(crate) const fn mode_of(number: u8) -> Option<RetentionMode> {
    match number {
        0 => Some(RetentionMode::Governance),
        1 => Some(RetentionMode::Compliance),
        _ => None,
    }
}

/// Appends an object lock.
pub(crate) fn encode_lock(out: &mut Vec<u8>, lock: &ObjectLock) {
    let (mode, until) = lock.retention.map_or((0, 0), |it| (1 + mode_number(it.mode), it.until.0));
    let hold = lock.legal_hold.map_or(0, |hold| if hold { HOLD_ON } else { HOLD_OFF });
    out.extend_from_slice(&[mode, hold]);
    out.extend_from_slice(&until.to_le_bytes());
}

/// Reads an object lock. An unknown value is an error, never the absence of a lock.
pub(crate) fn decode_lock(from: &mut Cursor<'_>) -> Result<ObjectLock, InvalidRecord> {
    let unknown = InvalidRecord("its lock is unknown");
    let [mode, legal_hold] = from.array()?;
    let until = Timestamp(from.u64()?);
    let retention = match mode.checked_sub(1) {
        None => None,
        Some(mode) => Some(Retention { mode: mode_of(mode).ok_or(unknown)?, until }),
    };
    let legal_hold = match legal_hold {
        0 => None,
        HOLD_ON => Some(true),
        HOLD_OFF => Some(false),
        _ => return Err(unknown),
    };
    Ok(ObjectLock { retention, legal_hold })
}

/// Appends the id of an imported version: its length (1), and its text.
pub(crate) fn encode_imported_id(out: &mut Vec<u8>, id: &ImportedId) {
    let id = id.as_str().as_bytes();
    out.push(u8::try_from(id.len()).expect("ids have at most 64 bytes"));
    out.extend_from_slice(id);
}

/// Reads what [`encode_imported_id`] appended.
pub(crate) fn decode_imported_id(from: &mut Cursor<'_>) -> Result<ImportedId, InvalidRecord> {
    let length = from.u8()?;
    let id = std::str::from_utf8(from.bytes(length.into())?).ok().and_then(ImportedId::parse);
    id.ok_or(InvalidRecord("the id of an imported version is malformed"))
}

/// The place of a payload: in the record or in volumes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum PayloadForm {
    /// In the tail of the record, with this check.
    Inline { check: BlockCheck },
    /// In volumes.
    Volume(VolumePayload),
}

/// A payload that was written as a whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Payload {
    pub(crate) form: PayloadForm,
    /// The data key, if the payload is sealed. Its checks are then tags.
    pub(crate) sealed: Option<WrappedKey>,
}

impl Payload {
    pub(crate) const FORM_INLINE: u8 = 0;
    pub(crate) const FORM_VOLUME: u8 = 1;

    /// Returns the number of the form on disk.
    pub(crate) const fn form_number(&self) -> u8 {
        match self.form {
            PayloadForm::Inline { .. } => Self::FORM_INLINE,
            PayloadForm::Volume(_) => Self::FORM_VOLUME,
        }
    }

    /// Returns the kind of the checks in the record. `None` if they are in table pages.
    fn check_kind(&self) -> Option<CheckKind> {
        match &self.form {
            PayloadForm::Inline { check } => Some(check.kind()),
            PayloadForm::Volume(VolumePayload { checks: BlockChecks::List(checks), .. }) => {
                Some(checks.kind())
            }
            PayloadForm::Volume(VolumePayload { checks: BlockChecks::Table(_), .. }) => None,
        }
    }

    /// Returns the part in volumes, if the payload is stored there.
    pub(crate) const fn volume(&self) -> Option<&VolumePayload> {
        match &self.form {
            PayloadForm::Inline { .. } => None,
            PayloadForm::Volume(payload) => Some(payload),
        }
    }

    /// Returns all extents that the payload owns.
    pub(crate) fn owned(&self) -> impl Iterator<Item = Extent> + '_ {
        self.volume().into_iter().flat_map(VolumePayload::owned)
    }

    /// Appends the wrapped key, if there is one, and the fields of the form.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) -> Result<(), InvalidRecord> {
        if let Some(WrappedKey(wrapped)) = &self.sealed {
            out.extend_from_slice(wrapped);
        }
        let kind = CheckKind::of(self.sealed.is_some());
        assert!(
            self.check_kind().is_none_or(|found| found == kind),
            "sealed payloads have tags, plain ones CRCs"
        );
        match &self.form {
            PayloadForm::Inline { check: BlockCheck::Crc64(check) } => {
                out.extend_from_slice(&check.to_le_bytes());
            }
            PayloadForm::Inline { check: BlockCheck::Tag(tag) } => out.extend_from_slice(tag),
            PayloadForm::Volume(volume) => encode_volume_payload(out, volume)?,
        }
        Ok(())
    }

    /// Reads what [`Self::encode`] appended. Extents and checks must match the size.
    pub(crate) fn decode(
        from: &mut Cursor<'_>,
        form: u8,
        size: u64,
        is_sealed: bool,
    ) -> Result<Self, InvalidRecord> {
        let sealed = if is_sealed { Some(WrappedKey(from.array()?)) } else { None };
        let kind = CheckKind::of(is_sealed);
        let form = match form {
            Self::FORM_INLINE => PayloadForm::Inline {
                check: match kind {
                    CheckKind::Crc64 => BlockCheck::Crc64(from.u64()?),
                    CheckKind::Tag => BlockCheck::Tag(from.array()?),
                },
            },
            Self::FORM_VOLUME => PayloadForm::Volume(decode_volume_payload(from, size, kind)?),
            _ => return Err(InvalidRecord("the form of its payload is unknown")),
        };
        Ok(Self { form, sealed })
    }
}

#[cfg(test)]
mod tests {
    use super::{Cursor, decode_attributes, decode_tags, encode_attributes, encode_tags};
    use crate::types::object::Attributes;
    use crate::types::tags::Tags;
    use proptest::prelude::*;

    fn tags() -> Tags {
        Tags::of_record(vec![("ab".into(), "c".into()), ("ä".into(), String::new())])
    }

    /// Golden bytes: a change here is a change of the on-disk format.
    #[test]
    fn encoded_tags_do_not_change() {
        let expected = b"\x02\0\x01\0abc\x02\0\0\0\xC3\xA4";
        assert_eq!(encode_tags(&tags()), expected);
        assert_eq!(decode_tags(expected), Ok(tags()));
        for length in [1, 4, 6, 8, 12] {
            assert!(decode_tags(&expected[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn tags_are_the_last_header() {
        let headers = vec![("content-type".to_owned(), b"a/b".to_vec())];
        let attributes = Attributes { headers, tags: tags(), ..Attributes::default() };
        let mut body = Vec::new();
        encode_attributes(&mut body, &attributes).expect("encodes");
        assert_eq!(body[0], 2);
        assert_eq!(decode_attributes(&mut Cursor(&body)), Ok(attributes));
        for (count, length, value) in [(1, 0, &b""[..]), (2, 5, b"\x01\0\0\0k")] {
            let mut bad = vec![count, 0, 13, 0, length, 0];
            bad.extend_from_slice(b"x-amz-tagging");
            bad.extend_from_slice(value);
            bad.extend_from_slice(&[0; 5]);
            assert!(decode_attributes(&mut Cursor(&bad)).is_err(), "{count}");
        }
    }

    proptest! {
        #[test]
        fn tags_that_decode_encode_to_the_same_bytes(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Ok(tags) = decode_tags(&bytes) {
                prop_assert_eq!(encode_tags(&tags), bytes);
            }
        }
    }
}
