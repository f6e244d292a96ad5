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
pub(crate) mod bucket_catalog;
pub(crate) mod clock_guard;
pub(crate) mod compact;
pub(crate) mod compaction;
mod create;
pub(crate) mod discard_logs;
pub(crate) mod health;
pub(crate) mod lifecycle;
pub(crate) mod lifecycle_records;
pub(crate) mod metrics;
pub(crate) mod preflight;
pub(crate) mod scrub_status;
mod stopped_store;
pub(crate) mod verify_progress;
mod warm_up;

use crate::commit::committer;
use crate::counters::{AllExecutorCounters, ExecutorCounters};
use crate::device::block_cache::BlockCache;
use crate::device::bus_error::explain_bus_errors;
use crate::device::disk_space::DiskSpace;
use crate::device::files::Files;
use crate::error::{EngineError, OpenContext, OpenError};
use crate::fault::Faults;
use crate::fault_reports::{FaultObserver, FaultReports};
use crate::format::keys;
use crate::format::seal::WrappingKey;
use crate::format::signing_key::SigningKey;
use crate::format::superblock::{self, StoreId};
use crate::limits::{
    BufferLimits, CHECKPOINT_BYTES, LOG_BYTES_LEAST, LOG_BYTES_MAX, LOG_DISK_SHARE, UNIT_BYTES,
};
use crate::maintenance::maintainer;
use crate::maintenance::reclaim::Reclaim;
use crate::slice::Slice;
use crate::slice::event_source::{EventSignal, EventSource};
use crate::store::activity::Activities;
use crate::store::background::{Inspections, lower_priority};
use crate::store::bucket_catalog::{BucketCatalog, Buckets, CatalogCommand};
use crate::store::compaction::Compactions;
use crate::store::lifecycle::Lifecycle;
use crate::store::scrub_status::ScrubStatus;
use crate::types::bucket::{Bucket, BucketChange, BucketSettings, Usage};
use crate::types::disk_state::DiskState;
use crate::types::event::Origin;
use cairn_lmdb::LogOptions;
use cairn_model::{BucketName, Clock, ObjectKey};
use futures_channel::oneshot;
use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;
use zeroize::Zeroizing;

/// What the entity tags of new objects and parts are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum EtagKind {
    /// The MD5 of the bytes, as on Amazon S3.
    #[default]
    Md5,
    /// Random bytes, in the form of an upload of one part. Bytes are hashed only if a request declares their MD5.
    Opaque,
}

impl EtagKind {
    /// All kinds.
    pub const ALL: [Self; 2] = [Self::Md5, Self::Opaque];

    /// Returns the word in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Md5 => "md5",
            Self::Opaque => "opaque",
        }
    }
}

/// What makes changes of objects durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CommitMode {
    /// A commit log: one write and one flush for each batch.
    #[default]
    Log,
    /// LMDB: two flushes of its data file for each batch.
    Lmdb,
}

impl CommitMode {
    /// All modes.
    pub const ALL: [Self; 2] = [Self::Log, Self::Lmdb];

    /// Returns the word in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Lmdb => "lmdb",
        }
    }
}

/// Options for opening a store.
pub struct StoreOptions {
    /// The data folder. Created if it is missing.
    pub data_dir: PathBuf,
    /// Number of slices of a new store. `None` means one for two cores of the host ([`crate::limits::default_slices`]). An
    /// existing store keeps its number.
    pub slices: Option<u16>,
    /// The credential master key.
    pub master_key: Zeroizing<Vec<u8>>,
    /// Limit of the block cache in bytes. 0 means no cache.
    pub cache_bytes: u64,
    /// Memory for the buffers of each executor.
    pub buffers: BufferLimits,
    /// With less free bytes than this on the file system, new writes are refused.
    pub reserve_bytes: u64,
    /// Free space in the volumes that was not needed for this time is given back to the file system. `None` means never.
    pub reclaim_after: Option<Duration>,
    /// Whether new payloads are sealed (`seal.rs`). Existing payloads can be read either way.
    pub encryption_at_rest: bool,
    /// What the entity tags of new objects and parts are.
    pub etags: EtagKind,
    /// What makes changes durable. A store can be opened with either after the other.
    pub commit: CommitMode,
    /// Whether changes write storage events.
    pub events: bool,
    /// The source of dates.
    pub clock: Arc<dyn Clock>,
}

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

