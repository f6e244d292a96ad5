//! Compaction of a stopped and of a running store: files shrink, and the contents stay the same.

use crate::support::{content, folder, get, key, name, on_executor, options, put, until};
use cairn_engine::{
    Bucket, BucketSettings, CompactError, CompactionStatus, DeleteOptions, Engine, OpenError, Origin, Store,
    StoreOptions, WriteCondition, compact_store,
};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

/// Number of objects of the largest inline size, 40 MiB in total.
const OBJECTS: u64 = 2560;
const OBJECT_BYTES: usize = 16 * 1024;
/// Most objects that are overwritten during a compaction.
const ROUNDS_MAX: u64 = 80;
/// One in so many objects is kept.
const KEPT_ONE_IN: u64 = 64;

fn with_engine<F: Future<Output = ()> + 'static>(
    folder: &Path,
    body: impl FnOnce(Rc<Engine>) -> F + Send + 'static,
) {
    let store = Store::open(StoreOptions { slices: Some(1), ..options(folder) }).expect("the store opens");
    let opened = Arc::clone(&store);
    on_executor(move || async move {
        body(Engine::open(opened).await.expect("the engine opens")).await;
    });
    assert_eq!(store.inspect(u64::MAX).expect("reads").findings, []);
    let usage = store.usage();
    assert_eq!(
        (usage.stale_readers, usage.oldest_read),
        (0, std::time::Duration::ZERO),
        "no read stays open"
    );
    store.close();
}

fn metadata_bytes(folder: &Path) -> u64 {
    std::fs::metadata(folder.join("slices/00/meta/data.mdb")).expect("a file").len()
}

/// Changes all objects concurrently, so that the changes share commits.
async fn change_all<F: Future<Output = ()> + 'static>(change: impl Fn(u64) -> F) {
    let tasks: Vec<_> = (0..OBJECTS).map(|object| glommio::spawn_local(change(object))).collect();
    for task in tasks {
        task.await;
    }
}

/// Deletes all objects but one in [`KEPT_ONE_IN`].
async fn delete_most(engine: &Rc<Engine>, bucket: &Arc<Bucket>) {
    change_all(|object| {
        let (engine, bucket) = (Rc::clone(engine), Arc::clone(bucket));
        async move {
            if object % KEPT_ONE_IN != 0 {
                let object = key(&object.to_string());
                engine.delete_object(&bucket, &object, DeleteOptions::default()).await.expect("deleted");
            }
        }
    })
    .await;
}

#[test]
fn compaction_shrinks_the_metadata_after_a_mass_deletion() {
    let folder = folder();
    with_engine(folder.path(), |engine| async move {
        let bucket = engine
            .store()
            .create_bucket(&name("compact"), BucketSettings::default(), Origin::default())
            .await
            .expect("made");
        put_all(&engine, &bucket, 0).await;
        delete_most(&engine, &bucket).await;
    });
    let before = metadata_bytes(folder.path());
    let mut environments = 0;
    compact_store(folder.path(), |_, _| environments += 1).expect("compacts");
    assert_eq!(environments, 2);
    let after = metadata_bytes(folder.path());
    // The headroom that deletions need on a full disk remains: 48 MiB.
    assert!(before > 72 << 20 && after < 52 << 20, "{before} {after}");
    with_engine(folder.path(), |engine| async move {
        let bucket = engine.store().bucket(&name("compact")).expect("there");
        assert_eq!(bucket.usage().objects, OBJECTS / KEPT_ONE_IN);
        for object in (0..OBJECTS).step_by(cairn_model::usize_of(KEPT_ONE_IN)) {
            let (_, bytes) =
                get(&engine, &bucket, &key(&object.to_string()), 0..u64::MAX).await.expect("reads");
            assert!(bytes == content(object, OBJECT_BYTES));
        }
        put(&engine, &bucket, &key("new"), b"new", WriteCondition::default()).await.expect("put");
    });
}

#[test]
fn open_store_and_folder_without_a_store_are_not_compacted() {
    let folder = folder();
    let none = compact_store(folder.path(), |_, _| {}).expect_err("no store");
    assert!(matches!(none, CompactError::Open(OpenError::NoStore(_))), "{none}");
    assert!(std::fs::read_dir(folder.path()).expect("a folder").next().is_none(), "nothing was created");
    let store = Store::open(options(folder.path())).expect("opens");
    let refused = compact_store(folder.path(), |_, _| {}).expect_err("in use");
    assert!(matches!(refused, CompactError::Open(OpenError::Locked(_))), "{refused}");
    store.close();
    drop(store);
    let mut environments = 0;
    compact_store(folder.path(), |_, _| environments += 1).expect("compacts");
    assert_eq!(environments, 4);
}

