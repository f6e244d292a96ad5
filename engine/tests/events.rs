//! Storage events: one for each change, with its facts, in the order of the changes, and none for a refused change.

use crate::support::{content, folder, key, name, options, put, stage, with_engine, with_engine_on};
use cairn_engine::{
    Attributes, Bucket, BucketChange, BucketSettings, Cause, CompleteUpload, DeleteOptions, Engine,
    EngineError, EventPage, EventQuery, EventRetention, EventType, EventTypes, LatestEventPage, NewUpload,
    ObjectLock, Origin, Precondition, PutObject, PutPart, StorageEvent, StoreOptions, Tick, Versioning,
    WriteCondition,
};
use cairn_fixtures::ManualClock;
use cairn_model::{Etag, TextSearch, Timestamp, VersionName};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Follows the events from the beginning, page by page.
fn all_events(engine: &Engine, query: &EventQuery) -> Vec<StorageEvent> {
    let (mut query, mut events) = (query.clone(), Vec::new());
    loop {
        let EventPage { events: more, examined, is_truncated } =
            engine.store().events(&query).expect("reads");
        assert!(more.iter().all(|event| event.id.tick() >= query.from && event.id.tick() < examined));
        events.extend(more);
        if !is_truncated {
            return events;
        }
        query.from = examined;
    }
}

/// Reads the events backwards, page by page.
fn latest_events(engine: &Engine, query: &EventQuery) -> Vec<StorageEvent> {
    let (mut query, mut events) = (query.clone(), Vec::new());
    loop {
        let LatestEventPage { events: more, examined, is_truncated } =
            engine.store().latest_events(&query).expect("reads");
        assert!(more.iter().all(|event| event.id.tick() >= examined && event.id.tick() < query.until));
        events.extend(more);
        if !is_truncated {
            return events;
        }
        assert!(examined < query.until, "each page comes further");
        query.until = examined;
    }
}

fn kinds(events: &[StorageEvent]) -> Vec<EventType> {
    events.iter().map(|event| event.kind).collect()
}

async fn bucket(engine: &Engine, text: &str) -> Arc<Bucket> {
    let origin = Origin { principal: "root".into(), request_id: "r0".into(), cause: Cause::Request };
    engine.store().create_bucket(&name(text), BucketSettings::default(), origin).await.expect("made")
}

async fn complete(engine: &Rc<Engine>, bucket: &Arc<Bucket>, object: &str, cause: Cause) {
    let object = key(object);
    let upload = engine.create_upload(bucket, &object, NewUpload::default()).await.expect("created").id;
    let payload = stage(engine, bucket, &object, b"part").await.expect("staged");
    let (number, checksum) = (1, None);
    let part = PutPart { bucket: Arc::clone(bucket), key: object.clone(), upload, number, payload, checksum };
    let md5 = engine.put_part(part).await.expect("put").md5;
    let complete = CompleteUpload {
        bucket: Arc::clone(bucket),
        key: object,
        upload,
        parts: vec![(1, md5)],
        checksums: Vec::new(),
        condition: WriteCondition::default(),
        origin: Origin { cause, ..Origin::default() },
    };
    engine.complete_upload(complete).await.expect("completed");
}

