//! Space that goes back to the file system, and comes again: figures, the device's view, restarts.

mod support;

use cairn_engine::{
    BucketSettings, DeleteOptions, Engine, EngineError, Store, StoreOptions, StoreUsage, WriteCondition,
};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use support::{content, folder, get, key, name, on_executor, options, put, until};

/// Short enough to wait for, and long against the writes of a test that must not lose space in between.
const RECLAIM_AFTER: Duration = Duration::from_millis(200);
const MIB: u64 = 1 << 20;

/// Runs `body` on a store of one slice; returns the figures of the closed store.
fn with_engine<F: Future<Output = ()> + 'static>(
    folder: &Path,
    reclaim_after: Option<Duration>,
    body: impl FnOnce(Rc<Engine>) -> F + Send + 'static,
) -> StoreUsage {
    let options = StoreOptions { slices: Some(1), reclaim_after, ..options(folder) };
    let store = Store::open(options).expect("the store opens");
    let on_it = Arc::clone(&store);
    on_executor(move || async move {
        body(Engine::open(on_it).await.expect("the engine opens")).await;
    });
    assert_eq!(store.inspect(u64::MAX).expect("reads").findings, []);
    store.close();
    store.usage()
}

/// Bytes that the volumes take on the disk, as the file system counts them.
fn bytes_on_disk(folder: &Path) -> u64 {
    let volumes = std::fs::read_dir(folder.join("slices/00/volumes")).expect("a folder");
    volumes.map(|entry| entry.and_then(|entry| entry.metadata()).expect("a file").blocks() * 512).sum()
}

fn spaces(usage: &StoreUsage) -> [u64; 3] {
    [usage.volume_bytes, usage.free_volume_bytes, usage.reclaimed_bytes]
}

/// A refused CreateBucket counted nowhere: on a full disk that clients only made buckets on, the alert stayed silent.
#[test]
fn a_bucket_refused_for_want_of_space_is_counted_as_a_refused_write_is() {
    let folder = folder();
    let without_space = StoreOptions { reserve_bytes: u64::MAX, ..options(folder.path()) };
    let store = Store::open(without_space).expect("the store opens");
    let create = |text: &str| {
        let (store, name) = (Arc::clone(&store), name(text));
        futures_lite::future::block_on(async move {
            store.create_bucket(&name, BucketSettings::default()).await.map(|_| ())
        })
    };
    for bucket in ["one", "two"] {
        assert_eq!(create(bucket), Err(EngineError::StorageFull));
    }
    assert_eq!(store.figures().refused_full, 2);
    store.close();
}

/// A mass deletion left the volumes as large as they had ever been: the disk stayed full.
#[test]
fn a_mass_deletion_makes_the_store_smaller_on_the_disk_and_what_stays_is_whole() {
    let folder = folder();
    let path = folder.path().to_owned();
    with_engine(folder.path(), Some(RECLAIM_AFTER), |engine| async move {
        let bucket =
            engine.store().create_bucket(&name("space"), BucketSettings::default()).await.expect("made");
        for object in 0..10 {
            let bytes = content(object, 32 << 20);
            put(&engine, &bucket, &key(&object.to_string()), &bytes, WriteCondition::default())
                .await
                .expect("put");
        }
        let full = bytes_on_disk(&path);
        assert!(full > 320 * MIB);
        for object in (0..10).filter(|object| *object != 7) {
            let object = key(&object.to_string());
            engine.delete_object(&bucket, &object, DeleteOptions::default()).await.expect("deleted");
        }
        let mut usage = engine.store().usage();
        let held = usage.volume_bytes - usage.free_volume_bytes;
        until("what is kept is a growth step and a little more", || {
            usage = engine.store().usage();
            usage.volume_bytes < held + 170 * MIB
        })
        .await;
        // The metadata of the file system itself is counted too.
        assert!(bytes_on_disk(&path) < usage.volume_bytes + MIB, "{} {usage:?}", bytes_on_disk(&path));
        let (_, kept) = get(&engine, &bucket, &key("7"), 0..u64::MAX).await.expect("reads");
        assert!(kept == content(7, 32 << 20));
    });
}

/// The free map knows owned and free. Which free space is allocated, only the file system knows: a restart that took holes
/// for allocated space would promise space that a full disk does not have.
#[test]
fn a_restart_finds_every_kind_of_free_space_again_and_holes_are_used_before_the_file_grows() {
    let folder = folder();
    let before = with_engine(folder.path(), Some(RECLAIM_AFTER), |engine| async move {
        let bucket =
            engine.store().create_bucket(&name("space"), BucketSettings::default()).await.expect("made");
        for object in 0..6 {
            let bytes = content(object, 50 << 20);
            put(&engine, &bucket, &key(&object.to_string()), &bytes, WriteCondition::default())
                .await
                .expect("put");
        }
        for object in 1..6 {
            let object = key(&object.to_string());
            engine.delete_object(&bucket, &object, DeleteOptions::default()).await.expect("deleted");
        }
        until("most of it is given back", || engine.store().usage().reclaimed_bytes > 100 * MIB).await;
    });
    let path = folder.path().join("slices/00/volumes/000000.vol");
    let length = std::fs::metadata(&path).expect("a file").len();
    with_engine(folder.path(), None, move |engine| async move {
        assert_eq!(spaces(&engine.store().usage()), spaces(&before));
        let bucket = engine.store().bucket(&name("space")).expect("there");
        for object in 10..15 {
            let (object, bytes) = (key(&object.to_string()), content(object, 50 << 20));
            put(&engine, &bucket, &object, &bytes, WriteCondition::default()).await.expect("put");
            let (_, read) = get(&engine, &bucket, &object, 0..u64::MAX).await.expect("reads");
            assert!(read == bytes);
        }
        assert_eq!(std::fs::metadata(path).expect("a file").len(), length, "holes are used first");
        assert!(engine.store().usage().reclaimed_bytes < before.reclaimed_bytes);
    });
}
