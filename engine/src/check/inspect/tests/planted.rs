//! Every kind of inconsistency, planted and found under its own name.

use super::support::{BUCKET, Planted, put, store_with, with_engine};
use crate::DeleteOptions;
use crate::EngineError;
use crate::EventQuery;
use crate::check::inspect::FindingKind;
use crate::format::codec::{BlockChecks, Payload, PayloadForm, VolumePayload};
use crate::format::due_record::{DUE_RECORD_VERSION, DUE_STATE_VERSION, DueKey, DueState};
use crate::format::event_record::EVENT_RECORD_VERSION;
use crate::format::extent::Extent;
use crate::format::keys;
use crate::format::object_record::{Content, OBJECT_RECORD_VERSION, ObjectRecord};
use crate::limits::FINDINGS_MAX;
use crate::slice::tables::{IDENTITY_KEY, SEQUENCE_KEY};
use crate::store::bucket_catalog::NEXT_ID_KEY;
use crate::types::lifecycle::VersionRole;
use crate::types::object::ObjectInfo;
use cairn_model::{BucketName, ObjectKey, VersionId};
use std::os::unix::fs::FileExt as _;

const SMALL: &str = "small";
const LARGE: &str = "large";
const TABLED: &str = "with a check table";

fn store() -> Planted {
    let planted = store_with(1, &[(SMALL, 100), (LARGE, 200_000), (TABLED, 17 << 20)]);
    assert_eq!(planted.kinds(), [""; 0], "nothing is found in a sound store");
    planted
}

fn payload(record: &mut ObjectRecord) -> &mut VolumePayload {
    match &mut record.content {
        Content::Payload(Payload { form: PayloadForm::Volume(payload), .. }) => payload,
        other => panic!("not in volumes: {other:?}"),
    }
}

#[test]
fn counts_and_bytes_are_those_of_the_objects() {
    let planted = store();
    let inspection = planted.store.inspect(u64::MAX).expect("inspects");
    assert!(inspection.complete && inspection.is_clean());
    assert_eq!((inspection.entries_examined, inspection.usage.objects, inspection.usage.versions), (3, 3, 3));
    assert_eq!(inspection.usage.bytes, 100 + 200_000 + (17 << 20));
    assert_eq!(inspection.owned_bytes, (49 + 4352 + 1) * 4096);
}

#[test]
fn a_limit_makes_the_result_incomplete() {
    let planted = store();
    planted.orphan(4096);
    for (limit, complete) in [(0, false), (2, false), (3, true)] {
        let inspection = planted.store.inspect(limit).expect("inspects");
        assert_eq!((inspection.complete, inspection.entries_examined), (complete, limit));
        assert_eq!(inspection.is_clean(), !complete, "{inspection:?}");
    }
}

#[test]
fn unreadable_records_are_found_and_their_space_is_undecided() {
    let planted = store();
    planted.edit(|txn, tables| {
        let key = keys::with_sequence(&keys::versions_of(1, b"odd").expect("short"), 1);
        txn.put(tables.objects, &key, OBJECT_RECORD_VERSION, b"not a record", b"").expect("puts");
    });
    planted.orphan(4096);
    assert_eq!(planted.kinds(), ["record_undecodable"]);
    let inspection = planted.store.inspect(u64::MAX).expect("inspects");
    assert!(!inspection.complete && inspection.orphaned_payloads == 0);
    let finding = planted.finding(FindingKind::RecordUndecodable);
    assert_eq!((finding.bucket.as_deref(), finding.key.as_deref()), (Some(BUCKET), Some("odd")));
    assert_eq!(finding.version, Some(VersionId(1)));
}

#[test]
fn a_flipped_bit_in_the_metadata_file_is_found() {
    let planted = store();
    let (encoded, ..) = planted.record(SMALL);
    let path = planted.folder.path().join("slices/00/meta/data.mdb");
    let file = std::fs::File::options().read(true).write(true).open(path).expect("opens");
    let mut bytes = vec![0; usize::try_from(file.metadata().expect("measured").len()).expect("small")];
    file.read_exact_at(&mut bytes, 0).expect("reads");
    let places = bytes.windows(encoded.len()).enumerate().filter(|(_, window)| *window == encoded);
    for (at, _) in places {
        // Behind the key stand check, version and length; this is a byte of the record's size.
        let at = at + encoded.len().next_multiple_of(2) + 16 + 8;
        file.write_all_at(&[bytes[at] ^ 1], at as u64).expect("writes");
    }
    assert_eq!(planted.kinds(), ["record_damaged"]);
}

