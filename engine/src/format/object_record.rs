//! The record of an object version (table `objects`).
//!
//! ```text
//! body, version 2 (integers little-endian)
//! offset  size  what
//! 0       1     form: 0 payload inline (in the record's tail), 1 payload in volumes, 2 delete marker, 3 parts
//! 1       1     flags: bit 0 sealed, 1 null version, 2 locked, 3 imported with an id; the others zero
//! 2       1     checksum algorithms present, one bit each (bit n: algorithm number n, 0 to 7)
//! 3       1     bit 0: what the checksums are of: 0 the object, 1 the checksums of its parts
//!               bits 1 and 2: checksum algorithms 8 and 9 are present; the others zero
//! 4       4     number of parts; 0: put in one piece
//! 8       8     size of the payload in bytes
//! 16      8     last modification, milliseconds since the Unix epoch
//! 24      16    MD5 of the entity tag
//! 40      8     sequence of the version, or number of an imported one
//! 48      4     length a of the attributes
//! 52      a     attributes (`codec.rs`)
//! 52+a    10    only when locked: the lock (`codec.rs`)
//! ...     1+n   only when imported with an id: its length n, and the id
//! ...     ...   forms 0 and 1: the payload (`codec.rs`)
//!               form 2: nothing; size, entity tag and attributes are empty
//!               form 3: 16 payload id, u64 upload, u16 number r of runs, r runs (u16 first part, u16 count, u64 size)
//! ```
//! Stores of format versions up to 9 had no algorithms above 4, and those up to 10 no imported versions. Version 1 had forms 0
//! and 1 and no flag but the first: no bucket had versioning, so all of them are null versions.
//!
//! The head of 52 bytes comes first and has a fixed size, because it is all that a list needs. The payload comes last, because
//! the size and the flags before it are needed to decode it.
//!
//! The parts of a multipart object stay where they were uploaded: they are the records of table `parts` under its upload
//! (`part_record.rs`). The runs hold their numbers and sizes. The payload id is used to pin all of them together.

use crate::format::codec::{
    Cursor, InvalidRecord, LOCK_BYTES, Payload, decode_attributes, decode_imported_id, decode_lock,
    encode_attributes, encode_imported_id, encode_lock,
};
use crate::format::payload_id::PayloadId;
use crate::limits::PART_NUMBER_MAX;
use crate::types::object::{Attributes, ChecksumKind, ObjectInfo, PartRun, version_name};
use crate::types::object_lock::ObjectLock;
use crate::types::tags::Tags;
use cairn_model::{Etag, ImportedId, Timestamp, UploadId, VersionId, VersionName, usize_of};

/// Version byte of the current form.
pub(crate) const OBJECT_RECORD_VERSION: u8 = 2;
const FORM_DELETE_MARKER: u8 = 2;
const FORM_PARTS: u8 = 3;
const FLAG_SEALED: u8 = 1;
const FLAG_NULL: u8 = 1 << 1;
const FLAG_LOCKED: u8 = 1 << 2;
const FLAG_IMPORTED: u8 = 1 << 3;
const FLAGS: u8 = FLAG_SEALED | FLAG_NULL | FLAG_LOCKED | FLAG_IMPORTED;
const COMPOSITE: u8 = 1;
/// The bits of algorithms 8 and 9, and where they begin.
const HIGH_ALGORITHMS: u8 = 0b110;
const HIGH_ALGORITHMS_SHIFT: u8 = 1;

/// The content of a version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Content {
    /// A payload that was put as a whole.
    Payload(Payload),
    /// The parts of an upload. `info.parts` holds their numbers.
    Parts { id: PayloadId, upload: UploadId },
    /// None: the object was deleted.
    DeleteMarker,
}

/// The head of a record, which is all that lists need.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RecordHead {
    pub(crate) size: u64,
    pub(crate) last_modified: Timestamp,
    pub(crate) etag: Etag,
    pub(crate) sequence: u64,
    /// The algorithms present: [`ChecksumAlgorithm::bit`] of each.
    pub(crate) checksum_bits: u16,
    pub(crate) checksum_kind: ChecksumKind,
    pub(crate) is_null: bool,
    pub(crate) is_delete_marker: bool,
    pub(crate) imported: Option<ImportedId>,
}

