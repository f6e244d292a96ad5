//! The bucket catalog: the environment `control` with the records of all buckets, and the thread that changes it.
//!
//! ```text
//! table     key               value (little-endian)
//! buckets   name              version 2: the record of `bucket_record.rs`
//! lifecycle, lifecycle_counts   `lifecycle_record.rs`
//! control   identity          version 1: 16 bytes store id
//! control   next_bucket_id    version 1: u64
//! events    u64 tick, big-endian  version 1: the event of a bucket (`event_record.rs`)
//! control   scrub             version 1: progress of the scrub (`scrub_record.rs`)
//! control   scrub_last        version 1: result of the last whole scrub (`scrub_record.rs`)
//! ```
//! All buckets are also in memory, in order of their names. Requests look up buckets there.
//!
//! Deleting a bucket takes three steps, and a crash between them leaves the bucket unchanged:
//! 1. The bucket is marked as being deleted, so that committers refuse changes of it.
//! 2. A command in the queue of each slice asks whether the slice still holds a record of the bucket.
//! 3. If none does, the record of the bucket is removed durably.

use crate::error::{EngineError, OpenContext, OpenError};
use crate::fault_reports::{FaultReports, StoreFault};
use crate::format::bucket_record::{self, BUCKET_RECORD_VERSION};
use crate::format::codec::{self, SMALL_RECORD_VERSION};
use crate::format::event_record::{self, EVENT_RECORD_VERSION, EventFields};
use crate::format::scrub_record::ScrubRecord;
use crate::format::superblock::StoreId;
use crate::limits::CONTROL_MAP_BYTES;
use crate::slice::Slice;
use crate::slice::command::{AbortFirstUpload, BucketContents, Command, Reply};
use crate::slice::event_source::EventSource;
use crate::slice::tables::last_tick;
use crate::types::bucket::{Bucket, BucketChange, BucketSettings, BucketState, Usage, Versioning};
use crate::types::event::{EventType, Origin, Tick};
use crate::types::lifecycle_status::SavedLifecycle;
use crate::types::public_access::PublicAccess;
use cairn_lmdb::{Environment, EnvironmentOptions, Table};
use cairn_model::{BucketName, Clock, Timestamp};
use cairn_sync::RwLock;
use futures_channel::oneshot;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, OnceLock};

pub(crate) const IDENTITY_KEY: &[u8] = b"identity";
pub(crate) const NEXT_ID_KEY: &[u8] = b"next_bucket_id";
const SCRUB_KEY: &[u8] = b"scrub";
const SCRUB_LAST_KEY: &[u8] = b"scrub_last";
/// Uploads of a slice that are aborted in one commit when their bucket is deleted.
const ABORTED_TOGETHER: usize = 64;

/// All buckets, in order of their names.
pub(crate) type Buckets = RwLock<BTreeMap<BucketName, Arc<Bucket>>>;

/// A change of the catalog.
pub(crate) enum CatalogCommand {
    Create(BucketName, BucketSettings, Origin, Reply<Arc<Bucket>>),
    /// Changes a setting of the bucket with this id and name.
    Change(u64, BucketName, BucketChange, Reply<()>),
    Delete(BucketName, Origin, Reply<()>),
    /// Removes the oldest events, those before a tick, at most so many. Replies with their number.
    RemoveEvents {
        before: Tick,
        max: usize,
        reply: Reply<usize>,
    },
    /// Saves the progress of the scrub.
    SaveScrub(ScrubRecord, Reply<()>),
    /// Saves what lifecycle rules have done, and the time that the worker trusts.
    SaveLifecycle(SavedLifecycle, Reply<()>),
    /// Lets the catalog rest while snapshots are pinned. Answers, and goes on when the sender of `resumed` is dropped.
    Pause {
        paused: Sender<()>,
        resumed: Receiver<()>,
    },
    Stop,
}

/// The records of all buckets. Only its own thread changes them.
pub(crate) struct BucketCatalog {
    pub(crate) environment: Environment,
    pub(crate) buckets_table: Table,
    pub(crate) control_table: Table,
    pub(crate) events_table: Table,
    pub(crate) events: EventSource,
    pub(crate) lifecycle_table: Table,
    pub(crate) lifecycle_counts_table: Table,
    pub(crate) store: StoreId,
    /// The reason why the catalog accepts no more changes. Set once, when a commit failed so that its outcome is unknown.
    stopped: OnceLock<String>,
    pub(crate) fault_reports: Arc<FaultReports>,
}