/// An open store.
pub struct Store {
    pub(crate) slices: Vec<Arc<Slice>>,
    pub(crate) files: Files,
    faults: Faults,
    pub(crate) cache: BlockCache,
    pub(crate) buffers: BufferLimits,
    pub(crate) wrapping_key: WrappingKey,
    /// Whether new payloads are sealed.
    pub(crate) encryption_at_rest: bool,
    pub(crate) etags: EtagKind,
    pub(crate) disk: Arc<DiskSpace>,
    pub(crate) fault_reports: Arc<FaultReports>,
    pub(crate) activities: Arc<Activities>,
    pub(crate) executor_counters: AllExecutorCounters,
    /// Counts refused changes of buckets, which no executor counts.
    bucket_counters: Arc<ExecutorCounters>,
    pub(crate) scrub: ScrubStatus,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) clock: Arc<dyn Clock>,
    buckets: Arc<Buckets>,
    pub(crate) catalog: Arc<BucketCatalog>,
    /// The running inspection or repair.
    pub(crate) inspections: Inspections,
    pub(crate) compactions: Compactions,
    /// Set when the store closes. Ends a compaction and a warm-up.
    is_closing: AtomicBool,
    pub(crate) catalog_stopped: Arc<OnceLock<String>>,
    catalog_commands: Mutex<Sender<CatalogCommand>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    store: StoreId,
    signing_key: SigningKey,
    event_signal: Arc<EventSignal>,
    /// Locked until the store is closed.
    lock: File,
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
        superblock::refuse_later_format(data_dir)?;
        // No other user of the host may read the store. The permissions of an existing folder are kept.
        DirBuilder::new().recursive(true).mode(0o700).create(data_dir).doing("creating", data_dir)?;
        ignore_file_size_signal();
        explain_bus_errors();
        refuse_network_file_system(data_dir)?;
        let lock = lock(data_dir)?;
        let superblock = match superblock::read(data_dir, &options.master_key)? {
            Some(superblock) => superblock,
            None => create::create(&files, data_dir, &options)?,
        };
        Slice::refuse_uncounted(data_dir, superblock.slices)?;
        let fault_reports = Arc::new(FaultReports::default());
        let event_signal = Arc::new(EventSignal::default());
        let new_events = || EventSource::new(&event_signal, options.events);
        let (mut catalog, buckets) = BucketCatalog::open(data_dir, superblock.store, new_events())?;
        catalog.fault_reports = Arc::clone(&fault_reports);
        let log = match options.commit {
            CommitMode::Log => {
                let options = log_options(data_dir, superblock.slices);
                Some(options.doing("measuring the disk of", data_dir)?)
            }
            CommitMode::Lmdb => None,
        };
        let slices = open_slices(data_dir, superblock.slices, |number| {
            Slice::open(&faults, (data_dir, number), superblock, log, &fault_reports, new_events())
        })?;
        create::load_usage(data_dir, &slices, &buckets)?;
        let (sender, receiver) = mpsc::channel();
        let wrapping_key = WrappingKey::derive(&options.master_key, superblock.store);
        let catalog = Arc::new(catalog);
        let executor_counters = AllExecutorCounters::default();
        let store = Arc::new(Self {
            wrapping_key: wrapping_key.doing("deriving the keys of", data_dir)?,
            encryption_at_rest: options.encryption_at_rest,
            etags: options.etags,
            cache: BlockCache::new(options.cache_bytes),
            buffers: options.buffers,
            disk: Arc::new(DiskSpace::new(data_dir.clone(), options.reserve_bytes)),
            fault_reports,
            activities: Arc::default(),
            bucket_counters: executor_counters.add(),
            executor_counters,
            scrub: ScrubStatus::new(catalog.scrub_record()),
            lifecycle: Lifecycle::new(catalog.lifecycle_counts()),
            clock: Arc::clone(&options.clock),
            buckets: Arc::new(RwLock::new(buckets)),
            catalog_stopped: catalog.stopped(),
            catalog: Arc::clone(&catalog),
            inspections: Inspections::default(),
            compactions: Compactions::default(),
            is_closing: AtomicBool::new(false),
            catalog_commands: Mutex::new(sender),
            threads: Mutex::default(),
            store: superblock.store,
            event_signal,
            signing_key: SigningKey::derive(&options.master_key, superblock.store, data_dir)?,
            files,
            faults,
            slices,
            lock,
        });
        store.start_threads(catalog, receiver, &options)?;
        Ok(store)
    }

    fn start_threads(
        &self,
        catalog: Arc<BucketCatalog>,
        commands: mpsc::Receiver<CatalogCommand>,
        options: &StoreOptions,
    ) -> Result<(), OpenError> {
        let StoreOptions { data_dir, clock, .. } = options;
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        for slice in &self.slices {
            let sequence = slice.sequence().map_err(|error| OpenError::Damaged {
                path: slice.folder.clone(),
                what: error.to_string(),
            })?;
            let (own, clock, disk) = (Arc::clone(slice), Arc::clone(clock), Arc::clone(&self.disk));
            threads.push(spawn(format!("committer-{:02}", slice.number), data_dir, move || {
                committer::run(&own, &disk, &*clock, sequence);
            })?);
            let (own, disk) = (Arc::clone(slice), Arc::clone(&self.disk));
            let mut reclaim = Reclaim::new(options.reclaim_after);
            threads.push(spawn(format!("maintainer-{:02}", slice.number), data_dir, move || {
                maintainer::run(&own, &disk, &mut reclaim)
            })?);
        }
        let (buckets, slices, clock) = (Arc::clone(&self.buckets), self.slices.clone(), Arc::clone(clock));
        threads.push(spawn("control".to_owned(), data_dir, move || {
            catalog.run(&commands, &buckets, &slices, &*clock)
        })?);
        Ok(())
    }

    /// Closes the store: commits waiting commands, ends the store's threads and releases the data folder. Blocks.
    ///
    /// The executors must have ended, so that nothing writes to volumes any more. Later changes are refused with
    /// [`EngineError::ShuttingDown`].
    pub fn close(&self) {
        self.is_closing.store(true, Ordering::SeqCst);
        self.inspections.end();
        let _ =
            self.catalog_commands.lock().unwrap_or_else(PoisonError::into_inner).send(CatalogCommand::Stop);
        for slice in &self.slices {
            slice.queue.close();
            slice.maintenance.lock().unwrap_or_else(PoisonError::into_inner).stop = true;
            slice.maintenance_wake.notify_all();
        }
        self.faults.release_threads();
        for thread in std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner)) {
            // A thread that panicked has ended the process already.
            let _ = thread.join();
        }
        for slice in &self.slices {
            // So that the next start has nothing to apply. If it fails, that start applies the log.
            if let Err(error) = slice.environment.checkpoint() {
                tracing::warn!(target: "service::engine", slice = slice.number, %error, "no last checkpoint: the next start applies the commit log");
            }
        }
        // Released here, not when the store is dropped: a task that its executor never completed keeps the store alive.
        if let Err(error) = rustix::fs::flock(&self.lock, rustix::fs::FlockOperation::Unlock) {
            tracing::warn!(target: "service::engine", %error, "the lock of the store could not be released");
        }
    }

    /// Sets the observer of faults. Must be called once, right after opening; a second observer is ignored.
    pub fn set_fault_observer(&self, observer: Box<dyn FaultObserver>) {
        self.fault_reports.set_fault_observer(observer);
    }

    /// Returns the random identity of the store.
    #[must_use]
    pub fn id(&self) -> StoreId {
        self.store
    }

    /// Returns the key that signs proofs of verification.
    #[must_use]
    pub fn signing_key(&self) -> &SigningKey {
        &self.signing_key
    }

    /// Returns the signal of new storage events.
    #[must_use]
    pub fn event_signal(&self) -> &Arc<EventSignal> {
        &self.event_signal
    }

    /// Returns the bucket with this name, if it exists.
    #[must_use]
    pub fn bucket(&self, name: &BucketName) -> Option<Arc<Bucket>> {
        self.buckets.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Returns all buckets in order of their names.
    #[must_use]
    pub fn buckets(&self) -> Vec<Arc<Bucket>> {
        self.buckets.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
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
            return self.bucket_counters.count_refusal(Err(EngineError::StorageFull));
        }
        let (reply, answer) = oneshot::channel();
        self.send_to_catalog(CatalogCommand::Create(name.clone(), settings, origin, reply))?;
        self.bucket_counters.count_refusal(answer.await.map_err(|_| EngineError::ShuttingDown)?)
    }

    /// Deletes an empty bucket. The deletion is durable when this returns.
    ///
    /// # Errors
    /// [`EngineError::NoSuchBucket`], [`EngineError::BucketNotEmpty`] and failures of the device.
    pub async fn delete_bucket(&self, name: &BucketName, origin: Origin) -> Result<(), EngineError> {
        let (reply, answer) = oneshot::channel();
        self.send_to_catalog(CatalogCommand::Delete(name.clone(), origin, reply))?;
        self.bucket_counters.count_refusal(answer.await.map_err(|_| EngineError::ShuttingDown)?)
    }

    /// Changes a setting of a bucket. The change is durable when this returns, and every later request sees it.
    ///
    /// # Errors
    /// [`EngineError::NoSuchBucket`], [`EngineError::InvalidBucketState`] if the bucket's object lock, or its lack, does not
    /// allow the change, [`EngineError::QuotaBelowUsage`] and failures of the device.
    pub async fn change_bucket(&self, bucket: &Bucket, change: BucketChange) -> Result<(), EngineError> {
        let (reply, answer) = oneshot::channel();
        self.send_to_catalog(CatalogCommand::Change(bucket.id, bucket.name.clone(), change, reply))?;
        self.bucket_counters.count_refusal(answer.await.map_err(|_| EngineError::ShuttingDown)?)
    }

    pub(crate) fn send_to_catalog(&self, command: CatalogCommand) -> Result<(), EngineError> {
        let commands = self.catalog_commands.lock().unwrap_or_else(PoisonError::into_inner);
        commands.send(command).map_err(|_| EngineError::ShuttingDown)
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
            cached_bytes: self.cache.bytes(),
            available_bytes: self.disk.available_bytes(),
            capacity_bytes: self.disk.capacity_bytes(),
            ..StoreUsage::default()
        };
        for bucket in self.buckets() {
            usage.held.add(&bucket.usage());
        }
        for slice in &self.slices {
            let space = slice.allocator.free_space();
            let holes = space.hole_units * UNIT_BYTES;
            usage.volume_bytes += slice.volume_bytes().saturating_sub(holes);
            usage.free_volume_bytes += space.free_units * UNIT_BYTES;
            usage.reclaimed_bytes += holes;
            usage.metadata_bytes += slice.environment.used();
            usage.oldest_read =
                usage.oldest_read.max(slice.environment.oldest_read_age().unwrap_or_default());
            usage.stale_readers += slice.environment.stale_readers();
            usage.reserved_bytes += slice.allocator.reserved_units() * UNIT_BYTES;
        }
        usage
    }

    /// Returns the number of damage reports since the start.
    #[must_use]
    pub fn corruptions(&self) -> u64 {
        self.fault_reports.damage_count()
    }

    /// Returns progress and results of the scrub.
    #[must_use]
    pub fn scrub(&self) -> &ScrubStatus {
        &self.scrub
    }

    /// Returns whether new payloads are encrypted at rest.
    #[must_use]
    pub const fn encrypts_at_rest(&self) -> bool {
        self.encryption_at_rest
    }

    /// Returns the slice that holds a key.
    pub(crate) fn slice_of(&self, bucket: &Bucket, key: &ObjectKey) -> Result<&Arc<Slice>, EngineError> {
        let count = u16::try_from(self.slices.len()).expect("a store has at most SLICES_MAX slices");
        let number = keys::slice_of(bucket.id, key.as_bytes(), count);
        self.slices.get(usize::from(number)).ok_or(EngineError::ShuttingDown)
    }
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