/// A complete record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ObjectRecord {
    pub(crate) info: ObjectInfo,
    pub(crate) content: Content,
}

impl RecordHead {
    /// Decodes the first 52 bytes of a body, and the id of an imported version.
    pub(crate) fn decode(version: u8, body: &[u8]) -> Result<Self, InvalidRecord> {
        let mut from = Cursor(body);
        let (mut head, _, flags) = Self::take(version, &mut from)?;
        if flags & FLAG_IMPORTED != 0 {
            let attributes = from.u32()?;
            from.bytes(usize_of(attributes.into()))?;
            if flags & FLAG_LOCKED != 0 {
                from.bytes(LOCK_BYTES)?;
            }
            head.imported = Some(decode_imported_id(&mut from)?);
        }
        Ok(head)
    }

    /// Returns the version as clients name it.
    pub(crate) const fn version_name(&self) -> VersionName {
        version_name(VersionId(self.sequence), self.is_null, self.imported)
    }

    /// Head without the id of an imported version, form and flags.
    fn take(version: u8, from: &mut Cursor<'_>) -> Result<(Self, u8, u8), InvalidRecord> {
        let (known_flags, implied_flags) = match version {
            1 => (FLAG_SEALED, FLAG_NULL),
            OBJECT_RECORD_VERSION => (FLAGS, 0),
            _ => return Err(InvalidRecord("its version is unknown")),
        };
        let [form, flags, low_bits, kind] = from.array()?;
        if flags & !known_flags != 0 {
            return Err(InvalidRecord("some of its flags are unknown"));
        }
        let flags = flags | implied_flags;
        if kind & !(COMPOSITE | HIGH_ALGORITHMS) != 0 {
            return Err(InvalidRecord("the kind of its checksums is unknown"));
        }
        let checksum_kind =
            if kind & COMPOSITE == 0 { ChecksumKind::FullObject } else { ChecksumKind::Composite };
        let checksum_bits = u16::from_le_bytes([low_bits, kind >> HIGH_ALGORITHMS_SHIFT]);
        let parts = from.u32()?;
        let head = Self {
            size: from.u64()?,
            last_modified: Timestamp(from.u64()?),
            etag: Etag { md5: from.array()?, parts },
            sequence: from.u64()?,
            checksum_bits,
            checksum_kind,
            is_null: flags & FLAG_NULL != 0,
            is_delete_marker: form == FORM_DELETE_MARKER,
            imported: None,
        };
        Ok((head, form, flags))
    }
}

/// Decodes only the lock of a body.
pub(crate) fn decode_lock_of(version: u8, body: &[u8]) -> Result<ObjectLock, InvalidRecord> {
    let mut from = Cursor(body);
    let (_, _, flags) = RecordHead::take(version, &mut from)?;
    if flags & FLAG_LOCKED == 0 {
        return Ok(ObjectLock::default());
    }
    let attributes = from.u32()?;
    from.bytes(usize_of(attributes.into()))?;
    decode_lock(&mut from)
}

/// Decodes only the tags of a body. Delete markers have none.
pub(crate) fn decode_tags_of(version: u8, body: &[u8]) -> Result<Tags, InvalidRecord> {
    let mut from = Cursor(body);
    RecordHead::take(version, &mut from)?;
    let attributes = from.u32()?;
    let mut attributes = Cursor(from.bytes(usize_of(attributes.into()))?);
    if attributes.0.is_empty() {
        return Ok(Tags::default());
    }
    decode_attributes(&mut attributes).map(|attributes| attributes.tags)
}

impl ObjectRecord {
    /// Returns the record of a delete marker.
    pub(crate) fn delete_marker(version: VersionId, last_modified: Timestamp, is_null: bool) -> Self {
        let info = ObjectInfo {
            size: 0,
            etag: Etag::single([0; 16]),
            last_modified,
            version,
            is_null,
            imported: None,
            attributes: Attributes::default(),
            encrypted: false,
            lock: Default::default(),
            parts: Vec::new(),
        };
        Self { info, content: Content::DeleteMarker }
    }

