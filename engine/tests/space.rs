//! Tests of space reclamation against what the file system reports.

use crate::support::{content, folder, get, key, name, on_executor, options, put, until, with_engine_on};
use cairn_engine::{
    BucketSettings, DeleteOptions, Engine, EngineError, Origin, Store, StoreOptions, StoreUsage,
    WriteCondition,
};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Short enough to wait for, and long compared with the writes of a test, during which no space may be given back.
const RECLAIM_AFTER: Duration = Duration::from_millis(200);
const MIB: u64 = 1 << 20;

/// Runs `body` on a store with one slice; returns the usage of the closed store.
fn with_engine<F: Future<Output = ()> + 'static>(
    folder: &Path,
    reclaim_after: Option<Duration>,
    body: impl FnOnce(Rc<Engine>) -> F + Send + 'static,
) -> StoreUsage {
    let options = StoreOptions { slices: Some(1), reclaim_after, ..options(folder) };
    let store = Store::open(options).expect("the store opens");
    let opened = Arc::clone(&store);
    on_executor(move || async move {
        body(Engine::open(opened).await.expect("the engine opens")).await;
    });
    assert_eq!(store.inspect(u64::MAX).expect("reads").findings, []);
    store.close();
    store.usage()
}

/// Returns the bytes that the volumes occupy on the disk, according to the file system.
fn bytes_on_disk(folder: &Path) -> u64 {
    let volumes = std::fs::read_dir(folder.join("slices/00/volumes")).expect("a folder");
    volumes.map(|entry| entry.and_then(|entry| entry.metadata()).expect("a file").blocks() * 512).sum()
}

fn spaces(usage: &StoreUsage) -> [u64; 3] {
    [usage.volume_bytes, usage.free_volume_bytes, usage.reclaimed_bytes]
}

/// A refused CreateBucket was not counted. When clients only created buckets on a full disk, the alert was never raised.
#[test]
fn bucket_refused_on_a_full_disk_is_counted() {
    let folder = folder();
    let without_space = StoreOptions { reserve_bytes: u64::MAX, ..options(folder.path()) };
    let store = Store::open(without_space).expect("the store opens");
    let create = |text: &str| {
        let (store, name) = (Arc::clone(&store), name(text));
        futures_lite::future::block_on(async move {
            store.create_bucket(&name, BucketSettings::default(), Origin::default()).await.map(|_| ())
        })
    };
    for bucket in ["one", "two"] {
        assert_eq!(create(bucket), Err(EngineError::StorageFull));
    }
    assert_eq!(store.metrics().refused_full, 2);
    store.close();
}

/// After a mass deletion the volumes kept their largest size, so the disk stayed full.
#[test]
fn mass_deletion_gives_space_back_to_the_file_system() {
    let folder = folder();
    let path = folder.path().to_owned();
    with_engine(folder.path(), Some(RECLAIM_AFTER), |engine| async move {
        let bucket = engine
            .store()
            .create_bucket(&name("space"), BucketSettings::default(), Origin::default())
            .await
            .expect("made");
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
        until("no more than a growth step and a little more stays free", || {
            usage = engine.store().usage();
            usage.volume_bytes < held + 170 * MIB
        })
        .await;
        // The file system counts its own metadata too.
        assert!(bytes_on_disk(&path) < usage.volume_bytes + MIB, "{} {usage:?}", bytes_on_disk(&path));
        let (_, kept) = get(&engine, &bucket, &key("7"), 0..u64::MAX).await.expect("reads");
        assert!(kept == content(7, 32 << 20));
    });
}

/// The free map has no record of which free space is allocated; only the file system knows. A restart that took holes for
/// allocated space would promise space that a full disk does not have.
#[test]
fn restart_finds_holes_and_uses_them_before_growing() {
    let folder = folder();
    let before = with_engine(folder.path(), Some(RECLAIM_AFTER), |engine| async move {
        let bucket = engine
            .store()
            .create_bucket(&name("space"), BucketSettings::default(), Origin::default())
            .await
            .expect("made");
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
        until("most of the space is given back", || engine.store().usage().reclaimed_bytes > 100 * MIB).await;
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

/// A copy of 5 GiB into a store with 3 GiB of space wrote 3 GiB before it was refused.
#[test]
fn payload_that_cannot_fit_is_refused_before_its_first_byte() {
    let folder = folder();
    let store = Store::open(options(folder.path())).expect("the store opens");
    futures_lite::future::block_on(store.create_bucket(
        &name("full"),
        BucketSettings::default(),
        Origin::default(),
    ))
    .expect("made");
    store.close();
    drop(store);
    let full = StoreOptions { reserve_bytes: u64::MAX, ..options(folder.path()) };
    with_engine_on(full, |engine| async move {
        let bucket = engine.store().bucket(&name("full")).expect("there");
        let refused = engine.write_payload(&bucket, &key("k"), 1 << 30).await;
        assert_eq!(refused.err(), Some(EngineError::StorageFull));
        let refused = engine.admit_copy("client", &bucket, &key("k"), 1 << 30).await;
        assert_eq!(refused.err(), Some(EngineError::StorageFull));
        assert_eq!(engine.store().usage().reserved_bytes, 0);
        // There is free space within the volumes.
        engine.admit_copy("client", &bucket, &key("k"), 64 << 10).await.map(drop).expect("fits");
    });
}