#[test]
fn damaged_event_is_found_and_readers_of_events_skip_it() {
    let planted = store();
    let events = || planted.store.events(&EventQuery::default()).expect("reads").events;
    let before = events();
    let damaged = before.iter().find(|event| event.object.is_some()).expect("an object was put").id;
    let key = damaged.tick().0.to_be_bytes();
    planted.edit(|txn, tables| {
        txn.put(tables.events, &key, EVENT_RECORD_VERSION, b"not an event", b"").expect("puts");
    });
    assert_eq!(planted.kinds(), ["record_undecodable"]);
    let left: Vec<_> = before.into_iter().filter(|event| event.id != damaged).collect();
    assert_eq!(events(), left);
    assert_eq!(planted.store.corruptions(), 1, "it is reported");
}

#[test]
fn invalid_and_mismatched_keys_are_found() {
    let planted = store();
    let (encoded, _, tail) = planted.record(SMALL);
    let body = {
        let (_, record, _) = planted.record(SMALL);
        let mut body = Vec::new();
        record.encode(&mut body).expect("encodes");
        body
    };
    let move_to = |from: &[u8], to: &[u8]| {
        planted.edit(|txn, tables| {
            assert!(txn.remove(tables.objects, from).expect("removes"));
            txn.put(tables.objects, to, OBJECT_RECORD_VERSION, &body, &tail).expect("puts");
        });
    };
    // No terminator; then another version than the record's; then a key of another bucket.
    let cut = [&encoded[..8], b"no terminator at all"].concat();
    move_to(&encoded, &cut);
    assert_eq!(planted.kinds(), ["key_undecodable"]);
    let versions = keys::versions_of(1, SMALL.as_bytes()).expect("short");
    let other_version = keys::with_sequence(&versions, 1000);
    move_to(&cut, &other_version);
    assert_eq!(planted.kinds(), ["version_mismatch"]);
    let other_bucket = keys::with_sequence(&keys::versions_of(99, b"x").expect("short"), 1);
    move_to(&other_version, &other_bucket);
    assert_eq!(planted.kinds(), ["unknown_bucket", "usage_mismatch", "version_mismatch"]);
    move_to(&other_bucket, &encoded);
    assert_eq!(planted.kinds(), [""; 0]);
}

#[test]
fn a_record_in_the_wrong_slice_is_found() {
    let planted = store_with(2, &[]);
    let key = (0..).map(|n| format!("key {n}")).find(|key| keys::slice_of(1, key.as_bytes(), 2) == 1);
    let versions = keys::versions_of(1, key.expect("one of them").as_bytes()).expect("short");
    let donor = store();
    let (_, mut record, tail) = donor.record(SMALL);
    record.info.version = VersionId(0);
    let mut body = Vec::new();
    record.encode(&mut body).expect("encodes");
    planted.edit(|txn, tables| {
        let key = keys::with_sequence(&versions, 0);
        txn.put(tables.objects, &key, OBJECT_RECORD_VERSION, &body, &tail).expect("puts");
    });
    assert_eq!(planted.kinds(), ["usage_mismatch", "wrong_slice"]);
}

#[test]
fn sequences_from_the_future_and_duplicate_null_versions_are_found() {
    let planted = store();
    planted.edit(|txn, tables| {
        txn.put(tables.slice, SEQUENCE_KEY, 1, &2u64.to_le_bytes(), b"").expect("puts");
    });
    assert_eq!(planted.kinds(), ["sequence_behind"]);
    planted.edit(|txn, tables| {
        txn.put(tables.slice, SEQUENCE_KEY, 1, &(3 * 256u64).to_le_bytes(), b"").expect("puts");
    });
    assert_eq!(planted.kinds(), [""; 0]);
    let (_, mut record, tail) = planted.record(SMALL);
    record.info.version = VersionId(0);
    let mut body = Vec::new();
    record.encode(&mut body).expect("encodes");
    planted.edit(|txn, tables| {
        let key = keys::with_sequence(&keys::versions_of(1, SMALL.as_bytes()).expect("short"), 0);
        txn.put(tables.objects, &key, OBJECT_RECORD_VERSION, &body, &tail).expect("puts");
    });
    assert_eq!(planted.kinds(), ["null_version_mismatch", "usage_mismatch"]);
}

