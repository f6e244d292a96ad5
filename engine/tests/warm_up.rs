//! Reading the metadata into memory after a start: when it is done, and that it does not outlive the store.

use crate::support::{content, folder, get, key, name, on_executor, options, put};
use cairn_engine::{BucketSettings, Engine, Origin, Store, WriteCondition};
use std::sync::Arc;

#[test]
fn metadata_is_read_in_advance_only_within_the_limit() {
    let folder = folder();
    let store = Store::open(options(folder.path())).expect("the store opens");
    assert!(!store.begin_warm_up(4096).expect("begins"), "there is more than a page");
    assert!(store.begin_warm_up(1 << 30).expect("begins"));
    let opened = Arc::clone(&store);
    // Writers do not wait for it.
    on_executor(move || async move {
        let engine = Engine::open(opened).await.expect("the engine opens");
        let bucket = engine
            .store()
            .create_bucket(&name("warm"), BucketSettings::default(), Origin::default())
            .await
            .expect("created");
        let (object, bytes) = (key("k"), content(1, 1000));
        put(&engine, &bucket, &object, &bytes, WriteCondition::default()).await.expect("put");
        assert_eq!(get(&engine, &bucket, &object, 0..1000).await.expect("read").1, bytes);
    });
    store.close();
    assert!(Arc::into_inner(store).is_some(), "its thread has ended");
}
