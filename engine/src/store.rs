//! The store: everything that all threads share, and the threads that belong to it.
//!
//! ```text
//! <data-dir>/superblock.json   what the store is (superblock.rs)
//! <data-dir>/lock              flock: one process at a time
//! <data-dir>/control/          LMDB: buckets (control.rs)
//! <data-dir>/audit/            the audit trail, which is not the engine's; it is told here that it is still to be made
//! <data-dir>/slices/NN/meta/   LMDB: versions, uploads, parts, free map, usage (slice.rs)
//! <data-dir>/slices/NN/volumes/NNNNNN.vol   payloads (volume.rs)
//! ```

use crate::bucket::{Bucket, BucketChange, BucketSettings, Usage};
use crate::cache::BlockCache;
use crate::committer;
use crate::control::{Buckets, Control, ControlJob};
use crate::error::{EngineError, OpenContext, OpenError};
use crate::events::{Events, StoreObserver};
use crate::figures::{ExecutorFigures, ExecutorsFigures};
use crate::files::Files;
use crate::inspect::Inspections;
use crate::keeper::{self, DiskSpace};
use crate::keys;
use crate::limits::{BufferLimits, SLICES_MAX, UNIT_BYTES};
use crate::pace::Activities;
use crate::proof::ProofKey;
use crate::reclaim::Reclaim;
use crate::scrub::ScrubStatus;
use crate::seal::WrappingKey;
use crate::slice::Slice;
use crate::superblock::{self, StoreId, Superblock};
use cairn_model::{BucketName, Clock, ObjectKey};
use futures_channel::oneshot;
use std::collections::{BTreeMap, HashMap};
use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

/// How a store is opened.
pub struct StoreOptions {
    /// The data folder; made when it is missing.
    pub data_dir: PathBuf,
    /// Slices of a store that is made now; `None`: the host's cores, at least 2, at most 64. An existing store keeps its own.
    pub slices: Option<u16>,
    /// The credential master key.
    pub master_key: Vec<u8>,
    /// Bound of the cache of checked blocks in bytes; 0: no cache.
    pub cache_bytes: u64,
    /// Memory for the buffers of each executor.
    pub buffers: BufferLimits,
    /// Below this many free bytes on the file system new writes are refused.
    pub reserve_bytes: u64,
    /// Free space in the volumes that was not needed for so long is given back to the file system; `None`: never.
    pub reclaim_after: Option<Duration>,
    /// Whether new payloads are sealed (`seal.rs`). Payloads that are there are read either way.
    pub encryption_at_rest: bool,
    /// Where dates come from.
    pub clock: Arc<dyn Clock>,
}

/// What a store holds and uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreUsage {
    /// What all buckets hold.
    pub held: Usage,
    /// Bytes of the volume files that are allocated on the disk, free space in them included.
    pub volume_bytes: u64,
    /// Allocated bytes in the volumes that nobody owns or has reserved.
    pub free_volume_bytes: u64,
    /// Bytes of the volume files that were given back to the file system.
    pub reclaimed_bytes: u64,
    /// Bytes of the used pages of all slices' metadata, inline payloads included.
    pub metadata_bytes: u64,
    /// Age of the oldest read transaction on metadata that is open. Pages freed since it began wait for it.
    pub oldest_read: Duration,
    /// Slots of metadata readers that had ended without giving them back, cleared since the start.
    pub stale_readers: u64,
    /// Bytes of the cached blocks.
    pub cached_bytes: u64,
    /// Bytes in the volumes that uploads under way hold.
    pub reserved_bytes: u64,
    /// Size of the file system in bytes, as of the last look.
    pub capacity_bytes: u64,
    /// Free bytes of the file system, as of the last look.
    pub available_bytes: u64,
}

