//! The control environment: buckets, and the thread that makes and removes them.
//!
//! ```text
//! table     key               value (little-endian)
//! buckets   name              version 2: the record of `bucket_record.rs`
//! control   identity          version 1: 16 bytes store id
//! control   next_bucket_id    version 1: u64
//! control   scrub             version 1: where the scrub stands (scrub.rs)
//! control   scrub_last        version 1: what the last whole scrub found (scrub.rs)
//! ```
//! All buckets are also in memory, in order of name: a request looks its bucket up there. Removing a bucket takes three
//! steps: it is marked, so that committers refuse changes of it; every slice is asked, in line with the changes before, if
//! it still holds a record of it; if none does, the bucket's record is removed durably. A crash in between leaves the
//! bucket as it was.

use crate::bucket::{Bucket, BucketChange, BucketSettings, BucketState, Versioning};
use crate::bucket_record::{self, BUCKET_RECORD_VERSION};
use crate::codec;
use crate::error::{EngineError, OpenContext, OpenError};
use crate::events::{Events, StoreEvent};
use crate::limits::CONTROL_MAP_BYTES;
use crate::queue::{Job, Reply};
use crate::scrub::ScrubRecord;
use crate::slice::{SMALL_RECORD_VERSION, Slice};
use crate::superblock::StoreId;
use cairn_lmdb::{Environment, EnvironmentOptions, Table};
use cairn_model::{BucketName, Clock};
use futures_channel::oneshot;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

pub(crate) const IDENTITY_KEY: &[u8] = b"identity";
pub(crate) const NEXT_ID_KEY: &[u8] = b"next_bucket_id";
const SCRUB_KEY: &[u8] = b"scrub";
const SCRUB_LAST_KEY: &[u8] = b"scrub_last";

/// All buckets, in order of name.
pub(crate) type Buckets = RwLock<BTreeMap<BucketName, Arc<Bucket>>>;

/// A change of the control environment that waits for its thread.
pub(crate) enum ControlJob {
    Create(BucketName, BucketSettings, Reply<Arc<Bucket>>),
    /// Changes a setting of the bucket with this id and name.
    Change(u64, BucketName, BucketChange, Reply<()>),
    Delete(BucketName, Reply<()>),
    /// Keeps where the scrub stands.
    SaveScrub(ScrubRecord, Reply<()>),
    Stop,
}

pub(crate) struct Control {
    pub(crate) environment: Environment,
    pub(crate) buckets_table: Table,
    pub(crate) control_table: Table,
    pub(crate) store: StoreId,
    /// Set once, when a change could not be made durable: whether the device holds it is unknown until the next start.
    stopped: Arc<OnceLock<String>>,
    pub(crate) events: Arc<Events>,
}

impl Control {
    /// Makes the environment of a new store.
    pub(crate) fn create(data_dir: &Path, store: StoreId) -> Result<(), OpenError> {
        let path = data_dir.join("control");
        std::fs::create_dir_all(&path).doing("creating", &path)?;
        let control = Self::open_environment(data_dir, store)?;
        let mut txn = control.environment.write().doing("writing", &path)?;
        let table = control.control_table;
        txn.put(table, IDENTITY_KEY, SMALL_RECORD_VERSION, &store.0, &[]).doing("writing", &path)?;
        txn.put(table, NEXT_ID_KEY, SMALL_RECORD_VERSION, &1u64.to_le_bytes(), &[])
            .doing("writing", &path)?;
        txn.commit().doing("writing", &path)
    }

    fn open_environment(data_dir: &Path, store: StoreId) -> Result<Self, OpenError> {
        let path = data_dir.join("control");
        if !path.is_dir() {
            return Err(OpenError::Damaged { path, what: "the control environment is missing".to_owned() });
        }
        let options = EnvironmentOptions { map_bytes: CONTROL_MAP_BYTES, tables_max: 32 };
        let environment = Environment::open(&path, options).doing("opening", &path)?;
        let buckets_table = environment.table("buckets").doing("opening", &path)?;
        let control_table = environment.table("control").doing("opening", &path)?;
        Ok(Self {
            environment,
            buckets_table,
            control_table,
            store,
            stopped: Arc::default(),
            events: Arc::default(),
        })
    }

