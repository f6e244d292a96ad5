//! A test store with a few objects, whose records the tests edit.

use super::super::FindingKind;
use crate::format::extent::Extent;
use crate::format::free_map::FreeMapEdit;
use crate::format::keys;
use crate::format::object_record::{Content, OBJECT_RECORD_VERSION, ObjectRecord};
use crate::slice::tables::Tables;
use crate::types::event::Origin;
use crate::{
    Attributes, Bucket, CompleteOutcome, CompleteUpload, Engine, EngineError, NewUpload, PutObject, PutPart,
    StagedPayload, Store, StoreOptions, WriteCondition,
};
use cairn_fixtures::on_executor;
use cairn_lmdb::{Table, WriteTxn};
use cairn_model::{BucketName, ObjectKey, UploadId};
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;

pub(super) const BUCKET: &str = "bucket";

/// Closes the store and removes its folder when dropped.
pub(super) struct Planted {
    pub(super) store: Arc<Store>,
    pub(super) folder: tempfile::TempDir,
}

impl Drop for Planted {
    fn drop(&mut self) {
        self.store.close();
    }
}

/// Opens a store with `slices` slices, creates the bucket and puts the objects (key and size).
pub(super) fn store_with(slices: u16, objects: &[(&str, usize)]) -> Planted {
    // Direct I/O needs a real disk.
    let folder = tempfile::tempdir_in(".").expect("a folder");
    let options = StoreOptions {
        slices: Some(slices),
        ..StoreOptions::new(
            folder.path().to_owned(),
            b"a master key of the tests, long enough".to_vec().into(),
        )
    };
    let store = Store::open(options).expect("the store opens");
    let objects: Vec<_> = objects.iter().map(|(key, size)| ((*key).to_owned(), *size)).collect();
    with_engine(&store, move |engine| async move {
        let name = BucketName::parse(BUCKET).expect("a name");
        let bucket = engine
            .store()
            .create_bucket(&name, crate::types::bucket::BucketSettings::default(), Origin::default())
            .await
            .expect("made");
        for (key, size) in objects {
            put(&engine, &bucket, &key, size).await;
        }
    });
    Planted { store, folder }
}

/// Runs `body` with an engine on its own executor.
pub(super) fn with_engine<F: Future<Output = ()> + 'static>(
    store: &Arc<Store>,
    body: impl FnOnce(Rc<Engine>) -> F + Send + 'static,
) {
    let store = Arc::clone(store);
    on_executor(move || async move {
        let engine = Engine::open(store).await.expect("the engine opens");
        body(engine).await;
    });
}

pub(super) fn key(text: &str) -> ObjectKey {
    ObjectKey::parse(text).expect("a key")
}

/// Writes a payload of `size` bytes for a key.
pub(super) async fn stage(
    engine: &Rc<Engine>,
    bucket: &Arc<Bucket>,
    key: &ObjectKey,
    size: usize,
) -> StagedPayload {
    let mut writer = engine.write_payload(bucket, key, size as u64).await.expect("begins");
    let mut left = size;
    while left > 0 {
        let room = writer.buffer().await.expect("room");
        let count = left.min(room.len());
        room[..count].fill(7);
        writer.advance(count).expect("fits");
        left -= count;
    }
    writer.finish().await.expect("written")
}

pub(super) async fn put(engine: &Rc<Engine>, bucket: &Arc<Bucket>, key: &str, size: usize) {
    let key = self::key(key);
    let payload = stage(engine, bucket, &key, size).await;
    let (etag, attributes) = (payload.etag(), Attributes::default());
    let (bucket, condition) = (Arc::clone(bucket), WriteCondition::default());
    let lock = crate::types::object_lock::ObjectLock::default();
    let put =
        PutObject { bucket, key, payload, etag, attributes, condition, lock, origin: Origin::default() };
    engine.put_object(put).await.expect("put");
}

/// Creates an upload with parts of these numbers and sizes; returns the parts for its completion.
pub(super) async fn upload(
    engine: &Rc<Engine>,
    bucket: &Arc<Bucket>,
    key: &ObjectKey,
    parts: &[(u16, usize)],
) -> (UploadId, Vec<(u16, [u8; 16])>) {
    let upload = engine.create_upload(bucket, key, NewUpload::default()).await.expect("begins").id;
    let mut put = Vec::new();
    for &(number, size) in parts {
        let payload = stage(engine, bucket, key, size).await;
        put.retain(|(other, _)| *other != number);
        put.push((number, payload.etag().md5));
        let (bucket, key) = (Arc::clone(bucket), key.clone());
        let part = PutPart { bucket, key, upload, number, payload, checksum: None };
        engine.put_part(part).await.expect("put");
    }
    put.sort_unstable();
    (upload, put)
}

