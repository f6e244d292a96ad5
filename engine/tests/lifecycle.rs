//! Lifecycle rules: due index, removals in all states of a bucket, locks, status, previews, restarts.

use crate::support::{fill, folder, get, key, name, options, put, until, with_engine_on};
use cairn_engine::{
    Bucket, BucketChange, BucketSettings, CompleteUpload, DayLength, DeleteOptions, Engine, EngineError,
    EventQuery, EventType, FilterForm, LifecycleChange, LifecycleOptions, LifecycleRule, ListVersions,
    NewUpload, Origin, PlannedAction, PutPart, Retention, RetentionMode, RuleId, StoreOptions, Tags,
    Versioning, WriteCondition,
};
use cairn_fixtures::ManualClock;
use cairn_md5::md5_digest;
use cairn_model::{ObjectKey, Timestamp, UploadId, VersionName};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const DAY: u64 = 86_400_000;
/// A midnight.
const START: u64 = 20_000 * DAY;
const OPTIONS: LifecycleOptions = LifecycleOptions { interval: Duration::from_secs(3600), batch_size: 1000 };

fn clock_at_start() -> Arc<ManualClock> {
    ManualClock::at(START + 1)
}

fn pass_days(clock: &ManualClock, days: u64) {
    clock.advance(Duration::from_millis(days * DAY));
}

fn with_clock(folder: &Path, clock: &Arc<ManualClock>) -> StoreOptions {
    StoreOptions { clock: Arc::<ManualClock>::clone(clock), ..options(folder) }
}

fn rule(prefix: &str) -> LifecycleRule {
    LifecycleRule {
        id: RuleId::new(Timestamp(START)).expect("random numbers"),
        s3_id: None,
        prefix: prefix.to_owned(),
        tags: Tags::default(),
        form: FilterForm::default(),
        expiration_days: None,
        noncurrent_days: None,
        newer_noncurrent_versions: 0,
        expired_delete_markers: false,
        abort_uploads_days: None,
        is_enabled: true,
        created_at: Timestamp(START),
    }
}

async fn add(engine: &Engine, bucket: &Bucket, rule: &LifecycleRule) {
    let change = BucketChange::Lifecycle(LifecycleChange::Add(rule.clone()));
    engine.store().change_bucket(bucket, change).await.expect("added");
}

async fn bucket(engine: &Engine, versioning: Versioning) -> Arc<Bucket> {
    let store = engine.store();
    let made = store.create_bucket(&name("bucket"), BucketSettings::default(), Origin::default()).await;
    let bucket = made.expect("made");
    let states: &[Versioning] = match versioning {
        Versioning::Unversioned => &[],
        Versioning::Enabled => &[Versioning::Enabled],
        Versioning::Suspended => &[Versioning::Enabled, Versioning::Suspended],
    };
    for state in states {
        store.change_bucket(&bucket, BucketChange::Versioning(*state)).await.expect("changed");
    }
    bucket
}

async fn write(engine: &Rc<Engine>, bucket: &Arc<Bucket>, object: &str, size: usize) -> VersionName {
    let bytes = vec![7; size];
    let put = put(engine, bucket, &key(object), &bytes, WriteCondition::default()).await.expect("put");
    if put.is_null { VersionName::Null } else { VersionName::Id(put.version) }
}

async fn delete(engine: &Engine, bucket: &Arc<Bucket>, object: &str, version: Option<VersionName>) {
    let options = DeleteOptions { version, ..DeleteOptions::default() };
    engine.delete_object(bucket, &key(object), options).await.expect("deleted");
}

/// All versions: key, whether it is a delete marker.
fn versions(engine: &Engine, bucket: &Arc<Bucket>) -> Vec<(String, bool)> {
    let list = ListVersions { prefix: b"", delimiter: None, after: None, max: 1000 };
    let page = engine.list_versions(bucket, &list).expect("lists");
    page.versions.into_iter().map(|version| (version.object.key, version.is_delete_marker)).collect()
}

/// The versions of a key, newest first.
fn versions_with_ids(engine: &Engine, bucket: &Arc<Bucket>, object: &str) -> Vec<VersionName> {
    let list = ListVersions { prefix: object.as_bytes(), delimiter: None, after: None, max: 1000 };
    let page = engine.list_versions(bucket, &list).expect("lists");
    page.versions.into_iter().map(|version| version.name).collect()
}

