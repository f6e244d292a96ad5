//! Inspection of a store that is being written to: no findings, ever.

use super::super::{Cancel, Report};
use super::support::{BUCKET, put, store_with, with_engine};
use crate::{BucketSettings, DeleteOptions, EngineError, RepairMode};
use cairn_model::{BucketName, ObjectKey};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const WRITERS: u64 = 6;
const ROUNDS: u64 = 60;
const KEYS: u64 = 12;
const SIZES: [usize; 5] = [10, 20_000, 70_000, 300_000, 17 << 20];

/// Sums over many short snapshots are wrong as soon as one change is missed, counted twice, or applied to the wrong side of
/// the place that the scan has reached: segments of three records, and writers everywhere.
#[test]
fn nothing_is_found_under_concurrent_puts_overwrites_and_deletes() {
    let planted = store_with(2, &[]);
    let (store, ended) = (Arc::clone(&planted.store), Arc::new(AtomicBool::new(false)));
    let (own, own_ended) = (Arc::clone(&store), Arc::clone(&ended));
    let inspector = std::thread::spawn(move || {
        let mut inspections = 0_u32;
        while !own_ended.load(Ordering::Relaxed) {
            let cancel = Cancel::default();
            let mut report = Report::new(&own, u64::MAX, &cancel);
            report.segment_records = 3;
            let found = own.inspect_into(report).expect("inspects");
            assert!(found.complete && found.is_clean(), "inspection {inspections}: {found:?}");
            let repair = own.repair(u64::MAX, RepairMode::Apply).expect("looks");
            assert!(repair.complete && repair.orphaned_payloads == 0, "{repair:?}");
            inspections += 1;
        }
        inspections
    });
    with_engine(&store, |engine| async move {
        let tasks: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let engine = engine.clone();
                glommio::spawn_local(async move {
                    let name = BucketName::parse(BUCKET).expect("a name");
                    let bucket = engine.store().bucket(&name).expect("there");
                    let mut random = writer + 1;
                    for round in 0..ROUNDS {
                        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        let key = format!("{} of {writer}", (random >> 40) % KEYS);
                        if (random >> 20).is_multiple_of(3) {
                            let key = ObjectKey::parse(&key).expect("a key");
                            engine
                                .delete_object(&bucket, &key, DeleteOptions::default())
                                .await
                                .expect("deletes");
                        } else {
                            put(&engine, &bucket, &key, SIZES[(round % 5) as usize]).await;
                        }
                    }
                    // Buckets come and go as well.
                    let name = BucketName::parse(&format!("short-lived-{writer}")).expect("a name");
                    for _ in 0..5 {
                        let bucket = engine
                            .store()
                            .create_bucket(&name, BucketSettings::default())
                            .await
                            .expect("made");
                        put(&engine, &bucket, "only", 20_000).await;
                        let key = ObjectKey::parse("only").expect("a key");
                        engine.delete_object(&bucket, &key, DeleteOptions::default()).await.expect("deletes");
                        engine.store().delete_bucket(&name).await.expect("empty");
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await;
        }
    });
    ended.store(true, Ordering::Relaxed);
    let inspections = inspector.join().expect("no finding");
    assert!(inspections >= 3, "{inspections} inspections");
}

#[test]
fn one_inspection_runs_at_a_time_and_ends_when_nobody_waits() {
    let planted = store_with(1, &[("small", 10)]);
    let store = &planted.store;
    // Held up by the writer lock.
    let txn = store.slices[0].environment.write().expect("writes");
    let waiting = store.begin_inspection(u64::MAX).expect("begins");
    assert!(matches!(store.begin_inspection(u64::MAX), Err(EngineError::Overloaded)));
    assert!(matches!(store.begin_repair(u64::MAX, RepairMode::DryRun), Err(EngineError::Overloaded)));
    drop(txn);
    let inspection = futures_lite::future::block_on(waiting).expect("inspects");
    assert!(inspection.complete && inspection.is_clean());
    // Who has the answer may begin the next at once.
    for _ in 0..50 {
        let again = store.begin_inspection(u64::MAX).expect("begins");
        assert!(futures_lite::future::block_on(again).expect("inspects").is_clean());
    }

    let txn = store.slices[0].environment.write().expect("writes");
    drop(store.begin_repair(u64::MAX, RepairMode::DryRun).expect("begins"));
    drop(txn);
    store.inspections.end();
    assert!(matches!(store.begin_inspection(u64::MAX), Err(EngineError::ShuttingDown)));
}
