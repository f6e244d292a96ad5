//! The engine on one executor: reads, writes and lists of objects.

use crate::error::{EngineError, OpenError};
use crate::executor::context::ExecutorContext;
use crate::executor::memory_budget::{MemoryPermit, Recall};
use crate::format::format_version::Feature;
use crate::format::keys;
use crate::format::object_record::ObjectRecord;
use crate::format::seal::KeyOwner;
use crate::limits::{BACKGROUND_SHARES, METADATA_HEADROOM_MIN, PAYLOAD_BYTES_MAX};
use crate::list;
use crate::read::open::{OpenTarget, Opener, ReadSnapshot, repeat_until_pinned};
use crate::read::pinned_payload::ReadMode;
use crate::read::reader::OpenObject;
use crate::slice::command::{
    ChangeVersion, Command, DeleteObject, ImportVersion, PutObject, Reply, VersionChange,
};
use crate::slice::lookup::{find_version, name_object};
use crate::store::Store;
use crate::store::options::EtagKind;
use crate::types::bucket::Bucket;
use crate::types::import::ImportOutcome;
use crate::types::object::{
    ChangedPage, DeleteOptions, DeleteOutcome, DeletedPage, ListObjects, ListPage, ListVersions, ObjectInfo,
    PutOutcome, VersionsPage,
};
use crate::types::object_lock::Retention;
use crate::types::tags::Tags;
use crate::write::writer::{PayloadWriter, TagSource};
use cairn_model::{Etag, ObjectKey, Timestamp, VersionId, VersionName};
use futures_channel::oneshot;
use glommio::{Latency, Shares, TaskQueueHandle};
use std::future::Future;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

/// The engine as one executor uses it. Not `Send`: its files belong to the executor's ring.
pub struct Engine {
    pub(crate) context: Rc<ExecutorContext>,
    pub(crate) opener: Opener,
    /// The task queue of background reads. Requests have priority over it.
    background: TaskQueueHandle,
}

