//! The engine on one executor: the path of each request, from top to bottom.

use crate::bucket::Bucket;
use crate::disk::{Disk, DiskFile};
use crate::error::{EngineError, OpenError};
use crate::events::{FoundWhile, StoreEvent};
use crate::figures::ExecutorFigures;
use crate::hasher::Hasher;
use crate::keys;
use crate::limits::{BACKGROUND_SHARES, BLOCK_BYTES, METADATA_HEADROOM_MIN, PAYLOAD_BYTES_MAX};
use crate::list;
use crate::lock::{ObjectLock, Retention};
use crate::object::{
    Attributes, DeleteOptions, DeleteOutcome, ListObjects, ListPage, ListVersions, ObjectInfo, PutOutcome,
    VersionsPage, WriteCondition,
};
use crate::open::{SharedParts, lookup};
use crate::pace::Activity;
use crate::queue::{DeleteJob, Job, LockChange, LockJob, PutJob, Reply};
use crate::slice::Slice;
use crate::store::Store;
use crate::upload_budget::UploadBudget;
use crate::volume::volume_path;
use crate::writer::{PayloadWriter, StagedPayload};
use cairn_model::{Etag, ObjectKey, VersionName};
use futures_channel::oneshot;
use glommio::{Latency, Shares, TaskQueueHandle};
use std::cell::Cell;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;

/// The engine as one executor uses it. Not `Send`: its files belong to the executor's ring.
pub struct Engine {
    store: Arc<Store>,
    disk: Disk,
    pub(crate) shared_parts: SharedParts,
    pub(crate) upload_budget: UploadBudget,
    pub(crate) hasher: Hasher,
    /// Bytes that readers hold ahead of what they are sending.
    pub(crate) read_ahead_bytes: Cell<usize>,
    /// Requests of this executor, seen by whoever reads in the background.
    activity: Arc<Activity>,
    pub(crate) figures: Arc<ExecutorFigures>,
    /// Where background reading runs, behind all requests.
    background: TaskQueueHandle,
}

/// A put as it goes to the committer.
pub struct PutObject {
    /// The bucket.
    pub bucket: Arc<Bucket>,
    /// The key that the payload was written for.
    pub key: ObjectKey,
    /// The payload, with all its writes completed.
    pub payload: StagedPayload,
    /// Its entity tag.
    pub etag: Etag,
    /// Stored headers and checked checksums.
    pub attributes: Attributes,
    /// Conditions on the current object.
    pub condition: WriteCondition,
    /// What locks the new version; without a retention it gets the bucket's default.
    pub lock: ObjectLock,
}

