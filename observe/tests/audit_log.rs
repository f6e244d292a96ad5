//! The audit trail: durability, queries, retention, kinds, rate limits, damage, and intents.

use cairn_fixtures::ManualClock;
use cairn_model::{AgeLimit, Clock, Timestamp};
use cairn_observe::{
    AuditEvent, AuditId, AuditKind, AuditLog, AuditOptions, AuditQuery, AuditRecord, AuditResult, DataEvents,
    Source,
};
use cairn_tables::{StoreFailure, StoreOpenError};
use futures_lite::future::block_on;
use std::collections::BTreeSet;
use std::fs;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

const STORE: [u8; 16] = [7; 16];
const DAY_MS: u64 = 86_400_000;
const BEGUN: u64 = 20_000 * DAY_MS;

/// The folder of a trail, and its clock.
struct Fixture {
    folder: TempDir,
    clock: Arc<ManualClock>,
    records_max: u64,
}

impl Fixture {
    /// Makes the folder of a new store.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("unmade"), b"").unwrap();
        Self { folder, clock: ManualClock::at(BEGUN), records_max: 1_000_000 }
    }

    fn try_open_as(&self, store: [u8; 16]) -> Result<Arc<AuditLog>, StoreOpenError> {
        AuditLog::open(AuditOptions {
            folder: self.folder.path().to_owned(),
            store,
            age: AgeLimit {
                age_max: Duration::from_millis(365 * DAY_MS),
                clock: Arc::clone(&self.clock) as Arc<dyn Clock>,
            },
            records_max: self.records_max,
            data_events: DataEvents::default(),
            clock: Arc::clone(&self.clock) as Arc<dyn Clock>,
        })
    }

    fn open(&self) -> Arc<AuditLog> {
        self.try_open_as(STORE).unwrap()
    }

    fn open_error(&self, store: [u8; 16]) -> String {
        match self.try_open_as(store) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("it opened"),
        }
    }

    fn data(&self) -> std::path::PathBuf {
        self.folder.path().join("data.mdb")
    }

    fn set_clock(&self, ms: u64) {
        self.clock.set(ms);
    }
}

fn record(operation: &str) -> AuditRecord {
    AuditRecord::new("system", operation, AuditResult::Allowed)
}

fn append(log: &AuditLog, record: AuditRecord) -> AuditId {
    block_on(log.append(record)).unwrap()
}

fn query(log: &AuditLog, query: AuditQuery) -> Vec<AuditEvent> {
    block_on(log.page(query)).unwrap().events
}

fn all() -> AuditQuery {
    AuditQuery { limit: 1000, ..AuditQuery::default() }
}

fn operations(events: &[AuditEvent]) -> Vec<&str> {
    events.iter().map(|event| event.record.operation.as_str()).collect()
}

