//! Versions, delete markers, object locks and bucket settings.

use crate::support::{folder, get_version, key, name, put, with_engine};
use cairn_engine::{
    Bucket, BucketChange, BucketSettings, DefaultRetention, DeleteOptions, DeleteOutcome, Engine,
    EngineError, ListObjects, ListVersions, ListedVersion, ObjectLock, Origin, Retention, RetentionMode,
    RetentionPeriod, Tags, Usage, VersionPosition, Versioning, WriteCondition,
};
use cairn_model::{ObjectKey, Timestamp, VersionName};
use cairn_sync::Mutex;
use std::rc::Rc;
use std::sync::Arc;

const ENABLED: BucketChange = BucketChange::Versioning(Versioning::Enabled);
const SUSPENDED: BucketChange = BucketChange::Versioning(Versioning::Suspended);

/// A date in the far future, and one in the past.
const LATER: Timestamp = Timestamp(4_000_000_000_000);
const EARLIER: Timestamp = Timestamp(1_000_000_000_000);

async fn versioned(engine: &Rc<Engine>) -> Arc<Bucket> {
    let bucket = engine
        .store()
        .create_bucket(&name("versioned"), BucketSettings::default(), Origin::default())
        .await
        .expect("made");
    engine.store().change_bucket(&bucket, ENABLED).await.expect("changed");
    bucket
}

async fn locked(engine: &Rc<Engine>) -> Arc<Bucket> {
    let settings = BucketSettings { object_lock: true, ..BucketSettings::default() };
    engine.store().create_bucket(&name("locked"), settings, Origin::default()).await.expect("made")
}

async fn write(engine: &Rc<Engine>, bucket: &Arc<Bucket>, object: &ObjectKey, bytes: &[u8]) -> VersionName {
    let put = put(engine, bucket, object, bytes, WriteCondition::default()).await.expect("put");
    if put.is_null { VersionName::Null } else { VersionName::Id(put.version) }
}

async fn delete(
    engine: &Engine,
    bucket: &Arc<Bucket>,
    object: &ObjectKey,
    version: Option<VersionName>,
) -> DeleteOutcome {
    let options = DeleteOptions { version, ..DeleteOptions::default() };
    engine.delete_object(bucket, object, options).await.expect("deleted")
}

async fn read(
    engine: &Rc<Engine>,
    bucket: &Arc<Bucket>,
    object: &ObjectKey,
    version: Option<VersionName>,
) -> Result<Vec<u8>, EngineError> {
    get_version(engine, bucket, object, version, 0..u64::MAX).await.map(|(_, bytes)| bytes)
}

fn versions(engine: &Engine, bucket: &Arc<Bucket>) -> Vec<ListedVersion> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        // One version per page, so that the list continues at every possible position.
        let list = ListVersions { prefix: b"", delimiter: None, after, max: 1 };
        let page = engine.list_versions(bucket, &list).expect("lists");
        all.extend(page.versions);
        after = page.next;
        if after.is_none() {
            return all;
        }
    }
}

fn keys(engine: &Engine, bucket: &Arc<Bucket>, delimiter: Option<&[u8]>) -> (Vec<String>, usize) {
    let list = ListObjects { prefix: b"", delimiter, after: None, max: 1000 };
    let page = engine.list_objects(bucket, &list).expect("lists");
    (page.objects.into_iter().map(|object| object.key).collect(), page.common_prefixes.len())
}