/// An open store.
pub struct Store {
    pub(crate) slices: Vec<Arc<Slice>>,
    pub(crate) files: Files,
    pub(crate) cache: BlockCache,
    pub(crate) buffers: BufferLimits,
    pub(crate) wrapping_key: WrappingKey,
    /// Whether new payloads are sealed.
    pub(crate) encryption_at_rest: bool,
    pub(crate) disk: Arc<DiskSpace>,
    /// What was found wrong, and who is told of it.
    pub(crate) events: Arc<Events>,
    pub(crate) activities: Activities,
    pub(crate) executors_figures: ExecutorsFigures,
    /// What is refused of buckets, whose changes go by no executor's engine.
    bucket_figures: Arc<ExecutorFigures>,
    pub(crate) scrub: ScrubStatus,
    pub(crate) clock: Arc<dyn Clock>,
    buckets: Arc<Buckets>,
    /// The environment of the buckets; only its own thread changes it.
    pub(crate) bucket_records: Arc<Control>,
    /// Inspections and repairs under way.
    pub(crate) inspections: Inspections,
    pub(crate) control_stopped: Arc<OnceLock<String>>,
    control: Mutex<Sender<ControlJob>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    store: StoreId,
    proof_key: ProofKey,
    lock: File,
}

impl Store {
    /// Opens the store in the data folder, or makes one when the folder holds none. Blocks.
    ///
    /// # Errors
    /// [`OpenError`], whose text says what to do. Nothing of an existing store has been changed.
    pub fn open(options: StoreOptions) -> Result<Arc<Self>, OpenError> {
        Self::open_on(Files::System, options)
    }

    /// As [`Store::open`], with the volumes in `files`.
    pub(crate) fn open_on(files: Files, options: StoreOptions) -> Result<Arc<Self>, OpenError> {
        let data_dir = &options.data_dir;
        superblock::refuse_later_format(data_dir)?;
        // What is stored is for nobody else on the host; a folder that is there stays as open as its owner made it.
        DirBuilder::new().recursive(true).mode(0o700).create(data_dir).doing("creating", data_dir)?;
        ignore_file_size_signal();
        refuse_network_file_system(data_dir)?;
        let lock = lock(data_dir)?;
        let superblock = match superblock::read(data_dir, &options.master_key)? {
            Some(superblock) => superblock,
            None => create(&files, data_dir, &options)?,
        };
        Slice::refuse_uncounted(data_dir, superblock.slices)?;
        let events = Arc::new(Events::default());
        let (mut control, buckets) = Control::open(data_dir, superblock.store)?;
        control.events = Arc::clone(&events);
        let numbers = 0..superblock.slices;
        let slices: Vec<_> = numbers
            .map(|number| Slice::open(&files, data_dir, superblock, number, &events))
            .collect::<Result<_, _>>()?;
        load_usage(data_dir, &slices, &buckets)?;
        let (sender, receiver) = mpsc::channel();
        let wrapping_key = WrappingKey::derive(&options.master_key, superblock.store);
        let control = Arc::new(control);
        let executors_figures = ExecutorsFigures::default();
        let store = Arc::new(Self {
            wrapping_key: wrapping_key.doing("deriving the keys of", data_dir)?,
            encryption_at_rest: options.encryption_at_rest,
            cache: BlockCache::new(options.cache_bytes),
            buffers: options.buffers,
            disk: Arc::new(DiskSpace::new(data_dir.clone(), options.reserve_bytes)),
            events,
            activities: Activities::default(),
            bucket_figures: executors_figures.add(),
            executors_figures,
            scrub: ScrubStatus::new(control.scrub_record()),
            clock: Arc::clone(&options.clock),
            buckets: Arc::new(RwLock::new(buckets)),
            control_stopped: control.stopped(),
            bucket_records: Arc::clone(&control),
            inspections: Inspections::default(),
            control: Mutex::new(sender),
            threads: Mutex::default(),
            store: superblock.store,
            proof_key: ProofKey::derive(&options.master_key, superblock.store, data_dir)?,
            files,
            slices,
            lock,
        });
        store.start_threads(control, receiver, &options)?;
        Ok(store)
    }