#[test]
fn every_change_has_one_event_with_its_facts_and_a_refused_change_has_none() {
    let folder = folder();
    with_engine(folder.path(), |engine| async move {
        let bucket = bucket(&engine, "events").await;
        let object = key("a/ü");
        let payload = stage(&engine, &bucket, &object, b"four").await.expect("staged");
        let headers = vec![("content-type".to_owned(), b"text/plain".to_vec())];
        let first = PutObject {
            bucket: Arc::clone(&bucket),
            key: object.clone(),
            payload,
            etag: Etag::single([7; 16]),
            attributes: Attributes { headers, ..Attributes::default() },
            condition: WriteCondition::default(),
            lock: ObjectLock::default(),
            origin: Origin { principal: "account:a".into(), request_id: "r1".into(), cause: Cause::Request },
        };
        engine.put_object(first).await.expect("put");
        let refused = put(&engine, &bucket, &object, b"no", WriteCondition::if_absent()).await;
        assert_eq!(refused.map(|_| ()), Err(EngineError::PreconditionFailed(Precondition::IfNoneMatch)));
        put(&engine, &bucket, &object, b"second", WriteCondition::default()).await.expect("put");
        engine.delete_object(&bucket, &object, DeleteOptions::default()).await.expect("deleted");
        engine.delete_object(&bucket, &object, DeleteOptions::default()).await.expect("nothing to delete");
        engine.store().delete_bucket(&name("events"), Origin::default()).await.expect("deleted");

        let events = all_events(&engine, &EventQuery { limit: 2, ..EventQuery::default() });
        let expected = [
            EventType::BucketCreated,
            EventType::ObjectCreated,
            EventType::ObjectUpdated,
            EventType::ObjectDeleted,
            EventType::BucketDeleted,
        ];
        assert_eq!(kinds(&events), expected);
        assert!(events.is_sorted_by_key(|event| event.id));
        assert!(events.iter().all(|event| event.bucket == "events"));
        assert_eq!((&*events[0].principal, &*events[0].request_id), ("root", "r0"));
        assert!(events[0].object.is_none() && events[4].object.is_none());
        let created = events[1].object.as_ref().expect("an object");
        assert_eq!((&*created.key, created.size), ("a/ü", 4));
        assert_eq!(created.version, Some(VersionName::Null));
        assert_eq!(created.etag, Some(Etag::single([7; 16])));
        assert_eq!(created.content_type.as_deref(), Some("text/plain"));
        assert_eq!((&*events[1].principal, &*events[1].request_id), ("account:a", "r1"));
        let deleted = events[3].object.as_ref().expect("an object");
        assert_eq!(
            (deleted.size, deleted.is_delete_marker),
            (6, false),
            "facts of the version that was removed"
        );
        assert_eq!(engine.store().event_signal().committed(EventType::ObjectCreated), 1);
    });
}

#[test]
fn versions_and_uploads_have_the_events_that_their_users_expect() {
    let folder = folder();
    with_engine(folder.path(), |engine| async move {
        let bucket = bucket(&engine, "versions").await;
        let enabled = BucketChange::Versioning(Versioning::Enabled);
        engine.store().change_bucket(&bucket, enabled).await.expect("changed");
        let object = key("k");
        // A marker over nothing is written, but nothing was deleted.
        engine.delete_object(&bucket, &object, DeleteOptions::default()).await.expect("a marker");
        put(&engine, &bucket, &object, b"one", WriteCondition::default()).await.expect("put");
        let marker =
            engine.delete_object(&bucket, &object, DeleteOptions::default()).await.expect("a marker");
        let of_marker = DeleteOptions { version: marker.version, ..DeleteOptions::default() };
        engine.delete_object(&bucket, &object, of_marker.clone()).await.expect("deleted");
        engine.delete_object(&bucket, &object, of_marker).await.expect("it does not exist any more");
        complete(&engine, &bucket, "k", Cause::Request).await;
        complete(&engine, &bucket, "k", Cause::Restore).await;
        complete(&engine, &bucket, "copy", Cause::Copy).await;
        for cause in [Cause::Request, Cause::Copy] {
            let origin = Origin { cause, ..Origin::default() };
            let upload =
                engine.create_upload(&bucket, &object, NewUpload::default()).await.expect("created").id;
            engine.abort_upload(&bucket, &object, upload, origin).await.expect("aborted");
        }
        let events = all_events(&engine, &EventQuery::default());
        let expected = [
            EventType::BucketCreated,
            EventType::ObjectCreated,
            EventType::ObjectDeleted,
            EventType::ObjectDeleted,
            EventType::ObjectUpdated,
            EventType::MultipartCompleted,
            EventType::ObjectRestored,
            EventType::ObjectCreated,
            EventType::MultipartAborted,
        ];
        assert_eq!(kinds(&events), expected);
        let facts = |index: usize| events[index].object.clone().expect("an object");
        assert_eq!((facts(2).version, facts(2).size, facts(2).is_delete_marker), (marker.version, 0, true));
        assert_eq!(
            (facts(3).version, facts(3).is_delete_marker),
            (marker.version, false),
            "none was written"
        );
        assert_eq!((facts(8).version, facts(8).size), (None, 0));
    });
}