#[test]
fn delete_marker_hides_older_versions() {
    with_engine(folder().path(), |engine| async move {
        let (bucket, object) = (versioned(&engine).await, key("a"));
        let first = write(&engine, &bucket, &object, b"one").await;
        let second = write(&engine, &bucket, &object, &[2; 100_000]).await;
        assert_eq!(read(&engine, &bucket, &object, None).await.expect("there"), [2; 100_000]);
        assert_eq!(read(&engine, &bucket, &object, Some(first)).await.expect("there"), b"one");
        assert_eq!(
            read(&engine, &bucket, &object, Some(VersionName::Null)).await,
            Err(EngineError::NoSuchVersion)
        );

        let marker = delete(&engine, &bucket, &object, None).await;
        assert!(marker.existed && marker.is_delete_marker);
        let refused = engine.head_object(&bucket, &object, None);
        assert!(
            matches!(refused, Err(EngineError::DeleteMarker { version, .. }) if Some(version) == marker.version)
        );
        assert_eq!(keys(&engine, &bucket, None), (vec![], 0));
        let listed = versions(&engine, &bucket);
        let facts: Vec<_> = listed.iter().map(|v| (Some(v.name), v.is_latest, v.is_delete_marker)).collect();
        let expected =
            [(marker.version, true, true), (Some(second), false, false), (Some(first), false, false)];
        assert_eq!(facts, expected);
        let held = Usage { versions: 2, version_bytes: 100_003, delete_markers: 1, ..Usage::default() };
        assert_eq!(bucket.usage(), held);

        assert!(delete(&engine, &bucket, &object, marker.version).await.is_delete_marker);
        assert_eq!(read(&engine, &bucket, &object, None).await.expect("restored").len(), 100_000);
        delete(&engine, &bucket, &object, Some(second)).await;
        assert_eq!(read(&engine, &bucket, &object, None).await.expect("the older one"), b"one");
        assert_eq!((bucket.usage().objects, bucket.usage().bytes), (1, 3));
        delete(&engine, &bucket, &object, Some(first)).await;
        assert!(!delete(&engine, &bucket, &object, Some(first)).await.existed);
        assert_eq!(bucket.usage(), Usage::default());
        engine.store().delete_bucket(&bucket.name, Origin::default()).await.expect("empty");
    });
}

#[test]
fn suspended_versioning_replaces_only_the_null_version() {
    with_engine(folder().path(), |engine| async move {
        let bucket = engine
            .store()
            .create_bucket(&name("nulls"), BucketSettings::default(), Origin::default())
            .await
            .expect("made");
        let object = key("a");
        assert_eq!(write(&engine, &bucket, &object, b"before versioning").await, VersionName::Null);
        engine.store().change_bucket(&bucket, ENABLED).await.expect("changed");
        let kept = write(&engine, &bucket, &object, b"kept").await;
        assert_eq!(
            read(&engine, &bucket, &object, Some(VersionName::Null)).await.expect("there"),
            b"before versioning"
        );
        engine.store().change_bucket(&bucket, SUSPENDED).await.expect("changed");
        write(&engine, &bucket, &object, b"null again").await;
        write(&engine, &bucket, &object, b"and again").await;
        let names: Vec<_> = versions(&engine, &bucket).iter().map(|version| version.name).collect();
        assert_eq!(names, [VersionName::Null, kept]);
        assert_eq!(read(&engine, &bucket, &object, None).await.expect("there"), b"and again");

        engine.store().change_bucket(&bucket, ENABLED).await.expect("changed");
        let newest = write(&engine, &bucket, &object, b"newest").await;
        engine.store().change_bucket(&bucket, SUSPENDED).await.expect("changed");
        let marker = delete(&engine, &bucket, &object, None).await;
        assert_eq!((marker.version, marker.is_delete_marker), (Some(VersionName::Null), true));
        let names: Vec<_> = versions(&engine, &bucket).iter().map(|version| version.name).collect();
        assert_eq!(names, [VersionName::Null, newest, kept]);
        delete(&engine, &bucket, &object, Some(VersionName::Null)).await;
        assert_eq!(read(&engine, &bucket, &object, None).await.expect("there"), b"newest");
        let found = engine.store().inspect(u64::MAX).expect("inspects");
        assert!(found.complete && found.is_clean(), "{found:?}");
    });
}