/// Waits until the sender of `resumed` is dropped, unless nobody waits for the answer.
fn pause(paused: &Sender<()>, resumed: &Receiver<()>) {
    if paused.send(()).is_ok() {
        let _ = resumed.recv();
    }
}

impl BucketCatalog {
    /// Creates the environment of a new store.
    pub(crate) fn create(data_dir: &Path, store: StoreId) -> Result<(), OpenError> {
        let path = data_dir.join("control");
        std::fs::create_dir_all(&path).doing("creating", &path)?;
        let catalog = Self::open_environment(data_dir, store, EventSource::new(&Arc::default(), false))?;
        let mut txn = catalog.environment.write().doing("writing", &path)?;
        let table = catalog.control_table;
        txn.put(table, IDENTITY_KEY, SMALL_RECORD_VERSION, &store.0, &[]).doing("writing", &path)?;
        txn.put(table, NEXT_ID_KEY, SMALL_RECORD_VERSION, &1u64.to_le_bytes(), &[])
            .doing("writing", &path)?;
        txn.commit().doing("writing", &path)
    }

    fn open_environment(data_dir: &Path, store: StoreId, events: EventSource) -> Result<Self, OpenError> {
        let path = data_dir.join("control");
        if !path.is_dir() {
            return Err(OpenError::Damaged { path, what: "the control environment is missing".to_owned() });
        }
        let options = EnvironmentOptions { map_bytes: CONTROL_MAP_BYTES, tables_max: 32 };
        let environment = Environment::open(&path, options).doing("opening", &path)?;
        let buckets_table = environment.table("buckets").doing("opening", &path)?;
        let control_table = environment.table("control").doing("opening", &path)?;
        let events_table = environment.table("events").doing("opening", &path)?;
        let lifecycle_table = environment.table("lifecycle").doing("opening", &path)?;
        let lifecycle_counts_table = environment.table("lifecycle_counts").doing("opening", &path)?;
        Ok(Self {
            environment,
            buckets_table,
            control_table,
            events_table,
            events,
            lifecycle_table,
            lifecycle_counts_table,
            store,
            stopped: OnceLock::new(),
            fault_reports: Arc::default(),
        })
    }

    /// Opens the environment of a store and reads its buckets.
    pub(crate) fn open(
        data_dir: &Path,
        store: StoreId,
        events: EventSource,
    ) -> Result<(Self, BTreeMap<BucketName, Arc<Bucket>>), OpenError> {
        let path = data_dir.join("control");
        Environment::check_exists(&path).doing("opening", &path)?;
        let catalog = Self::open_environment(data_dir, store, events)?;
        let last = last_tick(&catalog.environment, catalog.events_table).doing("reading", &path)?;
        catalog.events.signal.continue_after(last);
        let damaged = |what: &str| OpenError::Damaged { path: path.clone(), what: what.to_owned() };
        let mut buckets = BTreeMap::new();
        {
            let txn = catalog.environment.read().doing("reading", &path)?;
            let identity = txn.get(catalog.control_table, IDENTITY_KEY).doing("reading", &path)?;
            if identity.is_none_or(|record| record.body != catalog.store.0) {
                return Err(damaged("the control environment is empty, or belongs to another store"));
            }
            for item in txn.scan(catalog.buckets_table, &[]).doing("reading", &path)? {
                let (key, record) = item.doing("reading", &path)?;
                let bucket = bucket_record::decode(key, &record)
                    .ok_or_else(|| damaged("a bucket record of a form that this program does not know"))?;
                catalog.load_rules(&txn, &bucket).map_err(|error| damaged(&error.to_string()))?;
                buckets.insert(bucket.name.clone(), Arc::new(bucket));
            }
        }
        Ok((catalog, buckets))
    }

