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
pub(crate) mod volume_space;

use crate::counters::CommitterCounters;
use crate::device::files::Files;
use crate::device::volume::{Volume, volume_numbers, volume_path};
use crate::error::{EngineError, OpenContext, OpenError};
use crate::fault::Faults;
use crate::fault_reports::{FaultReports, FoundWhile, StoreFault};
use crate::format::codec;
use crate::format::extent::Extent;
use crate::format::format_version::FORMAT_VERSION;
use crate::format::free_map;
use crate::format::superblock::{Superblock, sync_folder};
use crate::format::usage_record;
use crate::limits::{SLICES_MAX, first_volume_bytes};
use crate::slice::change_log::ChangeLog;
use crate::slice::due_states::{DueStates, read_due_states};
use crate::slice::event_source::EventSource;
use crate::slice::queue::Queue;
use crate::slice::stopped::Stopped;
use crate::slice::tables::{
    SEQUENCE_KEY, Tables, check_identity, last_tick, open_environment, write_first_records,
};
use crate::slice::volume_space::VolumeSpace;
use crate::types::bucket::Usage;
use cairn_lmdb::{Environment, FlushFailures, LogOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Distance between two sequences of one slice.
const SEQUENCE_STEP: u64 = 256;
const _: () = assert!(SEQUENCE_STEP > SLICES_MAX as u64, "each slice has sequences of its own");

/// The state that requests and the committer share.
#[derive(Default)]
pub(crate) struct Commits {
    pub(crate) queue: Queue,
    pub(crate) counters: CommitterCounters,
    /// Set when a commit failed, so that its outcome is unknown. Cleared when the metadata was recovered.
    pub(crate) stopped: Stopped,
}

/// Failures of the device, shared by all slices of the store.
pub(crate) struct Failures {
    pub(crate) reports: Arc<FaultReports>,
    /// After a further failed flush, what was not flushed before may be lost (`maintenance/recovery.rs`).
    pub(crate) flushes: FlushFailures,
}

/// One slice of the store.
pub(crate) struct Slice {
    pub(crate) number: u16,
    pub(crate) folder: PathBuf,
    pub(crate) superblock: Superblock,
    pub(crate) faults: Faults,
    pub(crate) failures: Failures,
    pub(crate) environment: Environment,
    pub(crate) tables: Tables,
    pub(crate) space: VolumeSpace,
    pub(crate) commits: Commits,
    pub(crate) change_log: ChangeLog,
    pub(crate) due_states: DueStates,
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
        let failures = FlushFailures::default();
        let (environment, tables) = open_environment(&folder, (None, &failures), FORMAT_VERSION)?;
        write_first_records(&environment, tables, superblock, number, &meta)?;
        let path = volume_path(&folder, 0);
        Volume::create(
            files,
            &failures,
            &folder,
            superblock.store,
            number,
            0,
            first_volume_bytes(superblock.slices),
        )
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
        (superblock, format_version): (Superblock, u32),
        (log, flush_failures): (Option<LogOptions>, &FlushFailures),
        fault_reports: &Arc<FaultReports>,
        events: EventSource,
    ) -> Result<Arc<Self>, OpenError> {
        let folder = Self::folder_of(data_dir, number);
        let meta = folder.join("meta");
        Environment::check_exists(&meta).doing("opening", &meta)?;
        let (environment, tables) = open_environment(&folder, (log, flush_failures), format_version)?;
        check_identity(&environment, tables, superblock, number, &folder)?;
        let mut volumes = Vec::new();
        let files = Files::on(faults);
        for volume in volume_numbers(&files, &folder)? {
            volumes.push(Arc::new(Volume::open(
                &files,
                flush_failures,
                &folder,
                superblock.store,
                number,
                volume,
            )?));
        }
        let slice = Self {
            number,
            superblock,
            faults: faults.clone(),
            failures: Failures { reports: Arc::clone(fault_reports), flushes: flush_failures.clone() },
            environment,
            tables,
            space: VolumeSpace::new(volumes),
            commits: Commits::default(),
            change_log: ChangeLog::default(),
            due_states: DueStates::default(),
            events,
            folder,
        };
        slice.load_free_map()?;
        let last = last_tick(&slice.environment, slice.tables.events).doing("reading", &meta)?;
        slice.events.signal.continue_after(last);
        slice.load_due_states()?;
        let damaged = |error: EngineError| OpenError::Damaged { path: meta.clone(), what: error.to_string() };
        if slice.sequence().map_err(damaged)? > 0 {
            slice.space.note_use();
        }
        Ok(Arc::new(slice))
    }

    /// Creates the tables that later format versions have.
    pub(crate) fn create_absent_tables(&self) -> Result<(), EngineError> {
        Ok(self.environment.create_table(self.tables.imported_ids)?)
    }

    /// Adds all units that no record owns to the allocator. The file system knows which of them are allocated.
    fn load_free_map(&self) -> Result<(), OpenError> {
        let meta = self.folder.join("meta");
        let volumes = self.space.volumes.read().clone();
        let mut allocations = Vec::with_capacity(volumes.len());
        for volume in &volumes {
            allocations.push(volume.allocation().doing("mapping", &volume.path)?);
        }
        let add = |volume: usize, start: u32, end: u32| {
            if start < end {
                let free = Extent::between(volumes[volume].number, start, end);
                allocations[volume].split(free, |extent, kind| self.space.allocator.add(extent, kind));
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
                if self.commits.stopped.set(reason.clone()) {
                    self.failures.reports.report(&StoreFault::ChangesStopped { reason: &reason });
                }
            }
            EngineError::Corrupt(what) => self.failures.reports.report(&StoreFault::Damage {
                object: &format!("slice {slice}"),
                version: None,
                what,
                found_while: FoundWhile::Committing,
            }),
            _ => {}
        }
    }
}
