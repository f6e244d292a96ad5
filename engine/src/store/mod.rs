//! The store: everything that all executors share, and its own threads.
//!
//! ```text
//! <data-dir>/superblock.json   identity, slices and format version (superblock.rs)
//! <data-dir>/lock              flock: one process at a time
//! <data-dir>/control/          LMDB: buckets (bucket_catalog.rs)
//! <data-dir>/audit/            the audit trail of crate `observe`; a new store has only its folder with a marker
//! <data-dir>/slices/NN/meta/   LMDB: versions, uploads, parts, free map, usage (slice/tables.rs)
//! <data-dir>/slices/NN/volumes/NNNNNN.vol   payloads (volume.rs)
//! ```

pub(crate) mod activity;
pub(crate) mod background;
mod background_work;
pub(crate) mod bucket_catalog;
pub(crate) mod compact;
pub(crate) mod compaction;
pub(crate) mod compaction_status;
pub(crate) mod control;
mod create;
pub(crate) mod data_folder;
pub(crate) mod discard_logs;
pub(crate) mod guarded_clock;
pub(crate) mod health;
pub(crate) mod hold;
pub(crate) mod hold_copy;
mod hold_leftover;
pub(crate) mod hold_status;
pub(crate) mod lifecycle;
pub(crate) mod lifecycle_records;
mod lifecycle_state;
pub(crate) mod metrics;
pub(crate) mod options;
pub(crate) mod pace;
mod payloads;
pub(crate) mod preflight;
mod runtime;
pub(crate) mod scrub_status;
mod stopped_store;
mod store_format;
pub(crate) mod upgrade;
pub(crate) mod verify_progress;
mod warm_up;

use crate::commit::committer;
use crate::counters::AllExecutorCounters;
use crate::device::bus_error::explain_bus_errors;
use crate::device::disk_space::DiskSpace;
use crate::device::files::Files;
use crate::error::{EngineError, OpenContext, OpenError};
use crate::fault::Faults;
use crate::fault_reports::{FaultObserver, FaultReports};
use crate::format::format_version::FORMAT_VERSION;
use crate::format::keys;
use crate::format::seal::WrappingKey;
use crate::format::signing_key::SigningKey;
use crate::format::superblock::{self, StoreId};
use crate::limits::{CHECKPOINT_BYTES, LOG_BYTES_LEAST, LOG_BYTES_MAX, LOG_DISK_SHARE, UNIT_BYTES};
use crate::maintenance::maintainer;
use crate::maintenance::reclaim::Reclaim;
use crate::slice::Slice;
use crate::slice::event_source::{EventSignal, EventSource};
use crate::store::background::Inspections;
use crate::store::background_work::BackgroundWork;
use crate::store::bucket_catalog::{BucketCatalog, CatalogCommand};
use crate::store::compaction_status::Compactions;
use crate::store::control::Control;
use crate::store::data_folder::{lock, refuse_network_file_system};
use crate::store::guarded_clock::GuardedClock;
use crate::store::hold_status::Holds;
use crate::store::lifecycle_state::Lifecycle;
use crate::store::options::{CommitMode, StoreOptions};
use crate::store::pace::Pace;
use crate::store::payloads::Payloads;
use crate::store::runtime::{Runtime, spawn};
use crate::store::scrub_status::ScrubStatus;
use crate::store::store_format::StoreFormat;
use crate::types::bucket::{Bucket, BucketChange, BucketSettings, Usage};
use crate::types::disk_state::DiskState;
use crate::types::event::Origin;
use cairn_lmdb::{Environment, FlushFailures, LogOptions};
use cairn_model::{BucketName, Clock, ObjectKey, Timestamp};
use cairn_sync::RwLock;
use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// Usage of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreUsage {
    /// The sum of all buckets.
    pub held: Usage,
    /// Bytes of the volume files that are allocated on the disk, including free space in them.
    pub volume_bytes: u64,
    /// Allocated bytes in the volumes that are free.
    pub free_volume_bytes: u64,
    /// Bytes of the volume files that were given back to the file system.
    pub reclaimed_bytes: u64,
    /// Bytes of the used pages of all slices' metadata, including inline payloads.
    pub metadata_bytes: u64,
    /// Age of the oldest open read transaction on metadata. Pages freed since it began cannot be reused yet.
    pub oldest_read: Duration,
    /// Stale metadata readers that have been cleared since the start.
    pub stale_readers: u64,
    /// Bytes in the block cache.
    pub cached_bytes: u64,
    /// Bytes in the volumes that are reserved for payloads that are being written.
    pub reserved_bytes: u64,
    /// Size of the file system in bytes, as last measured.
    pub capacity_bytes: u64,
    /// Free bytes of the file system, as last measured.
    pub available_bytes: u64,
}

