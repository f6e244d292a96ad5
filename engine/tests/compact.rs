//! Compaction of a stopped store: metadata becomes smaller, and the store is the same.

mod support;

use cairn_engine::{
    BucketSettings, CompactError, DeleteOptions, Engine, OpenError, Store, StoreOptions, WriteCondition,
    compact_store,
};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use support::{content, folder, get, key, name, on_executor, options, put};

/// Objects of the largest size that lives in metadata: 40 MiB of them.
const OBJECTS: u64 = 2560;
const OBJECT_BYTES: usize = 16 * 1024;
/// One in so many is left.
const LEFT: u64 = 64;

fn with_engine<F: Future<Output = ()> + 'static>(
    folder: &Path,
    body: impl FnOnce(Rc<Engine>) -> F + Send + 'static,
) {
    let store = Store::open(StoreOptions { slices: Some(1), ..options(folder) }).expect("the store opens");
    let on_it = Arc::clone(&store);
    on_executor(move || async move {
        body(Engine::open(on_it).await.expect("the engine opens")).await;
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

/// Changes of many objects, which share commits.
async fn all<F: Future<Output = ()> + 'static>(change: impl Fn(u64) -> F) {
    let tasks: Vec<_> = (0..OBJECTS).map(|object| glommio::spawn_local(change(object))).collect();
    for task in tasks {
        task.await;
    }
}

#[test]
fn the_metadata_of_a_mass_deletion_comes_back_and_the_store_is_the_same() {
    let folder = folder();
    with_engine(folder.path(), |engine| async move {
        let bucket =
            engine.store().create_bucket(&name("compact"), BucketSettings::default()).await.expect("made");
        all(|object| {
            let (engine, bucket) = (Rc::clone(&engine), Arc::clone(&bucket));
            async move {
                let bytes = content(object, OBJECT_BYTES);
                put(&engine, &bucket, &key(&object.to_string()), &bytes, WriteCondition::default())
                    .await
                    .expect("put");
            }
        })
        .await;
        all(|object| {
            let (engine, bucket) = (Rc::clone(&engine), Arc::clone(&bucket));
            async move {
                if object % LEFT != 0 {
                    let object = key(&object.to_string());
                    engine.delete_object(&bucket, &object, DeleteOptions::default()).await.expect("deleted");
                }
            }
        })
        .await;
    });
    let before = metadata_bytes(folder.path());
    let mut environments = 0;
    compact_store(folder.path(), |_, _| environments += 1).expect("compacts");
    assert_eq!(environments, 2);
    let after = metadata_bytes(folder.path());
    // What deletions need on a full disk is kept: 48 MiB of headroom.
    assert!(before > 72 << 20 && after < 52 << 20, "{before} {after}");
    with_engine(folder.path(), |engine| async move {
        let bucket = engine.store().bucket(&name("compact")).expect("there");
        assert_eq!(bucket.usage().objects, OBJECTS / LEFT);
        for object in (0..OBJECTS).step_by(usize::try_from(LEFT).expect("small")) {
            let (_, bytes) =
                get(&engine, &bucket, &key(&object.to_string()), 0..u64::MAX).await.expect("reads");
            assert!(bytes == content(object, OBJECT_BYTES));
        }
        put(&engine, &bucket, &key("new"), b"new", WriteCondition::default()).await.expect("put");
    });
}

#[test]
fn a_store_in_use_and_a_folder_without_one_are_refused() {
    let folder = folder();
    let none = compact_store(folder.path(), |_, _| {}).expect_err("no store");
    assert!(matches!(none, CompactError::NoStore(_)), "{none}");
    assert!(std::fs::read_dir(folder.path()).expect("a folder").next().is_none(), "nothing was made");
    let store = Store::open(options(folder.path())).expect("opens");
    let refused = compact_store(folder.path(), |_, _| {}).expect_err("in use");
    assert!(matches!(refused, CompactError::Open(OpenError::Locked(_))), "{refused}");
    store.close();
    drop(store);
    let mut environments = 0;
    compact_store(folder.path(), |_, _| environments += 1).expect("compacts");
    assert_eq!(environments, 4);
}
