//! A slice: one shard of the store, with its own metadata, volumes and threads.
//!
//! The hash of a key decides which slice holds it. All versions of one key are in one slice. One thread, the committer, decides
//! every change of the slice; a second one, the maintainer, grows its volumes. Readers on any executor read the metadata from
//! LMDB snapshots without locks.
//!
//! Versions and uploads are identified by sequences. The sequences of slice n are n more than a multiple of 256, so that no
//! two slices assign the same one.

pub(crate) mod change_log;
pub(crate) mod command;
pub(crate) mod due_states;
pub(crate) mod event_source;
pub(crate) mod lookup;
pub(crate) mod queue;
pub(crate) mod staged;
pub(crate) mod stopped;
pub(crate) mod tables;
pub(crate) mod version_chain;

use crate::counters::CommitterCounters;
use crate::device::files::Files;
use crate::device::volume::{Volume, volume_numbers, volume_path};
use crate::error::{EngineError, OpenContext, OpenError};
use crate::fault::Faults;
use crate::fault_reports::{FaultReports, FoundWhile, StoreFault};
use crate::format::codec;
use crate::format::extent::Extent;
use crate::format::free_map;
use crate::format::superblock::{Superblock, sync_folder};
use crate::format::usage_record;
use crate::limits::{SLICES_MAX, UNIT_BYTES, first_volume_bytes};
use crate::slice::change_log::ChangeLog;
use crate::slice::due_states::{DueStates, read_due_states};
use crate::slice::event_source::EventSource;
use crate::slice::queue::Queue;
use crate::slice::stopped::Stopped;
use crate::slice::tables::{
    SEQUENCE_KEY, Tables, check_identity, last_tick, open_environment, write_first_records,
};
use crate::space::allocator::{Allocator, MinExtent};
use crate::space::reservation::Reservation;
use crate::types::bucket::Usage;
use cairn_lmdb::{Environment, LogOptions};
use futures_channel::oneshot;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};

/// Distance between two sequences of one slice.
const SEQUENCE_STEP: u64 = 256;
const _: () = assert!(SEQUENCE_STEP > SLICES_MAX as u64, "each slice has sequences of its own");

/// A request to the maintainer for free space.
pub(crate) struct GrowthRequest {
    /// Bytes of free space that the caller needs.
    pub(crate) bytes: u64,
    pub(crate) reply: oneshot::Sender<Result<(), EngineError>>,
}

/// Requests to the maintainer.
#[derive(Default)]
pub(crate) struct MaintenanceRequests {
    pub(crate) growth: Vec<GrowthRequest>,
    pub(crate) woken: bool,
    pub(crate) stop: bool,
}

/// One slice of the store.
pub(crate) struct Slice {
    pub(crate) number: u16,
    pub(crate) folder: PathBuf,
    pub(crate) superblock: Superblock,
    pub(crate) files: Files,
    pub(crate) faults: Faults,
    pub(crate) environment: Environment,
    pub(crate) tables: Tables,
    pub(crate) allocator: Arc<Allocator>,
    /// In order of their numbers, which begin with 0.
    pub(crate) volumes: RwLock<Vec<Arc<Volume>>>,
    pub(crate) queue: Queue,
    pub(crate) counters: CommitterCounters,
    pub(crate) change_log: ChangeLog,
    pub(crate) due_states: DueStates,
    pub(crate) maintenance: Mutex<MaintenanceRequests>,
    pub(crate) maintenance_wake: Condvar,
    /// Whether anything was ever written to the slice. Until then it keeps little space ready.
    in_use: AtomicBool,
    /// Set when a commit failed, so that its outcome is unknown. Cleared when the metadata was recovered.
    pub(crate) stopped: Stopped,
    /// Counts recoveries of volumes. Payloads that began before the last one are refused (`maintenance/recovery.rs`).
    flush_epoch: AtomicU64,
    pub(crate) fault_reports: Arc<FaultReports>,
    pub(crate) events: EventSource,
}

impl Slice {
    /// Returns the folder of slice `number`.
    pub(crate) fn folder_of(data_dir: &Path, number: u16) -> PathBuf {
        data_dir.join("slices").join(format!("{number:02}"))
    }

    /// Creates the folders, the metadata and the first volume of a slice of a new store.
    pub(crate) fn create(
        files: &Files,
        data_dir: &Path,
        superblock: Superblock,
        number: u16,
    ) -> Result<(), OpenError> {
        let folder = Self::folder_of(data_dir, number);
        let meta = folder.join("meta");
        for path in [&meta, &folder.join("volumes")] {
            std::fs::create_dir_all(path).doing("creating", path)?;
        }
        let (environment, tables) = open_environment(&folder, None)?;
        write_first_records(&environment, tables, superblock, number, &meta)?;
        let path = volume_path(&folder, 0);
        Volume::create(files, &folder, superblock.store, number, 0, first_volume_bytes(superblock.slices))
            .doing("creating with direct I/O", &path)?;
        [meta, folder].iter().try_for_each(|path| sync_folder(path))
    }