impl Engine {
    /// Opens the store's volumes on the executor that runs this.
    ///
    /// # Errors
    /// [`OpenError::Io`] when a volume cannot be opened for direct I/O.
    pub async fn open(store: Arc<Store>) -> Result<Rc<Self>, OpenError> {
        let figures = store.executors_figures.add();
        let disk = Disk::new(store.files.clone(), Arc::clone(&figures));
        let (upload_budget, hasher) = (UploadBudget::new(store.buffers.upload_bytes), Hasher::default());
        let shared_parts = SharedParts::default();
        let activity = store.activities.add();
        let shares = Shares::Static(BACKGROUND_SHARES);
        let background = glommio::executor().create_task_queue(shares, Latency::NotImportant, "background");
        let read_ahead_bytes = Cell::new(0);
        let engine = Rc::new(Self {
            store,
            disk,
            shared_parts,
            upload_budget,
            hasher,
            read_ahead_bytes,
            activity,
            figures,
            background,
        });
        for slice in &engine.store.slices {
            let path = volume_path(&slice.folder, 0);
            let opened = engine.disk.file(slice.number, 0, &path).await;
            opened.map_err(|error| OpenError::Io { path, doing: "opening with io_uring", error })?;
        }
        Ok(engine)
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Begins a payload of exactly `size` bytes for a key.
    ///
    /// # Errors
    /// [`EngineError::PayloadTooLarge`], [`EngineError::KeyTooLong`], and [`EngineError::StorageFull`] when the disk is
    /// below its reserve and the metadata file has no space to spare.
    #[expect(clippy::unused_async, reason = "the signature leaves room for waiting on admission")]
    pub async fn write_payload(
        self: &Rc<Self>,
        bucket: &Arc<Bucket>,
        key: &ObjectKey,
        size: u64,
    ) -> Result<PayloadWriter, EngineError> {
        self.begin_payload(bucket, key, size, None)
    }

    /// As [`Engine::write_payload`]; a payload whose MD5 is known is not hashed.
    pub(crate) fn begin_payload(
        self: &Rc<Self>,
        bucket: &Arc<Bucket>,
        key: &ObjectKey,
        size: u64,
        md5: Option<[u8; 16]>,
    ) -> Result<PayloadWriter, EngineError> {
        self.activity.note();
        if size > PAYLOAD_BYTES_MAX {
            return Err(EngineError::PayloadTooLarge);
        }
        if keys::versions_of(bucket.id, key.as_bytes()).is_none() {
            return Err(EngineError::KeyTooLong);
        }
        let slice = self.store.slice_of(bucket, key)?;
        if let Some(reason) = slice.stopped.get() {
            return Err(EngineError::Io(reason.clone()));
        }
        // Below the reserve, what volumes and metadata hold in free space can still be used; nothing grows.
        if self.store.disk.is_low() && slice.environment.headroom() < METADATA_HEADROOM_MIN {
            return self.figures.counted(Err(EngineError::StorageFull));
        }
        PayloadWriter::new(self, slice, (bucket, key), size, md5)
    }

    /// Makes a staged payload the current content of its key. Durable, payload and metadata, when it returns. Dropping
    /// the future does not undo the put.
    ///
    /// # Errors
    /// [`EngineError::PreconditionFailed`], [`EngineError::NoSuchKey`] (an `If-Match` on nothing), bucket states,
    /// [`EngineError::StorageFull`] and failures of the device.
    pub async fn put_object(&self, put: PutObject) -> Result<PutOutcome, EngineError> {
        let PutObject { bucket, key, payload, etag, attributes, condition, lock } = put;
        let (of, named) = (Arc::clone(&bucket), key.clone());
        let job = PutJob { bucket, key, payload, etag, attributes, condition, lock };
        self.commit(&of, &named, |reply| Job::Put(Box::new(job), reply)).await
    }

    /// Removes the current object of a key, if there is one, or a version; makes a delete marker where the bucket keeps
    /// versions. Durable when it returns.
    ///
    /// # Errors
    /// As [`Engine::put_object`], and [`EngineError::ObjectLocked`]. A version that is not there is no error.
    pub async fn delete_object(
        &self,
        bucket: &Arc<Bucket>,
        key: &ObjectKey,
        options: DeleteOptions,
    ) -> Result<DeleteOutcome, EngineError> {
        self.activity.note();
        let job = DeleteJob { bucket: Arc::clone(bucket), key: key.clone(), options };
        self.commit(bucket, key, |reply| Job::Delete(Box::new(job), reply)).await
    }

    /// Sets, or takes away, the retention of a version, by default the current one. Durable when it returns.
    ///
    /// # Errors
    /// [`EngineError::ObjectLocked`] when the retention that it has forbids it, [`EngineError::InvalidBucketState`] without
    /// object lock, and as [`Engine::head_object`].
    pub async fn set_retention(
        &self,
        bucket: &Arc<Bucket>,
        key: &ObjectKey,
        version: Option<VersionName>,
        retention: Option<Retention>,
        bypass_governance: bool,
    ) -> Result<(), EngineError> {
        self.change_lock(bucket, key, version, LockChange::Retention { retention, bypass_governance }).await
    }

    /// Sets, or takes away, the legal hold of a version, by default the current one. Durable when it returns.
    ///
    /// # Errors
    /// [`EngineError::InvalidBucketState`] without object lock, and as [`Engine::head_object`].
    pub async fn set_legal_hold(
        &self,
        bucket: &Arc<Bucket>,
        key: &ObjectKey,
        version: Option<VersionName>,
        legal_hold: bool,
    ) -> Result<(), EngineError> {
        self.change_lock(bucket, key, version, LockChange::LegalHold(legal_hold)).await
    }

    async fn change_lock(
        &self,
        bucket: &Arc<Bucket>,
        key: &ObjectKey,
        version: Option<VersionName>,
        change: LockChange,
    ) -> Result<(), EngineError> {
        let job = LockJob { bucket: Arc::clone(bucket), key: key.clone(), version, change };
        self.commit(bucket, key, |reply| Job::Lock(Box::new(job), reply)).await
    }

    /// Hands a change to the committer of its key and waits for the outcome.
    pub(crate) async fn commit<T>(
        &self,
        bucket: &Bucket,
        key: &ObjectKey,
        job: impl FnOnce(Reply<T>) -> Job,
    ) -> Result<T, EngineError> {
        let (reply, answer) = oneshot::channel();
        self.figures.counted(self.store.slice_of(bucket, key)?.queue.push(job(reply)))?;
        self.figures.counted(answer.await.map_err(|_| EngineError::ShuttingDown)?)
    }

    /// Notes that a request began, so that background work makes room for it.
    pub(crate) fn note_request(&self) {
        self.activity.note();
    }

    /// Metadata of a version, by default the current one.
    ///
    /// # Errors
    /// [`EngineError::NoSuchKey`], [`EngineError::NoSuchVersion`], [`EngineError::DeleteMarker`], or
    /// [`EngineError::Corrupt`] when its record fails its check.
    pub fn head_object(
        &self,
        bucket: &Arc<Bucket>,
        key: &ObjectKey,
        version: Option<VersionName>,
    ) -> Result<ObjectInfo, EngineError> {
        let slice = self.store.slice_of(bucket, key)?;
        let object = || format!("{}/{key}", bucket.name);
        let found = lookup(slice, bucket, key, version, |_, _, record, _| Ok(record.info));
        self.reported(found, object)
    }

    /// Runs a future behind all requests of this executor; dropping what is returned ends it.
    pub(crate) fn in_background<T: 'static>(
        &self,
        work: impl Future<Output = Result<T, EngineError>> + 'static,
    ) -> impl Future<Output = Result<T, EngineError>> {
        let spawned = glommio::spawn_local_into(work, self.background);
        async move {
            match spawned {
                Ok(task) => task.await,
                Err(error) => Err(EngineError::Io(format!("background work could not be begun: {error}"))),
            }
        }
    }

