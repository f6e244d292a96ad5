//! Fuzz target bodies for the decoders of on-disk formats.
//!
//! `fuzz/` runs them under libFuzzer; `cargo test` runs them on the saved corpora and on mutations of these.

use crate::format::bucket_record::{self, BUCKET_RECORD_VERSION};
use crate::format::due_record::{DUE_STATE_VERSION, DueKey, DueState};
use crate::format::extent::{Extent, push_extent};
use crate::format::free_map::{CHUNK_UNITS, runs_of_record};
use crate::format::keys;
use crate::format::lifecycle_record::{self, LIFECYCLE_RECORD_VERSION};
use crate::format::object_record::{OBJECT_RECORD_VERSION, ObjectRecord, RecordHead};
use crate::format::part_record::{PART_RECORD_VERSION, PartRecord};
use crate::format::upload_record::{self, UPLOAD_RECORD_VERSION};
use cairn_lmdb::Record;
use cairn_model::{UploadId, VersionId};

/// A fuzz target body. It panics when a property is violated.
pub type Body = fn(&[u8]);

/// The bodies of this crate, by target name.
pub const BODIES: &[(&str, Body)] = &[
    ("object_record", object_record),
    ("upload_records", upload_records),
    ("object_key", object_key),
    ("free_map_chunk", free_map_chunk),
];

/// Object records: a first byte is added to the version, the rest is the body.
///
/// A record that decodes must encode to a record that decodes to the same. Its head must agree with the whole record. Later
/// versions must be rejected.
///
/// # Panics
/// Panics when a property is violated.
pub fn object_record(data: &[u8]) {
    let Some((&later, body)) = data.split_first() else { return };
    let version = OBJECT_RECORD_VERSION.wrapping_add(later);
    let Ok(record) = ObjectRecord::decode(version, body) else { return };
    assert!(version <= OBJECT_RECORD_VERSION, "a later version was accepted");
    let head = RecordHead::decode(version, body).expect("the whole was decoded");
    assert_eq!((head.size, head.sequence), (record.info.size, record.info.version.0));
    let mut encoded = Vec::new();
    record.encode(&mut encoded).expect("what was decoded fits its fields");
    let again = ObjectRecord::decode(OBJECT_RECORD_VERSION, &encoded).expect("what was encoded decodes");
    assert!(again == record);
}

/// Upload, part, bucket and lifecycle records, and the due index: a first byte is the version, the rest is the body.
///
/// A record that decodes must encode to a record that decodes to the same.
///
/// # Panics
/// Panics when a property is violated.
pub fn upload_records(data: &[u8]) {
    let Some((&version, body)) = data.split_first() else { return };
    let id = UploadId(7);
    if let Ok(upload) = upload_record::decode(version, body, id) {
        let mut encoded = Vec::new();
        upload_record::encode(&mut encoded, upload.initiated, &upload.upload).expect("it was decoded");
        assert!(upload_record::decode(UPLOAD_RECORD_VERSION, &encoded, id).expect("decodes") == upload);
    }
    if let Ok(part) = PartRecord::decode(version, body, 7) {
        let mut encoded = Vec::new();
        part.encode(&mut encoded).expect("it was decoded");
        assert!(PartRecord::decode(PART_RECORD_VERSION, &encoded, 7).expect("decodes") == part);
    }
    if let Ok(rules) = lifecycle_record::decode(version, body) {
        let encoded = lifecycle_record::encode(&rules).expect("it was decoded");
        assert!(lifecycle_record::decode(LIFECYCLE_RECORD_VERSION, &encoded) == Ok(rules));
    }
    if let Some(state) = DueState::decode(version, body) {
        assert!(DueState::decode(DUE_STATE_VERSION, &state.encode()) == Some(state));
    }
    if let Some(key) = DueKey::decode(body) {
        assert_eq!(key.encode(), body);
    }
    let record = Record { version, body, tail: &[] };
    if let Some(bucket) = bucket_record::decode(b"bucket", &record) {
        let body = bucket_record::encode(&bucket, &bucket.settings());
        let record = Record { version: BUCKET_RECORD_VERSION, body: &body, tail: &[] };
        let again = bucket_record::decode(b"bucket", &record).expect("decodes");
        assert_eq!((again.id, again.settings()), (bucket.id, bucket.settings()));
    }
}

/// A key as stored, and as sent: one encoding for each key, in the order of the keys.
///
/// # Panics
/// Panics when a property is violated.
pub fn object_key(data: &[u8]) {
    if let Some((bucket, key, sequence)) = keys::decode(data) {
        let versions = keys::versions_of(bucket, &key);
        // Longer ones decode, though none was ever written.
        if let Some(versions) = versions {
            assert_eq!(keys::with_sequence(&versions, sequence), data);
            assert_eq!(keys::shared_length(data), versions.len());
        }
    }
    let (one, other) = data.split_at(data.len() / 2);
    let (Some(a), Some(b)) = (keys::versions_of(7, one), keys::versions_of(7, other)) else { return };
    assert_eq!(a.cmp(&b), one.cmp(other), "the order of encodings is the order of keys");
    assert!(a == b || !a.starts_with(&b) && !b.starts_with(&a));
    let newest = keys::with_sequence(&a, u64::MAX >> 1);
    assert_eq!(keys::decode(&newest), Some((7, one.to_vec(), u64::MAX >> 1)));
    let oldest = keys::with_sequence(&a, VersionId::imported_at(0).expect("early").0);
    assert!(keys::with_sequence(&a, 1) < oldest && oldest < keys::after_key(7, one));
    assert!(newest.starts_with(&keys::prefix_of(7, one)) && newest < keys::after_key(7, one));
    if let Some(after) = keys::after_prefix(7, one) {
        assert!(newest < after);
        assert_eq!(b.starts_with(&keys::prefix_of(7, one)), other.starts_with(one));
        assert_eq!(b >= after, other > one && !other.starts_with(one));
    }
    assert!(keys::slice_of(7, one, 3) < 3);
}

/// A chunk of the free map: its runs lie in it, touch nowhere, and cover exactly the units whose bits are set.
///
/// # Panics
/// Panics when a property is violated.
pub fn free_map_chunk(data: &[u8]) {
    let Some((head, body)) = data.split_first_chunk::<6>() else { return };
    let [version, volume, chunk @ ..] = *head;
    let (volume, chunk) = (u32::from(volume), u32::from_le_bytes(chunk));
    // Whole chunks are long for a fuzzer: what is missing repeats what is there.
    let whole: Vec<u8> = body.iter().copied().cycle().take(CHUNK_UNITS as usize / 8).collect();
    let bits = if body.is_empty() { body } else { &whole };
    let Ok(runs) = runs_of_record(version, (volume, chunk), bits) else { return };
    let owned: u32 = bits.iter().map(|byte| byte.count_ones()).sum();
    assert_eq!(runs.iter().map(|run| run.units).sum::<u32>(), owned);
    let mut joined: Vec<Extent> = Vec::new();
    for run in &runs {
        assert!(run.volume == volume && run.start / CHUNK_UNITS == chunk && run.units > 0);
        assert!((run.start + run.units - 1) / CHUNK_UNITS == chunk);
        push_extent(&mut joined, *run);
    }
    assert!(joined.len() == runs.len(), "runs that touch are one run");
    assert!(runs.windows(2).all(|pair| pair[0].start + pair[0].units < pair[1].start));
}

#[cfg(test)]
#[path = "../../fuzz/short_run.rs"]
mod short_run;
