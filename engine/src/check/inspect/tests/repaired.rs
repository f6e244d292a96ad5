//! Repair removes exactly the orphans.

use super::support::{Planted, put, store_with, with_engine};
use crate::EngineError;
use crate::RepairMode;
use crate::format::extent::Extent;
use crate::format::keys;
use crate::format::object_record::OBJECT_RECORD_VERSION;
use crate::format::payload_id::PayloadId;
use crate::slice::command::{Command, FreeOrphans};
use cairn_model::BucketName;
use futures_channel::oneshot;

fn store() -> Planted {
    store_with(1, &[("small", 100), ("large", 200_000)])
}

fn free_units(planted: &Planted) -> u64 {
    planted.store.slices[0].space.allocator.free_space().free_units
}

#[test]
fn repair_frees_exactly_the_orphans_and_a_dry_run_nothing() {
    let planted = store();
    let free = free_units(&planted);
    let sizes = [4096, 5 * 4096, 300 << 20];
    let mut expected = 0;
    for size in sizes {
        expected += planted.orphan(size).iter().map(Extent::bytes).sum::<u64>();
    }
    let dry = planted.store.repair(u64::MAX, RepairMode::DryRun).expect("looks");
    assert!(dry.complete && dry.refused.is_empty());
    assert_eq!((dry.orphaned_bytes, dry.removed_payloads, dry.removed_bytes), (expected, 0, 0));
    assert_eq!(planted.kinds(), ["orphaned_space"]);
    let repair = planted.store.repair(u64::MAX, RepairMode::Apply).expect("repairs");
    assert_eq!((repair.removed_payloads, repair.removed_bytes), (dry.orphaned_payloads, expected));
    assert_eq!(planted.kinds(), [""; 0]);
    assert!(free_units(&planted) >= free, "the space can be used again");
    let again = planted.store.repair(u64::MAX, RepairMode::Apply).expect("repairs");
    assert_eq!((again.orphaned_payloads, again.removed_payloads), (0, 0));
}

#[test]
fn an_upload_can_use_repaired_space() {
    let planted = store();
    planted.orphan(30 << 20);
    planted.store.repair(u64::MAX, RepairMode::Apply).expect("repairs");
    with_engine(&planted.store, |engine| async move {
        let bucket = engine.store().bucket(&BucketName::parse("bucket").expect("a name")).expect("there");
        for n in 0..6 {
            put(&engine, &bucket, &format!("later {n}"), 9 << 20).await;
        }
    });
    assert_eq!(planted.kinds(), [""; 0]);
}

#[test]
fn a_slice_with_an_unreadable_record_is_not_repaired() {
    let planted = store();
    planted.orphan(4096);
    let key = keys::with_sequence(&keys::versions_of(1, b"odd").expect("short"), 1);
    planted.edit(|txn, tables| {
        txn.put(tables.objects, &key, OBJECT_RECORD_VERSION, b"not a record", b"").expect("puts");
    });
    let repair = planted.store.repair(u64::MAX, RepairMode::Apply).expect("looks");
    assert!(!repair.complete && repair.removed_payloads == 0);
    assert!(repair.refused[0].1.contains("cannot be read"), "{:?}", repair.refused);
    planted.edit(|txn, tables| assert!(txn.remove(tables.objects, &key).expect("removes")));
    let repair = planted.store.repair(u64::MAX, RepairMode::Apply).expect("repairs");
    assert!(repair.complete && repair.removed_payloads == 1);
}

#[test]
fn an_incomplete_slice_is_not_repaired() {
    let planted = store();
    planted.orphan(4096);
    let repair = planted.store.repair(1, RepairMode::Apply).expect("looks");
    assert_eq!((repair.complete, repair.removed_payloads, repair.refused.len()), (false, 0, 1));
    let totals = planted.store.slices[0].environment.table("totals").expect("a table");
    planted.edit(|txn, _| txn.put(totals, b"another", 1, b"", b"").expect("puts"));
    let repair = planted.store.repair(u64::MAX, RepairMode::Apply).expect("looks");
    assert_eq!((repair.complete, repair.removed_payloads), (false, 0));
    assert!(repair.refused[0].1.contains("lost"), "{:?}", repair.refused);
}

/// The committer decides again: a record may come to own the space between the snapshot that found the orphan and the
/// transaction that frees it.
#[test]
fn space_owned_since_the_snapshot_is_not_freed() {
    let planted = store();
    let slice = &planted.store.slices[0];
    let following = slice.change_log.follow(&slice.environment).expect("nobody follows");
    let snapshot = slice.environment.read().expect("reads").id();
    with_engine(&planted.store, |engine| async move {
        let bucket = engine.store().bucket(&BucketName::parse("bucket").expect("a name")).expect("there");
        put(&engine, &bucket, "later", 100_000).await;
    });
    let (owned, orphan) = (planted.extents("later"), planted.orphan(4096));
    let free = |snapshot, runs| {
        let (reply, answer) = oneshot::channel();
        let job = FreeOrphans { snapshot, runs };
        slice.commits.queue.push(Command::FreeOrphans(Box::new(job), reply)).expect("taken");
        futures_lite::future::block_on(answer).expect("answered")
    };
    let unmarked = Extent { volume: 0, start: 10_000, units: 1 };
    let runs = vec![owned[0], Extent { units: 1, ..owned[0] }, unmarked, orphan[0]];
    assert_eq!(free(snapshot, runs), Ok(vec![orphan[0]]));
    assert_eq!(
        planted.store.inspect(u64::MAX),
        Err(EngineError::AlreadyRunning("an inspection, repair or upgrade")),
        "one at a time"
    );
    drop(following);
    assert_eq!(free(snapshot, owned), Err(EngineError::Conflict), "nobody knows what changed since");
    assert_eq!(planted.kinds(), [""; 0]);
}

#[test]
fn freed_space_waits_for_current_readers() {
    let planted = store();
    let space = &planted.store.slices[0].space.allocator;
    let orphan = planted.orphan(4096)[0];
    let pin = space.pin(PayloadId([9; 16]), space.free_epoch()).expect("nothing was removed");
    planted.store.repair(u64::MAX, RepairMode::Apply).expect("repairs");
    assert_eq!(planted.kinds(), [""; 0], "the mark is gone");
    let before = free_units(&planted);
    drop(pin);
    assert_eq!(free_units(&planted), before + u64::from(orphan.units));
}
