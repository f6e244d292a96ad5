//! The audit trail through its public surface: what is acknowledged stays, what is asked for is found, and no flood,
//! damage or lack of anything goes unseen.
#![allow(clippy::unwrap_used, reason = "tests")]

use cairn_model::{Clock, Timestamp};
use cairn_observe::{
    AuditError, AuditEvent, AuditId, AuditLog, AuditOpenError, AuditOptions, AuditQuery, AuditRecord,
    AuditResult, Source,
};
use futures_lite::future::block_on;
use std::collections::BTreeSet;
use std::fs;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tempfile::TempDir;

const STORE: [u8; 16] = [7; 16];
const DAY_MS: u64 = 86_400_000;
const BEGUN: u64 = 20_000 * DAY_MS;

struct SetClock(AtomicU64);

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }
}

struct Trail {
    folder: TempDir,
    clock: Arc<SetClock>,
    records_max: u64,
}

impl Trail {
    /// The folder of a store that was just made.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("unmade"), b"").unwrap();
        Self { folder, clock: Arc::new(SetClock(AtomicU64::new(BEGUN))), records_max: 1_000_000 }
    }

    fn try_open_as(&self, store: [u8; 16]) -> Result<Arc<AuditLog>, AuditOpenError> {
        AuditLog::open(AuditOptions {
            folder: self.folder.path().to_owned(),
            store,
            age_max: Duration::from_millis(365 * DAY_MS),
            records_max: self.records_max,
            clock: Arc::clone(&self.clock) as Arc<dyn Clock>,
        })
    }

    fn open(&self) -> Arc<AuditLog> {
        self.try_open_as(STORE).unwrap()
    }

    fn refusal(&self, store: [u8; 16]) -> String {
        match self.try_open_as(store) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("it opened"),
        }
    }

    fn data(&self) -> std::path::PathBuf {
        self.folder.path().join("data.mdb")
    }

    fn set_clock(&self, ms: u64) {
        self.clock.0.store(ms, Ordering::SeqCst);
    }
}

fn record(operation: &str) -> AuditRecord {
    AuditRecord::new("system", operation, AuditResult::Allowed)
}

fn append(log: &AuditLog, record: AuditRecord) -> AuditId {
    block_on(log.append(record)).unwrap()
}

fn ask(log: &AuditLog, query: AuditQuery) -> Vec<AuditEvent> {
    block_on(log.page(query)).unwrap().events
}

fn all() -> AuditQuery {
    AuditQuery { limit: 1000, ..AuditQuery::default() }
}

fn operations(events: &[AuditEvent]) -> Vec<&str> {
    events.iter().map(|event| event.record.operation.as_str()).collect()
}

/// Every event, page by page, from the latest to the first.
fn walk(log: &AuditLog, query: &AuditQuery, mut between: impl FnMut()) -> Vec<AuditEvent> {
    let mut found = Vec::new();
    let mut after = query.after;
    loop {
        let page = block_on(log.page(AuditQuery { after, ..query.clone() })).unwrap();
        assert!(page.events.len() <= query.limit);
        found.extend(page.events);
        after = page.next;
        if after.is_none() {
            return found;
        }
        between();
    }
}

#[test]
fn what_was_acknowledged_is_there_after_a_restart() {
    let trail = Trail::new();
    let log = trail.open();
    let full = AuditRecord {
        principal: "root".to_owned(),
        role: "system_admin".to_owned(),
        operation: "bucket.create".to_owned(),
        resource: "photos".to_owned(),
        result: AuditResult::Denied,
        source_ip: Some("192.0.2.7".parse().unwrap()),
        request_id: "REQUEST-1".to_owned(),
        detail: "two lines\nand \u{1F5FB}".to_owned(),
    };
    let first = append(&log, full.clone());
    let second = append(&log, record("second"));
    assert!(first < second && first.time() == Timestamp(BEGUN));
    drop(log);

    let log = trail.open();
    let third = append(&log, record("third"));
    let events = ask(&log, all());
    assert_eq!(events.iter().map(|event| event.id).collect::<Vec<_>>(), [third, second, first]);
    assert_eq!(events[2].record, full);
}