#[test]
fn filters_and_times_select_events_and_pages_continue_where_they_ended() {
    let folder = folder();
    with_engine(folder.path(), |engine| async move {
        let (one, two) = (bucket(&engine, "one").await, bucket(&engine, "two").await);
        for number in 0..60 {
            let of = if number % 3 == 0 { &one } else { &two };
            put(&engine, of, &key(&format!("p{}/{number}", number % 2)), b"x", WriteCondition::default())
                .await
                .expect("put");
        }
        let everything = all_events(&engine, &EventQuery { limit: 7, ..EventQuery::default() });
        assert_eq!(everything.len(), 62);
        let only = |query: EventQuery| all_events(&engine, &query).len();
        assert_eq!(
            only(EventQuery { bucket: Some("one".to_owned()), limit: 3, ..EventQuery::default() }),
            21
        );
        assert_eq!(
            only(EventQuery { prefix: Some("p1/".to_owned()), limit: 3, ..EventQuery::default() }),
            30
        );
        let types: EventTypes = [EventType::BucketCreated, EventType::BucketDeleted].into_iter().collect();
        assert_eq!(only(EventQuery { types, ..EventQuery::default() }), 2);
        let (from, until) = (everything[10].id.tick(), everything[20].id.tick());
        assert_eq!(
            all_events(&engine, &EventQuery { from, until, ..EventQuery::default() }),
            everything[10..20]
        );
        let mut backwards = latest_events(&engine, &EventQuery { limit: 7, ..EventQuery::default() });
        backwards.reverse();
        assert_eq!(backwards, everything, "the same events in the other order");
        let mut within =
            latest_events(&engine, &EventQuery { from, until, limit: 3, ..EventQuery::default() });
        within.reverse();
        assert_eq!(within, everything[10..20]);
        let with = |text| EventQuery { contains: Some(TextSearch::new(text)), ..EventQuery::default() };
        for (text, number) in
            [("P1/", 30), ("one/p1/9", 1), ("bucket.", 2), ("two", 41), ("r0", 2), ("no", 0)]
        {
            assert_eq!(only(with(text)), number, "{text}");
            assert_eq!(latest_events(&engine, &with(text)).len(), number, "{text}");
        }
        let of =
            |principal: &str| EventQuery { principal: Some(principal.to_owned()), ..EventQuery::default() };
        assert_eq!((only(of("root")), only(of("roo"))), (2, 0));
        // The last page is not truncated, although it is full.
        let last = EventQuery { from: everything[60].id.tick(), limit: 2, ..EventQuery::default() };
        let page = engine.store().events(&last).expect("reads");
        assert!(page.events.len() == 2 && !page.is_truncated && page.examined > everything[61].id.tick());
    });
}