    pub(crate) const fn is_delete_marker(&self) -> bool {
        matches!(self.content, Content::DeleteMarker)
    }

    /// Appends the body, with the sequence of `info.version`.
    ///
    /// # Errors
    /// If a header or a list is longer than its length field can express. The limits of the upper layers prevent this.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) -> Result<(), InvalidRecord> {
        let info = &self.info;
        let form = match &self.content {
            Content::Payload(payload) => payload.form_number(),
            Content::DeleteMarker => FORM_DELETE_MARKER,
            Content::Parts { .. } => FORM_PARTS,
        };
        let is_locked = info.lock != Default::default();
        let flag = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        let flags = flag(info.encrypted, FLAG_SEALED)
            | flag(info.is_null, FLAG_NULL)
            | flag(is_locked, FLAG_LOCKED)
            | flag(info.imported.is_some(), FLAG_IMPORTED);
        let bits = info.attributes.checksums.iter().fold(0, |bits, (algorithm, _)| bits | algorithm.bit());
        let [low_bits, high_bits] = u16::to_le_bytes(bits);
        let kind = match info.attributes.checksum_kind {
            ChecksumKind::FullObject => 0,
            ChecksumKind::Composite => COMPOSITE,
        };
        out.extend_from_slice(&[form, flags, low_bits, kind | high_bits << HIGH_ALGORITHMS_SHIFT]);
        out.extend_from_slice(&info.etag.parts.to_le_bytes());
        out.extend_from_slice(&info.size.to_le_bytes());
        out.extend_from_slice(&info.last_modified.0.to_le_bytes());
        out.extend_from_slice(&info.etag.md5);
        out.extend_from_slice(&info.version.0.to_le_bytes());
        let length_at = out.len();
        out.extend_from_slice(&[0; 4]);
        encode_attributes(out, &info.attributes)?;
        let length = u32::try_from(out.len() - length_at - 4)
            .map_err(|_| InvalidRecord("its attributes are too long"))?;
        out[length_at..length_at + 4].copy_from_slice(&length.to_le_bytes());
        if is_locked {
            encode_lock(out, &info.lock);
        }
        if let Some(id) = &info.imported {
            encode_imported_id(out, id);
        }
        match &self.content {
            Content::Payload(payload) => {
                assert_eq!(
                    info.encrypted,
                    payload.sealed.is_some(),
                    "the flag says whether the payload is sealed"
                );
                payload.encode(out)
            }
            Content::DeleteMarker => Ok(()),
            Content::Parts { id, upload } => {
                out.extend_from_slice(&id.0);
                out.extend_from_slice(&upload.0.to_le_bytes());
                encode_runs(out, &info.parts)
            }
        }
    }

    /// Decodes a body. Extents and checks of the payload must match its size.
    pub(crate) fn decode(version: u8, body: &[u8]) -> Result<Self, InvalidRecord> {
        let mut from = Cursor(body);
        let (head, form, flags) = RecordHead::take(version, &mut from)?;
        let length = from.u32()?;
        let attributes = from.bytes(usize_of(length.into()))?;
        let mut attributes = decode_attributes(&mut Cursor(attributes))?;
        attributes.checksum_kind = head.checksum_kind;
        let lock = if flags & FLAG_LOCKED != 0 { decode_lock(&mut from)? } else { Default::default() };
        let imported = (flags & FLAG_IMPORTED != 0).then(|| decode_imported_id(&mut from)).transpose()?;
        let is_sealed = flags & FLAG_SEALED != 0;
        let mut parts = Vec::new();
        let content = match form {
            FORM_DELETE_MARKER if head.size != 0 => return Err(InvalidRecord("a delete marker has a size")),
            FORM_DELETE_MARKER => Content::DeleteMarker,
            FORM_PARTS => {
                let (id, upload) = (PayloadId(from.array()?), UploadId(from.u64()?));
                parts = decode_runs(&mut from, &head)?;
                Content::Parts { id, upload }
            }
            _ => Content::Payload(Payload::decode(&mut from, form, head.size, is_sealed)?),
        };
        if !from.0.is_empty() {
            return Err(InvalidRecord("bytes follow its end"));
        }
        let info = ObjectInfo {
            size: head.size,
            etag: head.etag,
            last_modified: head.last_modified,
            version: VersionId(head.sequence),
            is_null: head.is_null,
            imported,
            attributes,
            encrypted: is_sealed,
            lock,
            parts,
        };
        Ok(Self { info, content })
    }
}