/// Inspects the store, which compares the due index with the versions.
fn assert_clean(engine: &Engine) {
    let store = Arc::clone(engine.store());
    let inspect = std::thread::spawn(move || store.inspect(u64::MAX).expect("inspects"));
    let inspection = inspect.join().expect("ends");
    assert!(inspection.complete && inspection.is_clean(), "{:?}", inspection.findings);
}

fn expired(days: u32) -> LifecycleRule {
    LifecycleRule { expiration_days: Some(days), ..rule("") }
}

#[test]
fn object_of_an_unversioned_bucket_is_removed_when_it_is_due_and_not_before() {
    let folder = folder();
    let clock = clock_at_start();
    let time = Arc::clone(&clock);
    with_engine_on(with_clock(folder.path(), &clock), move |engine| async move {
        let bucket = bucket(&engine, Versioning::Unversioned).await;
        write(&engine, &bucket, "logs/old", 100).await;
        write(&engine, &bucket, "data/old", 100).await;
        let rule = LifecycleRule { prefix: "logs/".into(), ..expired(2) };
        add(&engine, &bucket, &rule).await;
        // Older than two days, but the midnight has not come.
        pass_days(&time, 2);
        let counts = engine.apply_lifecycle(OPTIONS).await.expect("applied");
        assert_eq!((counts.examined, versions(&engine, &bucket).len()), (0, 2));
        let status = engine.store().lifecycle_rule_status(rule.id);
        assert_eq!(status.next_due_at, Some(Timestamp(START + 3 * DAY)));
        assert_clean(&engine);
        pass_days(&time, 1);
        let counts = engine.apply_lifecycle(OPTIONS).await.expect("applied");
        assert_eq!((counts.examined, counts.expired_objects, counts.bytes_freed), (1, 1, 100));
        assert_eq!(versions(&engine, &bucket), [("data/old".to_owned(), false)]);
        let status = engine.store().lifecycle_rule_status(rule.id);
        assert_eq!((status.counts, status.next_due_at), (counts, None));
        assert_clean(&engine);
        let events = engine.store().events(&EventQuery::default()).expect("reads").events;
        let last = events.last().expect("an event");
        assert_eq!((last.kind, &*last.principal), (EventType::ObjectDeleted, "lifecycle"));
        assert_eq!(last.lifecycle_rule.as_deref(), Some(&*rule.id.to_string()));
    });
}

#[test]
fn versioned_bucket_gets_markers_then_loses_versions_then_markers() {
    let folder = folder();
    let clock = clock_at_start();
    let time = Arc::clone(&clock);
    with_engine_on(with_clock(folder.path(), &clock), move |engine| async move {
        let bucket = bucket(&engine, Versioning::Enabled).await;
        let rule = LifecycleRule { noncurrent_days: Some(3), ..expired(1) };
        add(&engine, &bucket, &rule).await;
        write(&engine, &bucket, "a", 10).await;
        write(&engine, &bucket, "a", 20).await;
        assert_clean(&engine);
        pass_days(&time, 2);
        let counts = engine.apply_lifecycle(OPTIONS).await.expect("applied");
        assert_eq!((counts.expired_objects, counts.delete_markers_written, counts.bytes_freed), (1, 1, 0));
        assert_eq!(versions(&engine, &bucket).len(), 3);
        assert!(matches!(
            get(&engine, &bucket, &key("a"), 0..1).await,
            Err(EngineError::DeleteMarker { .. })
        ));
        assert_clean(&engine);
        // The first version has not been current since the start, the second one since the marker.
        pass_days(&time, 2);
        let counts = engine.apply_lifecycle(OPTIONS).await.expect("applied");
        assert_eq!((counts.noncurrent_versions_removed, counts.bytes_freed), (1, 10));
        assert_clean(&engine);
        pass_days(&time, 2);
        let counts = engine.apply_lifecycle(OPTIONS).await.expect("applied");
        // The marker is alone now, and older than a day: it goes in the same run.
        assert_eq!((counts.noncurrent_versions_removed, counts.bytes_freed), (1, 20));
        assert_eq!(counts.delete_markers_removed, 1);
        assert_eq!(versions(&engine, &bucket), []);
        assert_clean(&engine);
    });
}

