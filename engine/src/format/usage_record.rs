//! The record of a bucket's usage in one slice.
//!
//! Key: the id of the bucket, u64, big-endian. A bucket without a record uses nothing in the slice.
//! ```text
//! body, version 2 (integers little-endian)
//! offset  size  what
//! 0       8     current objects
//! 8       8     bytes of their payloads
//! 16      8     versions with a payload, including current ones
//! 24      8     bytes of their payloads
//! 32      8     delete markers
//! 40      8     multipart uploads in progress
//! 48      8     bytes of their parts
//! ```
//! Version 1 has the first 16 bytes only. It was written by programs without versions and uploads, so its objects are all
//! versions that there are.

use crate::types::bucket::Usage;
use cairn_lmdb::Record;

/// Version byte of the current form.
pub(crate) const USAGE_RECORD_VERSION: u8 = 2;
const VERSION_WITHOUT_VERSIONS: u8 = 1;
const COUNTER_BYTES: usize = size_of::<u64>();

/// Decodes a usage record. Returns `None` if its form is unknown.
pub(crate) fn decode(record: Record<'_>) -> Option<Usage> {
    let (numbers, rest) = record.body.as_chunks::<COUNTER_BYTES>();
    let mut numbers = numbers.iter().map(|bytes| u64::from_le_bytes(*bytes));
    let mut next = || numbers.next();
    let usage = match record.version {
        VERSION_WITHOUT_VERSIONS => {
            let (objects, bytes) = (next()?, next()?);
            Usage { objects, bytes, versions: objects, version_bytes: bytes, ..Usage::default() }
        }
        USAGE_RECORD_VERSION => {
            let mut counters = [0; Usage::COUNTERS];
            for counter in &mut counters {
                *counter = next()?;
            }
            Usage::of_counters(counters)
        }
        _ => return None,
    };
    (next().is_none() && rest.is_empty()).then_some(usage)
}

/// Encodes the body of a usage record.
pub(crate) fn encode(usage: &Usage) -> Vec<u8> {
    let body: Vec<u8> = usage.counters().iter().flat_map(|counter| counter.to_le_bytes()).collect();
    assert_eq!(body.len(), Usage::COUNTERS * COUNTER_BYTES, "the record has one field for each counter");
    body
}

#[cfg(test)]
mod tests {
    use super::{USAGE_RECORD_VERSION, decode, encode};
    use crate::types::bucket::Usage;
    use cairn_lmdb::Record;

    /// Golden bytes: the record of a store that exists.
    #[test]
    fn encoded_bytes_do_not_change() {
        let usage = Usage::of_counters([1, 2, 3, 4, 5, 6, 7]);
        let body = encode(&usage);
        let expected: Vec<u8> = (1..=7u8).flat_map(|n| [n, 0, 0, 0, 0, 0, 0, 0]).collect();
        assert_eq!(body, expected);
        assert_eq!(decode(Record { version: USAGE_RECORD_VERSION, body: &body, tail: b"" }), Some(usage));
    }

    #[test]
    fn version_1_counts_objects_as_versions() {
        let body = [[9, 0, 0, 0, 0, 0, 0, 0], [8, 0, 0, 0, 0, 0, 0, 0]].concat();
        let usage = decode(Record { version: 1, body: &body, tail: b"" }).expect("known");
        assert_eq!(usage, Usage::of_counters([9, 8, 9, 8, 0, 0, 0]));
    }

    #[test]
    fn records_of_another_length_or_version_are_refused() {
        let body = encode(&Usage::default());
        for (version, body) in [(2, &body[1..]), (2, &body[..48]), (1, &body), (3, &body)] {
            assert_eq!(decode(Record { version, body, tail: b"" }), None, "{version} {}", body.len());
        }
    }
}
