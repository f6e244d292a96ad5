//! An audit trail on a full disk: records are refused, none is half-written, and it recovers by itself.
//!
//! The process's limit on file sizes simulates the full disk; the trail sees the same errors. The limit raises a signal that
//! ends a process unless it is ignored, and it applies to the whole process. The test therefore runs itself again in a process
//! of its own, started by a shell that ignores the signal.

use cairn_model::SystemClock;
use cairn_observe::{AuditError, AuditLog, AuditOptions, AuditQuery, AuditRecord, AuditResult, DataEvents};
use futures_lite::future::block_on;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// Set in the process that runs the test.
const INNER: &str = "CAIRN_TEST_SIGNAL_IGNORED";
const WRITERS: usize = 16;

fn limit_files(bytes: Option<u64>) {
    let maximum = getrlimit(Resource::Fsize).maximum;
    setrlimit(Resource::Fsize, Rlimit { current: bytes.or(maximum), maximum }).unwrap();
}

fn open(folder: &std::path::Path) -> Arc<AuditLog> {
    let options = AuditOptions {
        folder: folder.to_owned(),
        store: [1; 16],
        age_max: Duration::from_secs(86_400),
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
fn fill(log: &AuditLog) -> (usize, AuditError) {
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
    if std::env::var_os(INNER).is_none() {
        let this = std::env::current_exe().unwrap();
        let name = "audit_full_disk::a_full_disk_refuses_records_and_loses_none";
        let done = Command::new("sh")
            .args([
                "-c",
                "trap '' XFSZ; exec \"$0\" --exact \"$1\" --nocapture",
                this.to_str().unwrap(),
                name,
            ])
            .env(INNER, "1")
            .output()
            .unwrap();
        let output = String::from_utf8_lossy(&done.stdout);
        assert!(done.status.success() && output.contains("1 passed"), "{output}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("unmade"), b"").unwrap();
    let log = open(folder.path());
    block_on(log.append(record("first"))).unwrap();
    let in_progress = block_on(log.record_intent(record("in progress"))).unwrap();
    let length = std::fs::metadata(folder.path().join("data.mdb")).unwrap().len();
    limit_files(Some(length));
    let writers: Vec<_> = (0..WRITERS)
        .map(|_| {
            let log = Arc::clone(&log);
            std::thread::spawn(move || fill(&log))
        })
        .collect();
    let mut recorded = 1;
    for writer in writers {
        let (count, error) = writer.join().unwrap();
        assert_eq!(error, AuditError::Full);
        recorded += count;
    }
    assert!(recorded > 1000, "the headroom is used first: {recorded}");
    assert_eq!(block_on(log.append(record("refused"))), Err(AuditError::Full));
    assert!(block_on(log.record_intent(record("not begun"))).is_err(), "no intent is recorded either");
    block_on(in_progress.complete(Some(record("done on a full disk"))));
    assert_eq!(count(&log), recorded, "exactly the recorded events exist");
    assert_eq!(log.check(), Ok(()), "a full disk is not a failure");

    limit_files(None);
    block_on(log.append(record("space again"))).unwrap();
    drop(log);
    // The change that was in progress when the disk filled up has its event as soon as there is space.
    assert_eq!(count(&open(folder.path())), recorded + 2);
}