#[test]
fn suspended_bucket_replaces_the_null_version_by_a_null_marker() {
    let folder = folder();
    let clock = clock_at_start();
    let time = Arc::clone(&clock);
    with_engine_on(with_clock(folder.path(), &clock), move |engine| async move {
        let bucket = bucket(&engine, Versioning::Enabled).await;
        add(&engine, &bucket, &expired(1)).await;
        write(&engine, &bucket, "versioned", 10).await;
        write(&engine, &bucket, "both", 20).await;
        let suspend = BucketChange::Versioning(Versioning::Suspended);
        engine.store().change_bucket(&bucket, suspend).await.expect("changed");
        write(&engine, &bucket, "both", 30).await;
        write(&engine, &bucket, "null", 40).await;
        pass_days(&time, 2);
        let counts = engine.apply_lifecycle(OPTIONS).await.expect("applied");
        assert_eq!((counts.expired_objects, counts.delete_markers_written, counts.bytes_freed), (3, 3, 70));
        let mut left = versions(&engine, &bucket);
        left.sort();
        let left: Vec<_> = left.iter().map(|(key, is_marker)| (&**key, *is_marker)).collect();
        assert_eq!(
            left,
            [("both", false), ("both", true), ("null", true), ("versioned", false), ("versioned", true)]
        );
        assert_clean(&engine);
    });
}

#[test]
fn newest_noncurrent_versions_are_kept() {
    let folder = folder();
    let clock = clock_at_start();
    let time = Arc::clone(&clock);
    with_engine_on(with_clock(folder.path(), &clock), move |engine| async move {
        let bucket = bucket(&engine, Versioning::Enabled).await;
        let rule = LifecycleRule { noncurrent_days: Some(1), newer_noncurrent_versions: 2, ..rule("") };
        add(&engine, &bucket, &rule).await;
        for size in 1..=6 {
            write(&engine, &bucket, "a", size).await;
        }
        pass_days(&time, 2);
        let counts = engine.apply_lifecycle(OPTIONS).await.expect("applied");
        assert_eq!((counts.noncurrent_versions_removed, counts.bytes_freed), (3, 1 + 2 + 3));
        assert_eq!(versions(&engine, &bucket).len(), 3);
        let again = engine.apply_lifecycle(OPTIONS).await.expect("applied");
        assert_eq!(again.examined, 0);
        assert_clean(&engine);
    });
}

#[test]
fn locked_versions_are_skipped_and_counted_but_markers_hide_them() {
    let folder = folder();
    let clock = clock_at_start();
    let time = Arc::clone(&clock);
    with_engine_on(with_clock(folder.path(), &clock), move |engine| async move {
        let settings = BucketSettings { object_lock: true, ..BucketSettings::default() };
        let made = engine.store().create_bucket(&name("locked"), settings, Origin::default()).await;
        let bucket = made.expect("made");
        let rule = LifecycleRule { noncurrent_days: Some(1), ..expired(1) };
        add(&engine, &bucket, &rule).await;
        write(&engine, &bucket, "held", 10).await;
        write(&engine, &bucket, "free", 10).await;
        let until = Timestamp(START + 10 * DAY);
        let retention = Some(Retention { mode: RetentionMode::Compliance, until });
        engine.set_retention(&bucket, &key("held"), None, retention, false).await.expect("locked");
        pass_days(&time, 2);
        let counts = engine.apply_lifecycle(OPTIONS).await.expect("applied");
        assert_eq!((counts.delete_markers_written, counts.skipped_locked), (2, 0));
        pass_days(&time, 3);
        let counts = engine.apply_lifecycle(OPTIONS).await.expect("applied");
        assert_eq!((counts.noncurrent_versions_removed, counts.skipped_locked), (1, 1));
        assert_eq!(versions(&engine, &bucket).len(), 2, "the held version and its marker");
        let preview = engine.preview_lifecycle(&bucket, rule).await.expect("previews");
        assert_eq!((preview.locked, preview.noncurrent_versions), (1, 0));
        assert_clean(&engine);
        pass_days(&time, 6);
        let counts = engine.apply_lifecycle(OPTIONS).await.expect("applied");
        assert_eq!((counts.noncurrent_versions_removed, counts.delete_markers_removed), (1, 1));
        assert_clean(&engine);
    });
}

