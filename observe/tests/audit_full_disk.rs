//! A trail that cannot grow: what cannot be recorded is refused, nothing is half-recorded, and it recovers by itself.
//!
//! The process's limit on file sizes stands in for the full disk: both are the same to the trail. The limit sends a signal
//! that ends a process unless it is ignored, hence the shell in front; and the limit is the process's, hence one test.
#![allow(clippy::unwrap_used, reason = "tests")]

use cairn_model::SystemClock;
use cairn_observe::{AuditError, AuditLog, AuditOptions, AuditQuery, AuditRecord, AuditResult};
use futures_lite::future::block_on;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

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
        clock: Arc::new(SystemClock),
    };
    AuditLog::open(options).unwrap()
}

fn record(name: &str) -> AuditRecord {
    AuditRecord { detail: "x".repeat(500), ..AuditRecord::new("system", name, AuditResult::Allowed) }
}

/// Records until it is refused; how many times it was not.
fn fill(log: &AuditLog) -> (usize, AuditError) {
    let mut count = 0;
    loop {
        match block_on(log.append(record("fill"))) {
            Ok(_) => count += 1,
            Err(error) => return (count, error),
        }
        assert!(count < 100_000, "the limit was never met");
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
        let own = std::env::current_exe().unwrap();
        let done = Command::new("sh")
            .args(["-c", "trap '' XFSZ; exec \"$0\" --nocapture", own.to_str().unwrap()])
            .env(INNER, "1")
            .status();
        assert!(done.unwrap().success());
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("unmade"), b"").unwrap();
    let log = open(folder.path());
    block_on(log.append(record("first"))).unwrap();
    let under_way = block_on(log.intend(record("under way"))).unwrap();
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
    assert!(recorded > 1000, "the space written ahead was used first: {recorded}");
    assert_eq!(block_on(log.append(record("refused"))), Err(AuditError::Full));
    assert!(block_on(log.intend(record("not begun"))).is_err(), "what cannot be recorded is not begun");
    block_on(under_way.settle(Some(record("done on a full disk"))));
    assert_eq!(count(&log), recorded, "what was recorded is there, and nothing else");
    assert_eq!(log.check(), Ok(()), "a full disk is no failure");

    limit_files(None);
    block_on(log.append(record("space again"))).unwrap();
    drop(log);
    // The change that was under way when the disk filled up has its event as soon as there is space.
    assert_eq!(count(&open(folder.path())), recorded + 2);
}