impl Engine {
    /// Opens the store's volumes on the executor that runs this.
    ///
    /// # Errors
    /// [`OpenError::Io`] when a volume cannot be opened for direct I/O.
    pub async fn open(store: Arc<Store>) -> Result<Rc<Self>, OpenError> {
        let context = ExecutorContext::open(store).await?;
        let shares = Shares::Static(BACKGROUND_SHARES);
        let background = glommio::executor().create_task_queue(shares, Latency::NotImportant, "background");
        Ok(Rc::new(Self { opener: Opener::new(Rc::clone(&context)), context, background }))
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &Arc<Store> {
        &self.context.store
    }

    /// Waits for memory for a small body of `bytes` bytes. It returns when the permit is dropped. A body that is larger than
    /// the whole budget waits until it has it alone.
    ///
    /// While others wait, bodies that have held memory for long are recalled. Their requests must end then.
    pub async fn small_body_memory(&self, bytes: usize, recall: &Recall) -> MemoryPermit {
        let budget = &self.context.small_bodies;
        let whole = usize::try_from(budget.bytes()).unwrap_or(usize::MAX);
        budget.acquire(bytes.min(whole), recall).await
    }

    /// Begins to write a payload of exactly `size` bytes for a key.
    ///
    /// # Errors
    /// [`EngineError::PayloadTooLarge`], [`EngineError::KeyTooLong`], and [`EngineError::StorageFull`] when the payload
    /// does not fit, or when the disk is below its reserve and the metadata file has no free space left.
    #[expect(clippy::unused_async, reason = "the signature leaves room for waiting on admission")]
    pub async fn write_payload(
        self: &Rc<Self>,
        bucket: &Arc<Bucket>,
        key: &ObjectKey,
        size: u64,
    ) -> Result<PayloadWriter, EngineError> {
        self.context.begin_request();
        let tag = self.new_tag()?;
        self.begin_payload(bucket, key, size, tag)
    }

    /// As [`Self::write_payload`], for a payload whose MD5 is compared: it is computed whatever entity tags the store makes.
    ///
    /// # Errors
    /// Those of [`Self::write_payload`].
    #[expect(clippy::unused_async, reason = "the signature leaves room for waiting on admission")]
    pub async fn write_hashed_payload(
        self: &Rc<Self>,
        bucket: &Arc<Bucket>,
        key: &ObjectKey,
        size: u64,
    ) -> Result<PayloadWriter, EngineError> {
        self.context.begin_request();
        self.begin_payload(bucket, key, size, TagSource::Md5(self.store().payloads.etags))
    }

    /// Returns the source of a new payload's entity tag, if nobody needs its MD5.
    pub(crate) fn new_tag(&self) -> Result<TagSource, EngineError> {
        match self.store().payloads.etags {
            EtagKind::Md5 => Ok(TagSource::Md5(EtagKind::Md5)),
            EtagKind::Opaque => {
                let mut bytes = [0; 16];
                let filled = getrandom::fill(&mut bytes);
                filled.map_err(|error| EngineError::Io(format!("no random numbers: {error}")))?;
                Ok(TagSource::Known(Etag::opaque(bytes)))
            }
        }
    }

    /// Begins to write a payload. If its entity tag is already known, the bytes are not hashed.
    pub(crate) fn begin_payload(
        self: &Rc<Self>,
        bucket: &Arc<Bucket>,
        key: &ObjectKey,
        size: u64,
        tag: TagSource,
    ) -> Result<PayloadWriter, EngineError> {
        if size > PAYLOAD_BYTES_MAX {
            return Err(EngineError::PayloadTooLarge);
        }
        if keys::versions_of(bucket.id, key.as_bytes()).is_none() {
            return Err(EngineError::KeyTooLong);
        }
        let slice = self.store().slice_of(bucket, key)?;
        if let Some(reason) = slice.commits.stopped.get() {
            return Err(EngineError::Io(reason));
        }
        // Below the reserve, free space within volumes and metadata can still be used, but no file grows.
        if self.store().disk.is_low() && slice.environment.headroom() < METADATA_HEADROOM_MIN {
            return self.context.counters.count_refusal(Err(EngineError::StorageFull));
        }
        self.check_space(slice, size)?;
        PayloadWriter::new(&self.context, slice, bucket, key, size, tag)
    }

    /// Makes a staged payload the current version of its key. Payload and metadata are durable when it returns. Dropping
    /// the future does not undo the put.
    ///
    /// # Errors
    /// [`EngineError::PreconditionFailed`], [`EngineError::NoSuchKey`] (an `If-Match` on nothing), bucket states,
    /// [`EngineError::StorageFull`] and failures of the device.
    pub async fn put_object(&self, put: PutObject) -> Result<PutOutcome, EngineError> {
        let (bucket, key) = (Arc::clone(&put.bucket), put.key.clone());
        self.commit(&bucket, &key, |reply| Command::Put(Box::new(put), reply)).await
    }

    /// Writes a version of another store, at the place of its date among the imported versions of its key. Durable when it
    /// returns. Nothing that a client has written here is replaced, or becomes older than it.
    ///
    /// # Errors
    /// As [`Engine::put_object`]; [`EngineError::NeedsUpgrade`]; [`EngineError::ImportConflict`] if another version has its
    /// name, or its date or entity tag is impossible; [`EngineError::InvalidBucketState`] if the bucket has no versions or
    /// locks; [`EngineError::NoSuchUpload`].
    pub async fn import_version(&self, import: ImportVersion) -> Result<ImportOutcome, EngineError> {
        self.store().require(Feature::ImportedVersions)?;
        let (bucket, key) = (Arc::clone(&import.bucket), import.key.clone());
        self.commit(&bucket, &key, |reply| Command::Import(Box::new(import), reply)).await
    }

    /// Removes the current object of a key, or one version. In a bucket that keeps versions, removing the current object
    /// creates a delete marker. Durable when it returns.
    ///
    /// # Errors
    /// As [`Engine::put_object`], and [`EngineError::ObjectLocked`]. A missing object or version is not an error.
    pub async fn delete_object(
        &self,
        bucket: &Arc<Bucket>,
        key: &ObjectKey,
        options: DeleteOptions,
    ) -> Result<DeleteOutcome, EngineError> {
        self.context.begin_request();
        let delete = DeleteObject { bucket: Arc::clone(bucket), key: key.clone(), options };
        self.commit(bucket, key, |reply| Command::Delete(Box::new(delete), reply)).await
    }

    /// Removes current objects or versions of one bucket, each as [`Engine::delete_object`] does, and returns the outcomes in
    /// the same order. Deletes of one key are made in that order. Each slice gets its deletes together, so that they take few
    /// commits. Durable when it returns. Dropping the future does not undo the deletes.
    pub async fn delete_objects(
        &self,
        bucket: &Arc<Bucket>,
        deletes: Vec<(ObjectKey, DeleteOptions)>,
    ) -> Vec<Result<DeleteOutcome, EngineError>> {
        self.context.begin_request();
        let slices = &self.store().slices;
        let mut commands: Vec<Vec<Command>> = slices.iter().map(|_| Vec::new()).collect();
        let mut answers = Vec::with_capacity(deletes.len());
        for (key, options) in deletes {
            let slice = self.store().slice_of(bucket, &key);
            answers.push(slice.map(|slice| {
                let (reply, answer) = oneshot::channel();
                let delete = DeleteObject { bucket: Arc::clone(bucket), key, options };
                commands[usize::from(slice.number)].push(Command::Delete(Box::new(delete), reply));
                answer
            }));
        }
        for (slice, commands) in slices.iter().zip(commands).filter(|(_, commands)| !commands.is_empty()) {
            slice.commits.queue.push_all(commands);
        }
        let mut outcomes = Vec::with_capacity(answers.len());
        for answer in answers {
            let outcome = match answer {
                Ok(answer) => answer.await.unwrap_or(Err(EngineError::ShuttingDown)),
                Err(error) => Err(error),
            };
            outcomes.push(self.context.counters.count_refusal(outcome));
        }
        outcomes
    }

    /// Sets or removes the retention of a version, by default the current one. Durable when it returns.
    ///
    /// # Errors
    /// [`EngineError::ObjectLocked`] when the present retention forbids it, [`EngineError::InvalidBucketState`] without
    /// object lock, and as [`Engine::head_object`].
    pub async fn set_retention(
        &self,
        bucket: &Arc<Bucket>,
        key: &ObjectKey,
        version: Option<VersionName>,
        retention: Option<Retention>,
        bypass_governance: bool,
    ) -> Result<(), EngineError> {
        let change = VersionChange::Retention { retention, bypass_governance };
        self.change_version(bucket, key, version, change).await.map(|_| ())
    }

    /// Sets or removes the legal hold of a version, by default the current one. Durable when it returns.
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
        self.change_version(bucket, key, version, VersionChange::LegalHold(legal_hold)).await.map(|_| ())
    }