#[test]
fn lone_markers_are_removed_at_once_if_the_rule_says_so() {
    let folder = folder();
    let clock = clock_at_start();
    with_engine_on(with_clock(folder.path(), &clock), move |engine| async move {
        let bucket = bucket(&engine, Versioning::Enabled).await;
        let version = write(&engine, &bucket, "a", 10).await;
        delete(&engine, &bucket, "a", None).await;
        write(&engine, &bucket, "b", 10).await;
        delete(&engine, &bucket, "b", None).await;
        let rule = LifecycleRule { expired_delete_markers: true, ..rule("") };
        add(&engine, &bucket, &rule).await;
        assert_eq!(engine.apply_lifecycle(OPTIONS).await.expect("applied").examined, 0);
        delete(&engine, &bucket, "a", Some(version)).await;
        assert_clean(&engine);
        let counts = engine.apply_lifecycle(OPTIONS).await.expect("applied");
        assert_eq!((counts.delete_markers_removed, counts.examined), (1, 1));
        assert_eq!(versions(&engine, &bucket).len(), 2, "b still has a version");
        assert_clean(&engine);
    });
}

/// The index is built beside changes, in steps, and removed with the last rule. A restart in between changes nothing.
#[test]
fn index_follows_the_rules_of_existing_buckets_across_restarts() {
    let folder = folder();
    let clock = clock_at_start();
    let rule = expired(1);
    let added = rule.clone();
    with_engine_on(with_clock(folder.path(), &clock), move |engine| async move {
        let bucket = bucket(&engine, Versioning::Enabled).await;
        for number in 0..40 {
            for size in 0..number % 4 {
                write(&engine, &bucket, &format!("key-{number}"), size).await;
            }
            if number % 3 == 0 {
                delete(&engine, &bucket, &format!("key-{number}"), None).await;
            }
        }
        add(&engine, &bucket, &added).await;
        // Without a step of the worker there is no index, and that is what an inspection expects.
        assert_clean(&engine);
        engine.apply_lifecycle(OPTIONS).await.expect("applied");
        assert_clean(&engine);
    });
    let time = Arc::clone(&clock);
    with_engine_on(with_clock(folder.path(), &clock), move |engine| async move {
        let bucket = engine.store().bucket(&name("bucket")).expect("there");
        assert_eq!(bucket.settings().lifecycle.as_ref().map(|rules| rules.iter().count()), Some(1));
        for number in 0..40 {
            write(&engine, &bucket, &format!("key-{number}"), 1).await;
        }
        assert_clean(&engine);
        pass_days(&time, 2);
        let counts = engine.apply_lifecycle(OPTIONS).await.expect("applied");
        assert_eq!(counts.delete_markers_written, 40);
    });
    with_engine_on(with_clock(folder.path(), &clock), move |engine| async move {
        assert_eq!(engine.store().lifecycle_rule_status(rule.id).counts.delete_markers_written, 40);
        let bucket = engine.store().bucket_of_rule(rule.id).expect("there");
        let remove = BucketChange::Lifecycle(LifecycleChange::Remove(rule.id));
        engine.store().change_bucket(&bucket, remove.clone()).await.expect("removed");
        assert_eq!(
            engine.store().change_bucket(&bucket, remove).await,
            Err(EngineError::NoSuchLifecycleRule)
        );
        engine.apply_lifecycle(OPTIONS).await.expect("applied");
        assert_clean(&engine);
        for number in 0..40 {
            delete(&engine, &bucket, &format!("key-{number}"), None).await;
        }
        assert_clean(&engine);
    });
}

fn tags(pairs: &[(&str, &str)]) -> Tags {
    let pairs = pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    Tags::new(pairs, 10).expect("valid")
}