    /// Refuses a store with more slices than the superblock counts: keys would be looked up in the wrong slices.
    pub(crate) fn refuse_uncounted(data_dir: &Path, slices: u16) -> Result<(), OpenError> {
        let path = Self::folder_of(data_dir, slices);
        if path.exists() {
            let what = format!("the superblock says that there are {slices} slices, from 00 on");
            return Err(OpenError::Damaged { path, what });
        }
        Ok(())
    }

    /// Opens a slice, checks that it belongs to the store, and reads its free map.
    pub(crate) fn open(
        faults: &Faults,
        (data_dir, number): (&Path, u16),
        superblock: Superblock,
        log: Option<LogOptions>,
        fault_reports: &Arc<FaultReports>,
        events: EventSource,
    ) -> Result<Arc<Self>, OpenError> {
        let folder = Self::folder_of(data_dir, number);
        let meta = folder.join("meta");
        Environment::check_exists(&meta).doing("opening", &meta)?;
        let (environment, tables) = open_environment(&folder, log)?;
        check_identity(&environment, tables, superblock, number, &folder)?;
        let mut volumes = Vec::new();
        let files = Files::on(faults);
        for volume in volume_numbers(&files, &folder)? {
            volumes.push(Arc::new(Volume::open(&files, &folder, superblock.store, number, volume)?));
        }
        let slice = Self {
            number,
            superblock,
            files,
            faults: faults.clone(),
            environment,
            tables,
            allocator: Arc::new(Allocator::default()),
            volumes: RwLock::new(volumes),
            queue: Queue::default(),
            counters: CommitterCounters::default(),
            change_log: ChangeLog::default(),
            due_states: DueStates::default(),
            maintenance: Mutex::default(),
            maintenance_wake: Condvar::new(),
            in_use: AtomicBool::new(false),
            stopped: Stopped::default(),
            flush_epoch: AtomicU64::new(0),
            fault_reports: Arc::clone(fault_reports),
            events,
            folder,
        };
        slice.load_free_map()?;
        let last = last_tick(&slice.environment, slice.tables.events).doing("reading", &meta)?;
        slice.events.signal.continue_after(last);
        slice.load_due_states()?;
        let damaged = |error: EngineError| OpenError::Damaged { path: meta.clone(), what: error.to_string() };
        if slice.sequence().map_err(damaged)? > 0 {
            slice.note_use();
        }
        Ok(Arc::new(slice))
    }

    /// Adds all units that no record owns to the allocator. The file system knows which of them are allocated.
    fn load_free_map(&self) -> Result<(), OpenError> {
        let meta = self.folder.join("meta");
        let volumes = self.volumes.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut allocations = Vec::with_capacity(volumes.len());
        for volume in &volumes {
            allocations.push(volume.allocation().doing("mapping", &volume.path)?);
        }
        let add = |volume: usize, start: u32, end: u32| {
            if start < end {
                let free = Extent::between(volumes[volume].number, start, end);
                allocations[volume].split(free, |extent, kind| self.allocator.add(extent, kind));
            }
        };
        // The first unit after the owned runs so far. Unit 0 of each volume is its header.
        let mut next_free: Vec<u32> = vec![1; volumes.len()];
        let mut outside = None;
        let txn = self.environment.read().doing("reading", &meta)?;
        free_map::owned_runs(&txn, self.tables.free_map, |owned| {
            let index = owned.volume as usize;
            let (start, end) = (owned.start, owned.start + owned.units);
            match next_free.get_mut(index).filter(|_| end <= volumes[index].units()) {
                Some(next) => {
                    add(index, *next, start);
                    *next = end;
                }
                None => outside = Some(owned),
            }
        })
        .map_err(|error| OpenError::Damaged { path: meta.clone(), what: error.to_string() })?;
        if let Some(owned) = outside {
            let end = owned.start + owned.units;
            let what = format!("missing or truncated: objects own its units up to {end}");
            return Err(OpenError::Damaged { path: volume_path(&self.folder, owned.volume), what });
        }
        for (index, next) in next_free.into_iter().enumerate() {
            add(index, next, volumes[index].units());
        }
        Ok(())
    }

    /// Reads which buckets have a due index.
    fn load_due_states(&self) -> Result<(), OpenError> {
        let meta = self.folder.join("meta");
        let txn = self.environment.read().doing("reading", &meta)?;
        let states = read_due_states(&txn, &self.tables);
        self.due_states
            .set(states.map_err(|error| OpenError::Damaged { path: meta.clone(), what: error.to_string() })?);
        Ok(())
    }

    /// Notes that something is written to the slice. Returns whether it is the first time.
    pub(crate) fn note_use(&self) -> bool {
        !self.is_in_use() && !self.in_use.swap(true, Ordering::Relaxed)
    }

    /// Returns whether anything was ever written to the slice.
    pub(crate) fn is_in_use(&self) -> bool {
        self.in_use.load(Ordering::Relaxed)
    }

    /// Reads the last sequence that was assigned.
    pub(crate) fn sequence(&self) -> Result<u64, EngineError> {
        let txn = self.environment.read()?;
        let record = txn.get(self.tables.slice, SEQUENCE_KEY)?;
        record
            .and_then(|record| codec::decode_u64(record.body))
            .ok_or_else(|| EngineError::Corrupt(format!("slice {} has no sequence", self.number)))
    }