    /// Runs until it is told to stop, or until all senders are gone.
    pub(crate) fn run(
        &self,
        commands: &Receiver<CatalogCommand>,
        buckets: &Buckets,
        slices: &[Arc<Slice>],
        clock: &dyn Clock,
    ) {
        while let Ok(command) = commands.recv() {
            if let Some(reason) = self.stopped.get() {
                match command {
                    CatalogCommand::Create(_, _, _, reply) => {
                        drop(reply.send(Err(EngineError::Io(reason.clone()))))
                    }
                    CatalogCommand::Change(_, _, _, reply)
                    | CatalogCommand::Delete(_, _, reply)
                    | CatalogCommand::SaveScrub(_, reply)
                    | CatalogCommand::SaveLifecycle(_, reply) => {
                        drop(reply.send(Err(EngineError::Io(reason.clone()))))
                    }
                    CatalogCommand::RemoveEvents { reply, .. } => {
                        drop(reply.send(Err(EngineError::Io(reason.clone()))))
                    }
                    CatalogCommand::Pause { paused, resumed } => pause(&paused, &resumed),
                    CatalogCommand::Stop => return,
                }
                continue;
            }
            // The receiver of the outcome may be gone.
            match command {
                CatalogCommand::Create(name, settings, origin, reply) => {
                    drop(reply.send(self.create_bucket(name, settings, &origin, buckets, clock)))
                }
                CatalogCommand::Change(id, name, change, reply) => {
                    drop(reply.send(self.change_bucket((id, &name), change, buckets)))
                }
                CatalogCommand::Delete(name, origin, reply) => {
                    drop(reply.send(self.delete_bucket(&name, &origin, buckets, slices, clock)))
                }
                CatalogCommand::RemoveEvents { before, max, reply } => {
                    drop(reply.send(self.remove_events(before, max)))
                }
                CatalogCommand::SaveScrub(record, reply) => drop(reply.send(self.save_scrub(&record))),
                CatalogCommand::SaveLifecycle(saved, reply) => {
                    drop(reply.send(self.save_lifecycle(&saved, buckets)))
                }
                CatalogCommand::Pause { paused, resumed } => pause(&paused, &resumed),
                CatalogCommand::Stop => return,
            }
            if self.stopped.get().is_none() {
                // A transaction that was dropped before its commit left its floor.
                self.events.close();
            }
        }
    }

    /// Checks that a record can be read.
    pub(crate) fn check(&self) -> Result<(), EngineError> {
        let txn = self.environment.read()?;
        let found = txn.get(self.control_table, IDENTITY_KEY)?;
        found.map(|_| ()).ok_or_else(|| EngineError::Corrupt("the store's identity is missing".to_owned()))
    }

    /// Reads the progress of the scrub. If the record is invalid, the scrub starts again, but the store opens.
    pub(crate) fn scrub_record(&self) -> ScrubRecord {
        let read = || -> Result<Option<ScrubRecord>, cairn_lmdb::Error> {
            let txn = self.environment.read()?;
            let last = txn.get(self.control_table, SCRUB_LAST_KEY)?.map(|record| record.body);
            let record = txn.get(self.control_table, SCRUB_KEY)?;
            Ok(record.and_then(|record| ScrubRecord::decode(record.body, last)))
        };
        read().unwrap_or_else(|error| {
            tracing::warn!(target: "service::engine", %error, "the progress of the scrub cannot be read: it starts again");
            None
        }).unwrap_or_default()
    }

    fn save_scrub(&self, record: &ScrubRecord) -> Result<(), EngineError> {
        let mut txn = self.environment.write()?;
        txn.put(self.control_table, SCRUB_KEY, SMALL_RECORD_VERSION, &record.encode(), &[])?;
        txn.put(self.control_table, SCRUB_LAST_KEY, SMALL_RECORD_VERSION, &record.encode_last(), &[])?;
        self.commit(txn)
    }

    fn create_bucket(
        &self,
        name: BucketName,
        mut settings: BucketSettings,
        origin: &Origin,
        buckets: &Buckets,
        clock: &dyn Clock,
    ) -> Result<Arc<Bucket>, EngineError> {
        if settings.object_lock {
            settings.versioning = Versioning::Enabled;
        }
        if buckets.read().contains_key(&name) {
            return Err(EngineError::BucketAlreadyExists);
        }
        let mut txn = self.environment.write()?;
        let next =
            txn.get(self.control_table, NEXT_ID_KEY)?.and_then(|record| codec::decode_u64(record.body));
        let id = next.ok_or_else(|| EngineError::Corrupt("no next bucket id".to_owned()))?;
        txn.put(self.control_table, NEXT_ID_KEY, SMALL_RECORD_VERSION, &(id + 1).to_le_bytes(), &[])?;
        let now = clock.now();
        let bucket = Arc::new(Bucket::new(id, name.clone(), now, settings));
        self.write_event(&mut txn, EventType::BucketCreated, &bucket, origin, now)?;
        if let Some(rules) = &bucket.settings().lifecycle {
            self.put_rules(&mut txn, &bucket, Some(rules))?;
        }
        self.put_bucket(txn, &bucket, &bucket.settings())?;
        buckets.write().insert(name, Arc::clone(&bucket));
        Ok(bucket)
    }