/// Reads all events page by page, latest first, and calls `between` after each page but the last.
fn read_all(log: &AuditLog, query: &AuditQuery, mut between: impl FnMut()) -> Vec<AuditEvent> {
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
fn acknowledged_records_survive_a_restart() {
    let trail = Fixture::new();
    let log = trail.open();
    let full = AuditRecord {
        principal: "root".to_owned(),
        role: "system_admin".to_owned(),
        operation: "bucket.create".to_owned(),
        resource: "photos".to_owned(),
        copy_source: "pictures/k".to_owned(),
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
    let events = query(&log, all());
    assert_eq!(events.iter().map(|event| event.id).collect::<Vec<_>>(), [third, second, first]);
    assert_eq!(events[2].record, full);
}

#[test]
fn concurrent_writers_all_get_their_records() {
    let trail = Fixture::new();
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
        let written = writer.join().unwrap();
        assert!(written.is_sorted(), "each writer's records are in its order");
        ids.extend(written.iter().map(ToString::to_string));
    }
    assert_eq!(ids.len(), 2000);
    let found = read_all(&log, &AuditQuery { limit: 1000, ..all() }, || ());
    assert_eq!(found.iter().map(|event| event.id.to_string()).collect::<BTreeSet<_>>(), ids);
}

#[test]
fn pages_have_no_gaps_or_repeats_while_events_are_added() {
    let trail = Fixture::new();
    let log = trail.open();
    for n in 0..1003 {
        trail.set_clock(BEGUN + n / 10);
        append(&log, record(&n.to_string()));
    }
    for limit in [1, 7, 100, 1000] {
        // Pages of one event are only read for the last hundred events, to save time.
        let query = AuditQuery { limit, since: (limit == 1).then_some(Timestamp(BEGUN + 91)), ..all() };
        let expected: Vec<String> =
            (0..1003).rev().filter(|n| limit > 1 || n / 10 >= 91).map(|n| n.to_string()).collect();
        let mut added = 0;
        let found = read_all(&log, &query, || {
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
fn filters_select_exactly_the_matching_events() {
    let trail = Fixture::new();
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
    type Matches = fn(u64) -> bool;
    let cases: [(AuditQuery, Matches); 11] = [
        (AuditQuery { since: Some(Timestamp(BEGUN + 40)), ..all() }, |n| n >= 40),
        (AuditQuery { until: Some(Timestamp(BEGUN + 40)), ..all() }, |n| n < 40),
        (AuditQuery { principal: Some("p1".into()), ..all() }, |n| n % 2 == 1),
        (AuditQuery { operations: vec!["o3".into()], ..all() }, |n| n % 4 == 3),
        (AuditQuery { operations: vec!["o3".into(), "o1".into()], ..all() }, |n| n % 2 == 1),
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
                operations: vec!["o2".into()],
                ..all()
            },
            |n| (10..50).contains(&n) && n % 4 == 2,
        ),
    ];
    for (query, matches) in cases {
        let expected: Vec<String> = (0..60).rev().filter(|n| matches(*n)).map(|n| format!("q{n}")).collect();
        for limit in [3, 1000] {
            let found = read_all(&log, &AuditQuery { limit, ..query.clone() }, || ());
            let found: Vec<_> = found.iter().map(|event| event.record.request_id.clone()).collect();
            assert_eq!(found, expected, "{query:?}");
        }
    }
}

#[test]
fn buckets_and_keys_are_matched_in_resources_and_copy_sources() {
    let trail = Fixture::new();
    let log = trail.open();
    for (operation, resource, copy_source) in [
        ("bucket", "b", ""),
        ("object", "b/k/x", ""),
        ("copy", "c/y", "b/k/x"),
        ("other", "bb/k/x", ""),
        ("none", "", ""),
    ] {
        let (resource, copy_source) = (resource.to_owned(), copy_source.to_owned());
        append(&log, AuditRecord { resource, copy_source, ..record(operation) });
    }
    let [b, object, x] = ["b", "b/k/x", "k/x"].map(|text| Some(text.to_owned()));
    for (filter, expected) in [
        (AuditQuery { bucket: b.clone(), ..all() }, &["copy", "object", "bucket"][..]),
        (AuditQuery { resource: object, ..all() }, &["copy", "object"]),
        (AuditQuery { resource: b.clone(), ..all() }, &["bucket"]),
        (AuditQuery { key: x.clone(), ..all() }, &["other", "copy", "object"]),
        (AuditQuery { key: x, bucket: b.clone(), ..all() }, &["copy", "object"]),
        // The key of the one and the bucket of the other are not one object.
        (AuditQuery { key: Some("y".to_owned()), bucket: b, ..all() }, &[]),
        (AuditQuery { key: Some(String::new()), ..all() }, &[]),
    ] {
        assert_eq!(operations(&query(&log, filter.clone())), expected, "{filter:?}");
    }
    drop(log);
    let copy = query(&trail.open(), AuditQuery { operations: vec!["copy".to_owned()], ..all() });
    assert_eq!(copy[0].record.copy_source, "b/k/x");
}

#[test]
fn reads_wait_for_the_writer_only_when_many_wait() {
    let trail = Fixture::new();
    let log = trail.open();
    for _ in 0..5000 {
        block_on(log.record_read(record("read"))).unwrap();
        assert!(log.queue_length() <= 1024, "a reader waits before the queue is full");
    }
    assert_eq!(read_all(&log, &all(), || ()).len(), 5000, "no read is omitted");
    log.close();
    assert_eq!(block_on(log.record_read(record("read"))), Err(StoreFailure::Closing));
}

#[test]
fn retention_removes_old_and_surplus_events() {
    let mut trail = Fixture::new();
    trail.records_max = 50;
    let log = trail.open();
    for n in 0..200 {
        append(&log, record(&n.to_string()));
    }
    let kept: Vec<String> = (150..200).rev().map(|n| n.to_string()).collect();
    assert_eq!(operations(&query(&log, all())), kept);

    trail.set_clock(BEGUN + 366 * DAY_MS);
    append(&log, record("a year later"));
    assert_eq!(operations(&query(&log, all())), ["a year later"]);
}

/// Regression: logins, disclosures and recorded reads pushed records of changes out of the trail.
#[test]
fn records_of_one_kind_displace_none_of_another() {
    let mut trail = Fixture::new();
    trail.records_max = 50;
    let log = trail.open();
    let changed = |kind, name: &str| {
        block_on(block_on(log.record_intent(kind, record(name))).unwrap().complete(Some(record(name))));
    };
    changed(AuditKind::Change, "change");
    changed(AuditKind::BucketChange, "bucket change");
    changed(AuditKind::ObjectChange, "object change");
    let refused = |n: u8| log.offer(Source::Client(IpAddr::from([10, 0, 0, n])), record("refusal"));
    let access = |n: u32| {
        let source_ip = Some(IpAddr::from([192, 0, 2, 1]));
        block_on(
            log.record_access("", AuditRecord { resource: n.to_string(), source_ip, ..record("access") }),
        )
    };
    for n in 0..200 {
        refused(n);
        access(u32::from(n)).unwrap();
        block_on(log.record_read(record("read"))).unwrap();
        changed(AuditKind::ObjectChange, "object change");
    }
    let events = query(&log, all());
    let count = |name| events.iter().filter(|event| event.record.operation == name).count();
    let counts = ["change", "bucket change", "object change", "refusal", "access", "read"].map(count);
    assert_eq!(counts, [1, 1, 50, 50, 50, 50]);
    assert!(events.iter().is_sorted_by(|a, b| a.id > b.id), "the kinds are merged in the order of recording");
    for limit in [1, 3, 7] {
        let paged = read_all(&log, &AuditQuery { limit, ..all() }, || ());
        assert_eq!(paged, events, "in pages of {limit}");
    }
}

#[test]
fn repeated_accesses_are_one_record_and_a_count() {
    let trail = Fixture::new();
    let log = trail.open();
    let access = |resource: &str, source: [u8; 4]| AuditRecord {
        resource: resource.to_owned(),
        source_ip: Some(IpAddr::from(source)),
        request_id: "r".to_owned(),
        ..record("login")
    };
    for _ in 0..1000 {
        block_on(log.record_access("", access("", [192, 0, 2, 1]))).unwrap();
    }
    block_on(log.record_access("", access("", [192, 0, 2, 2]))).unwrap();
    assert_eq!(query(&log, all()).len(), 2, "each source is recorded");
    drop(log);
    let events = query(&trail.open(), all());
    assert_eq!(events.len(), 3);
    assert!(events[0].record.detail.starts_with("999 more"), "{}", events[0].record.detail);
}

/// A cursor stays valid after the retention has removed its event.
#[test]
fn paging_continues_after_a_removed_event() {
    let mut trail = Fixture::new();
    trail.records_max = 10;
    let log = trail.open();
    let ids: Vec<_> = (0..10).map(|n| append(&log, record(&n.to_string()))).collect();
    for n in 10..15 {
        append(&log, record(&n.to_string()));
    }
    let after = |id| query(&log, AuditQuery { after: Some(id), ..all() });
    assert_eq!(operations(&after(ids[7])), ["6", "5"]);
    assert!(after(ids[2]).is_empty());
}

#[test]
fn setting_the_clock_back_keeps_the_order() {
    let trail = Fixture::new();
    let log = trail.open();
    append(&log, record("before"));
    trail.set_clock(BEGUN - 3_600_000);
    append(&log, record("set back"));
    drop(log);
    let log = trail.open();
    append(&log, record("and started again"));
    assert_eq!(operations(&query(&log, all())), ["and started again", "set back", "before"]);
}

#[test]
fn a_flood_from_one_source_is_limited() {
    let trail = Fixture::new();
    let log = trail.open();
    let refused = || AuditRecord::new(AuditRecord::ANONYMOUS, "GetObject", AuditResult::Denied);
    let attacker = Source::Client("2001:db8::1".parse().unwrap());
    for n in 0..20_000u32 {
        // All addresses of one network are one source.
        log.offer(attacker, refused());
        if n % 1000 == 0 {
            // Lets the writer keep up, so that the limit of the source is reached and not that of the queue.
            append(&log, record("work goes on"));
        }
    }
    log.offer(Source::Client("192.0.2.9".parse().unwrap()), record("another client"));
    log.offer(Source::Finding("photos/a"), record("damage"));
    let found = read_all(&log, &all(), || ());
    let flood = found.iter().filter(|event| event.record.operation == "GetObject").count();
    assert!((500..=1100).contains(&flood), "{flood}");
    for other in ["another client", "damage"] {
        assert!(operations(&found).contains(&other), "{other}");
    }
}

#[test]
fn damaged_or_foreign_trails_are_refused_and_not_changed() {
    let trail = Fixture::new();
    assert!(!trail.data().exists());
    let log = trail.open();
    for _ in 0..201 {
        append(&log, AuditRecord { detail: "x".repeat(400), ..record("kept") });
    }
    drop(log);
    assert!(!trail.folder.path().join("unmade").exists());
    let whole = fs::read(trail.data()).unwrap();

    assert!(trail.open_error([8; 16]).contains("belongs to another store"));
    fs::write(trail.data(), &whole[..16_384]).unwrap();
    assert!(trail.open_error(STORE).contains("truncated"));
    fs::write(trail.data(), b"").unwrap();
    assert!(trail.open_error(STORE).contains("missing or empty"));
    assert_eq!(fs::metadata(trail.data()).unwrap().len(), 0);
    fs::remove_file(trail.data()).unwrap();
    let error = trail.open_error(STORE);
    assert!(error.contains("missing or empty") && error.contains("unmade"), "{error}");
    assert!(!trail.data().exists(), "nothing was created in its place");

    fs::write(trail.data(), &whole).unwrap();
    assert_eq!(query(&trail.open(), all()).len(), 201);
}

/// A crash between the creation of a store and the first record leaves the marker and an incomplete data file.
#[test]
fn an_interrupted_creation_is_repeated() {
    let mark = |trail: &Fixture| fs::write(trail.folder.path().join("unmade"), b"").unwrap();
    let trail = Fixture::new();
    fs::write(trail.data(), b"").unwrap();
    append(&trail.open(), record("first"));

    let trail = Fixture::new();
    fs::write(trail.data(), [0; 8192]).unwrap();
    append(&trail.open(), record("first"));

    // The removal of the marker was not durable, but the record after it was.
    mark(&trail);
    assert_eq!(operations(&query(&trail.open(), all())), ["first"]);
    mark(&trail);
    assert!(trail.open_error([8; 16]).contains("belongs to another store"));
}

fn flip(path: &Path, needle: &[u8]) -> usize {
    let mut bytes = fs::read(path).unwrap();
    let positions: Vec<_> =
        (0..bytes.len() - needle.len()).filter(|at| bytes[*at..].starts_with(needle)).collect();
    for at in &positions {
        bytes[*at] ^= 1;
    }
    fs::write(path, bytes).unwrap();
    positions.len()
}

#[test]
fn damaged_records_are_shown_as_damaged() {
    let trail = Fixture::new();
    let log = trail.open();
    append(&log, record("first"));
    let damaged = append(&log, record("a-needle-that-occurs-once"));
    append(&log, record("last"));
    drop(log);
    assert!(flip(&trail.data(), b"a-needle-that-occurs-once") > 0);
    let log = trail.open();
    let events = query(&log, all());
    assert_eq!(operations(&events), ["last", "audit.damaged", "first"]);
    assert_eq!(events[1].id, damaged);
    let filtered = query(&log, AuditQuery { operations: vec!["first".into()], ..all() });
    assert_eq!(operations(&filtered), ["audit.damaged", "first"], "a damaged record may match");
    append(&log, record("and recording goes on"));
}

#[test]
fn a_closed_trail_has_all_offered_records_and_refuses_more() {
    let trail = Fixture::new();
    let log = trail.open();
    for n in 0..100 {
        log.offer(Source::Client(IpAddr::from([10, 0, 0, n])), record("offered"));
    }
    log.close();
    assert_eq!(block_on(log.append(record("late"))), Err(StoreFailure::Closing));
    assert_eq!(block_on(log.page(all())), Err(StoreFailure::Closing));
    drop(log);
    assert_eq!(query(&trail.open(), all()).len(), 100);
}

/// Regression: a change had no event if the process ended between the two, so a crash at the right moment hid a change.
#[test]
fn changes_without_a_recorded_outcome_are_visible_after_a_crash() {
    let trail = Fixture::new();
    let log = trail.open();
    let in_progress = block_on(log.record_intent(AuditKind::Change, record("in progress"))).unwrap();
    let done = block_on(log.record_intent(AuditKind::Change, record("done"))).unwrap();
    block_on(done.complete(Some(record("done"))));
    assert_eq!(operations(&query(&log, all())), ["done"], "a change in progress has no outcome yet");

    let crashed = Fixture::new();
    fs::remove_file(crashed.folder.path().join("unmade")).unwrap();
    fs::copy(trail.data(), crashed.data()).unwrap();
    let after = crashed.open();
    let events = query(&after, all());
    assert_eq!(operations(&events), ["in progress", "done"]);
    assert_eq!(events[0].record.result, AuditResult::Failed);
    assert!(events[0].record.detail.contains("may have been made"), "{}", events[0].record.detail);
    drop(after);
    assert_eq!(
        operations(&query(&crashed.open(), all())),
        ["in progress", "done"],
        "the intent is completed once"
    );
    block_on(in_progress.complete(None));
}

#[test]
fn intents_are_replaced_by_their_outcome() {
    let trail = Fixture::new();
    let log = trail.open();
    block_on(
        block_on(log.record_intent(AuditKind::Change, record("without change"))).unwrap().complete(None),
    );
    block_on(
        block_on(log.record_intent(AuditKind::Change, record("changed")))
            .unwrap()
            .complete(Some(record("changed"))),
    );
    drop(block_on(log.record_intent(AuditKind::Change, record("abandoned"))).unwrap());
    block_on(log.record_intent(AuditKind::Change, record("without change, later")))
        .unwrap()
        .complete_later(None);
    let events = query(&log, all());
    assert_eq!(operations(&events), ["abandoned", "changed"]);
    assert_eq!(events[0].record.result, AuditResult::Failed, "the outcome is unknown");
    block_on(log.record_intent(AuditKind::Change, record("changed, later")))
        .unwrap()
        .complete_later(Some(record("changed, later")));
    drop(log);
    assert_eq!(operations(&query(&trail.open(), all())), ["changed, later", "abandoned", "changed"]);
}