#[test]
fn rule_with_tags_removes_versions_by_the_tags_of_each() {
    let folder = folder();
    let clock = clock_at_start();
    let time = Arc::clone(&clock);
    with_engine_on(with_clock(folder.path(), &clock), move |engine| async move {
        let bucket = bucket(&engine, Versioning::Enabled).await;
        let temporary = tags(&[("kind", "temporary")]);
        for object in ["tagged", "other", "untagged"] {
            for size in [1, 2, 4] {
                let version = write(&engine, &bucket, object, size).await;
                let tags = match (object, size) {
                    // The version between both is never removed.
                    ("tagged", 1 | 4) => tags(&[("more", ""), ("kind", "temporary")]),
                    ("other", _) => tags(&[("kind", "lasting")]),
                    _ => continue,
                };
                engine.set_object_tags(&bucket, &key(object), Some(version), tags).await.expect("tagged");
            }
        }
        delete(&engine, &bucket, "lone", None).await;
        let rule = LifecycleRule { noncurrent_days: Some(1), tags: temporary, ..expired(1) };
        let preview = engine.preview_lifecycle(&bucket, rule.clone()).await.expect("previews");
        assert_eq!(preview.next_due_at, Some(Timestamp(START + 2 * DAY)));
        add(&engine, &bucket, &rule).await;
        assert_eq!(engine.apply_lifecycle(OPTIONS).await.expect("applied").examined, 0);
        let status = engine.store().lifecycle_rule_status(rule.id);
        assert_eq!(status.next_due_at, Some(Timestamp(START + 2 * DAY)));
        pass_days(&time, 3);
        let preview = engine.preview_lifecycle(&bucket, rule.clone()).await.expect("previews");
        assert_eq!((preview.current_objects, preview.current_bytes), (1, 4));
        assert_eq!((preview.noncurrent_versions, preview.noncurrent_bytes), (1, 1));
        assert_eq!((preview.delete_markers, preview.next_due_at), (0, None), "a marker has no tags");
        let counts = engine.apply_lifecycle(OPTIONS).await.expect("applied");
        // The committer is asked about what the preview names, and about nothing else.
        assert_eq!((counts.examined, counts.failed), (2, 0));
        assert_eq!((counts.delete_markers_written, counts.noncurrent_versions_removed), (1, 1));
        assert_eq!(counts.bytes_freed, 1);
        let left = versions(&engine, &bucket);
        let of = |name: &str| left.iter().filter(|(key, _)| key == name).count();
        assert_eq!((of("tagged"), of("other"), of("untagged"), of("lone")), (3, 3, 3, 1));
        assert_clean(&engine);
        // A version that loses its tags stays, and one that gets them goes.
        pass_days(&time, 3);
        engine
            .set_object_tags(&bucket, &key("other"), None, tags(&[("kind", "temporary")]))
            .await
            .expect("tagged");
        let hidden = versions_with_ids(&engine, &bucket, "tagged")[1];
        engine
            .set_object_tags(&bucket, &key("tagged"), Some(hidden), Tags::default())
            .await
            .expect("untagged");
        let counts = engine.apply_lifecycle(OPTIONS).await.expect("applied");
        assert_eq!((counts.examined, counts.delete_markers_written), (1, 1));
        assert_eq!(versions(&engine, &bucket).len(), 3 + 4 + 3 + 1);
        assert_clean(&engine);
    });
}

#[test]
fn preview_says_what_a_rule_would_do_and_changes_nothing() {
    let folder = folder();
    let clock = clock_at_start();
    let time = Arc::clone(&clock);
    with_engine_on(with_clock(folder.path(), &clock), move |engine| async move {
        let bucket = bucket(&engine, Versioning::Enabled).await;
        for number in 0..300 {
            write(&engine, &bucket, &format!("logs/{number}"), 10).await;
        }
        for size in [10, 20] {
            write(&engine, &bucket, "logs/1", size).await;
        }
        write(&engine, &bucket, "other", 10).await;
        let rule = LifecycleRule {
            prefix: "logs/".into(),
            noncurrent_days: Some(1),
            newer_noncurrent_versions: 1,
            ..expired(2)
        };
        let preview = engine.preview_lifecycle(&bucket, rule.clone()).await.expect("previews");
        assert_eq!((preview.current_objects, preview.noncurrent_versions), (0, 0));
        assert_eq!(preview.next_due_at, Some(Timestamp(START + 2 * DAY)));
        pass_days(&time, 3);
        let before = versions(&engine, &bucket);
        let preview = engine.preview_lifecycle(&bucket, rule.clone()).await.expect("previews");
        assert!(preview.is_complete);
        assert_eq!((preview.current_objects, preview.current_bytes), (300, 299 * 10 + 20));
        assert_eq!((preview.noncurrent_versions, preview.noncurrent_bytes), (1, 10));
        assert_eq!((preview.sample.len(), preview.next_due_at), (100, None));
        assert!(preview.sample.iter().all(|planned| planned.key.starts_with("logs/")));
        assert!(preview.sample.iter().any(|planned| planned.action == PlannedAction::WriteDeleteMarker));
        assert_eq!(versions(&engine, &bucket), before);
        // What the rule then does is what the preview said.
        add(&engine, &bucket, &rule).await;
        let counts = engine.apply_lifecycle(OPTIONS).await.expect("applied");
        assert_eq!((counts.expired_objects, counts.noncurrent_versions_removed), (300, 1));
    });
}