/// The capacity of the store.
#[derive(Clone, Copy, Debug)]
pub struct StoreRoom {
    /// Size of the file system in bytes, as last measured.
    pub capacity_bytes: u64,
    /// Bytes that can still be written: free space in the volumes, and what the file system has above the reserve.
    pub writable_bytes: u64,
}

/// The clocks of a store.
pub(crate) struct Clocks {
    pub(crate) system: Arc<dyn Clock>,
    /// For removals by age.
    pub(crate) guarded: Arc<GuardedClock>,
}

impl Clocks {
    fn new(system: &Arc<dyn Clock>, trusted: Option<Timestamp>) -> Self {
        Self { system: Arc::clone(system), guarded: Arc::new(GuardedClock::new(system, trusted)) }
    }
}

/// Identity of a store, and its proof.
struct Identity {
    id: StoreId,
    /// Signs proofs of verification.
    signing_key: SigningKey,
}

/// An open store.
pub struct Store {
    identity: Identity,
    pub(crate) slices: Vec<Arc<Slice>>,
    pub(crate) faults: Faults,
    pub(crate) disk: Arc<DiskSpace>,
    pub(crate) clocks: Clocks,
    pub(crate) fault_reports: Arc<FaultReports>,
    pub(crate) executor_counters: AllExecutorCounters,
    pub(crate) payloads: Payloads,
    pub(crate) background: BackgroundWork,
    pub(crate) control: Control,
    format: StoreFormat,
    runtime: Runtime,
}

impl Store {
    /// Opens the store in the data folder, or creates one if the folder holds none. Blocks.
    ///
    /// # Errors
    /// [`OpenError`], whose text says what to do. Nothing of an existing store has been changed.
    pub fn open(options: StoreOptions) -> Result<Arc<Self>, OpenError> {
        Self::open_with(Faults::none(), options)
    }