    /// Writes the record of a bucket with these settings, and commits.
    fn put_bucket(
        &self,
        mut txn: cairn_lmdb::WriteTxn<'_>,
        bucket: &Bucket,
        settings: &BucketSettings,
    ) -> Result<(), EngineError> {
        if settings.lifecycle != bucket.settings().lifecycle {
            self.put_rules(&mut txn, bucket, settings.lifecycle.as_deref())?;
        }
        let body = bucket_record::encode(bucket, settings);
        txn.put(self.buckets_table, bucket.name.as_str().as_bytes(), BUCKET_RECORD_VERSION, &body, &[])?;
        self.commit(txn)
    }

    fn change_bucket(
        &self,
        (id, name): (u64, &BucketName),
        change: BucketChange,
        buckets: &Buckets,
    ) -> Result<(), EngineError> {
        let found = buckets.read().get(name).cloned();
        // A bucket of the same name may have been created in the meantime.
        let bucket = found.filter(|bucket| bucket.id == id).ok_or(EngineError::NoSuchBucket)?;
        let before = bucket.settings();
        let mut settings = BucketSettings::clone(&before);
        match change {
            BucketChange::Versioning(versioning) => {
                let goes_back =
                    versioning == Versioning::Unversioned && before.versioning != Versioning::Unversioned;
                if goes_back || (before.object_lock && versioning != Versioning::Enabled) {
                    return Err(EngineError::InvalidBucketState);
                }
                settings.versioning = versioning;
            }
            BucketChange::DefaultRetention(_) if !before.object_lock => {
                return Err(EngineError::InvalidBucketState);
            }
            BucketChange::DefaultRetention(retention) => settings.default_retention = retention,
            BucketChange::Cors(rules) => settings.cors = rules,
            BucketChange::Tags(tags) => settings.tags = tags,
            BucketChange::PublicAccess { rules, block } => {
                let mut access = before.public_access.as_deref().cloned().unwrap_or_default();
                if let Some(rules) = rules {
                    access.rules = rules.rules(&access.rules);
                    access.policy = rules.policy;
                }
                access.block = block.unwrap_or(access.block);
                settings.public_access = (access != PublicAccess::default()).then(|| Arc::new(access));
            }
            BucketChange::Encryption(encryption) => settings.encryption = encryption,
            BucketChange::Lifecycle(change) => {
                settings.lifecycle = change.apply(before.lifecycle.as_deref())?;
            }
            BucketChange::Quota(quota) => {
                // Compared with the usage and enforced before it is durable, so that the usage cannot exceed it meanwhile.
                bucket.set_quota(quota)?;
                settings.quota = quota;
            }
        }
        let written = self
            .environment
            .write()
            .map_err(EngineError::from)
            .and_then(|txn| self.put_bucket(txn, &bucket, &settings));
        bucket.set_settings(if written.is_ok() { settings } else { BucketSettings::clone(&before) });
        written
    }

    fn delete_bucket(
        &self,
        name: &BucketName,
        origin: &Origin,
        buckets: &Buckets,
        slices: &[Arc<Slice>],
        clock: &dyn Clock,
    ) -> Result<(), EngineError> {
        let found = buckets.read().get(name).cloned();
        let bucket = found.ok_or(EngineError::NoSuchBucket)?;
        // Writes into a marked bucket are refused. So a bucket that plainly has content is not marked. The usage alone does not
        // decide: if it were wrong, the bucket could never be deleted.
        let Usage { versions, delete_markers, .. } = bucket.usage();
        if versions > 0 || delete_markers > 0 {
            slices_with_uploads(&bucket, slices)?;
        }
        bucket.set_state(BucketState::Deleting);
        let removed = self.remove_if_empty(&bucket, origin, slices, clock);
        if self.stopped.get().is_some() {
            // The device may hold the removal. Nothing may be put into a bucket that may be missing after the next start.
            return removed;
        }
        if removed.is_ok() {
            bucket.set_state(BucketState::Deleted);
            buckets.write().remove(name);
        } else {
            bucket.set_state(BucketState::Active);
        }
        removed
    }