#[test]
fn payloads_of_the_wrong_form_are_found() {
    let planted = store();
    planted.rewrite(TABLED, |record| {
        let BlockChecks::Table(table) = &mut payload(record).checks else { panic!("a table") };
        // The unit behind it is free: no other finding but that it is not marked.
        table[0].units += 1;
    });
    assert_eq!(planted.kinds(), ["geometry_mismatch", "space_not_marked"]);
    let planted = store();
    planted.rewrite(SMALL, |record| record.info.size += 1);
    assert_eq!(planted.kinds(), ["geometry_mismatch", "usage_mismatch"]);
    let planted = store();
    planted.rewrite(LARGE, |record| {
        let payload = payload(record);
        let whole = payload.extents[0];
        let rest = Extent { start: whole.start + 3, units: whole.units - 3, ..whole };
        payload.extents = vec![Extent { units: 3, ..whole }, rest];
    });
    assert_eq!(planted.kinds(), ["geometry_mismatch"]);
}

#[test]
fn space_outside_of_volumes_and_in_their_headers_is_found() {
    for (wrong, marks) in [
        (Extent { volume: 7, start: 1, units: 49 }, true),
        (Extent { volume: 0, start: 1 << 31, units: 49 }, true),
        (Extent { volume: 0, start: 0, units: 49 }, false),
    ] {
        let planted = store();
        let before = planted.extents(LARGE);
        planted.rewrite(LARGE, |record| payload(record).extents = vec![wrong]);
        let kinds = planted.kinds();
        assert!(kinds.contains(&"extent_outside_volume"), "{wrong:?}: {kinds:?}");
        assert!(kinds.contains(&"orphaned_space") || !marks, "{wrong:?}: {kinds:?}");
        planted.rewrite(LARGE, |record| payload(record).extents = before);
        assert_eq!(planted.kinds(), [""; 0]);
        planted.mark(&[Extent { units: 1, ..wrong }], true);
        assert_eq!(planted.kinds(), ["mark_outside_volume"], "{wrong:?}");
    }
}

#[test]
fn space_owned_twice_not_marked_or_without_owner_is_found() {
    let planted = store();
    let (large, tabled) = (planted.extents(LARGE), planted.extents(TABLED));
    planted.rewrite(LARGE, |record| payload(record).extents = vec![Extent { units: 49, ..tabled[0] }]);
    assert_eq!(planted.kinds(), ["extent_owned_twice", "orphaned_space"]);
    planted.rewrite(LARGE, |record| payload(record).extents = large.clone());
    planted.mark(&[Extent { start: large[0].start + 5, units: 2, ..large[0] }], false);
    assert_eq!(planted.kinds(), ["space_not_marked"]);
    planted.mark(&[Extent { start: large[0].start + 5, units: 2, ..large[0] }], true);
    let orphan = planted.orphan(3 * 4096);
    assert_eq!(planted.kinds(), ["orphaned_space"]);
    let inspection = planted.store.inspect(u64::MAX).expect("inspects");
    assert_eq!((inspection.orphaned_payloads, inspection.orphaned_bytes), (1, 3 * 4096));
    assert!(inspection.findings[0].detail.contains(&orphan[0].start.to_string()));
}