    /// Replaces the tags of a version, by default the current one, and returns its name. Durable when it returns.
    ///
    /// # Errors
    /// As [`Engine::head_object`].
    pub async fn set_object_tags(
        &self,
        bucket: &Arc<Bucket>,
        key: &ObjectKey,
        version: Option<VersionName>,
        tags: Tags,
    ) -> Result<VersionName, EngineError> {
        self.change_version(bucket, key, version, VersionChange::Tags(tags)).await
    }

    /// Changes metadata of a version that an import has brought. Durable when it returns.
    ///
    /// # Errors
    /// [`EngineError::ImportConflict`] if a client has written the version, and as the other changes of metadata.
    pub async fn change_imported(
        &self,
        bucket: &Arc<Bucket>,
        key: &ObjectKey,
        version: VersionName,
        change: VersionChange,
    ) -> Result<(), EngineError> {
        self.change(bucket, key, (Some(version), true), change).await.map(|_| ())
    }

    async fn change_version(
        &self,
        bucket: &Arc<Bucket>,
        key: &ObjectKey,
        version: Option<VersionName>,
        change: VersionChange,
    ) -> Result<VersionName, EngineError> {
        self.change(bucket, key, (version, false), change).await
    }

    async fn change(
        &self,
        bucket: &Arc<Bucket>,
        key: &ObjectKey,
        (version, only_imported): (Option<VersionName>, bool),
        change: VersionChange,
    ) -> Result<VersionName, EngineError> {
        let change =
            ChangeVersion { bucket: Arc::clone(bucket), key: key.clone(), version, only_imported, change };
        self.commit(bucket, key, |reply| Command::ChangeVersion(Box::new(change), reply)).await
    }