/// Puts `OBJECTS` inline objects, concurrently.
async fn put_all(engine: &Rc<Engine>, bucket: &Arc<cairn_engine::Bucket>, seed: u64) {
    change_all(|object| {
        let (engine, bucket) = (Rc::clone(engine), Arc::clone(bucket));
        async move {
            let bytes = content(object + seed, OBJECT_BYTES);
            put(&engine, &bucket, &key(&object.to_string()), &bytes, WriteCondition::default())
                .await
                .expect("put");
        }
    })
    .await;
}

/// Waits for the end of a compaction and returns its result.
async fn compaction_ends(store: &Arc<Store>) -> CompactionStatus {
    until("the compaction ends", || store.compaction().finished_at.is_some()).await;
    store.compaction()
}

/// Objects are overwritten, deleted, read and listed while the store is compacted, and inspected at the end.
#[test]
fn running_store_is_compacted_while_it_is_used() {
    let folder = folder();
    with_engine(folder.path(), |engine| async move {
        let store = Arc::clone(engine.store());
        let bucket = store
            .create_bucket(&name("compact"), BucketSettings::default(), Origin::default())
            .await
            .expect("made");
        put_all(&engine, &bucket, 0).await;
        delete_most(&engine, &bucket).await;
        let before = store.usage().metadata_bytes;
        store.begin_compaction(Vec::new()).expect("begins");
        let (mut round, mut kept) = (0u64, std::collections::BTreeMap::new());
        // What is written meanwhile makes the store larger, so a compaction that takes long must not have more of it.
        while round < 40 || (store.compaction().finished_at.is_none() && round < ROUNDS_MAX) {
            round += 1;
            let object = round * KEPT_ONE_IN % OBJECTS;
            let bytes = content(round + 1_000_000, 3000);
            put(&engine, &bucket, &key(&object.to_string()), &bytes, WriteCondition::default())
                .await
                .expect("put");
            kept.insert(object, round + 1_000_000);
            let (_, read) =
                get(&engine, &bucket, &key(&object.to_string()), 0..u64::MAX).await.expect("reads");
            assert!(read == bytes, "a read after the put");
        }
        let status = compaction_ends(&store).await;
        assert_eq!(status.error, None);
        assert_eq!(status.environments_done, status.environments);
        assert!(!status.pause_max.is_zero(), "{status:?}");
        let after = store.usage().metadata_bytes;
        assert!(after < before / 8, "{before} {after} {round} {status:?}");
        for object in (0..OBJECTS).step_by(cairn_model::usize_of(KEPT_ONE_IN)) {
            let (_, read) =
                get(&engine, &bucket, &key(&object.to_string()), 0..u64::MAX).await.expect("reads");
            let expected =
                kept.get(&object).map_or_else(|| content(object, OBJECT_BYTES), |seed| content(*seed, 3000));
            assert!(read == expected, "{object}");
        }
        assert_eq!(bucket.usage().objects, OBJECTS / KEPT_ONE_IN);
    });
    assert!(metadata_bytes(folder.path()) < 60 << 20);
    // The file that the next start finds has everything.
    with_engine(folder.path(), |engine| async move {
        let bucket = engine.store().bucket(&name("compact")).expect("there");
        assert_eq!(bucket.usage().objects, OBJECTS / KEPT_ONE_IN);
        get(&engine, &bucket, &key("0"), 0..u64::MAX).await.expect("reads");
    });
}

#[test]
fn empty_volume_is_truncated_and_grows_again() {
    const BYTES: usize = 160 << 20;
    let folder = folder();
    let volume = folder.path().join("slices/00/volumes/000000.vol");
    let length = move || std::fs::metadata(&volume).expect("a file").len();
    with_engine(folder.path(), move |engine| async move {
        let store = Arc::clone(engine.store());
        let bucket = store
            .create_bucket(&name("compact"), BucketSettings::default(), Origin::default())
            .await
            .expect("made");
        let bytes = content(1, BYTES);
        put(&engine, &bucket, &key("large"), &bytes, WriteCondition::default()).await.expect("put");
        let full = length();
        assert!(full > 160 << 20);
        store.begin_compaction(Vec::new()).expect("begins");
        assert_eq!(compaction_ends(&store).await.volume_bytes_freed, 0, "the volume is not empty");
        engine.delete_object(&bucket, &key("large"), DeleteOptions::default()).await.expect("deleted");
        store.begin_compaction(Vec::new()).expect("begins");
        let status = compaction_ends(&store).await;
        assert_eq!(status.error, None);
        assert!(status.volume_bytes_freed > 160 << 20, "{status:?}");
        assert!(length() < full / 2, "{}", length());
        put(&engine, &bucket, &key("large"), &bytes, WriteCondition::default()).await.expect("put");
        let (_, read) = get(&engine, &bucket, &key("large"), 0..u64::MAX).await.expect("reads");
        assert!(read == bytes);
    });
    with_engine(folder.path(), |engine| async move {
        let bucket = engine.store().bucket(&name("compact")).expect("there");
        let (_, read) = get(&engine, &bucket, &key("large"), 0..u64::MAX).await.expect("reads");
        assert!(read == content(1, BYTES));
    });
}