#[test]
fn damaged_records_of_free_map_usage_and_slice_are_found() {
    let planted = store();
    planted.edit(|txn, tables| txn.put(tables.free_map, &[0; 8], 1, b"short", b"").expect("puts"));
    assert_eq!(planted.kinds(), ["free_map_damaged"], "and nothing is said about the space of that chunk");
    let planted = store();
    planted.edit(|txn, tables| txn.put(tables.usage, &1u64.to_be_bytes(), 1, &[0; 16], b"").expect("puts"));
    assert_eq!(planted.kinds(), ["usage_mismatch"]);
    planted.edit(|txn, tables| assert!(txn.remove(tables.usage, &1u64.to_be_bytes()).expect("removes")));
    assert_eq!(planted.kinds(), ["usage_mismatch"]);
    planted.edit(|txn, tables| txn.put(tables.usage, &1u64.to_be_bytes(), 1, &[0; 3], b"").expect("puts"));
    assert_eq!(planted.kinds(), ["usage_damaged"]);
    let planted = store();
    planted.edit(|txn, tables| txn.put(tables.usage, &9u64.to_be_bytes(), 1, &[0; 16], b"").expect("puts"));
    assert_eq!(planted.kinds(), ["usage_of_unknown_bucket"]);
    let planted = store();
    planted.edit(|txn, tables| txn.put(tables.slice, IDENTITY_KEY, 1, b"another", b"").expect("puts"));
    assert_eq!(planted.kinds(), ["slice_record_damaged"]);
    planted.edit(|txn, tables| assert!(txn.remove(tables.slice, SEQUENCE_KEY).expect("removes")));
    assert_eq!(planted.kinds(), ["slice_record_damaged"]);
}

#[test]
fn a_lost_record_is_found_by_the_totals() {
    let planted = store();
    // A record that the totals count and that is in no table of the slice.
    let totals = planted.store.slices[0].environment.table("totals").expect("a table");
    planted.edit(|txn, _| txn.put(totals, b"another", 1, b"", b"").expect("puts"));
    assert_eq!(planted.kinds(), ["totals_mismatch"]);
}

#[test]
fn damaged_buckets_are_found() {
    let planted = store();
    let control = &planted.store.control.catalog;
    let edit = |name: &[u8], body: Option<&[u8]>| {
        let mut txn = control.environment.write().expect("writes");
        match body {
            Some(body) => txn.put(control.buckets_table, name, 1, body, b"").expect("puts"),
            None => assert!(txn.remove(control.buckets_table, name).expect("removes")),
        }
        txn.commit().expect("commits");
    };
    edit(b"second", Some(b"short"));
    assert_eq!(planted.kinds(), ["bucket_damaged"]);
    let with_id = |id: u64| [&id.to_le_bytes()[..], &[0; 9]].concat();
    edit(b"second", Some(&with_id(1)));
    assert_eq!(planted.kinds(), ["bucket_id_invalid"], "the id of another bucket");
    edit(b"second", Some(&with_id(1000)));
    assert_eq!(planted.kinds(), ["bucket_id_invalid"], "an id that was not given out");
    edit(b"second", None);
    edit(BUCKET.as_bytes(), None);
    assert_eq!(planted.kinds(), ["unknown_bucket", "usage_of_unknown_bucket"]);
    edit(BUCKET.as_bytes(), Some(&with_id(1)));
    let mut txn = control.environment.write().expect("writes");
    txn.put(control.control_table, NEXT_ID_KEY, 1, b"?", b"").expect("puts");
    txn.commit().expect("commits");
    assert_eq!(planted.kinds(), ["bucket_damaged"]);
}

#[test]
fn missing_truncated_and_changed_files_are_found() {
    let planted = store();
    let at = |name: &str| planted.folder.path().join(name);
    let volume = at("slices/00/volumes/000000.vol");
    let file = std::fs::File::options().read(true).write(true).open(&volume).expect("opens");
    file.write_all_at(b"X", 100).expect("writes");
    assert_eq!(planted.kinds(), ["volume_header_damaged"]);
    file.write_all_at(&[0], 100).expect("writes");
    let length = file.metadata().expect("measured").len();
    file.set_len(length - 4096).expect("cuts");
    assert_eq!(planted.kinds(), ["volume_truncated"]);
    file.set_len(length).expect("grows");
    assert_eq!(planted.kinds(), [""; 0]);
    std::fs::rename(&volume, at("elsewhere")).expect("renames");
    assert_eq!(planted.kinds(), ["volume_missing"]);
    std::fs::copy(at("elsewhere"), &volume).expect("copies");
    assert_eq!(planted.kinds(), ["volume_missing"], "a copy is not the file that is written to");
    std::fs::rename(at("elsewhere"), &volume).expect("renames");
    let superblock = std::fs::read_to_string(at("superblock.json")).expect("reads");
    std::fs::write(at("superblock.json"), superblock.replace("\"slices\": 1", "\"slices\": 2"))
        .expect("writes");
    assert_eq!(planted.kinds(), ["superblock_damaged"]);
    std::fs::remove_file(at("superblock.json")).expect("removes");
    assert_eq!(planted.kinds(), ["superblock_damaged"]);
    std::fs::write(at("superblock.json"), superblock).expect("writes");
    std::fs::rename(at("slices/00/meta/data.mdb"), at("elsewhere")).expect("renames");
    assert_eq!(planted.kinds(), ["metadata_unreadable"]);
    let inspection = planted.store.inspect(u64::MAX).expect("inspects");
    assert!(!inspection.complete);
}