async fn begin_upload(engine: &Rc<Engine>, bucket: &Arc<Bucket>, object: &str, parts: &[usize]) -> UploadId {
    let object = key(object);
    let upload = engine.create_upload(bucket, &object, NewUpload::default()).await.expect("begun").id;
    for (number, size) in (1..).zip(parts) {
        let mut writer = engine.write_payload(bucket, &object, *size as u64).await.expect("staged");
        fill(&mut writer, &vec![7; *size]).await.expect("filled");
        let payload = writer.finish().await.expect("finished");
        let (bucket, key) = (Arc::clone(bucket), object.clone());
        let part = PutPart { bucket, key, upload, number, payload, checksum: None };
        engine.put_part(part).await.expect("uploaded");
    }
    upload
}

/// A rule that only aborts uploads acts on those that its prefix matches, also on those from before the rule and a restart.
#[test]
fn uploads_are_aborted_when_they_are_due_and_not_before() {
    let folder = folder();
    let clock = clock_at_start();
    let time = Arc::clone(&clock);
    let rule = LifecycleRule { prefix: "logs/".into(), abort_uploads_days: Some(2), ..rule("") };
    let added = rule.clone();
    with_engine_on(with_clock(folder.path(), &clock), move |engine| async move {
        let bucket = bucket(&engine, Versioning::Enabled).await;
        begin_upload(&engine, &bucket, "logs/before", &[100, 20]).await;
        begin_upload(&engine, &bucket, "data/before", &[100]).await;
        add(&engine, &bucket, &added).await;
        engine.apply_lifecycle(OPTIONS).await.expect("applied");
        assert_clean(&engine);
        write(&engine, &bucket, "logs/object", 5).await;
        begin_upload(&engine, &bucket, "logs/after", &[1 << 20]).await;
        let ended = begin_upload(&engine, &bucket, "logs/ended", &[10]).await;
        engine.abort_upload(&bucket, &key("logs/ended"), ended, Origin::default()).await.expect("aborted");
        let completed = begin_upload(&engine, &bucket, "logs/done", &[10]).await;
        let complete = CompleteUpload {
            bucket: Arc::clone(&bucket),
            key: key("logs/done"),
            upload: completed,
            parts: vec![(1, md5_digest(&[7; 10]))],
            checksums: Vec::new(),
            condition: WriteCondition::default(),
            origin: Origin::default(),
        };
        engine.complete_upload(complete).await.expect("completed");
        assert_clean(&engine);
        // Older than two days, but the midnight has not come.
        pass_days(&time, 2);
        begin_upload(&engine, &bucket, "logs/young", &[1]).await;
        let counts = engine.apply_lifecycle(OPTIONS).await.expect("applied");
        assert_eq!((counts.examined, bucket.usage().uploads), (0, 4));
        let status = engine.store().lifecycle_rule_status(added.id);
        assert_eq!(status.next_due_at, Some(Timestamp(START + 3 * DAY)));
        let due = engine.store().abort_of(&bucket, "logs/after", Timestamp(START + 1));
        assert_eq!(due, Some((Timestamp(START + 3 * DAY), added.id.to_string())));
        assert_eq!(engine.store().abort_of(&bucket, "data/after", Timestamp(START + 1)), None);
    });
    let time = Arc::clone(&clock);
    with_engine_on(with_clock(folder.path(), &clock), move |engine| async move {
        let bucket = engine.store().bucket(&name("bucket")).expect("there");
        assert_clean(&engine);
        pass_days(&time, 1);
        let preview = engine.preview_lifecycle(&bucket, rule.clone()).await.expect("previews");
        assert_eq!((preview.multipart_uploads, preview.multipart_bytes), (2, 120 + (1 << 20)));
        assert_eq!((preview.current_objects, preview.is_complete), (0, true));
        assert_eq!(preview.next_due_at, Some(Timestamp(START + 5 * DAY)));
        let counts = engine.apply_lifecycle(OPTIONS).await.expect("applied");
        assert_eq!((counts.examined, counts.multipart_uploads_aborted), (2, 2));
        assert_eq!(counts.bytes_freed, 120 + (1 << 20));
        assert_eq!((bucket.usage().uploads, bucket.usage().versions), (2, 2));
        assert_clean(&engine);
        let events = engine.store().events(&EventQuery::default()).expect("reads").events;
        let last = events.last().expect("an event");
        assert_eq!((last.kind, &*last.principal), (EventType::MultipartAborted, "lifecycle"));
        assert_eq!(last.lifecycle_rule.as_deref(), Some(&*rule.id.to_string()));
        assert_eq!(engine.apply_lifecycle(OPTIONS).await.expect("applied").examined, 0);
    });
}

