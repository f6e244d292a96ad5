//! An audit trail on a full disk: records are refused, none is half-written, and it recovers by itself.

use cairn_model::{AgeLimit, SystemClock};
use cairn_observe::{AuditKind, AuditLog, AuditOptions, AuditQuery, AuditRecord, AuditResult, DataEvents};
use cairn_tables::StoreFailure;
use cairn_tables::testing::{fill_disk, limit_files, unmade_store, with_limited_files};
use futures_lite::future::block_on;
use std::sync::Arc;
use std::time::Duration;

const WRITERS: usize = 16;

fn open(folder: &std::path::Path) -> Arc<AuditLog> {
    let options = AuditOptions {
        folder: folder.to_owned(),
        store: [1; 16],
        age: AgeLimit { age_max: Duration::from_secs(86_400), clock: Arc::new(SystemClock) },
        records_max: 1_000_000,
        data_events: DataEvents::default(),
        clock: Arc::new(SystemClock),
    };
    AuditLog::open(options).unwrap()
}

fn record(name: &str) -> AuditRecord {
    AuditRecord { detail: "x".repeat(500), ..AuditRecord::new("system", name, AuditResult::Allowed) }
}

/// Records events until one is refused. Returns the number of recorded events and the error.
fn fill(log: &AuditLog) -> (usize, StoreFailure) {
    let mut count = 0;
    loop {
        match block_on(log.append(record("fill"))) {
            Ok(_) => count += 1,
            Err(error) => return (count, error),
        }
        assert!(count < 100_000, "the limit was never reached");
    }
}

fn count(log: &AuditLog) -> usize {
    let (mut found, mut after) = (0, None);
    loop {
        let query = AuditQuery { limit: 1000, after, ..AuditQuery::default() };
        let page = block_on(log.page(query)).unwrap();
        found += page.events.len();
        after = page.next;
        if after.is_none() {
            return found;
        }
    }
}

#[test]
fn a_full_disk_refuses_records_and_loses_none() {
    with_limited_files(
        "audit_full_disk::a_full_disk_refuses_records_and_loses_none",
        refuse_records_and_lose_none,
    );
}

fn refuse_records_and_lose_none() {
    let folder = unmade_store();
    let log = open(folder.path());
    block_on(log.append(record("first"))).unwrap();
    let in_progress = block_on(log.record_intent(AuditKind::Change, record("in progress"))).unwrap();
    fill_disk(folder.path());
    let writers: Vec<_> = (0..WRITERS)
        .map(|_| {
            let log = Arc::clone(&log);
            std::thread::spawn(move || fill(&log))
        })
        .collect();
    let mut recorded = 1;
    for writer in writers {
        let (count, error) = writer.join().unwrap();
        assert_eq!(error, StoreFailure::Full);
        recorded += count;
    }
    assert!(recorded > 1000, "the headroom is used first: {recorded}");
    assert_eq!(block_on(log.append(record("refused"))), Err(StoreFailure::Full));
    assert!(
        block_on(log.record_intent(AuditKind::Change, record("not begun"))).is_err(),
        "no intent is recorded either"
    );
    block_on(in_progress.complete(Some(record("done on a full disk"))));
    assert_eq!(count(&log), recorded, "exactly the recorded events exist");
    assert_eq!(log.check(), Ok(()), "a full disk is not a failure");

    limit_files(None);
    block_on(log.append(record("space again"))).unwrap();
    drop(log);
    // The change that was in progress when the disk filled up has its event as soon as there is space.
    assert_eq!(count(&open(folder.path())), recorded + 2);
}