#[test]
fn many_who_wait_at_once_all_have_their_own_record() {
    let trail = Trail::new();
    let log = trail.open();
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let log = Arc::clone(&log);
            std::thread::spawn(move || {
                (0..500).map(|n| append(&log, record(&format!("{writer}-{n}")))).collect::<Vec<_>>()
            })
        })
        .collect();
    let mut ids = BTreeSet::new();
    for writer in writers {
        let own = writer.join().unwrap();
        assert!(own.is_sorted(), "each writer's records are in its order");
        ids.extend(own.iter().map(ToString::to_string));
    }
    assert_eq!(ids.len(), 2000);
    let found = walk(&log, &AuditQuery { limit: 1000, ..all() }, || ());
    assert_eq!(found.iter().map(|event| event.id.to_string()).collect::<BTreeSet<_>>(), ids);
}

#[test]
fn a_walk_has_no_gaps_and_no_repeats_while_events_are_added() {
    let trail = Trail::new();
    let log = trail.open();
    for n in 0..1003 {
        trail.set_clock(BEGUN + n / 10);
        append(&log, record(&n.to_string()));
    }
    for limit in [1, 7, 100, 1000] {
        // A thousand pages of one event each prove no more than a hundred do.
        let query = AuditQuery { limit, since: (limit == 1).then_some(Timestamp(BEGUN + 91)), ..all() };
        let expected: Vec<String> =
            (0..1003).rev().filter(|n| limit > 1 || n / 10 >= 91).map(|n| n.to_string()).collect();
        let mut added = 0;
        let found = walk(&log, &query, || {
            append(&log, record("added meanwhile"));
            added += 1;
        });
        let known: Vec<_> =
            operations(&found).into_iter().filter(|operation| *operation != "added meanwhile").collect();
        assert_eq!(known, expected, "in pages of {limit}");
        assert!(added > 0);
    }
}

#[test]
fn each_filter_lets_through_what_fits_and_nothing_else() {
    let trail = Trail::new();
    let log = trail.open();
    let address = |n: u64| format!("10.0.0.{}", n % 5).parse::<IpAddr>().unwrap();
    for n in 0..60u64 {
        trail.set_clock(BEGUN + n);
        let result = AuditResult::ALL[usize::try_from(n % 3).unwrap()];
        let mut record = AuditRecord::new(&format!("p{}", n % 2), &format!("o{}", n % 4), result);
        record.resource = format!("r{}", n % 6);
        record.source_ip = Some(address(n));
        record.request_id = format!("q{n}");
        append(&log, record);
    }
    type Fits = fn(u64) -> bool;
    let cases: [(AuditQuery, Fits); 10] = [
        (AuditQuery { since: Some(Timestamp(BEGUN + 40)), ..all() }, |n| n >= 40),
        (AuditQuery { until: Some(Timestamp(BEGUN + 40)), ..all() }, |n| n < 40),
        (AuditQuery { principal: Some("p1".into()), ..all() }, |n| n % 2 == 1),
        (AuditQuery { operation: Some("o3".into()), ..all() }, |n| n % 4 == 3),
        (AuditQuery { resource: Some("r2".into()), ..all() }, |n| n % 6 == 2),
        (AuditQuery { result: Some(AuditResult::Denied), ..all() }, |n| n % 3 == 1),
        (AuditQuery { source_ip: Some("::ffff:10.0.0.3".parse().unwrap()), ..all() }, |n| n % 5 == 3),
        (AuditQuery { request_id: Some("q17".into()), ..all() }, |n| n == 17),
        (AuditQuery { resource: Some("r".into()), ..all() }, |_| false),
        (
            AuditQuery {
                since: Some(Timestamp(BEGUN + 10)),
                until: Some(Timestamp(BEGUN + 50)),
                principal: Some("p0".into()),
                operation: Some("o2".into()),
                ..all()
            },
            |n| (10..50).contains(&n) && n % 4 == 2,
        ),
    ];
    for (query, fits) in cases {
        let expected: Vec<String> = (0..60).rev().filter(|n| fits(*n)).map(|n| format!("q{n}")).collect();
        for limit in [3, 1000] {
            let found = walk(&log, &AuditQuery { limit, ..query.clone() }, || ());
            let found: Vec<_> = found.iter().map(|event| event.record.request_id.clone()).collect();
            assert_eq!(found, expected, "{query:?}");
        }
    }
}