    /// Does the same as [`Store::open`], with injected faults.
    pub(crate) fn open_with(faults: Faults, options: StoreOptions) -> Result<Arc<Self>, OpenError> {
        let files = Files::on(&faults);
        let data_dir = &options.data_dir;
        let lock = prepare_folder(data_dir)?;
        let (superblock, format_version) = match superblock::read(data_dir, &options.master_key)? {
            Some(found) => found,
            None => (create::create(&files, data_dir, &options)?, FORMAT_VERSION),
        };
        hold_leftover::clear(data_dir)?;
        Slice::refuse_uncounted(data_dir, superblock.slices)?;
        let fault_reports = Arc::new(FaultReports::default());
        let event_signal = Arc::new(EventSignal::default());
        let new_events = || EventSource::new(&event_signal, options.events);
        // The whole data folder is on one device, or on devices that count as one.
        let flush_failures = FlushFailures::default();
        let (mut catalog, buckets) = BucketCatalog::open(data_dir, superblock.store, new_events())?;
        catalog.environment.count_in(&flush_failures);
        catalog.fault_reports = Arc::clone(&fault_reports);
        let log = match options.commit {
            CommitMode::Log => {
                let options = log_options(data_dir, superblock.slices);
                Some(options.doing("measuring the disk of", data_dir)?)
            }
            CommitMode::Lmdb => None,
        };
        let slices = open_slices(data_dir, superblock.slices, |number| {
            Slice::open(
                &faults,
                (data_dir, number),
                (superblock, format_version),
                (log, &flush_failures),
                &fault_reports,
                new_events(),
            )
        })?;
        create::load_usage(data_dir, &slices, &buckets)?;
        let (sender, receiver) = mpsc::channel();
        let wrapping_key = WrappingKey::derive(&options.master_key, superblock.store);
        let executor_counters = AllExecutorCounters::default();
        let activities = Arc::default();
        let store = Arc::new(Self {
            identity: Identity {
                id: superblock.store,
                signing_key: SigningKey::derive(&options.master_key, superblock.store, data_dir)?,
            },
            slices,
            faults,
            disk: Arc::new(DiskSpace::new(
                data_dir.clone(),
                options.reserve_bytes,
                options.low_space_percent,
            )),
            clocks: Clocks::new(&options.clock, catalog.lifecycle_trusted_time()),
            fault_reports,
            payloads: Payloads::new(&options, wrapping_key.doing("deriving the keys of", data_dir)?),
            background: BackgroundWork {
                on_demand: Pace::new(&activities),
                activities,
                scrub: ScrubStatus::new(catalog.scrub_record()),
                lifecycle: Lifecycle::new(catalog.lifecycle_counts()),
                inspections: Inspections::default(),
                compactions: Compactions::default(),
                holds: Holds::default(),
            },
            control: Control::new(catalog, Arc::new(RwLock::new(buckets)), sender, executor_counters.add()),
            executor_counters,
            format: StoreFormat::new(format_version),
            runtime: Runtime::new(lock),
        });
        store.start_threads(receiver, &options)?;
        Ok(store)
    }

    fn start_threads(
        &self,
        commands: mpsc::Receiver<CatalogCommand>,
        options: &StoreOptions,
    ) -> Result<(), OpenError> {
        let StoreOptions { data_dir, clock, .. } = options;
        for slice in &self.slices {
            let sequence = slice.sequence().map_err(|error| OpenError::Damaged {
                path: slice.folder.clone(),
                what: error.to_string(),
            })?;
            let (own, clock, disk) = (Arc::clone(slice), Arc::clone(clock), Arc::clone(&self.disk));
            self.runtime.add(spawn(format!("committer-{:02}", slice.number), data_dir, move || {
                committer::run(&own, &disk, &*clock, sequence);
            })?);
            let (own, disk) = (Arc::clone(slice), Arc::clone(&self.disk));
            let mut reclaim = Reclaim::new(options.reclaim_after);
            self.runtime.add(spawn(format!("maintainer-{:02}", slice.number), data_dir, move || {
                maintainer::run(&own, &disk, &mut reclaim)
            })?);
        }
        let (catalog, buckets) = (Arc::clone(&self.control.catalog), Arc::clone(&self.control.buckets));
        let (slices, clock) = (self.slices.clone(), Arc::clone(clock));
        self.runtime.add(spawn("control".to_owned(), data_dir, move || {
            catalog.run(&commands, &buckets, &slices, &*clock)
        })?);
        Ok(())
    }

    /// Closes the store: commits waiting commands, ends the store's threads and releases the data folder. Blocks.
    ///
    /// The executors must have ended, so that nothing writes to volumes any more. Later changes are refused with
    /// [`EngineError::ShuttingDown`].
    pub fn close(&self) {
        self.runtime.begin_closing();
        self.background.inspections.end();
        self.background.holds.wake();
        // Fails only if the thread has ended.
        let _ = self.control.send(CatalogCommand::Stop);
        for slice in &self.slices {
            slice.commits.queue.close();
            slice.space.maintenance.lock().stop = true;
            slice.space.maintenance_wake.notify_all();
        }
        self.faults.release_threads();
        self.runtime.join();
        for slice in &self.slices {
            // So that the next start has nothing to apply. If it fails, that start applies the log.
            if let Err(error) = slice.environment.checkpoint() {
                tracing::warn!(target: "service::engine", slice = slice.number, %error, "no last checkpoint: the next start applies the commit log");
            }
        }
        self.runtime.unlock();
    }