    /// Removes a bucket without versions and delete markers. Its unfinished uploads are aborted first.
    fn remove_if_empty(
        &self,
        bucket: &Arc<Bucket>,
        origin: &Origin,
        slices: &[Arc<Slice>],
        clock: &dyn Clock,
    ) -> Result<(), EngineError> {
        for slice in slices_with_uploads(bucket, slices)? {
            abort_uploads(slice, bucket, origin)?;
        }
        let mut txn = self.environment.write()?;
        txn.remove(self.buckets_table, bucket.name.as_str().as_bytes())?;
        self.put_rules(&mut txn, bucket, None)?;
        self.write_event(&mut txn, EventType::BucketDeleted, bucket, origin, clock.now())?;
        self.commit(txn)
    }

    /// Writes the event of a change of a bucket.
    fn write_event(
        &self,
        txn: &mut cairn_lmdb::WriteTxn<'_>,
        kind: EventType,
        bucket: &Bucket,
        origin: &Origin,
        now: Timestamp,
    ) -> Result<(), EngineError> {
        if !self.events.is_enabled {
            return Ok(());
        }
        let mut body = Vec::new();
        let (bucket, object) = (bucket.name.as_str(), None);
        let Origin { principal, request_id, .. } = origin;
        event_record::encode(
            &mut body,
            &EventFields { kind, bucket, object, principal, request_id, lifecycle_rule: "" },
        );
        let tick = self.events.tick(kind, now);
        Ok(txn.append(self.events_table, &tick.0.to_be_bytes(), EVENT_RECORD_VERSION, &body)?)
    }

    fn remove_events(&self, before: Tick, max: usize) -> Result<usize, EngineError> {
        let mut txn = self.environment.write()?;
        let removed = event_record::remove_before(&mut txn, self.events_table, before, max)?;
        self.commit(txn).map(|()| removed)
    }

    /// Commits a transaction. Its events are final afterwards, unless the outcome is unknown.
    pub(super) fn commit(&self, txn: cairn_lmdb::WriteTxn<'_>) -> Result<(), EngineError> {
        let committed = txn.commit().map_err(EngineError::from);
        self.events.close_after(&committed);
        if let Err(error @ EngineError::Io(_)) = &committed {
            let reason = format!("buckets cannot be changed after a failure: {error}; restart the service");
            if self.stopped.set(reason.clone()).is_ok() {
                self.fault_reports.report(&StoreFault::ChangesStopped { reason: &reason });
            }
        }
        committed
    }

    /// Returns the reason why the catalog accepts no more changes.
    pub(crate) fn stopped_reason(&self) -> Option<String> {
        self.stopped.get().cloned()
    }
}

/// Returns the slices that hold unfinished uploads of a bucket.
///
/// # Errors
/// [`EngineError::BucketNotEmpty`] if one holds a version or a delete marker.
fn slices_with_uploads<'s>(
    bucket: &Bucket,
    slices: &'s [Arc<Slice>],
) -> Result<Vec<&'s Arc<Slice>>, EngineError> {
    let mut answers = Vec::with_capacity(slices.len());
    for slice in slices {
        let (reply, answer) = oneshot::channel();
        slice.commits.queue.push(Command::ProbeContents(bucket.id, reply))?;
        answers.push((slice, answer));
    }
    let mut with_uploads = Vec::new();
    for (slice, answer) in answers {
        match futures_lite::future::block_on(answer).map_err(|_| EngineError::ShuttingDown)?? {
            BucketContents::Nothing => {}
            BucketContents::OnlyUploads => with_uploads.push(slice),
            BucketContents::Versions => return Err(EngineError::BucketNotEmpty),
        }
    }
    Ok(with_uploads)
}

/// Aborts all uploads of a bucket that is being deleted.
fn abort_uploads(slice: &Slice, bucket: &Arc<Bucket>, origin: &Origin) -> Result<(), EngineError> {
    loop {
        let mut answers = Vec::with_capacity(ABORTED_TOGETHER);
        for _ in 0..ABORTED_TOGETHER {
            let (reply, answer) = oneshot::channel();
            let abort = AbortFirstUpload { bucket: Arc::clone(bucket), origin: origin.clone() };
            slice.commits.queue.push(Command::AbortFirstUpload(Box::new(abort), reply))?;
            answers.push(answer);
        }
        let mut all_found = true;
        for answer in answers {
            all_found &= futures_lite::future::block_on(answer).map_err(|_| EngineError::ShuttingDown)??;
        }
        if !all_found {
            return Ok(());
        }
    }
}