    fn start_threads(
        &self,
        control: Arc<Control>,
        jobs: mpsc::Receiver<ControlJob>,
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
            threads.push(spawn(format!("keeper-{:02}", slice.number), data_dir, move || {
                keeper::run(&own, &disk, &mut reclaim)
            })?);
        }
        let (buckets, slices, clock) = (Arc::clone(&self.buckets), self.slices.clone(), Arc::clone(clock));
        threads.push(spawn("control".to_owned(), data_dir, move || {
            control.run(&jobs, &buckets, &slices, &*clock)
        })?);
        Ok(())
    }

    /// Commits what waits, ends the store's threads and lets go of the data folder. Blocks. Later changes are refused with
    /// [`EngineError::ShuttingDown`]. For when the executors have ended: nothing may write to volumes any more.
    pub fn close(&self) {
        self.inspections.end();
        let _ = self.control.lock().unwrap_or_else(PoisonError::into_inner).send(ControlJob::Stop);
        for slice in &self.slices {
            slice.queue.close();
            slice.keeper.lock().unwrap_or_else(PoisonError::into_inner).stop = true;
            slice.keeper_wake.notify_all();
        }
        #[cfg(feature = "simulation")]
        self.files.release_stage();
        for thread in std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner)) {
            // A thread that panicked has ended the process already.
            let _ = thread.join();
        }
        // Not left to the last owner: a task that its executor never ran to the end keeps the store alive for good.
        if let Err(error) = rustix::fs::flock(&self.lock, rustix::fs::FlockOperation::Unlock) {
            tracing::warn!(target: "service::engine", %error, "the lock of the store could not be released");
        }
    }

    /// Sets who is told of what the store finds wrong. For once, right after opening; a second observer is ignored.
    pub fn set_observer(&self, observer: Box<dyn StoreObserver>) {
        self.events.set_observer(observer);
    }

    /// Random identity of the store.
    #[must_use]
    pub fn id(&self) -> StoreId {
        self.store
    }

    /// The key that signs proofs of verification.
    #[must_use]
    pub fn proof_key(&self) -> &ProofKey {
        &self.proof_key
    }

    /// The bucket of this name.
    #[must_use]
    pub fn bucket(&self, name: &BucketName) -> Option<Arc<Bucket>> {
        self.buckets.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// All buckets in order of name.
    #[must_use]
    pub fn buckets(&self) -> Vec<Arc<Bucket>> {
        self.buckets.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Makes a bucket; durable when it returns. With object lock it keeps versions.
    ///
    /// # Errors
    /// [`EngineError::BucketAlreadyExists`], [`EngineError::StorageFull`] and failures of the device.
    pub async fn create_bucket(
        &self,
        name: &BucketName,
        settings: BucketSettings,
    ) -> Result<Arc<Bucket>, EngineError> {
        if self.disk.is_low() {
            return self.bucket_figures.counted(Err(EngineError::StorageFull));
        }
        let (reply, answer) = oneshot::channel();
        self.send_control(ControlJob::Create(name.clone(), settings, reply))?;
        self.bucket_figures.counted(answer.await.map_err(|_| EngineError::ShuttingDown)?)
    }

    /// Removes an empty bucket; durable when it returns.
    ///
    /// # Errors
    /// [`EngineError::NoSuchBucket`], [`EngineError::BucketNotEmpty`] and failures of the device.
    pub async fn delete_bucket(&self, name: &BucketName) -> Result<(), EngineError> {
        let (reply, answer) = oneshot::channel();
        self.send_control(ControlJob::Delete(name.clone(), reply))?;
        self.bucket_figures.counted(answer.await.map_err(|_| EngineError::ShuttingDown)?)
    }

    /// Changes a setting of a bucket; durable when it returns, and seen by every request that begins then.
    ///
    /// # Errors
    /// [`EngineError::NoSuchBucket`], [`EngineError::InvalidBucketState`] when the bucket's object lock, or its lack, does not
    /// allow it, [`EngineError::QuotaBelowUsage`] and failures of the device.
    pub async fn change_bucket(&self, bucket: &Bucket, change: BucketChange) -> Result<(), EngineError> {
        let (reply, answer) = oneshot::channel();
        self.send_control(ControlJob::Change(bucket.id, bucket.name.clone(), change, reply))?;
        self.bucket_figures.counted(answer.await.map_err(|_| EngineError::ShuttingDown)?)
    }

    pub(crate) fn send_control(&self, job: ControlJob) -> Result<(), EngineError> {
        let control = self.control.lock().unwrap_or_else(PoisonError::into_inner);
        control.send(job).map_err(|_| EngineError::ShuttingDown)
    }

    /// Figures of the whole store.
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
            let space = slice.space.state();
            let holes = space.hole_units * UNIT_BYTES;
            usage.volume_bytes += slice.volume_bytes().saturating_sub(holes);
            usage.free_volume_bytes += space.free_units * UNIT_BYTES;
            usage.reclaimed_bytes += holes;
            usage.metadata_bytes += slice.environment.used();
            usage.oldest_read = usage.oldest_read.max(slice.environment.oldest_read().unwrap_or_default());
            usage.stale_readers += slice.environment.stale_readers();
            usage.reserved_bytes += slice.space.reserved_units() * UNIT_BYTES;
        }
        usage
    }

    /// Blocks that failed their checks since the start.
    #[must_use]
    pub fn corruptions(&self) -> u64 {
        self.events.damage_count()
    }

    /// Where the scrub stands.
    #[must_use]
    pub fn scrub(&self) -> &ScrubStatus {
        &self.scrub
    }

    /// The slice of a key.
    pub(crate) fn slice_of(&self, bucket: &Bucket, key: &ObjectKey) -> Result<&Arc<Slice>, EngineError> {
        let count = u16::try_from(self.slices.len()).unwrap_or(SLICES_MAX);
        let number = keys::slice_of(bucket.id, key.as_bytes(), count);
        self.slices.get(usize::from(number)).ok_or(EngineError::ShuttingDown)
    }
}