#[test]
fn lists_skip_deleted_objects_and_continue_between_versions() {
    with_engine(folder().path(), |engine| async move {
        let bucket = versioned(&engine).await;
        for object in ["dir/a", "dir/b", "gone/a", "z"] {
            for bytes in [&b"1"[..], b"22", b"333"] {
                write(&engine, &bucket, &key(object), bytes).await;
            }
        }
        delete(&engine, &bucket, &key("gone/a"), None).await;
        assert_eq!(keys(&engine, &bucket, None).0, ["dir/a", "dir/b", "z"]);
        assert_eq!(
            keys(&engine, &bucket, Some(b"/")),
            (vec!["z".to_owned()], 1),
            "gone/ holds nothing visible"
        );

        let listed = versions(&engine, &bucket);
        assert_eq!(listed.len(), 13);
        assert_eq!(listed.iter().filter(|version| version.is_latest).count(), 4);
        let sizes: Vec<_> = listed.iter().filter(|v| v.object.key == "z").map(|v| v.object.size).collect();
        assert_eq!(sizes, [3, 2, 1]);
        let list = ListVersions { prefix: b"", delimiter: Some(b"/"), after: None, max: 1000 };
        let page = engine.list_versions(&bucket, &list).expect("lists");
        assert_eq!((page.common_prefixes.len(), page.versions.len()), (2, 3));

        // The delete marker at the end of a page is removed before the next page: the version that is newest now is the latest.
        let newest = listed[0].clone();
        let after = Some(VersionPosition::AfterVersion(b"dir/a".to_vec(), newest.name));
        delete(&engine, &bucket, &key("dir/a"), Some(newest.name)).await;
        let list = ListVersions { prefix: b"", delimiter: None, after, max: 1 };
        let page = engine.list_versions(&bucket, &list).expect("lists");
        assert_eq!((page.versions[0].object.size, page.versions[0].is_latest), (2, true));
    });
}

#[test]
fn locked_version_cannot_be_removed() {
    with_engine(folder().path(), |engine| async move {
        let (bucket, object) = (locked(&engine).await, key("a"));
        let version = write(&engine, &bucket, &object, b"kept").await;
        let by_id = |bypass_governance| DeleteOptions {
            version: Some(version),
            bypass_governance,
            ..DeleteOptions::default()
        };
        let retention = |mode, until| Some(Retention { mode, until });
        let set =
            |retention, bypass| engine.set_retention(&bucket, &object, Some(version), retention, bypass);

        set(retention(RetentionMode::Governance, LATER), false).await.expect("set");
        assert_eq!(
            engine.delete_object(&bucket, &object, by_id(false)).await,
            Err(EngineError::ObjectLocked)
        );
        assert_eq!(set(None, false).await, Err(EngineError::ObjectLocked));
        set(None, true).await.expect("bypassed");

        engine.set_legal_hold(&bucket, &object, None, true).await.expect("set");
        assert_eq!(engine.delete_object(&bucket, &object, by_id(true)).await, Err(EngineError::ObjectLocked));
        engine.set_legal_hold(&bucket, &object, None, false).await.expect("set");

        set(retention(RetentionMode::Compliance, LATER), false).await.expect("set");
        assert_eq!(engine.delete_object(&bucket, &object, by_id(true)).await, Err(EngineError::ObjectLocked));
        assert!(delete(&engine, &bucket, &object, None).await.is_delete_marker, "a plain delete hides it");
        assert_eq!(read(&engine, &bucket, &object, Some(version)).await.expect("there"), b"kept");
        let suspend = engine.store().change_bucket(&bucket, SUSPENDED).await;
        assert_eq!(suspend, Err(EngineError::InvalidBucketState));
        assert_eq!(
            engine.store().delete_bucket(&bucket.name, Origin::default()).await,
            Err(EngineError::BucketNotEmpty)
        );
    });
}

#[test]
fn default_retention_applies_to_versions_without_one() {
    with_engine(folder().path(), |engine| async move {
        let (bucket, object) = (locked(&engine).await, key("a"));
        let (mode, period) = (RetentionMode::Governance, RetentionPeriod::Days(1));
        let default = Some(DefaultRetention { mode, period });
        engine.store().change_bucket(&bucket, BucketChange::DefaultRetention(default)).await.expect("set");
        write(&engine, &bucket, &object, b"x").await;
        let info = engine.head_object(&bucket, &object, None).expect("there");
        let until = Timestamp(info.last_modified.0 + 86_400_000);
        assert_eq!(info.lock, ObjectLock { retention: Some(Retention { mode, until }), legal_hold: None });
        // An expired retention counts as one too.
        let ended = Some(Retention { mode, until: EARLIER });
        engine.set_retention(&bucket, &object, None, ended, true).await.expect("set");
        assert_eq!(engine.head_object(&bucket, &object, None).expect("there").lock.retention, ended);
    });
}

