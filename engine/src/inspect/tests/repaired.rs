//! Repair removes exactly orphans, and only where it is certain what they are.

use super::support::{Planted, put, store_with, with_engine};
use crate::codec::PayloadId;
use crate::extent::Extent;
use crate::keys;
use crate::queue::{FreeOrphansJob, Job};
use crate::record::OBJECT_RECORD_VERSION;
use crate::{EngineError, RepairMode};
use cairn_model::BucketName;
use futures_channel::oneshot;

fn store() -> Planted {
    store_with(1, &[("small", 100), ("large", 200_000)])
}

fn free_units(planted: &Planted) -> u64 {
    planted.store.slices[0].space.state().free_units
}

#[test]
fn a_dry_run_changes_nothing_and_a_repair_removes_exactly_the_orphans() {
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
fn an_upload_after_a_repair_uses_the_space_and_all_is_well() {
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
fn a_slice_with_a_record_that_cannot_be_read_is_left_alone() {
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
fn a_slice_that_was_cut_or_has_lost_records_is_left_alone() {
    let planted = store();
    planted.orphan(4096);
    let repair = planted.store.repair(1, RepairMode::Apply).expect("looks");
    assert_eq!((repair.complete, repair.removed_payloads, repair.refused.len()), (false, 0, 1));
    let totals = planted.store.slices[0].environment.table("totals").expect("a table");
    planted.edit(|txn, _| txn.put(totals, b"another", 1, b"", b"").expect("puts"));
    let repair = planted.store.repair(u64::MAX, RepairMode::Apply).expect("looks");
    assert_eq!((repair.complete, repair.removed_payloads), (false, 0));
    assert!(repair.refused[0].1.contains("vanished"), "{:?}", repair.refused);
}

/// The committer decides again: between the snapshot that found an orphan and the transaction that removes it, the space
/// came to belong to a record.
#[test]
fn space_that_a_record_owns_by_now_is_not_freed() {
    let planted = store();
    let slice = &planted.store.slices[0];
    let following = slice.changes.follow(&slice.environment).expect("nobody follows");
    let snapshot = slice.environment.read().expect("reads").id();
    with_engine(&planted.store, |engine| async move {
        let bucket = engine.store().bucket(&BucketName::parse("bucket").expect("a name")).expect("there");
        put(&engine, &bucket, "later", 100_000).await;
    });
    let (owned, orphan) = (planted.extents("later"), planted.orphan(4096));
    let free = |snapshot, runs| {
        let (reply, answer) = oneshot::channel();
        let job = FreeOrphansJob { snapshot, runs };
        slice.queue.push(Job::FreeOrphans(Box::new(job), reply)).expect("taken");
        futures_lite::future::block_on(answer).expect("answered")
    };
    let unmarked = Extent { volume: 0, start: 10_000, units: 1 };
    let runs = vec![owned[0], Extent { units: 1, ..owned[0] }, unmarked, orphan[0]];
    assert_eq!(free(snapshot, runs), Ok(vec![orphan[0]]));
    assert_eq!(planted.store.inspect(u64::MAX), Err(EngineError::Overloaded), "one at a time");
    drop(following);
    assert_eq!(free(snapshot, owned), Err(EngineError::Conflict), "nobody knows what changed since");
    assert_eq!(planted.kinds(), [""; 0]);
}

#[test]
fn freed_space_waits_for_the_readers_of_the_time() {
    let planted = store();
    let space = &planted.store.slices[0].space;
    let orphan = planted.orphan(4096)[0];
    let pin = space.pin(PayloadId([9; 16]), space.removals()).expect("nothing was removed");
    planted.store.repair(u64::MAX, RepairMode::Apply).expect("repairs");
    assert_eq!(planted.kinds(), [""; 0], "the mark is gone");
    let before = free_units(&planted);
    drop(pin);
    assert_eq!(free_units(&planted), before + u64::from(orphan.units));
}