#[test]
fn the_oldest_go_when_there_are_too_many_or_they_are_too_old() {
    let mut trail = Trail::new();
    trail.records_max = 50;
    let log = trail.open();
    for n in 0..200 {
        append(&log, record(&n.to_string()));
    }
    let kept: Vec<String> = (150..200).rev().map(|n| n.to_string()).collect();
    assert_eq!(operations(&ask(&log, all())), kept);

    trail.set_clock(BEGUN + 366 * DAY_MS);
    append(&log, record("a year later"));
    assert_eq!(operations(&ask(&log, all())), ["a year later"]);
}

/// A cursor outlives the event that it names: a slow walk meets the retention.
#[test]
fn a_walk_goes_on_behind_an_event_that_was_removed() {
    let mut trail = Trail::new();
    trail.records_max = 10;
    let log = trail.open();
    let ids: Vec<_> = (0..10).map(|n| append(&log, record(&n.to_string()))).collect();
    for n in 10..15 {
        append(&log, record(&n.to_string()));
    }
    let behind = |id| ask(&log, AuditQuery { after: Some(id), ..all() });
    assert_eq!(operations(&behind(ids[7])), ["6", "5"]);
    assert!(behind(ids[2]).is_empty());
}

#[test]
fn a_clock_that_is_set_back_changes_no_order() {
    let trail = Trail::new();
    let log = trail.open();
    append(&log, record("before"));
    trail.set_clock(BEGUN - 3_600_000);
    append(&log, record("set back"));
    drop(log);
    let log = trail.open();
    append(&log, record("and started again"));
    assert_eq!(operations(&ask(&log, all())), ["and started again", "set back", "before"]);
}

#[test]
fn a_flood_from_one_source_is_cut_short_and_the_trail_says_so() {
    let trail = Trail::new();
    let log = trail.open();
    let refused = || AuditRecord::new(AuditRecord::ANONYMOUS, "GetObject", AuditResult::Denied);
    let attacker = Source::Client("2001:db8::1".parse().unwrap());
    for n in 0..20_000u32 {
        // Addresses of one network count as one.
        log.offer(attacker, refused());
        if n % 1000 == 0 {
            // The writer keeps up: it is the source's allowance that is used up, not the queue.
            append(&log, record("work goes on"));
        }
    }
    log.offer(Source::Client("192.0.2.9".parse().unwrap()), record("another client"));
    log.offer(Source::Finding("photos/a"), record("damage"));
    let found = walk(&log, &all(), || ());
    let flood = found.iter().filter(|event| event.record.operation == "GetObject").count();
    assert!((500..=1100).contains(&flood), "{flood}");
    for other in ["another client", "damage"] {
        assert!(operations(&found).contains(&other), "{other}");
    }
}

#[test]
fn a_trail_that_was_deleted_emptied_truncated_or_swapped_is_refused_and_left_alone() {
    let trail = Trail::new();
    assert!(!trail.data().exists());
    let log = trail.open();
    for _ in 0..201 {
        append(&log, AuditRecord { detail: "x".repeat(400), ..record("kept") });
    }
    drop(log);
    assert!(!trail.folder.path().join("unmade").exists());
    let whole = fs::read(trail.data()).unwrap();

    assert!(trail.refusal([8; 16]).contains("belongs to another store"));
    fs::write(trail.data(), &whole[..16_384]).unwrap();
    assert!(trail.refusal(STORE).contains("truncated"));
    fs::write(trail.data(), b"").unwrap();
    assert!(trail.refusal(STORE).contains("missing or empty"));
    assert_eq!(fs::metadata(trail.data()).unwrap().len(), 0);
    fs::remove_file(trail.data()).unwrap();
    let refusal = trail.refusal(STORE);
    assert!(refusal.contains("missing or empty") && refusal.contains("unmade"), "{refusal}");
    assert!(!trail.data().exists(), "nothing was made in its place");

    fs::write(trail.data(), &whole).unwrap();
    assert_eq!(ask(&trail.open(), all()).len(), 201);
}