fn encode_runs(out: &mut Vec<u8>, runs: &[PartRun]) -> Result<(), InvalidRecord> {
    let count = u16::try_from(runs.len()).map_err(|_| InvalidRecord("there are too many parts"))?;
    out.extend_from_slice(&count.to_le_bytes());
    for run in runs {
        out.extend_from_slice(&run.first.to_le_bytes());
        out.extend_from_slice(&run.count.to_le_bytes());
        out.extend_from_slice(&run.size.to_le_bytes());
    }
    Ok(())
}

/// Decodes the runs of parts. They must be in order and not empty, and have as many parts and bytes as the head says.
fn decode_runs(from: &mut Cursor<'_>, head: &RecordHead) -> Result<Vec<PartRun>, InvalidRecord> {
    let mut runs: Vec<PartRun> = Vec::new();
    let (mut next_number, mut parts, mut size) = (1u32, 0u32, 0u64);
    for _ in 0..from.u16()? {
        let run = PartRun { first: from.u16()?, count: from.u16()?, size: from.u64()? };
        let (first, count) = (u32::from(run.first), u32::from(run.count));
        if first < next_number || count == 0 || first + count > u32::from(PART_NUMBER_MAX) + 1 {
            return Err(InvalidRecord("its parts are out of order"));
        }
        next_number = first + count;
        parts += count;
        let bytes = run.size.checked_mul(u64::from(run.count)).and_then(|bytes| bytes.checked_add(size));
        size = bytes.ok_or(InvalidRecord("its parts do not match the size"))?;
        runs.push(run);
    }
    if (parts, size) != (head.etag.parts, head.size) {
        return Err(InvalidRecord("its parts do not match the size"));
    }
    Ok(runs)
}

#[cfg(test)]
mod tests {
    use super::{Content, ObjectRecord, RecordHead, decode_lock_of};
    use crate::format::block::{BlockCheck, CheckKind, Checks};
    use crate::format::codec::{BlockChecks, Payload, PayloadForm, VolumePayload};
    use crate::format::extent::Extent;
    use crate::format::payload_id::PayloadId;
    use crate::format::seal::WrappedKey;
    use crate::limits::{OBJECT_BYTES_MAX, PART_NUMBER_MAX, PAYLOAD_BYTES_MAX};
    use crate::types::object::{Attributes, ChecksumAlgorithm, ChecksumKind, ObjectInfo, PartRun};
    use crate::types::object_lock::{ObjectLock, Retention, RetentionMode};
    use cairn_model::{Etag, ImportedId, Timestamp, UploadId, VersionId};
    use proptest::prelude::*;

    const WRAPPED: WrappedKey = WrappedKey([4; 60]);

