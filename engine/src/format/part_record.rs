//! The record of a part (table `parts`).
//!
//! Its key consists of the upload and the part number.
//!
//! ```text
//! body, version 1 (integers little-endian)
//! offset  size  what
//! 0       1     form: 0 payload inline (in the record's tail), 1 payload in volumes
//! 1       1     flags: bit 0 sealed, 1 opaque entity tag; the others zero
//! 2       1     checksum algorithm: 0 none, else its number + 1
//! 3       1     length d of its digest
//! 4       8     size in bytes
//! 12      8     when it was uploaded, milliseconds since the Unix epoch
//! 20      16    MD5, or the bytes of the opaque entity tag
//! 36      d     digest
//! 36+d    ...   the payload (`codec.rs`)
//! ```
//! A part belongs to its upload (`upload_record.rs`) and, after the upload is completed, to the version that was made of it.
//! A part is written once: a completion changes none. All that a completion needs comes before the payload.

use crate::format::codec::{Cursor, InvalidRecord, Payload};
use crate::format::upload_record::{algorithm_number, algorithm_of};
use crate::types::upload::PartInfo;
use cairn_model::Timestamp;

/// Version byte of the current form.
pub(crate) const PART_RECORD_VERSION: u8 = 1;
const FLAG_SEALED: u8 = 1;
const FLAG_OPAQUE: u8 = 1 << 1;

/// A part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PartRecord {
    pub(crate) info: PartInfo,
    pub(crate) payload: Payload,
}

/// The fields of a part that lists and completions need, without its payload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PartHead {
    pub(crate) info: PartInfo,
    pub(crate) is_sealed: bool,
}

impl PartHead {
    /// Decodes the beginning of the body of part `number`.
    pub(crate) fn decode(version: u8, body: &[u8], number: u16) -> Result<Self, InvalidRecord> {
        Self::take(version, &mut Cursor(body), number).map(|(head, _)| head)
    }

    /// Head and payload form.
    fn take(version: u8, from: &mut Cursor<'_>, number: u16) -> Result<(Self, u8), InvalidRecord> {
        if version != PART_RECORD_VERSION {
            return Err(InvalidRecord("its version is unknown"));
        }
        let [form, flags, algorithm, length] = from.array()?;
        if flags & !(FLAG_SEALED | FLAG_OPAQUE) != 0 {
            return Err(InvalidRecord("some of its flags are unknown"));
        }
        let (size, last_modified) = (from.u64()?, Timestamp(from.u64()?));
        let md5 = from.array()?;
        let digest = from.bytes(length.into())?;
        let checksum = algorithm_of(algorithm)?.map(|algorithm| (algorithm, digest.to_vec()));
        let info =
            PartInfo { number, size, md5, is_opaque: flags & FLAG_OPAQUE != 0, last_modified, checksum };
        Ok((Self { info, is_sealed: flags & FLAG_SEALED != 0 }, form))
    }
}

impl PartRecord {
    /// Appends the body.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) -> Result<(), InvalidRecord> {
        let PartInfo { number: _, size, md5, is_opaque, last_modified, checksum } = &self.info;
        let (algorithm, digest) = checksum.as_ref().map_or((None, &[][..]), |(a, d)| (Some(*a), d));
        let length = u8::try_from(digest.len()).map_err(|_| InvalidRecord("its digest is too long"))?;
        let flag = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        let flags = flag(self.payload.sealed.is_some(), FLAG_SEALED) | flag(*is_opaque, FLAG_OPAQUE);
        out.extend_from_slice(&[self.payload.form_number(), flags, algorithm_number(algorithm), length]);
        out.extend_from_slice(&size.to_le_bytes());
        out.extend_from_slice(&last_modified.0.to_le_bytes());
        out.extend_from_slice(md5);
        out.extend_from_slice(digest);
        self.payload.encode(out)
    }

    /// Decodes the body of part `number`. Extents and checks of the payload must match its size.
    pub(crate) fn decode(version: u8, body: &[u8], number: u16) -> Result<Self, InvalidRecord> {
        let mut from = Cursor(body);
        let (PartHead { info, is_sealed }, form) = PartHead::take(version, &mut from, number)?;
        let payload = Payload::decode(&mut from, form, info.size, is_sealed)?;
        if !from.0.is_empty() {
            return Err(InvalidRecord("bytes follow its end"));
        }
        Ok(Self { info, payload })
    }
}

#[cfg(test)]
mod tests {
    use super::PartRecord;
    use crate::format::block::{BlockCheck, CheckKind, Checks};
    use crate::format::codec::{BlockChecks, Payload, PayloadForm, VolumePayload};
    use crate::format::extent::Extent;
    use crate::format::payload_id::PayloadId;
    use crate::format::seal::WrappedKey;
    use crate::types::object::ChecksumAlgorithm;
    use crate::types::upload::PartInfo;
    use cairn_model::Timestamp;

    fn part(payload: Payload, size: u64, checksum: Option<(ChecksumAlgorithm, Vec<u8>)>) -> PartRecord {
        let last_modified = Timestamp(5);
        PartRecord {
            info: PartInfo { number: 7, size, md5: [9; 16], is_opaque: false, last_modified, checksum },
            payload,
        }
    }

    fn inline() -> PartRecord {
        let form = PayloadForm::Inline { check: BlockCheck::Crc64(1) };
        part(Payload { form, sealed: None }, 3, Some((ChecksumAlgorithm::Crc32, vec![1, 2, 3, 4])))
    }

    /// Golden bytes: a change here is a change of the on-disk format.
    #[test]
    fn encoded_bytes_do_not_change() {
        let mut body = Vec::new();
        inline().encode(&mut body).expect("encodes");
        let mut expected = vec![0, 0, 1, 4, 3, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0];
        expected.extend([9; 16]);
        expected.extend([1, 2, 3, 4, 1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(body, expected);
    }

    #[test]
    fn every_checksum_algorithm_has_its_number() {
        for (number, algorithm) in (1..).zip(ChecksumAlgorithm::ALL) {
            let form = PayloadForm::Inline { check: BlockCheck::Crc64(1) };
            let record = part(Payload { form, sealed: None }, 3, Some((algorithm, vec![1; 64])));
            let mut body = Vec::new();
            record.encode(&mut body).expect("encodes");
            assert_eq!(body[2..4], [number, 64]);
            assert_eq!(PartRecord::decode(1, &body, 7).expect("decodes"), record);
        }
    }

    #[test]
    fn records_decode_to_what_was_encoded_and_truncated_ones_are_refused() {
        let extents = vec![Extent { volume: 0, start: 16, units: 16 }];
        let checks = BlockChecks::List(Checks::from_packed(CheckKind::Tag, &[1; 16]));
        let form = PayloadForm::Volume(VolumePayload { id: PayloadId([1; 16]), extents, checks });
        let sealed = part(Payload { form, sealed: Some(WrappedKey([4; 60])) }, 65_536, None);
        for record in [inline(), sealed] {
            let mut body = Vec::new();
            record.encode(&mut body).expect("encodes");
            assert_eq!(PartRecord::decode(1, &body, 7).expect("decodes"), record);
            assert!(PartRecord::decode(2, &body, 7).is_err());
            for cut in 0..body.len() {
                assert!(PartRecord::decode(1, &body[..cut], 7).is_err());
            }
        }
    }
}