#[test]
fn days_of_a_test_begin_when_the_object_is_written() {
    let folder = folder();
    let clock = clock_at_start();
    let time = Arc::clone(&clock);
    with_engine_on(with_clock(folder.path(), &clock), move |engine| async move {
        engine.store().set_lifecycle_day(DayLength(1));
        let bucket = bucket(&engine, Versioning::Unversioned).await;
        let rule = expired(5);
        add(&engine, &bucket, &rule).await;
        write(&engine, &bucket, "a", 1).await;
        let expires = engine.store().expiration_of(&bucket, "a", &Tags::default(), Timestamp(START + 1));
        assert_eq!(expires, Some((Timestamp(START + 5001), rule.id.to_string())));
        time.advance(Duration::from_millis(4999));
        assert_eq!(engine.apply_lifecycle(OPTIONS).await.expect("applied").examined, 0);
        time.advance(Duration::from_millis(1));
        assert_eq!(engine.apply_lifecycle(OPTIONS).await.expect("applied").expired_objects, 1);
        assert_eq!(versions(&engine, &bucket), []);
        let object: ObjectKey = key("a");
        assert_eq!(get(&engine, &bucket, &object, 0..1).await.err(), Some(EngineError::NoSuchKey));
    });
}

/// A wrong date makes everything due. Nothing may be removed until an operator says that it is right, also after a restart.
#[test]
fn nothing_is_removed_after_a_jump_of_the_clock_until_it_is_resumed() {
    let folder = folder();
    let clock = clock_at_start();
    let options = LifecycleOptions { interval: Duration::from_secs(1), batch_size: 10 };
    let time = Arc::clone(&clock);
    with_engine_on(with_clock(folder.path(), &clock), move |engine| async move {
        let bucket = bucket(&engine, Versioning::Unversioned).await;
        write(&engine, &bucket, "a", 1).await;
        let rule = expired(1);
        add(&engine, &bucket, &rule).await;
        let (stopping, worker) = (Arc::new(AtomicU64::new(0)), Rc::clone(&engine));
        let stop = Arc::clone(&stopping);
        let running = glommio::spawn_local(async move {
            worker.run_lifecycle(options, move || stop.load(Ordering::SeqCst) > 0).await;
        });
        let status = || engine.store().lifecycle_status();
        until("no run", || status().last_run_finished_at.is_some()).await;
        pass_days(&time, 3);
        until("not paused", || status().paused.is_some()).await;
        let counts = engine.store().lifecycle_rule_status(rule.id).counts;
        assert_eq!((counts.examined, versions(&engine, &bucket).len()), (0, 1));
        stopping.store(1, Ordering::SeqCst);
        running.await;
    });
    with_engine_on(with_clock(folder.path(), &clock), move |engine| async move {
        let bucket = engine.store().bucket(&name("bucket")).expect("there");
        let (stopping, worker) = (Arc::new(AtomicU64::new(0)), Rc::clone(&engine));
        let stop = Arc::clone(&stopping);
        let running = glommio::spawn_local(async move {
            worker.run_lifecycle(options, move || stop.load(Ordering::SeqCst) > 0).await;
        });
        let status = || engine.store().lifecycle_status();
        until("not paused after the restart", || status().paused.is_some()).await;
        assert_eq!(versions(&engine, &bucket).len(), 1);
        engine.store().resume_lifecycle();
        until("not resumed", || versions(&engine, &bucket).is_empty()).await;
        assert_eq!(status().paused, None);
        stopping.store(1, Ordering::SeqCst);
        running.await;
    });
}