/// The classic fault of an outbox: a slice commits an event late, and a follower has passed its time.
#[test]
fn follower_misses_no_event_of_writers_on_all_slices() {
    let folder = folder();
    with_engine(folder.path(), |engine| async move {
        const WRITERS: u64 = 24;
        const OBJECTS: u64 = 60;
        let bucket = bucket(&engine, "busy").await;
        let done = Rc::new(AtomicBool::new(false));
        let follower = {
            let (engine, done) = (Rc::clone(&engine), Rc::clone(&done));
            glommio::spawn_local(async move {
                let (mut query, mut seen) = (EventQuery { limit: 50, ..EventQuery::default() }, Vec::new());
                loop {
                    let ended = done.load(Ordering::Relaxed);
                    let page = engine.store().events(&query).expect("reads");
                    query.from = page.examined;
                    seen.extend(page.events.into_iter().map(|event| event.id));
                    if ended && !page.is_truncated {
                        return seen;
                    }
                    glommio::executor().yield_now().await;
                }
            })
        };
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (engine, bucket) = (Rc::clone(&engine), Arc::clone(&bucket));
                glommio::spawn_local(async move {
                    for number in 0..OBJECTS {
                        let bytes = content(number, 100);
                        let object = key(&format!("{writer}/{number}"));
                        put(&engine, &bucket, &object, &bytes, WriteCondition::default()).await.expect("put");
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.await;
        }
        done.store(true, Ordering::Relaxed);
        let seen = follower.await;
        assert!(seen.is_sorted(), "each page continues the one before");
        let written: Vec<_> =
            all_events(&engine, &EventQuery::default()).into_iter().map(|event| event.id).collect();
        assert_eq!(seen.len(), written.len(), "the follower missed events");
        assert_eq!(seen, written);
        assert_eq!(u64::try_from(seen.len()).expect("few"), 1 + WRITERS * OBJECTS);
    });
}

#[test]
fn events_stay_in_order_over_a_restart_with_a_clock_that_went_back() {
    let folder = folder();
    let at = |time| StoreOptions { clock: ManualClock::at(time), ..options(folder.path()) };
    with_engine_on(at(5_000_000), |engine| async move { drop(bucket(&engine, "before").await) });
    with_engine_on(at(1_000_000), |engine| async move {
        drop(bucket(&engine, "after").await);
        let events = all_events(&engine, &EventQuery::default());
        let names: Vec<_> = events.iter().map(|event| &*event.bucket).collect();
        assert_eq!(names, ["before", "after"]);
        assert_eq!(events[1].time(), Timestamp(5_000_000));
    });
}

#[test]
fn old_events_are_removed_and_the_rest_stays() {
    let folder = folder();
    let clock = ManualClock::at(1_000_000);
    let of_store = StoreOptions { clock: Arc::<ManualClock>::clone(&clock), ..options(folder.path()) };
    with_engine_on(of_store, move |engine| async move {
        let bucket = bucket(&engine, "old").await;
        let object = key("k");
        for _ in 0..5 {
            put(&engine, &bucket, &object, b"x", WriteCondition::default()).await.expect("put");
        }
        clock.set(1_060_000);
        put(&engine, &bucket, &object, b"y", WriteCondition::default()).await.expect("put");
        let never = || false;
        let expire = async |seconds| {
            let retention = EventRetention { age_max: Duration::from_secs(seconds), records_max: 1000 };
            engine.expire_events_now(retention, &never).await.expect("removes")
        };
        assert_eq!(expire(60).await, 0, "nothing is so old");
        assert_eq!(expire(59).await, 6);
        let left = all_events(&engine, &EventQuery::default());
        assert_eq!(kinds(&left), [EventType::ObjectUpdated]);
        assert_eq!(left[0].id.tick(), Tick::first_at(Timestamp(1_060_000)));
        clock.set(1_060_000 + 2 * 86_400_000);
        assert_eq!(expire(86_400).await, 0, "the clock has jumped");
        engine.store().resume_lifecycle();
        assert_eq!(expire(86_400).await, 1);
    });
}

#[test]
fn the_oldest_events_above_the_number_are_removed() {
    let folder = folder();
    let of_store = StoreOptions { slices: Some(2), ..options(folder.path()) };
    with_engine_on(of_store, move |engine| async move {
        let bucket = bucket(&engine, "many").await;
        for number in 0..3000 {
            let object = key(&format!("key-{number}"));
            put(&engine, &bucket, &object, b"x", WriteCondition::default()).await.expect("put");
        }
        let retention = EventRetention { age_max: Duration::from_secs(86_400), records_max: 501 };
        let removed = engine.expire_events_now(retention, &|| false).await.expect("removes");
        let left = all_events(&engine, &EventQuery::default());
        // Each slice keeps its half, and the creation of the bucket is counted apart.
        assert_eq!(left.len(), 251 + 251 + 1);
        assert_eq!(removed, 3001 - 503);
        assert_eq!(left[0].kind, EventType::BucketCreated);
        let first_kept = left[1].id.tick();
        let newest = left.iter().rev().take(100).map(|event| event.object.as_ref().expect("an object"));
        let newest: Vec<_> = newest.map(|object| object.key.to_string()).collect();
        let expected: Vec<_> = (2900..3000).rev().map(|number| format!("key-{number}")).collect();
        assert_eq!(newest, expected, "the newest stay");
        assert!(left[1..].iter().all(|event| event.id.tick() >= first_kept));
        let again = engine.expire_events_now(retention, &|| false).await.expect("nothing is left to remove");
        assert_eq!(again, 0);
    });
}

#[test]
fn without_events_changes_write_none() {
    let folder = folder();
    with_engine_on(StoreOptions { events: false, ..options(folder.path()) }, |engine| async move {
        let bucket = bucket(&engine, "quiet").await;
        put(&engine, &bucket, &key("k"), b"x", WriteCondition::default()).await.expect("put");
        assert_eq!(all_events(&engine, &EventQuery::default()), []);
    });
}