    /// Sets the observer of faults. Must be called once, right after opening; a second observer is ignored.
    pub fn set_fault_observer(&self, observer: Box<dyn FaultObserver>) {
        self.fault_reports.set_fault_observer(observer);
    }

    /// Returns the random identity of the store.
    #[must_use]
    pub fn id(&self) -> StoreId {
        self.identity.id
    }

    /// Returns the key that signs proofs of verification.
    #[must_use]
    pub fn signing_key(&self) -> &SigningKey {
        &self.identity.signing_key
    }

    /// Counts the failed flushes of an environment that is not the engine's together with those of the store: it is on the same
    /// device.
    pub fn count_flush_failures_of(&self, other: &Environment) {
        other.count_in(&self.slices[0].failures.flushes);
    }

    /// Returns the signal of new storage events.
    #[must_use]
    pub fn event_signal(&self) -> &Arc<EventSignal> {
        &self.control.catalog.events.signal
    }

    /// Returns the bucket with this name, if it exists.
    #[must_use]
    pub fn bucket(&self, name: &BucketName) -> Option<Arc<Bucket>> {
        self.control.bucket(name)
    }

    /// Returns all buckets in order of their names.
    #[must_use]
    pub fn buckets(&self) -> Vec<Arc<Bucket>> {
        self.control.all()
    }

    /// Creates a bucket. It is durable when this returns. With object lock it keeps versions.
    ///
    /// # Errors
    /// [`EngineError::BucketAlreadyExists`], [`EngineError::StorageFull`] and failures of the device.
    pub async fn create_bucket(
        &self,
        name: &BucketName,
        settings: BucketSettings,
        origin: Origin,
    ) -> Result<Arc<Bucket>, EngineError> {
        if self.disk.is_low() {
            return self.control.refuse_full();
        }
        self.control.change(|reply| CatalogCommand::Create(name.clone(), settings, origin, reply)).await
    }

    /// Deletes an empty bucket. The deletion is durable when this returns.
    ///
    /// # Errors
    /// [`EngineError::NoSuchBucket`], [`EngineError::BucketNotEmpty`] and failures of the device.
    pub async fn delete_bucket(&self, name: &BucketName, origin: Origin) -> Result<(), EngineError> {
        self.control.change(|reply| CatalogCommand::Delete(name.clone(), origin, reply)).await
    }

    /// Changes a setting of a bucket. The change is durable when this returns, and every later request sees it.
    ///
    /// # Errors
    /// [`EngineError::NoSuchBucket`], [`EngineError::InvalidBucketState`] if the bucket's object lock, or its lack, does not
    /// allow the change, [`EngineError::QuotaBelowUsage`] and failures of the device.
    pub async fn change_bucket(&self, bucket: &Bucket, change: BucketChange) -> Result<(), EngineError> {
        self.control
            .change(|reply| CatalogCommand::Change(bucket.id, bucket.name.clone(), change, reply))
            .await
    }

    /// Returns whether the disk has room for new data.
    #[must_use]
    pub fn disk_state(&self) -> DiskState {
        self.disk.state()
    }

    /// Returns the usage of the whole store.
    #[must_use]
    pub fn usage(&self) -> StoreUsage {
        let mut usage = StoreUsage {
            cached_bytes: self.payloads.cache.bytes(),
            available_bytes: self.disk.available_bytes(),
            capacity_bytes: self.disk.capacity_bytes(),
            ..StoreUsage::default()
        };
        for bucket in self.buckets() {
            usage.held.add(&bucket.usage());
        }
        for slice in &self.slices {
            let space = slice.space.allocator.free_space();
            let holes = space.hole_units * UNIT_BYTES;
            usage.volume_bytes += slice.space.volume_bytes().saturating_sub(holes);
            usage.free_volume_bytes += space.free_units * UNIT_BYTES;
            usage.reclaimed_bytes += holes;
            usage.metadata_bytes += slice.environment.used();
            usage.oldest_read =
                usage.oldest_read.max(slice.environment.oldest_read_age().unwrap_or_default());
            usage.stale_readers += slice.environment.stale_readers();
            usage.reserved_bytes += slice.space.allocator.reserved_units() * UNIT_BYTES;
        }
        usage
    }