/// A crash between making the folder of a store and the first record leaves the marker and any part of the rest.
#[test]
fn a_trail_whose_making_was_cut_short_is_made() {
    let mark = |trail: &Trail| fs::write(trail.folder.path().join("unmade"), b"").unwrap();
    let trail = Trail::new();
    fs::write(trail.data(), b"").unwrap();
    append(&trail.open(), record("first"));

    let trail = Trail::new();
    fs::write(trail.data(), [0; 8192]).unwrap();
    append(&trail.open(), record("first"));

    // The removal of the marker was not durable: what was recorded since is.
    mark(&trail);
    assert_eq!(operations(&ask(&trail.open(), all())), ["first"]);
    mark(&trail);
    assert!(trail.refusal([8; 16]).contains("belongs to another store"));
}

fn flip(path: &Path, needle: &[u8]) -> usize {
    let mut bytes = fs::read(path).unwrap();
    let places: Vec<_> =
        (0..bytes.len() - needle.len()).filter(|at| bytes[*at..].starts_with(needle)).collect();
    for at in &places {
        bytes[*at] ^= 1;
    }
    fs::write(path, bytes).unwrap();
    places.len()
}

#[test]
fn a_damaged_record_is_shown_as_damaged_and_the_walk_goes_on() {
    let trail = Trail::new();
    let log = trail.open();
    append(&log, record("first"));
    let hurt = append(&log, record("a-needle-that-occurs-once"));
    append(&log, record("last"));
    drop(log);
    assert!(flip(&trail.data(), b"a-needle-that-occurs-once") > 0);
    let log = trail.open();
    let events = ask(&log, all());
    assert_eq!(operations(&events), ["last", "audit.damaged", "first"]);
    assert_eq!(events[1].id, hurt);
    let filtered = ask(&log, AuditQuery { operation: Some("first".into()), ..all() });
    assert_eq!(operations(&filtered), ["audit.damaged", "first"], "it might be what was asked for");
    append(&log, record("and recording goes on"));
}

#[test]
fn a_closed_trail_has_what_it_was_given_and_takes_nothing_more() {
    let trail = Trail::new();
    let log = trail.open();
    for n in 0..100 {
        log.offer(Source::Client(IpAddr::from([10, 0, 0, n])), record("offered"));
    }
    log.close();
    assert_eq!(block_on(log.append(record("late"))), Err(AuditError::ShuttingDown));
    assert_eq!(block_on(log.page(all())), Err(AuditError::ShuttingDown));
    drop(log);
    assert_eq!(ask(&trail.open(), all()).len(), 100);
}

/// A change that was carried out had no event when the process ended between the two: whoever crashed the service at the right
/// moment had made a change that nobody sees.
#[test]
fn a_change_whose_outcome_was_not_recorded_is_seen_after_a_crash() {
    let trail = Trail::new();
    let log = trail.open();
    let under_way = block_on(log.intend(record("under way"))).unwrap();
    let done = block_on(log.intend(record("done"))).unwrap();
    block_on(done.settle(Some(record("done"))));
    assert_eq!(operations(&ask(&log, all())), ["done"], "what is under way has no outcome yet");

    let crashed = Trail::new();
    fs::remove_file(crashed.folder.path().join("unmade")).unwrap();
    fs::copy(trail.data(), crashed.data()).unwrap();
    let after = crashed.open();
    let events = ask(&after, all());
    assert_eq!(operations(&events), ["under way", "done"]);
    assert_eq!(events[0].record.result, AuditResult::Failed);
    assert!(events[0].record.detail.contains("may have been made"), "{}", events[0].record.detail);
    drop(after);
    assert_eq!(operations(&ask(&crashed.open(), all())), ["under way", "done"], "and is settled once");
    block_on(under_way.settle(None));
}

#[test]
fn an_intent_leaves_what_came_of_it_and_nothing_when_nothing_did() {
    let trail = Trail::new();
    let log = trail.open();
    block_on(block_on(log.intend(record("without change"))).unwrap().settle(None));
    block_on(block_on(log.intend(record("changed"))).unwrap().settle(Some(record("changed"))));
    drop(block_on(log.intend(record("abandoned"))).unwrap());
    let events = ask(&log, all());
    assert_eq!(operations(&events), ["abandoned", "changed"]);
    assert_eq!(events[0].record.result, AuditResult::Failed, "nobody knows what came of it");
    drop(log);
    assert_eq!(operations(&ask(&trail.open(), all())), ["abandoned", "changed"]);
}