    /// One page of a bucket's keys.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] when a record fails its check.
    pub fn list_objects(
        &self,
        bucket: &Arc<Bucket>,
        list: &ListObjects<'_>,
    ) -> Result<ListPage, EngineError> {
        self.reported(list::list_objects(&self.store.slices, bucket.id, list), || bucket.name.to_string())
    }

    /// One page of a bucket's versions.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] when a record fails its check.
    pub fn list_versions(
        &self,
        bucket: &Arc<Bucket>,
        list: &ListVersions<'_>,
    ) -> Result<VersionsPage, EngineError> {
        self.reported(list::list_versions(&self.store.slices, bucket.id, list), || bucket.name.to_string())
    }

    /// Whether readers may hold more blocks ahead of what they are sending.
    pub(crate) fn may_read_ahead(&self) -> bool {
        (self.read_ahead_bytes.get() as u64) < self.store.buffers.read_ahead_bytes
    }

    /// Notes that a reader's place ahead moved from block `before` to block `now`: the difference counts, either way.
    pub(crate) fn count_read_ahead(&self, now: u64, before: u64) {
        let blocks = |count: u64| usize::try_from(count).unwrap_or(0).saturating_mul(BLOCK_BYTES);
        let held = self.read_ahead_bytes.get().saturating_add(blocks(now.saturating_sub(before)));
        self.read_ahead_bytes.set(held.saturating_sub(blocks(before.saturating_sub(now))));
    }

    /// Reports records of `object` that failed their check.
    pub(crate) fn reported<T>(
        &self,
        result: Result<T, EngineError>,
        object: impl Fn() -> String,
    ) -> Result<T, EngineError> {
        if let Err(EngineError::Corrupt(what)) = &result {
            let (object, version, found_while) = (&*object(), None, FoundWhile::Serving);
            self.store.events.report(&StoreEvent::Damage { object, version, what, found_while });
        }
        result
    }

    pub(crate) async fn volume_file(&self, slice: &Slice, volume: u32) -> Result<Rc<DiskFile>, EngineError> {
        let path = volume_path(&slice.folder, volume);
        self.disk.file(slice.number, volume, &path).await.map_err(|error| {
            tracing::error!(target: "service::engine", path = %path.display(), %error, "a volume could not be opened");
            EngineError::Io(format!("opening a volume: {error}"))
        })
    }
}