    /// Returns how much the store can hold, from counters: nothing is measured.
    #[must_use]
    pub fn room(&self) -> StoreRoom {
        let free = self.slices.iter().map(|slice| slice.space.allocator.free_space().free_units * UNIT_BYTES);
        StoreRoom {
            capacity_bytes: self.disk.capacity_bytes(),
            writable_bytes: self.disk.growable_bytes().saturating_add(free.sum::<u64>()),
        }
    }

    /// Returns the number of damage reports since the start.
    #[must_use]
    pub fn corruptions(&self) -> u64 {
        self.fault_reports.damage_count()
    }

    /// Returns progress and results of the scrub.
    #[must_use]
    pub fn scrub(&self) -> &ScrubStatus {
        &self.background.scrub
    }

    /// Returns whether new payloads are encrypted at rest.
    #[must_use]
    pub const fn encrypts_at_rest(&self) -> bool {
        self.payloads.encryption_at_rest
    }

    /// Returns the slice that holds a key.
    pub(crate) fn slice_of(&self, bucket: &Bucket, key: &ObjectKey) -> Result<&Arc<Slice>, EngineError> {
        let count = u16::try_from(self.slices.len()).expect("a store has at most SLICES_MAX slices");
        let number = keys::slice_of(bucket.id, key.as_bytes(), count);
        self.slices.get(usize::from(number)).ok_or(EngineError::ShuttingDown)
    }
}

/// Makes the data folder, if it is missing, and locks it. Prepares the process for failures of the disk.
fn prepare_folder(data_dir: &Path) -> Result<File, OpenError> {
    superblock::refuse_later_format(data_dir)?;
    // No other user of the host may read the store. The permissions of an existing folder are kept.
    DirBuilder::new().recursive(true).mode(0o700).create(data_dir).doing("creating", data_dir)?;
    ignore_file_size_signal();
    explain_bus_errors();
    refuse_network_file_system(data_dir)?;
    lock(data_dir)
}

/// Opens the slices, each on a thread of its own: a start after a crash applies their commit logs.
fn open_slices(
    data_dir: &Path,
    slices: u16,
    open: impl Fn(u16) -> Result<Arc<Slice>, OpenError> + Sync,
) -> Result<Vec<Arc<Slice>>, OpenError> {
    let open = &open;
    std::thread::scope(|scope| {
        let begin = |number| {
            let thread = std::thread::Builder::new().name(format!("opening-{number:02}"));
            thread.spawn_scoped(scope, move || open(number)).doing("starting the threads of", data_dir)
        };
        let opening = (0..slices).map(begin).collect::<Result<Vec<_>, _>>()?;
        let joined =
            opening.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        joined.collect()
    })
}

/// Lets writes beyond the process's file size limit fail with `EFBIG` instead of killing the process. The error is handled like
/// a full disk.
fn ignore_file_size_signal() {
    #[expect(unsafe_code, reason = "there is no safe way to set a signal's disposition")]
    // SAFETY: ignoring a signal runs no code in a handler, and nothing else of this process handles SIGXFSZ.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

/// Returns the sizes of the commit log of one of the slices, on the disk of this folder.
fn log_options(data_dir: &Path, slices: u16) -> std::io::Result<LogOptions> {
    let stat = rustix::fs::statvfs(data_dir)?;
    let share = stat.f_blocks.saturating_mul(stat.f_frsize) / LOG_DISK_SHARE / u64::from(slices);
    let bytes_max = share.clamp(LOG_BYTES_LEAST, LOG_BYTES_MAX);
    Ok(LogOptions { bytes_max, checkpoint_bytes: CHECKPOINT_BYTES.min(bytes_max / 4) })
}