#[test]
fn settings_and_versions_survive_a_restart() {
    let folder = folder();
    let written = Arc::new(Mutex::new(None));
    let before = Arc::clone(&written);
    with_engine(folder.path(), |engine| async move {
        let bucket = locked(&engine).await;
        let rules = BucketChange::Cors(Some((*b"rules").into()));
        engine.store().change_bucket(&bucket, rules).await.expect("set");
        let first = write(&engine, &bucket, &key("a"), b"1").await;
        write(&engine, &bucket, &key("a"), b"2").await;
        delete(&engine, &bucket, &key("a"), None).await;
        *before.lock() = Some((first, bucket.usage(), bucket.settings()));
    });
    with_engine(folder.path(), |engine| async move {
        let bucket = engine.store().bucket(&name("locked")).expect("there");
        let (first, usage, settings) = written.lock().take().expect("written");
        assert_eq!((bucket.usage(), bucket.settings()), (usage, settings));
        assert_eq!(read(&engine, &bucket, &key("a"), Some(first)).await.expect("there"), b"1");
        assert_eq!(versions(&engine, &bucket).len(), 3);
    });
}

fn tags(pairs: &[(&str, &str)]) -> Tags {
    Tags::new(pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect(), 10).expect("valid")
}

#[test]
fn tags_of_each_version_and_of_the_bucket_survive_a_restart() {
    let folder = folder();
    let first = || tags(&[("a", "1"), ("ä/b", "")]);
    let second = || tags(&[("a", "2")]);
    // One payload in the metadata and one in a volume.
    let bodies = || [vec![1; 100], vec![2; 100_000]];
    let written = Arc::new(Mutex::new(None));
    let before = Arc::clone(&written);
    with_engine(folder.path(), move |engine| async move {
        let (bucket, object) = (versioned(&engine).await, key("a"));
        let old = write(&engine, &bucket, &object, &bodies()[0]).await;
        engine.set_object_tags(&bucket, &object, None, first()).await.expect("set");
        let new = write(&engine, &bucket, &object, &bodies()[1]).await;
        engine.set_object_tags(&bucket, &object, Some(new), first()).await.expect("set");
        let replaced = engine.set_object_tags(&bucket, &object, None, second()).await;
        assert_eq!(replaced, Ok(new), "the name of the current version");
        engine.store().change_bucket(&bucket, BucketChange::Tags(first())).await.expect("set");
        let missing = engine.set_object_tags(&bucket, &key("none"), None, Tags::default()).await;
        assert_eq!(missing, Err(EngineError::NoSuchKey));
        *before.lock() = Some((old, new, bucket.usage()));
    });
    with_engine(folder.path(), move |engine| async move {
        let (old, new, usage) = written.lock().take().expect("written");
        let bucket = engine.store().bucket(&name("versioned")).expect("there");
        assert_eq!((&bucket.settings().tags, bucket.usage()), (&first(), usage));
        for (version, body, expected) in [(old, 0, first()), (new, 1, second())] {
            let found = get_version(&engine, &bucket, &key("a"), Some(version), 0..u64::MAX).await;
            let (info, bytes) = found.expect("reads");
            assert_eq!((&info.attributes.tags, &bytes), (&expected, &bodies()[body]));
        }
        delete(&engine, &bucket, &key("a"), None).await;
        let deleted = engine.set_object_tags(&bucket, &key("a"), None, Tags::default()).await;
        assert!(matches!(deleted, Err(EngineError::DeleteMarker { .. })));
        let store = Arc::clone(engine.store());
        let inspection = std::thread::spawn(move || store.inspect(u64::MAX).expect("inspects"));
        assert_eq!(inspection.join().expect("inspects").findings, []);
    });
}