    fn record(size: u64, form: PayloadForm, sealed: Option<WrappedKey>) -> ObjectRecord {
        let attributes = Attributes {
            headers: vec![("content-type".to_owned(), b"text/plain".to_vec())],
            checksums: vec![(ChecksumAlgorithm::Crc32c, vec![1, 2, 3, 4])],
            ..Attributes::default()
        };
        let info = ObjectInfo {
            size,
            etag: Etag { md5: [9; 16], parts: 0 },
            last_modified: Timestamp(1_795_000_000_123),
            version: VersionId(77),
            attributes,
            encrypted: sealed.is_some(),
            is_null: false,
            imported: None,
            lock: Default::default(),
            parts: Vec::new(),
        };
        ObjectRecord { info, content: Content::Payload(Payload { form, sealed }) }
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

    fn of_parts() -> ObjectRecord {
        let mut record = record(30, PayloadForm::Inline { check: BlockCheck::Crc64(1) }, None);
        record.content = Content::Parts { id: PayloadId([8; 16]), upload: UploadId(0x0102) };
        record.info.etag.parts = 4;
        record.info.attributes.checksum_kind = ChecksumKind::Composite;
        record.info.parts =
            vec![PartRun { first: 2, count: 3, size: 9 }, PartRun { first: 10_000, count: 1, size: 3 }];
        record.info.is_null = true;
        let until = Timestamp(0x0A0B);
        let retention = Some(Retention { mode: RetentionMode::Compliance, until });
        record.info.lock = ObjectLock { retention, legal_hold: Some(true) };
        record
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
            of_parts(),
        ] {
            let mut body = Vec::new();
            record.encode(&mut body).expect("encodes");
            assert_eq!(ObjectRecord::decode(2, &body).expect("decodes"), record);
            let head = RecordHead::decode(2, &body).expect("decodes");
            assert_eq!((head.size, head.sequence, head.checksum_bits), (record.info.size, 77, 0b10));
            assert_eq!(decode_lock_of(2, &body).expect("decodes"), record.info.lock);
        }
        let mut imported = of_parts();
        imported.info.imported = ImportedId::parse("7-f");
        imported.info.is_null = false;
        let mut body = Vec::new();
        imported.encode(&mut body).expect("encodes");
        assert_eq!((body[1], &body[97..101]), (0b1100, &b"\x037-f"[..]));
        assert_eq!(ObjectRecord::decode(2, &body).expect("decodes"), imported);
        let head = RecordHead::decode(2, &body).expect("decodes");
        assert_eq!(head.version_name(), imported.info.version_name());
        assert_eq!(head.version_name().to_string(), "7-f");
        assert_eq!(decode_lock_of(2, &body).expect("decodes"), imported.info.lock);
        body[98] = b'/';
        assert!(RecordHead::decode(2, &body).is_err() && ObjectRecord::decode(2, &body).is_err());
        let marker = ObjectRecord::delete_marker(VersionId(5), Timestamp(6), true);
        let mut body = Vec::new();
        marker.encode(&mut body).expect("encodes");
        assert_eq!(ObjectRecord::decode(2, &body).expect("decodes"), marker);
        assert!(RecordHead::decode(2, &body).expect("decodes").is_delete_marker);
    }