    /// Opens the environment of a store and reads its buckets.
    pub(crate) fn open(
        data_dir: &Path,
        store: StoreId,
    ) -> Result<(Self, BTreeMap<BucketName, Arc<Bucket>>), OpenError> {
        let path = data_dir.join("control");
        Environment::require(&path).doing("opening", &path)?;
        let control = Self::open_environment(data_dir, store)?;
        let damaged = |what: &str| OpenError::Damaged { path: path.clone(), what: what.to_owned() };
        let mut buckets = BTreeMap::new();
        {
            let txn = control.environment.read().doing("reading", &path)?;
            let identity = txn.get(control.control_table, IDENTITY_KEY).doing("reading", &path)?;
            if identity.is_none_or(|record| record.body != control.store.0) {
                return Err(damaged("the control environment is empty, or belongs to another store"));
            }
            for item in txn.scan(control.buckets_table, &[]).doing("reading", &path)? {
                let (key, record) = item.doing("reading", &path)?;
                let bucket = bucket_record::decode(key, &record)
                    .ok_or_else(|| damaged("a bucket record of a form that this program does not know"))?;
                buckets.insert(bucket.name.clone(), Arc::new(bucket));
            }
        }
        Ok((control, buckets))
    }

    /// Runs until told to stop, or until nobody can send any more.
    pub(crate) fn run(
        &self,
        jobs: &Receiver<ControlJob>,
        buckets: &Buckets,
        slices: &[Arc<Slice>],
        clock: &dyn Clock,
    ) {
        while let Ok(job) = jobs.recv() {
            if let Some(reason) = self.stopped.get() {
                match job {
                    ControlJob::Create(_, _, reply) => drop(reply.send(Err(EngineError::Io(reason.clone())))),
                    ControlJob::Change(_, _, _, reply)
                    | ControlJob::Delete(_, reply)
                    | ControlJob::SaveScrub(_, reply) => {
                        drop(reply.send(Err(EngineError::Io(reason.clone()))))
                    }
                    ControlJob::Stop => return,
                }
                continue;
            }
            // The one who asked may have gone: then there is nobody to tell.
            match job {
                ControlJob::Create(name, settings, reply) => {
                    drop(reply.send(self.create_bucket(name, settings, buckets, clock)))
                }
                ControlJob::Change(id, name, change, reply) => {
                    drop(reply.send(self.change_bucket((id, &name), change, buckets)))
                }
                ControlJob::Delete(name, reply) => {
                    drop(reply.send(self.delete_bucket(&name, buckets, slices)))
                }
                ControlJob::SaveScrub(record, reply) => drop(reply.send(self.save_scrub(&record))),
                ControlJob::Stop => return,
            }
        }
    }

    /// Where the scrub stands. A record that cannot be read costs a pass, not the start.
    pub(crate) fn check(&self) -> Result<(), EngineError> {
        let txn = self.environment.read()?;
        let found = txn.get(self.control_table, IDENTITY_KEY)?;
        found.map(|_| ()).ok_or_else(|| EngineError::Corrupt("their store's identity is missing".to_owned()))
    }

