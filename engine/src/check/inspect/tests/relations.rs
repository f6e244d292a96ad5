//! Records that name other records, planted so that they do not fit: null versions, parts, uploads, and their counters.

use super::support::{BUCKET, Planted, complete, key, put, store_with, upload, with_engine};
use crate::check::inspect::FindingKind;
use crate::format::codec::SMALL_RECORD_VERSION;
use crate::format::keys;
use crate::format::usage_record::{self, USAGE_RECORD_VERSION};
use crate::types::bucket::{BucketChange, Usage, Versioning};
use cairn_model::{BucketName, UploadId};

/// A key with an older null version.
const NULLED: &str = "with a null version";
/// A key with versions, none of which is the null version.
const VERSIONED: &str = "with versions";
/// The key of a multipart object: one part inline, two in volumes.
const ASSEMBLED: &str = "made of parts";
/// A key with an unfinished upload.
const UNFINISHED: &str = "not yet";

fn store() -> Planted {
    let planted = store_with(1, &[(NULLED, 100)]);
    with_engine(&planted.store, |engine| async move {
        let bucket = engine.store().bucket(&BucketName::parse(BUCKET).expect("a name")).expect("there");
        let enabled = BucketChange::Versioning(Versioning::Enabled);
        engine.store().change_bucket(&bucket, enabled).await.expect("changed");
        for name in [NULLED, VERSIONED, VERSIONED] {
            put(&engine, &bucket, name, 100).await;
        }
        let (assembled, unfinished) = (key(ASSEMBLED), key(UNFINISHED));
        let parts = [(1, 70_000), (2, 100), (3, 70_000)];
        let (id, parts) = upload(&engine, &bucket, &assembled, &parts).await;
        complete(&engine, &bucket, &assembled, id, parts).await.expect("completes");
        upload(&engine, &bucket, &unfinished, &[(1, 100)]).await;
    });
    assert_eq!(planted.kinds(), [""; 0], "nothing is found in a sound store");
    planted
}

fn versions(name: &str) -> Vec<u8> {
    keys::versions_of(1, name.as_bytes()).expect("short")
}

/// The encoded key of an object's upload, in `assembled` or in `uploads`.
fn upload_of(planted: &Planted, name: &str) -> Vec<u8> {
    let slice = &planted.store.slices[0];
    let txn = slice.environment.read().expect("reads");
    let (first, _) =
        txn.first_at_or_after(slice.tables.parts, &versions(name)).expect("reads").expect("there");
    keys::decode_part(first).expect("a part").0.to_vec()
}

#[test]
fn wrong_entries_of_the_null_version_table_are_found() {
    let planted = store();
    let null = planted.stored(|tables| tables.null_versions, &versions(NULLED)).1;
    planted
        .edit(|txn, tables| assert!(txn.remove(tables.null_versions, &versions(NULLED)).expect("removes")));
    assert_eq!(planted.kinds(), ["null_version_mismatch"]);
    let finding = planted.finding(FindingKind::NullVersionMismatch);
    assert_eq!((finding.bucket.as_deref(), finding.key.as_deref()), (Some(BUCKET), Some(NULLED)));
    let set = |name: &str, body: &[u8]| {
        planted.edit(|txn, tables| {
            txn.put(tables.null_versions, &versions(name), SMALL_RECORD_VERSION, body, b"").expect("puts");
        });
    };
    set(NULLED, &1u64.to_le_bytes());
    assert_eq!(planted.kinds(), ["null_version_mismatch"], "it leads to a version that is not there");
    set(NULLED, b"short");
    assert_eq!(planted.kinds(), ["null_version_mismatch"]);
    set(NULLED, &null);
    assert_eq!(planted.kinds(), [""; 0]);
    let (_, newest, _) = planted.record(VERSIONED);
    set(VERSIONED, &newest.info.version.0.to_le_bytes());
    assert_eq!(planted.kinds(), ["null_version_mismatch"], "it leads to a version that is not null");
}

