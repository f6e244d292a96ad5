//! The control environment: buckets, and the thread that makes and removes them.
//!
//! ```text
//! table     key               value, version 1 (little-endian)
//! buckets   name              u64 id, u64 creation in ms since the Unix epoch, u8 flags (zero)
//! control   identity          16 bytes store id
//! control   next_bucket_id    u64
//! control   scrub             where the scrub stands (scrub.rs)
//! ```
//! All buckets are also in memory, in order of name: a request looks its bucket up there. Removing a bucket takes three
//! steps: it is marked, so that committers refuse changes of it; every slice is asked, in line with the changes before, if
//! it still holds a record of it; if none does, the bucket's record is removed durably. A crash in between leaves the
//! bucket as it was.

use crate::bucket::{Bucket, BucketState};
use crate::error::{EngineError, OpenContext, OpenError};
use crate::events::{Events, StoreEvent};
use crate::limits::CONTROL_MAP_BYTES;
use crate::queue::{Job, Reply};
use crate::scrub::ScrubRecord;
use crate::slice::{SMALL_RECORD_VERSION, Slice};
use crate::superblock::StoreId;
use cairn_lmdb::{Environment, EnvironmentOptions, Table};
use cairn_model::{BucketName, Clock, Timestamp};
use futures_channel::oneshot;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

pub(crate) const IDENTITY_KEY: &[u8] = b"identity";
pub(crate) const NEXT_ID_KEY: &[u8] = b"next_bucket_id";
const SCRUB_KEY: &[u8] = b"scrub";

/// All buckets, in order of name.
pub(crate) type Buckets = RwLock<BTreeMap<BucketName, Arc<Bucket>>>;

/// A change of the control environment that waits for its thread.
pub(crate) enum ControlJob {
    Create(BucketName, Reply<Arc<Bucket>>),
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
                let bucket = decode_bucket(key, record.version, record.body)
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
                    ControlJob::Create(_, reply) => drop(reply.send(Err(EngineError::Io(reason.clone())))),
                    ControlJob::Delete(_, reply) => drop(reply.send(Err(EngineError::Io(reason.clone())))),
                    ControlJob::SaveScrub(_, reply) => drop(reply.send(Err(EngineError::Io(reason.clone())))),
                    ControlJob::Stop => return,
                }
                continue;
            }
            // The one who asked may have gone: then there is nobody to tell.
            match job {
                ControlJob::Create(name, reply) => drop(reply.send(self.create_bucket(name, buckets, clock))),
                ControlJob::Delete(name, reply) => {
                    drop(reply.send(self.delete_bucket(&name, buckets, slices)))
                }
                ControlJob::SaveScrub(record, reply) => drop(reply.send(self.save_scrub(&record))),
                ControlJob::Stop => return,
            }
        }
    }

    /// Where the scrub stands. A record that cannot be read costs a pass, not the start.
    pub(crate) fn scrub_record(&self) -> ScrubRecord {
        let read = || -> Result<Option<ScrubRecord>, cairn_lmdb::Error> {
            let txn = self.environment.read()?;
            Ok(txn.get(self.control_table, SCRUB_KEY)?.and_then(|record| ScrubRecord::decode(record.body)))
        };
        read().unwrap_or_else(|error| {
            tracing::warn!(target: "service::engine", %error, "where the scrub stands cannot be read: it begins anew");
            None
        }).unwrap_or_default()
    }

    fn save_scrub(&self, record: &ScrubRecord) -> Result<(), EngineError> {
        let mut txn = self.environment.write()?;
        txn.put(self.control_table, SCRUB_KEY, SMALL_RECORD_VERSION, &record.encode(), &[])?;
        self.commit(txn)
    }

    fn create_bucket(
        &self,
        name: BucketName,
        buckets: &Buckets,
        clock: &dyn Clock,
    ) -> Result<Arc<Bucket>, EngineError> {
        if buckets.read().unwrap_or_else(PoisonError::into_inner).contains_key(&name) {
            return Err(EngineError::BucketAlreadyExists);
        }
        let mut txn = self.environment.write()?;
        let next = txn.get(self.control_table, NEXT_ID_KEY)?.and_then(|record| record.body.try_into().ok());
        let id = next
            .map(u64::from_le_bytes)
            .ok_or_else(|| EngineError::Corrupt("no next bucket id".to_owned()))?;
        let created_at = clock.now();
        let mut body = [0u8; 17];
        body[..8].copy_from_slice(&id.to_le_bytes());
        body[8..16].copy_from_slice(&created_at.0.to_le_bytes());
        txn.put(self.control_table, NEXT_ID_KEY, SMALL_RECORD_VERSION, &(id + 1).to_le_bytes(), &[])?;
        txn.put(self.buckets_table, name.as_str().as_bytes(), SMALL_RECORD_VERSION, &body, &[])?;
        self.commit(txn)?;
        let bucket = Arc::new(Bucket::new(id, name.clone(), created_at));
        buckets.write().unwrap_or_else(PoisonError::into_inner).insert(name, Arc::clone(&bucket));
        Ok(bucket)
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

/// The bucket of a record; `None` when it has an unknown form.
pub(crate) fn decode_bucket(key: &[u8], version: u8, body: &[u8]) -> Option<Bucket> {
    let name = BucketName::parse(std::str::from_utf8(key).ok()?).ok()?;
    let (id, rest) = body.split_first_chunk::<8>()?;
    let (created_at, flags) = rest.split_first_chunk::<8>()?;
    if version != SMALL_RECORD_VERSION || flags != [0] {
        return None;
    }
    Some(Bucket::new(u64::from_le_bytes(*id), name, Timestamp(u64::from_le_bytes(*created_at))))
}