/// Starts a thread of the store. A panic in it aborts the process, because its state is unknown. The next start recovers.
fn spawn(
    name: String,
    data_dir: &Path,
    body: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, OpenError> {
    let guarded = move || {
        if catch_unwind(AssertUnwindSafe(body)).is_err() {
            tracing::error!(target: "service::engine", "a thread of the store panicked: the process ends");
            std::process::abort();
        }
    };
    std::thread::Builder::new().name(name).spawn(guarded).doing("starting the threads of", data_dir)
}

/// As [`spawn`], with a lower priority than requests.
fn spawn_background(
    name: String,
    data_dir: &Path,
    body: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, OpenError> {
    spawn(name, data_dir, move || {
        lower_priority();
        body();
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

/// The file that is locked while the store is open.
pub(crate) const LOCK_FILE: &str = "lock";

/// Locks the data folder against other processes.
pub(crate) fn lock(data_dir: &Path) -> Result<File, OpenError> {
    let path = data_dir.join(LOCK_FILE);
    let open = File::options().create(true).truncate(false).write(true).open(&path);
    let file = open.doing("opening", &path)?;
    match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(OpenError::Locked(data_dir.to_owned())),
        Err(error) => Err(std::io::Error::from(error)).doing("locking", &path),
    }
}

/// Returns the sizes of the commit log of one of the slices, on the disk of this folder.
fn log_options(data_dir: &Path, slices: u16) -> std::io::Result<LogOptions> {
    let stat = rustix::fs::statvfs(data_dir)?;
    let share = stat.f_blocks.saturating_mul(stat.f_frsize) / LOG_DISK_SHARE / u64::from(slices);
    let bytes_max = share.clamp(LOG_BYTES_LEAST, LOG_BYTES_MAX);
    Ok(LogOptions { bytes_max, checkpoint_bytes: CHECKPOINT_BYTES.min(bytes_max / 4) })
}

/// Refuses network file systems: LMDB's locks and maps, and direct I/O, are not reliable there.
pub(crate) fn refuse_network_file_system(data_dir: &Path) -> Result<(), OpenError> {
    /// `f_type` of NFS, SMB, CIFS and SMB2 (linux/magic.h and the file systems' sources).
    const NETWORK: [i64; 4] = [0x6969, 0x517B, 0xFF53_4D42, 0xFE53_4D42];
    let stat = rustix::fs::statfs(data_dir).map_err(std::io::Error::from).doing("examining", data_dir)?;
    if NETWORK.contains(&stat.f_type) {
        let what = "a network file system cannot keep acknowledged writes safe";
        return Err(OpenError::UnsuitableFileSystem { path: data_dir.to_owned(), what });
    }
    Ok(())
}