    /// Returns the sequence that follows `last` in this slice.
    pub(crate) const fn sequence_after(&self, last: u64) -> u64 {
        (last / SEQUENCE_STEP + 1) * SEQUENCE_STEP + self.number as u64
    }

    /// Calls `found` with the id and the usage of every bucket in this slice.
    pub(crate) fn each_usage(&self, mut found: impl FnMut(u64, &Usage)) -> Result<(), EngineError> {
        let txn = self.environment.read()?;
        for item in txn.scan(self.tables.usage, &[])? {
            let (key, record) = item?;
            let bucket = key.try_into().ok().map(u64::from_be_bytes);
            let usage = bucket.zip(usage_record::decode(record));
            let (bucket, usage) =
                usage.ok_or_else(|| EngineError::Corrupt("a usage record is invalid".to_owned()))?;
            found(bucket, &usage);
        }
        Ok(())
    }

    /// Returns volume `number`, if it exists.
    pub(crate) fn volume(&self, number: u32) -> Option<Arc<Volume>> {
        let volumes = self.volumes.read().unwrap_or_else(PoisonError::into_inner);
        volumes.get(number as usize).cloned()
    }

    /// Stops all changes of the slice after a failure of the device, and reports damage.
    ///
    /// After a failure it is unknown what the device holds of the metadata, so nothing more is written. A lack of space and a
    /// record that fails its check do not stop the slice: the transaction was dropped, and the earlier state is intact.
    pub(crate) fn stop_if_broken(&self, error: &EngineError) {
        let slice = self.number;
        match error {
            EngineError::Io(_) => {
                let reason = format!(
                    "slice {slice} was stopped after a failure: {error}; it resumes when the device works again, \
                     otherwise restart the service"
                );
                if self.stopped.set(reason.clone()) {
                    self.fault_reports.report(&StoreFault::ChangesStopped { reason: &reason });
                }
            }
            EngineError::Corrupt(what) => self.fault_reports.report(&StoreFault::Damage {
                object: &format!("slice {slice}"),
                version: None,
                what,
                found_while: FoundWhile::Committing,
            }),
            _ => {}
        }
    }

    /// Returns the flush epoch. A payload reads it before its first write.
    pub(crate) fn flush_epoch(&self) -> u64 {
        self.flush_epoch.load(Ordering::SeqCst)
    }

    /// Begins a flush epoch: payloads that began earlier are refused from now on.
    pub(crate) fn begin_flush_epoch(&self) {
        self.flush_epoch.fetch_add(1, Ordering::SeqCst);
    }

    /// Reserves extents for `bytes` bytes. Waits until the volume has grown, if necessary.
    pub(crate) async fn reserve(&self, bytes: u64) -> Result<Reservation, EngineError> {
        /// Other payloads may take the space that was added for this one. After so many rounds the store counts as full.
        const ROUNDS_MAX: usize = 16;
        let mut shortest = MinExtent::Long;
        for _ in 0..ROUNDS_MAX {
            self.note_use();
            if let Some(reservation) = self.allocator.reserve(bytes, shortest) {
                if self.allocator.needs_maintenance() {
                    self.wake_maintainer();
                }
                return Ok(reservation);
            }
            match self.request_growth(bytes)?.await.map_err(|_| EngineError::ShuttingDown)? {
                Ok(()) => {}
                // The remaining space may suffice in short extents.
                Err(EngineError::StorageFull) if shortest == MinExtent::Long => {
                    shortest = MinExtent::OneBlock;
                }
                Err(error) => return Err(error),
            }
        }
        Err(EngineError::StorageFull)
    }

    fn request_growth(&self, bytes: u64) -> Result<oneshot::Receiver<Result<(), EngineError>>, EngineError> {
        let (reply, grown) = oneshot::channel();
        let mut requests = self.maintenance.lock().unwrap_or_else(PoisonError::into_inner);
        if requests.stop {
            return Err(EngineError::ShuttingDown);
        }
        requests.growth.push(GrowthRequest { bytes, reply });
        self.maintenance_wake.notify_one();
        Ok(grown)
    }

    /// Wakes the maintainer, so that it checks what there is to do.
    pub(crate) fn wake_maintainer(&self) {
        let mut requests = self.maintenance.lock().unwrap_or_else(PoisonError::into_inner);
        if !requests.woken {
            requests.woken = true;
            self.maintenance_wake.notify_one();
        }
    }

    /// Returns the units of the volumes that are allocated on the disk.
    pub(crate) fn allocated_units(&self) -> u64 {
        (self.volume_bytes() / UNIT_BYTES).saturating_sub(self.allocator.free_space().hole_units)
    }

    /// Returns the total length of the volumes' files in bytes, including holes.
    pub(crate) fn volume_bytes(&self) -> u64 {
        let volumes = self.volumes.read().unwrap_or_else(PoisonError::into_inner);
        volumes.iter().map(|volume| u64::from(volume.units()) * UNIT_BYTES).sum()
    }
}