    /// Golden bytes: a change here is a change of the on-disk format.
    #[test]
    fn encoded_bytes_do_not_change() {
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

        let mut body = Vec::new();
        let mut record = record(3, PayloadForm::Inline { check: BlockCheck::Crc64(1) }, None);
        record.info.attributes.checksums =
            [ChecksumAlgorithm::Md5, ChecksumAlgorithm::XxHash3, ChecksumAlgorithm::XxHash128]
                .map(|algorithm| (algorithm, vec![7]))
                .into();
        record.info.attributes.checksum_kind = ChecksumKind::Composite;
        record.encode(&mut body).expect("encodes");
        assert_eq!(body[..4], [0, 0, 0b100_0000, 0b111]);
        assert_eq!(body[80..90], [3, 6, 1, 7, 8, 1, 7, 9, 1, 7]);

        let mut body = Vec::new();
        of_parts().encode(&mut body).expect("encodes");
        assert_eq!(body[..8], [3, 0b110, 2, 1, 4, 0, 0, 0]);
        assert_eq!(body[87..97], [2, 1, 0x0B, 0x0A, 0, 0, 0, 0, 0, 0]);
        assert_eq!(body[97..113], [8; 16]);
        assert_eq!(body[113..123], [2, 1, 0, 0, 0, 0, 0, 0, 2, 0]);
        assert_eq!(body[123..135], [2, 0, 3, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(body[135..], [0x10, 0x27, 1, 0, 3, 0, 0, 0, 0, 0, 0, 0]);
    }

    /// Records of the first format have no flag for null versions. They were read as versions with an id, so an overwrite
    /// kept the old object, and a delete restored it.
    #[test]
    fn records_of_version_1_are_null_versions() {
        let mut body = Vec::new();
        volume(200_000, None).encode(&mut body).expect("encodes");
        assert!(ObjectRecord::decode(1, &body).expect("decodes").info.is_null);
        assert!(!ObjectRecord::decode(2, &body).expect("decodes").info.is_null);
        body[1] = 0b10;
        assert!(ObjectRecord::decode(1, &body).is_err(), "it had no such flag");
    }

    #[test]
    fn every_checksum_algorithm_has_a_bit_in_the_head() {
        for algorithm in ChecksumAlgorithm::ALL {
            for checksum_kind in [ChecksumKind::FullObject, ChecksumKind::Composite] {
                let mut record = record(3, PayloadForm::Inline { check: BlockCheck::Crc64(1) }, None);
                record.info.attributes.checksums = vec![(algorithm, vec![1; 64])];
                record.info.attributes.checksum_kind = checksum_kind;
                let mut body = Vec::new();
                record.encode(&mut body).expect("encodes");
                let head = RecordHead::decode(2, &body).expect("decodes");
                assert_eq!((head.checksum_bits, head.checksum_kind), (algorithm.bit(), checksum_kind));
                assert_eq!(ObjectRecord::decode(2, &body).expect("decodes"), record);
                body[3] |= 0b1000;
                assert!(ObjectRecord::decode(2, &body).is_err(), "this bit has no meaning");
            }
        }
    }

    #[test]
    fn parts_out_of_order_or_of_another_size_are_refused() {
        for change in [
            |runs: &mut Vec<PartRun>| runs.swap(0, 1),
            |runs: &mut Vec<PartRun>| runs[0].count = 4,
            |runs: &mut Vec<PartRun>| runs[1].size = 4,
            |runs: &mut Vec<PartRun>| runs[1].count = 0,
            |runs: &mut Vec<PartRun>| runs[1].first = 4,
            |runs: &mut Vec<PartRun>| runs[1].first = 10_001,
            |runs: &mut Vec<PartRun>| runs[0].size = u64::MAX,
        ] {
            let mut record = of_parts();
            change(&mut record.info.parts);
            let mut body = Vec::new();
            record.encode(&mut body).expect("encodes");
            assert!(ObjectRecord::decode(2, &body).is_err(), "{:?}", record.info.parts);
        }
    }

    #[test]
    fn the_largest_object_is_read_as_it_was_written() {
        let mut largest = of_parts();
        largest.info.etag.parts = PART_NUMBER_MAX.into();
        largest.info.size = OBJECT_BYTES_MAX;
        largest.info.parts = vec![PartRun { first: 1, count: PART_NUMBER_MAX, size: PAYLOAD_BYTES_MAX }];
        let mut body = Vec::new();
        largest.encode(&mut body).expect("encodes");
        let read = ObjectRecord::decode(2, &body).expect("decodes");
        assert_eq!((read.info.size, read.info.part_range(1)), (OBJECT_BYTES_MAX, Some(0..PAYLOAD_BYTES_MAX)));
        let last = OBJECT_BYTES_MAX - PAYLOAD_BYTES_MAX..OBJECT_BYTES_MAX;
        assert_eq!(read.info.part_range(PART_NUMBER_MAX), Some(last));
    }

    #[test]
    fn extents_that_do_not_match_the_size_are_refused() {
        let mut body = Vec::new();
        volume(200_000, None).encode(&mut body).expect("encodes");
        body[8] = 0;
        body[9] = 0;
        assert!(ObjectRecord::decode(2, &body).is_err());
        assert!(ObjectRecord::decode(3, &body).is_err());
    }

    proptest! {
        /// Damaged bytes may decode to another record (the record's check prevents that), but never cause a panic.
        #[test]
        fn damaged_bytes_never_panic(cut in 0usize..300, at in 0usize..250, byte: u8, sealed: bool) {
            let mut body = Vec::new();
            volume(200_000, sealed.then_some(WRAPPED)).encode(&mut body).expect("encodes");
            let at = at % body.len();
            body[at] = byte;
            body.truncate(cut);
            let _ = ObjectRecord::decode(2, &body);
        }
    }
}