/// Starts a thread of the store. A panic in it ends the process: what it left half-done is unknown, and the next start
/// recovers.
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

/// A write beyond the process's file size limit shall fail with `EFBIG`, which is handled like a full disk, instead of
/// ending the process.
fn ignore_file_size_signal() {
    #[expect(unsafe_code, reason = "there is no safe way to set a signal's disposition")]
    // SAFETY: ignoring a signal runs no code in a handler, and nothing else of this process handles SIGXFSZ.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

/// Locked while the store is open.
pub(crate) const LOCK_FILE: &str = "lock";

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

/// LMDB's locks and maps, and direct I/O, do not hold over a network.
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

fn create(files: &Files, data_dir: &Path, options: &StoreOptions) -> Result<Superblock, OpenError> {
    let cores = std::thread::available_parallelism().map_or(2, std::num::NonZeroUsize::get);
    let by_cores = u16::try_from(cores).unwrap_or(SLICES_MAX).max(2);
    let slices = options.slices.unwrap_or(by_cores).clamp(1, SLICES_MAX);
    let mut id = [0u8; 16];
    getrandom::fill(&mut id).map_err(std::io::Error::other).doing("making an identity for", data_dir)?;
    let superblock = Superblock { store: StoreId(id), slices };
    superblock::begin_creation(data_dir)?;
    Control::create(data_dir, superblock.store)?;
    for number in 0..slices {
        Slice::create(files, data_dir, superblock, number)?;
    }
    for made in ["slices", "control"] {
        superblock::sync_folder(&data_dir.join(made))?;
    }
    superblock::mark_all_unmade(data_dir)?;
    superblock::create(data_dir, &options.master_key, superblock.store, slices)?;
    Ok(superblock)
}

/// Sums the slices' usage into the buckets. A sum over slices that belongs to no bucket is damage.
fn load_usage(
    data_dir: &Path,
    slices: &[Arc<Slice>],
    buckets: &BTreeMap<BucketName, Arc<Bucket>>,
) -> Result<(), OpenError> {
    let by_id: HashMap<u64, &Arc<Bucket>> = buckets.values().map(|bucket| (bucket.id, bucket)).collect();
    for slice in slices {
        let loaded = slice.each_usage(|id, usage| match by_id.get(&id) {
            Some(bucket) => bucket.load_usage(usage),
            None => tracing::warn!(target: "service::engine", slice = slice.number, id, objects = usage.objects, "usage of a bucket that does not exist"),
        });
        loaded.map_err(|error| OpenError::Damaged { path: data_dir.to_owned(), what: error.to_string() })?;
    }
    Ok(())
}