/// Completes an upload with these parts.
pub(super) async fn complete(
    engine: &Rc<Engine>,
    bucket: &Arc<Bucket>,
    key: &ObjectKey,
    upload: UploadId,
    parts: Vec<(u16, [u8; 16])>,
) -> Result<CompleteOutcome, EngineError> {
    let (bucket, key, condition) = (Arc::clone(bucket), key.clone(), WriteCondition::default());
    engine
        .complete_upload(CompleteUpload {
            bucket,
            key,
            upload,
            parts,
            checksums: Vec::new(),
            condition,
            origin: Origin::default(),
        })
        .await
}

impl Planted {
    /// The kinds of all findings, sorted and without duplicates.
    pub(super) fn kinds(&self) -> Vec<&'static str> {
        let inspection = self.store.inspect(u64::MAX).expect("inspects");
        let mut kinds: Vec<_> = inspection.findings.iter().map(|finding| finding.kind.name()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }

    /// The first finding of a kind.
    pub(super) fn finding(&self, kind: FindingKind) -> super::super::Finding {
        let inspection = self.store.inspect(u64::MAX).expect("inspects");
        inspection.findings.into_iter().find(|finding| finding.kind == kind).expect("found")
    }

    /// Changes records of slice 0, bypassing the committer.
    pub(super) fn edit(&self, change: impl FnOnce(&mut WriteTxn<'_>, &Tables)) {
        let slice = &self.store.slices[0];
        let mut txn = slice.environment.write().expect("writes");
        change(&mut txn, &slice.tables);
        txn.commit().expect("commits");
    }

    /// The encoded key and the record of an object in slice 0.
    pub(super) fn record(&self, key: &str) -> (Vec<u8>, ObjectRecord, Vec<u8>) {
        let slice = &self.store.slices[0];
        let bucket = self.store.buckets()[0].id;
        let versions = keys::versions_of(bucket, key.as_bytes()).expect("short");
        let txn = slice.environment.read().expect("reads");
        let (found, stored) =
            txn.first_at_or_after(slice.tables.objects, &versions).expect("reads").expect("there");
        assert!(found.starts_with(&versions), "{key} is in slice 0");
        let record = ObjectRecord::decode(stored.version, stored.body).expect("decodes");
        (found.to_vec(), record, stored.tail.to_vec())
    }

    /// The version, body and tail of a record of slice 0.
    pub(super) fn stored(&self, table: impl Fn(&Tables) -> Table, key: &[u8]) -> (u8, Vec<u8>, Vec<u8>) {
        let slice = &self.store.slices[0];
        let txn = slice.environment.read().expect("reads");
        let stored = txn.get(table(&slice.tables), key).expect("reads").expect("there");
        (stored.version, stored.body.to_vec(), stored.tail.to_vec())
    }

    /// Replaces the record of an object.
    pub(super) fn rewrite(&self, key: &str, change: impl FnOnce(&mut ObjectRecord)) {
        let (encoded, mut record, tail) = self.record(key);
        change(&mut record);
        let mut body = Vec::new();
        record.encode(&mut body).expect("encodes");
        self.edit(|txn, tables| {
            txn.put(tables.objects, &encoded, OBJECT_RECORD_VERSION, &body, &tail).expect("puts");
        });
    }

    /// Space of an object in volumes.
    pub(super) fn extents(&self, key: &str) -> Vec<Extent> {
        match self.record(key).1.content {
            Content::Payload(payload) => payload.owned().collect(),
            other => panic!("{key} has no payload of its own: {other:?}"),
        }
    }

    /// Marks or unmarks units in the free map.
    pub(super) fn mark(&self, extents: &[Extent], owned: bool) {
        self.edit(|txn, tables| {
            let mut edit = FreeMapEdit::default();
            let mark = if owned { FreeMapEdit::mark_owned } else { FreeMapEdit::mark_free };
            mark(&mut edit, txn, tables.free_map, extents).expect("in the other state");
            edit.write(txn, tables.free_map).expect("writes");
        });
    }

    /// Marks free space as owned, as if the record that owned it were lost.
    pub(super) fn orphan(&self, bytes: u64) -> Vec<Extent> {
        // The volume grows when it must.
        let reserved = self.store.slices[0].space.reserve(bytes);
        let reservation = futures_lite::future::block_on(reserved).expect("space");
        let extents = reservation.extents().to_vec();
        reservation.commit();
        self.mark(&extents, true);
        extents
    }
}
