//! The record of an unfinished multipart upload (table `uploads`).
//!
//! ```text
//! body, version 1 (integers little-endian)
//! offset  size  what
//! 0       8     when it was begun, milliseconds since the Unix epoch
//! 8       1     checksum algorithm of its parts: 0 none, else its number + 1
//! 9       1     checksum of the object: 0 of its bytes, 1 of the checksums of its parts
//! 10      10    lock of the future object (`codec.rs`)
//! 20      ...   its attributes (`codec.rs`)
//! ```
//! A completed upload has a record in the table `assembled` instead, under the same key: the sequence of the version that was
//! made of its parts (u64).

use crate::format::codec::{
    Cursor, InvalidRecord, decode_attributes, decode_lock, encode_attributes, encode_lock,
};
use crate::types::object::{ChecksumAlgorithm, ChecksumKind};
use crate::types::upload::{NewUpload, UploadChecksum, UploadInfo};
use cairn_model::{Timestamp, UploadId};

/// Version byte of the current form.
pub(crate) const UPLOAD_RECORD_VERSION: u8 = 1;

/// Returns the number of an optional checksum algorithm on disk.
pub(crate) fn algorithm_number(algorithm: Option<ChecksumAlgorithm>) -> u8 {
    algorithm.map_or(0, |algorithm| algorithm.number() + 1)
}

/// Returns the optional checksum algorithm with this number on disk.
pub(crate) fn algorithm_of(number: u8) -> Result<Option<ChecksumAlgorithm>, InvalidRecord> {
    let unknown = InvalidRecord("a checksum algorithm is unknown");
    let known = |number| ChecksumAlgorithm::from_number(number).ok_or(unknown);
    number.checked_sub(1).map(known).transpose()
}

/// Appends the body of an upload that is begun at `initiated`.
pub(crate) fn encode(
    out: &mut Vec<u8>,
    initiated: Timestamp,
    upload: &NewUpload,
) -> Result<(), InvalidRecord> {
    out.extend_from_slice(&initiated.0.to_le_bytes());
    let kind = match upload.checksum.map(|checksum| checksum.kind) {
        None | Some(ChecksumKind::FullObject) => 0,
        Some(ChecksumKind::Composite) => 1,
    };
    out.extend_from_slice(&[algorithm_number(upload.checksum.map(|it| it.algorithm)), kind]);
    encode_lock(out, &upload.lock);
    encode_attributes(out, &upload.attributes)
}

/// Decodes when an upload was begun, and nothing else.
pub(crate) fn decode_initiated(version: u8, body: &[u8]) -> Result<Timestamp, InvalidRecord> {
    if version != UPLOAD_RECORD_VERSION {
        return Err(InvalidRecord("its version is unknown"));
    }
    Ok(Timestamp(Cursor(body).u64()?))
}

/// Decodes a body.
pub(crate) fn decode(version: u8, body: &[u8], id: UploadId) -> Result<UploadInfo, InvalidRecord> {
    if version != UPLOAD_RECORD_VERSION {
        return Err(InvalidRecord("its version is unknown"));
    }
    let mut from = Cursor(body);
    let initiated = Timestamp(from.u64()?);
    let [algorithm, kind] = from.array()?;
    let kind = match kind {
        0 => ChecksumKind::FullObject,
        1 => ChecksumKind::Composite,
        _ => return Err(InvalidRecord("the kind of its checksums is unknown")),
    };
    let checksum = algorithm_of(algorithm)?.map(|algorithm| UploadChecksum { algorithm, kind });
    let lock = decode_lock(&mut from)?;
    let attributes = decode_attributes(&mut from)?;
    if !from.0.is_empty() {
        return Err(InvalidRecord("bytes follow its end"));
    }
    Ok(UploadInfo { id, initiated, upload: NewUpload { attributes, lock, checksum } })
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};
    use crate::types::object::{Attributes, ChecksumAlgorithm, ChecksumKind};
    use crate::types::object_lock::{ObjectLock, Retention, RetentionMode};
    use crate::types::upload::{NewUpload, UploadChecksum, UploadInfo};
    use cairn_model::{Timestamp, UploadId};

    fn full() -> NewUpload {
        let retention = Some(Retention { mode: RetentionMode::Governance, until: Timestamp(7) });
        NewUpload {
            attributes: Attributes { headers: vec![("a".into(), b"b".to_vec())], ..Attributes::default() },
            lock: ObjectLock { retention, legal_hold: None },
            checksum: Some(UploadChecksum {
                algorithm: ChecksumAlgorithm::Crc32c,
                kind: ChecksumKind::Composite,
            }),
        }
    }

    /// Golden bytes: a change here is a change of the on-disk format.
    #[test]
    fn encoded_bytes_do_not_change() {
        let mut body = Vec::new();
        encode(&mut body, Timestamp(5), &full()).expect("encodes");
        let mut expected = vec![5, 0, 0, 0, 0, 0, 0, 0, 2, 1, 1, 0, 7, 0, 0, 0, 0, 0, 0, 0];
        expected.extend([1, 0, 1, 0, 1, 0, b'a', b'b', 0]);
        assert_eq!(body, expected);
    }

    #[test]
    fn records_decode_to_what_was_encoded_and_truncated_ones_are_refused() {
        for upload in [NewUpload::default(), full()] {
            let mut body = Vec::new();
            encode(&mut body, Timestamp(5), &upload).expect("encodes");
            let decoded = decode(1, &body, UploadId(9)).expect("decodes");
            assert_eq!(decoded, UploadInfo { id: UploadId(9), initiated: Timestamp(5), upload });
            assert!(decode(2, &body, UploadId(9)).is_err());
            for cut in 0..body.len() {
                assert!(decode(1, &body[..cut], UploadId(9)).is_err());
            }
        }
    }
}