    /// Sends a command to the committer of its key and waits for the outcome.
    pub(crate) async fn commit<T>(
        &self,
        bucket: &Bucket,
        key: &ObjectKey,
        command: impl FnOnce(Reply<T>) -> Command,
    ) -> Result<T, EngineError> {
        let (reply, answer) = oneshot::channel();
        self.context
            .counters
            .count_refusal(self.store().slice_of(bucket, key)?.commits.queue.push(command(reply)))?;
        self.context.counters.count_refusal(answer.await.map_err(|_| EngineError::ShuttingDown)?)
    }

    /// Returns the metadata of a version, by default the current one.
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
        let slice = self.store().slice_of(bucket, key)?;
        let object = || format!("{}/{key}", bucket.name);
        let find = || {
            let txn = slice.environment.read()?;
            Ok(find_version(&txn, &slice.tables, bucket, key, version)?.record.info)
        };
        self.context.report_damage(find(), object)
    }

    /// Returns the metadata of the version that a list has named. This is cheaper than to look up the version by its name.
    ///
    /// # Errors
    /// [`EngineError::NoSuchVersion`] if it was removed since, or [`EngineError::Corrupt`] when its record fails its check.
    pub fn head_listed(
        &self,
        bucket: &Arc<Bucket>,
        key: &ObjectKey,
        version: VersionId,
    ) -> Result<ObjectInfo, EngineError> {
        let slice = self.store().slice_of(bucket, key)?;
        let versions = keys::versions_of(bucket.id, key.as_bytes()).ok_or(EngineError::NoSuchVersion)?;
        let find = || {
            let txn = slice.environment.read()?;
            let found = txn.get(slice.tables.objects, &keys::with_sequence(&versions, version.0))?;
            let stored = found.ok_or(EngineError::NoSuchVersion)?;
            Ok(ObjectRecord::decode(stored.version, stored.body)?.info)
        };
        self.context.report_damage(find(), || format!("{}/{key}", bucket.name))
    }

    /// Opens a version, by default the current one, for reading part of it, and pins its payload.
    ///
    /// `decide` gets the version's metadata and returns the range of bytes to read, with a value for the caller. It may
    /// be called again, with another version, when a change removes the first one at that moment.
    ///
    /// # Errors
    /// As [`Engine::head_object`], and [`EngineError::Overloaded`] when removals kept interfering.
    pub fn open_object<T>(
        &self,
        bucket: &Arc<Bucket>,
        key: &ObjectKey,
        version: Option<VersionName>,
        mut decide: impl FnMut(&ObjectInfo) -> (Range<u64>, T),
    ) -> Result<(OpenObject, T), EngineError> {
        self.context.begin_request();
        let slice = self.store().slice_of(bucket, key)?;
        let object = || format!("{}/{key}", bucket.name);
        let owner = KeyOwner { bucket: bucket.id, object: key.as_bytes() };
        let mut open_once = || {
            let snapshot = ReadSnapshot::begin(slice)?;
            let found = find_version(&snapshot.txn, &slice.tables, bucket, key, version)?;
            let (range, decision) = decide(&found.record.info);
            let (versions, mode) = (&*found.versions, ReadMode::Serve);
            let target = OpenTarget { snapshot: &snapshot, versions, owner, object: &object, mode };
            let opened = self.opener.open(&target, found.record, found.tail, range);
            let opened = opened.map_err(|error| name_object(error, bucket, key))?;
            Ok(opened.map(|open| (open, decision)))
        };
        self.context.report_damage(repeat_until_pinned(&mut open_once), object)
    }

    /// Opens a version, by default the current one, for reading all of it.
    ///
    /// # Errors
    /// As [`Engine::open_object`].
    pub fn open_whole(
        &self,
        bucket: &Arc<Bucket>,
        key: &ObjectKey,
        version: Option<VersionName>,
    ) -> Result<OpenObject, EngineError> {
        self.open_object(bucket, key, version, |info| (0..info.size, ())).map(|(open, ())| open)
    }

    /// Runs a future with lower priority than all requests of this executor. Dropping the returned future cancels it.
    pub(crate) fn in_background<T: 'static>(
        &self,
        work: impl Future<Output = Result<T, EngineError>> + 'static,
    ) -> impl Future<Output = Result<T, EngineError>> {
        let spawned = glommio::spawn_local_into(work, self.background);
        async move {
            match spawned {
                Ok(task) => task.await,
                Err(error) => Err(EngineError::Io(format!("background work could not be started: {error}"))),
            }
        }
    }

    /// Returns one page of a bucket's current objects.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] when a record fails its check.
    pub fn list_objects(
        &self,
        bucket: &Arc<Bucket>,
        list: &ListObjects<'_>,
    ) -> Result<ListPage, EngineError> {
        self.context.report_damage(list::list_objects(&self.store().slices, bucket.id, list), || {
            bucket.name.to_string()
        })
    }

    /// Returns one page of the objects that a bucket held at a moment: of each key the newest version that is not later.
    /// Versions that were removed since are missing.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] when a record fails its check.
    pub fn list_objects_at(
        &self,
        bucket: &Arc<Bucket>,
        list: &ListObjects<'_>,
        at: Timestamp,
    ) -> Result<ListPage, EngineError> {
        let page = list::past::list_objects_at(&self.store().slices, bucket.id, list, at);
        self.context.report_damage(page, || bucket.name.to_string())
    }

    /// Returns one page of the objects of a bucket that delete markers hide.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] when a record fails its check.
    pub fn list_deleted(
        &self,
        bucket: &Arc<Bucket>,
        list: &ListObjects<'_>,
    ) -> Result<DeletedPage, EngineError> {
        let page = list::past::list_deleted(&self.store().slices, bucket.id, list);
        self.context.report_damage(page, || bucket.name.to_string())
    }

    /// Returns one page of the keys of a bucket whose current object is another version than the one at a moment. The
    /// delimiter is ignored.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] when a record fails its check.
    pub fn list_changed(
        &self,
        bucket: &Arc<Bucket>,
        list: &ListObjects<'_>,
        at: Timestamp,
    ) -> Result<ChangedPage, EngineError> {
        let page = list::past::list_changed(&self.store().slices, bucket.id, list, at);
        self.context.report_damage(page, || bucket.name.to_string())
    }

    /// Returns the version that a key had at a moment, as [`Self::list_objects_at`] lists it.
    ///
    /// # Errors
    /// [`EngineError::NoSuchKey`] if it had none, or a delete marker; [`EngineError::Corrupt`] when a record fails its check.
    pub fn version_at(
        &self,
        bucket: &Arc<Bucket>,
        key: &ObjectKey,
        at: Timestamp,
    ) -> Result<VersionName, EngineError> {
        let slice = self.store().slice_of(bucket, key)?;
        let versions = keys::versions_of(bucket.id, key.as_bytes()).ok_or(EngineError::NoSuchKey)?;
        let find = || {
            let found = list::past::version_at(&slice.environment.read()?, &slice.tables, &versions, at)?;
            found.filter(|(_, is_marker)| !is_marker).map(|(name, _)| name).ok_or(EngineError::NoSuchKey)
        };
        self.context.report_damage(find(), || format!("{}/{key}", bucket.name))
    }

    /// Returns one page of a bucket's versions.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] when a record fails its check.
    pub fn list_versions(
        &self,
        bucket: &Arc<Bucket>,
        list: &ListVersions<'_>,
    ) -> Result<VersionsPage, EngineError> {
        self.context.report_damage(list::list_versions(&self.store().slices, bucket.id, list), || {
            bucket.name.to_string()
        })
    }
}