#[test]
fn missing_and_extra_parts_are_found() {
    let planted = store();
    let upload = upload_of(&planted, ASSEMBLED);
    let part = keys::with_part(&upload, 2);
    let (version, body, tail) = planted.stored(|tables| tables.parts, &part);
    planted.edit(|txn, tables| assert!(txn.remove(tables.parts, &part).expect("removes")));
    assert_eq!(planted.kinds(), ["parts_mismatch"], "a part is missing");
    let finding = planted.finding(FindingKind::PartsMismatch);
    assert_eq!((finding.bucket.as_deref(), finding.key.as_deref()), (Some(BUCKET), Some(ASSEMBLED)));
    let put_part = |number| {
        planted.edit(|txn, tables| {
            let key = keys::with_part(&upload, number);
            txn.put(tables.parts, &key, version, &body, &tail).expect("puts");
        });
    };
    put_part(2);
    assert_eq!(planted.kinds(), [""; 0]);
    put_part(4);
    assert_eq!(planted.kinds(), ["parts_mismatch"], "a part that is none of it");
    planted.edit(|txn, tables| {
        assert!(txn.remove(tables.parts, &keys::with_part(&upload, 4)).expect("removes"))
    });
    planted.edit(|txn, tables| {
        txn.put(tables.assembled, &upload, SMALL_RECORD_VERSION, &1u64.to_le_bytes(), b"").expect("puts");
    });
    assert_eq!(planted.kinds(), ["parts_mismatch"], "a completed upload that leads to no version");
    planted.edit(|txn, tables| assert!(txn.remove(tables.assembled, &upload).expect("removes")));
    let kinds = planted.kinds();
    assert_eq!(kinds, ["part_without_upload", "parts_mismatch"], "nothing leads to the version");
}

#[test]
fn parts_without_upload_are_found() {
    let planted = store();
    let upload = upload_of(&planted, UNFINISHED);
    planted.edit(|txn, tables| assert!(txn.remove(tables.uploads, &upload).expect("removes")));
    assert_eq!(planted.kinds(), ["part_without_upload", "usage_mismatch"]);
    let finding = planted.finding(FindingKind::PartWithoutUpload);
    assert_eq!((finding.bucket.as_deref(), finding.key.as_deref()), (Some(BUCKET), Some(UNFINISHED)));
}

#[test]
fn an_upload_with_a_future_sequence_is_found() {
    let planted = store();
    let (version, body, tail) = planted.stored(|tables| tables.uploads, &upload_of(&planted, UNFINISHED));
    let later = keys::with_upload(&versions(UNFINISHED), UploadId(1 << 40));
    planted.edit(|txn, tables| txn.put(tables.uploads, &later, version, &body, &tail).expect("puts"));
    assert_eq!(planted.kinds(), ["sequence_behind", "usage_mismatch"]);
}

#[test]
fn every_counter_of_the_usage_is_compared() {
    let planted = store();
    let bucket = 1u64.to_be_bytes();
    let (version, body, _) = planted.stored(|tables| tables.usage, &bucket);
    let usage =
        usage_record::decode(cairn_lmdb::Record { version, body: &body, tail: b"" }).expect("decodes");
    let expected = Usage {
        objects: 3,
        bytes: 200 + 140_100,
        versions: 5,
        version_bytes: 400 + 140_100,
        delete_markers: 0,
        uploads: 1,
        part_bytes: 100,
    };
    assert_eq!(usage, expected);
    for counter in 0..Usage::COUNTERS {
        let mut counters = usage.counters();
        counters[counter] += 1;
        let wrong = usage_record::encode(&Usage::of_counters(counters));
        planted.edit(|txn, tables| {
            txn.put(tables.usage, &bucket, USAGE_RECORD_VERSION, &wrong, b"").expect("puts");
        });
        assert_eq!(planted.kinds(), ["usage_mismatch"], "counter {counter}");
    }
}
