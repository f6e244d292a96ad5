//! The entries of unfinished uploads in the due index: planted inconsistencies, and an index from before it had them.

use super::support::{BUCKET, Planted, key, store_with, upload, with_engine};
use crate::check::inspect::FindingKind;
use crate::format::due_record::{DUE_RECORD_VERSION, DUE_STATE_VERSION, DueKey, DueState};
use crate::format::keys;
use crate::types::bucket::BucketChange;
use crate::types::lifecycle::tests::rule;
use crate::types::lifecycle::{LifecycleChange, LifecycleRule};
use crate::{LifecycleOptions, Store, StoreOptions};
use cairn_model::{BucketName, Timestamp, VersionId};
use std::sync::Arc;
use std::time::Duration;

const OPTIONS: LifecycleOptions = LifecycleOptions { interval: Duration::from_secs(3600), batch_size: 10 };

/// A store with one unfinished upload, and the upload's entry.
fn store() -> (Planted, DueKey) {
    let planted = store_with(1, &[]);
    with_engine(&planted.store, |engine| async move {
        let bucket = engine.store().buckets().remove(0);
        upload(&engine, &bucket, &key("begun"), &[(1, 100)]).await;
    });
    let slice = &planted.store.slices[0];
    let txn = slice.environment.read().expect("reads");
    let (found, _) = txn.first_at_or_after(slice.tables.uploads, &[0]).expect("reads").expect("there");
    let (bucket, _, id) = keys::decode_upload(found).expect("decodes");
    let stored = txn.get(slice.tables.uploads, found).expect("reads").expect("there");
    let since = crate::format::upload_record::decode_initiated(stored.version, stored.body).expect("decodes");
    drop(txn);
    (planted, DueKey::of_upload(bucket, since, id))
}

#[test]
fn missing_and_surplus_entries_of_uploads_are_found() {
    let (planted, entry) = store();
    let bucket = entry.bucket.to_be_bytes();
    let set_state = |version: u8, state: &[u8]| {
        planted.edit(|txn, tables| txn.put(tables.due_state, &bucket, version, state, &[]).expect("puts"));
    };
    let set_entry = |entry: &DueKey, is_there: bool| {
        planted.edit(|txn, tables| {
            if is_there {
                txn.put(tables.due, &entry.encode(), DUE_RECORD_VERSION, b"begun", &[]).expect("puts");
            } else {
                assert!(txn.remove(tables.due, &entry.encode()).expect("removes"));
            }
        });
    };
    set_state(1, &[2]);
    assert_eq!(planted.kinds(), [""; 0], "a complete index of version 1 has no uploads");
    set_state(DUE_STATE_VERSION, &DueState::Complete.encode());
    assert_eq!(planted.kinds(), ["due_index_mismatch"], "the upload has no entry");
    let finding = planted.finding(FindingKind::DueIndexMismatch);
    assert_eq!((finding.bucket.as_deref(), finding.key.as_deref()), (Some(BUCKET), Some("begun")));
    set_entry(&entry, true);
    assert_eq!(planted.kinds(), [""; 0]);
    set_state(DUE_STATE_VERSION, &DueState::BuildingUploads(Vec::new()).encode());
    assert_eq!(planted.kinds(), ["due_index_mismatch"], "an entry that should not be there yet");
    set_state(DUE_STATE_VERSION, &DueState::Complete.encode());
    let early = DueKey { since: Timestamp(entry.since.0 - 1), ..entry };
    set_entry(&early, true);
    assert_eq!(planted.kinds(), ["due_index_mismatch"], "an entry with another date");
    set_entry(&early, false);
    set_entry(&DueKey { version: VersionId(entry.version.0 + 256), ..entry }, true);
    assert_eq!(planted.kinds(), ["due_index_mismatch"], "an entry of an upload that does not exist");
}

/// A store of format version 9 has complete indexes without uploads. They get those that were begun before.
#[test]
fn index_of_an_earlier_version_gets_the_uploads() {
    let (mut planted, entry) = store();
    let add = |store: &Arc<Store>| {
        with_engine(store, |engine| async move {
            let bucket = engine.store().bucket(&BucketName::parse(BUCKET).expect("a name")).expect("there");
            let rule = LifecycleRule { abort_uploads_days: Some(1), ..rule("", None, None) };
            let change = BucketChange::Lifecycle(LifecycleChange::ReplaceAll(vec![rule]));
            engine.store().change_bucket(&bucket, change).await.expect("changed");
            engine.apply_lifecycle(OPTIONS).await.expect("applied");
        });
    };
    add(&planted.store);
    assert_eq!(planted.stored(|tables| tables.due, &entry.encode()).1, b"begun");
    let bucket = entry.bucket.to_be_bytes();
    planted.edit(|txn, tables| {
        assert!(txn.remove(tables.due, &entry.encode()).expect("removes"));
        txn.put(tables.due_state, &bucket, 1, &[2], &[]).expect("puts");
    });
    let folder = std::mem::replace(&mut planted.folder, tempfile::tempdir().expect("a folder"));
    drop(planted);
    let options = StoreOptions::new(
        folder.path().to_owned(),
        b"a master key of the tests, long enough".to_vec().into(),
    );
    let again = Planted { store: Store::open(options).expect("opens"), folder };
    assert_eq!(again.kinds(), [""; 0]);
    add(&again.store);
    assert_eq!(again.stored(|tables| tables.due, &entry.encode()).1, b"begun");
    assert_eq!(again.stored(|tables| tables.due_state, &bucket).1, DueState::Complete.encode());
    assert_eq!(again.kinds(), [""; 0]);
}