#[test]
fn findings_beyond_the_limit_are_counted() {
    let planted = store_with(1, &[]);
    let orphans = planted.orphan(4096 * 3 * (FINDINGS_MAX as u64));
    let holes = (0..).map(|n| Extent { start: orphans[0].start + 2 * n, units: 1, ..orphans[0] });
    let holes: Vec<_> = holes.take(FINDINGS_MAX + 5).collect();
    planted.mark(&holes, false);
    let inspection = planted.store.inspect(u64::MAX).expect("inspects");
    assert_eq!((inspection.findings.len(), inspection.findings_omitted), (FINDINGS_MAX, 5));
    assert_eq!(inspection.orphaned_payloads, FINDINGS_MAX as u64 + 5);
}

/// Regression: records of the first format have no flag for null versions and were mistaken for versions with an id. An
/// overwrite left the old object in place, with its space, and a delete made it visible again.
#[test]
fn objects_of_the_first_format_can_be_overwritten_and_deleted() {
    let planted = store();
    for name in [SMALL, LARGE] {
        let (encoded, record, tail) = planted.record(name);
        let mut body = Vec::new();
        record.encode(&mut body).expect("encodes");
        // The flag of null versions, which was not there.
        body[1] &= !0b10;
        planted.edit(|txn, tables| txn.put(tables.objects, &encoded, 1, &body, &tail).expect("puts"));
    }
    with_engine(&planted.store, |engine| async move {
        let bucket = engine.store().bucket(&BucketName::parse(BUCKET).expect("a name")).expect("there");
        put(&engine, &bucket, SMALL, 10).await;
        assert_eq!((bucket.usage().objects, bucket.usage().versions), (3, 3));
        for name in [SMALL, LARGE] {
            let key = ObjectKey::parse(name).expect("a key");
            engine.delete_object(&bucket, &key, DeleteOptions::default()).await.expect("deletes");
            assert_eq!(engine.head_object(&bucket, &key, None).map(|_| ()), Err(EngineError::NoSuchKey));
        }
        assert_eq!((bucket.usage().objects, bucket.usage().versions), (1, 1));
    });
    assert_eq!(planted.kinds(), [""; 0]);
}

/// The planted store has no rules, so the state of a complete index is planted, too.
#[test]
fn missing_and_surplus_entries_of_a_due_index_are_found() {
    let planted = store();
    let entries: Vec<(DueKey, &str)> = [SMALL, LARGE, TABLED]
        .map(|key| {
            let (_, record, _) = planted.record(key);
            let ObjectInfo { last_modified: since, version, .. } = record.info;
            (DueKey::of_version(1, (VersionRole::Current, since), version, key.as_bytes()), key)
        })
        .to_vec();
    let put_entries = |count: usize, role: VersionRole| {
        planted.edit(|txn, tables| {
            let state = DueState::Complete.encode();
            let key = 1u64.to_be_bytes();
            txn.put(tables.due_state, &key, DUE_STATE_VERSION, &state, &[]).expect("puts");
            for (entry, key) in &entries[..count] {
                let entry = DueKey { role, ..*entry };
                txn.put(tables.due, &entry.encode(), DUE_RECORD_VERSION, key.as_bytes(), &[]).expect("puts");
            }
        });
    };
    put_entries(2, VersionRole::Current);
    assert_eq!(planted.kinds(), ["due_index_mismatch"], "one version has no entry");
    let finding = planted.finding(FindingKind::DueIndexMismatch);
    assert_eq!((finding.bucket.as_deref(), finding.key.as_deref()), (Some(BUCKET), Some(TABLED)));
    put_entries(3, VersionRole::Current);
    assert_eq!(planted.kinds(), [""; 0]);
    put_entries(1, VersionRole::Noncurrent);
    assert_eq!(planted.kinds(), ["due_index_mismatch"], "an entry with another role");
}