    pub(crate) fn scrub_record(&self) -> ScrubRecord {
        let read = || -> Result<Option<ScrubRecord>, cairn_lmdb::Error> {
            let txn = self.environment.read()?;
            let last = txn.get(self.control_table, SCRUB_LAST_KEY)?.map(|record| record.body);
            let record = txn.get(self.control_table, SCRUB_KEY)?;
            Ok(record.and_then(|record| ScrubRecord::decode(record.body, last)))
        };
        read().unwrap_or_else(|error| {
            tracing::warn!(target: "service::engine", %error, "where the scrub stands cannot be read: it begins anew");
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
        buckets: &Buckets,
        clock: &dyn Clock,
    ) -> Result<Arc<Bucket>, EngineError> {
        if settings.object_lock {
            settings.versioning = Versioning::Enabled;
        }
        if buckets.read().unwrap_or_else(PoisonError::into_inner).contains_key(&name) {
            return Err(EngineError::BucketAlreadyExists);
        }
        let mut txn = self.environment.write()?;
        let next = txn.get(self.control_table, NEXT_ID_KEY)?.and_then(|record| codec::u64_of(record.body));
        let id = next.ok_or_else(|| EngineError::Corrupt("no next bucket id".to_owned()))?;
        txn.put(self.control_table, NEXT_ID_KEY, SMALL_RECORD_VERSION, &(id + 1).to_le_bytes(), &[])?;
        let bucket = Arc::new(Bucket::new(id, name.clone(), clock.now(), settings));
        self.put_bucket(txn, &bucket, &bucket.settings())?;
        buckets.write().unwrap_or_else(PoisonError::into_inner).insert(name, Arc::clone(&bucket));
        Ok(bucket)
    }

    /// Makes the record of a bucket with these settings durable.
    fn put_bucket(
        &self,
        mut txn: cairn_lmdb::WriteTxn<'_>,
        bucket: &Bucket,
        settings: &BucketSettings,
    ) -> Result<(), EngineError> {
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
        let found = buckets.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        // One that was made in the meantime is another bucket.
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
            BucketChange::Quota(quota) => {
                // Held against what is there, and in force, before it is durable: what was decided stays true.
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
        buckets: &Buckets,
        slices: &[Arc<Slice>],
    ) -> Result<(), EngineError> {
        let found = buckets.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        let bucket = found.ok_or(EngineError::NoSuchBucket)?;
        bucket.set_state(BucketState::Deleting);
        let removed = self.remove_if_empty(&bucket, slices);
        if self.stopped.get().is_some() {
            // The device may hold the removal: nothing may be put where the next start perhaps finds no bucket.
            return removed;
        }
        if removed.is_ok() {
            bucket.set_state(BucketState::Deleted);
            buckets.write().unwrap_or_else(PoisonError::into_inner).remove(name);
        } else {
            bucket.set_state(BucketState::Active);
        }
        removed
    }

    fn remove_if_empty(&self, bucket: &Bucket, slices: &[Arc<Slice>]) -> Result<(), EngineError> {
        let mut answers = Vec::with_capacity(slices.len());
        for slice in slices {
            let (reply, answer) = oneshot::channel();
            slice.queue.push(Job::ProbeEmpty(bucket.id, reply))?;
            answers.push(answer);
        }
        for answer in answers {
            let empty = futures_lite::future::block_on(answer).map_err(|_| EngineError::ShuttingDown)??;
            if !empty {
                return Err(EngineError::BucketNotEmpty);
            }
        }
        let mut txn = self.environment.write()?;
        txn.remove(self.buckets_table, bucket.name.as_str().as_bytes())?;
        self.commit(txn)
    }

    fn commit(&self, txn: cairn_lmdb::WriteTxn<'_>) -> Result<(), EngineError> {
        let committed = txn.commit().map_err(EngineError::from);
        if let Err(error @ EngineError::Io(_)) = &committed {
            let reason = format!("buckets cannot be changed after a failure: {error}");
            if self.stopped.set(reason.clone()).is_ok() {
                self.events.report(&StoreEvent::ChangesStopped { reason: &reason });
            }
        }
        committed
    }

    /// Why buckets cannot be changed any more, once that is so.
    pub(crate) fn stopped(&self) -> Arc<OnceLock<String>> {
        Arc::clone(&self.stopped)
    }
}
