//! The keeper of a slice: the thread that grows volumes, writes free space ahead, gives surplus space back to the file
//! system (`reclaim.rs`), and watches the disk's free space.
//!
//! Growing first allocates again what was given back. Then it is preallocation plus a flush of the new length, so that no
//! unit is handed out that a power cut could take away again. Writing ahead turns preallocated space into written space while nobody waits for it.

use crate::allocation::FreeKind;
use crate::error::EngineError;
use crate::events::StoreEvent;
use crate::extent::units_for;
use crate::limits::{
    BLOCK_BYTES, BLOCK_UNITS, FREE_LOW_UNITS, GROWTH_BYTES_MAX, GROWTH_BYTES_MIN, METADATA_HEADROOM,
    METADATA_HEADROOM_LOW, READ_AGE_MAX, READERS_CHECK_INTERVAL, SPACE_CHECK_INTERVAL, UNIT_BYTES,
};
use crate::reclaim::Reclaim;
use crate::slice::Slice;
use crate::volume::Volume;
use futures_channel::oneshot;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Units that are written ahead between two looks at the requests (8 MiB).
const WRITE_AHEAD_UNITS: u64 = (8 << 20) / UNIT_BYTES;

/// Free space of the file system that holds the store.
#[derive(Debug)]
pub(crate) struct DiskSpace {
    path: PathBuf,
    reserve_bytes: u64,
    available_bytes: AtomicU64,
    capacity_bytes: AtomicU64,
    low: AtomicBool,
    /// One volume grows at a time, each looking at what the others have left: together they must not use up the reserve.
    growing: Mutex<()>,
}

impl DiskSpace {
    pub(crate) fn new(path: PathBuf, reserve_bytes: u64) -> Self {
        let space = Self {
            path,
            reserve_bytes,
            available_bytes: AtomicU64::new(0),
            capacity_bytes: AtomicU64::new(0),
            low: AtomicBool::new(false),
            growing: Mutex::new(()),
        };
        space.look();
        space
    }

    /// Asks the file system; blocks, so only plain threads call it. Returns the bytes above the reserve.
    fn look(&self) -> u64 {
        let Ok(stat) = rustix::fs::statvfs(&self.path) else { return 0 };
        let available = stat.f_bavail.saturating_mul(stat.f_frsize);
        self.available_bytes.store(available, Ordering::Relaxed);
        self.capacity_bytes.store(stat.f_blocks.saturating_mul(stat.f_frsize), Ordering::Relaxed);
        let low = available < self.reserve_bytes;
        if self.low.swap(low, Ordering::Relaxed) != low {
            if low {
                tracing::warn!(target: "service::engine", available, reserve = self.reserve_bytes, "disk space is below the reserve: new writes are refused");
            } else {
                tracing::info!(target: "service::engine", available, "disk space is above the reserve again");
            }
        }
        available.saturating_sub(self.reserve_bytes)
    }

    /// Whether less than the reserve is free, as of the last look.
    pub(crate) fn is_low(&self) -> bool {
        self.low.load(Ordering::Relaxed)
    }

    /// The data folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Size of the file system in bytes, as of the last look.
    pub(crate) fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes.load(Ordering::Relaxed)
    }

    /// Free bytes as of the last look.
    pub(crate) fn available_bytes(&self) -> u64 {
        self.available_bytes.load(Ordering::Relaxed)
    }
}

/// Runs until the slice's keeper is told to stop.
pub(crate) fn run(slice: &Arc<Slice>, disk: &DiskSpace, reclaim: &mut Reclaim) {
    let mut writes_ahead = true;
    let mut pause = SPACE_CHECK_INTERVAL;
    let mut readers_seen = Instant::now();
    let mut reported = BTreeSet::new();
    loop {
        #[cfg(feature = "simulation")]
        slice.files.enter_stage(crate::simulation::stage::Actor::Keeper(slice.number));
        let state = slice.space.state();
        let wanted_ahead = if writes_ahead { state.wanted_written_units } else { 0 };
        let mut requests = slice.keeper.lock().unwrap_or_else(PoisonError::into_inner);
        if requests.growth.is_empty() && !requests.woken && !requests.stop && wanted_ahead == 0 {
            let waited = slice.keeper_wake.wait_timeout(requests, pause);
            requests = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let waiting = std::mem::take(&mut requests.growth);
        requests.woken = false;
        if requests.stop {
            report_failed_volumes(slice, &mut reported);
            // Dropping the requests tells those who wait that the store is closing.
            return;
        }
        drop(requests);

        report_failed_volumes(slice, &mut reported);
        disk.look();
        if waiting.is_empty() && state.free_units < FREE_LOW_UNITS {
            // Nobody waits, so nobody is told; who needs the space will ask.
            let _ = grow(slice, disk, 0);
        }
        answer_growth(slice, disk, waiting);
        keep_metadata_headroom(slice, disk);
        if wanted_ahead > 0 {
            writes_ahead = write_ahead(slice, wanted_ahead);
        }
        if readers_seen.elapsed() >= READERS_CHECK_INTERVAL {
            readers_seen = Instant::now();
            look_at_readers(slice);
        }
        let until_reclaim = reclaim.step(slice, Instant::now());
        pause = until_reclaim.map_or(SPACE_CHECK_INTERVAL, |wait| wait.min(SPACE_CHECK_INTERVAL));
    }
}

/// Reports each volume that has become read-only, whichever thread's flush it was that failed.
fn report_failed_volumes(slice: &Slice, reported: &mut BTreeSet<u32>) {
    let volumes = slice.volumes.read().unwrap_or_else(PoisonError::into_inner);
    for volume in volumes.iter().filter(|volume| volume.failed()) {
        if reported.insert(volume.number) {
            slice.events.report(&StoreEvent::VolumeReadOnly { path: &volume.path.display().to_string() });
        }
    }
}

/// Grows for all who wait at once, or, when that is too much, for one after the other while space lasts.
fn answer_growth(
    slice: &Slice,
    disk: &DiskSpace,
    waiting: Vec<(u64, oneshot::Sender<Result<(), EngineError>>)>,
) {
    if waiting.is_empty() {
        return;
    }
    let all = grow(slice, disk, waiting.iter().map(|(bytes, _)| *bytes).sum());
    let singly = waiting.len() > 1 && matches!(all, Err(EngineError::StorageFull));
    for (bytes, reply) in waiting {
        let _ = reply.send(if singly { grow(slice, disk, bytes) } else { all.clone() });
    }
}

/// A reader that does not end, or whose process has ended, keeps the pages freed since from being used.
fn look_at_readers(slice: &Slice) {
    if let Err(error) = slice.environment.clear_stale_readers() {
        tracing::warn!(target: "service::engine", slice = slice.number, %error, "stale readers could not be cleared");
    }
    if let Some(age) = slice.environment.oldest_read().filter(|age| *age > READ_AGE_MAX) {
        tracing::warn!(target: "service::engine", slice = slice.number, seconds = age.as_secs(), "a read transaction has been open for long: the metadata grows meanwhile");
    }
}

/// Restores the written space behind the metadata's last page while there is space above the reserve.
fn keep_metadata_headroom(slice: &Slice, disk: &DiskSpace) {
    if slice.environment.headroom() >= METADATA_HEADROOM_LOW || disk.look() < METADATA_HEADROOM {
        return;
    }
    if let Err(error) = slice.environment.extend(METADATA_HEADROOM).map_err(EngineError::from) {
        slice.stop_if_broken(&error);
        tracing::warn!(target: "service::engine", slice = slice.number, %error, "no space to write ahead for metadata");
    }
}

/// Units of a growth step of a slice that has allocated `units` units.
pub(crate) fn growth_step(units: u64) -> u64 {
    (units * UNIT_BYTES / 4).clamp(GROWTH_BYTES_MIN, GROWTH_BYTES_MAX) / BLOCK_BYTES as u64 * BLOCK_UNITS
}

/// Adds at least `wanted` bytes of free space in one run, or a few long ones; 0: a step ahead of need, which takes no more than half of
/// what is above the reserve.
fn grow(slice: &Slice, disk: &DiskSpace, wanted: u64) -> Result<(), EngineError> {
    let _one_at_a_time = disk.growing.lock().unwrap_or_else(PoisonError::into_inner);
    let available = if wanted > 0 { disk.look() } else { disk.look() / 2 };
    let block = BLOCK_BYTES as u64;
    let needed = (units_for(wanted) * UNIT_BYTES).next_multiple_of(block) + block;
    let volumes = slice.volumes.read().unwrap_or_else(PoisonError::into_inner).clone();
    let Some(last) = volumes.last() else { return Err(EngineError::StorageFull) };
    let step = (growth_step(slice.allocated_units()) * UNIT_BYTES).max(needed).min(available / block * block);
    if step < needed {
        return if wanted > 0 { Err(EngineError::StorageFull) } else { Ok(()) };
    }
    if last.failed() {
        return Err(EngineError::Io("the volume is read-only after a failed flush".to_owned()));
    }
    let holes = slice.space.take_holes(step / UNIT_BYTES, needed / UNIT_BYTES);
    let grown = if !holes.is_empty() {
        allocate_again(slice, holes)
    } else if last.room() < step {
        add_volume(slice, last.number + 1, step)
    } else {
        extend(slice, last, step)
    };
    grown.map_err(|error| {
        tracing::warn!(target: "service::engine", slice = slice.number, %error, step, "a volume could not grow");
        match error.raw_os_error() {
            Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG) => EngineError::StorageFull,
            _ => EngineError::Io(format!("growing a volume: {error}")),
        }
    })
}

/// Allocates what was given back to the file system. Stops at the first failure: the rest are holes as before.
fn allocate_again(slice: &Slice, holes: Vec<(u64, u64)>) -> std::io::Result<()> {
    let mut failed = None;
    for (address, units) in holes {
        let first = address & 0xFFFF_FFFF;
        let volume = u32::try_from(address >> 32).ok().and_then(|number| slice.volume(number));
        let Some(volume) = volume.filter(|_| failed.is_none()) else {
            slice.space.add(address, units, FreeKind::Hole);
            continue;
        };
        match volume.allocate(first, units) {
            Ok(()) => slice.space.add(address, units, FreeKind::Fresh),
            Err(error) => {
                // A part of it may have been allocated; the disk is full, so that goes back.
                let _ = volume.punch(first, units);
                slice.space.add(address, units, FreeKind::Hole);
                failed = Some(error);
            }
        }
    }
    failed.map_or(Ok(()), Err)
}

fn extend(slice: &Slice, volume: &Volume, step: u64) -> std::io::Result<()> {
    let before = volume.units();
    volume.grow_to(before * UNIT_BYTES + step)?;
    let first = (u64::from(volume.number) << 32) | before;
    slice.space.add(first, volume.units() - before, FreeKind::Fresh);
    tracing::debug!(target: "service::engine", slice = slice.number, volume = volume.number, units = volume.units(), "volume grown");
    Ok(())
}

fn add_volume(slice: &Slice, number: u32, bytes: u64) -> std::io::Result<()> {
    let volume =
        Volume::create(&slice.files, &slice.folder, slice.superblock.store, slice.number, number, bytes)?;
    let units = volume.units();
    slice.volumes.write().unwrap_or_else(PoisonError::into_inner).push(Arc::new(volume));
    slice.space.add((u64::from(number) << 32) | 1, units - 1, FreeKind::Fresh);
    Ok(())
}

/// Writes a piece of fresh space, then gives it back as written. `false` when that failed and should not be tried again.
fn write_ahead(slice: &Slice, wanted: u64) -> bool {
    let Some((address, units)) = slice.space.take_fresh(wanted.min(WRITE_AHEAD_UNITS)) else { return true };
    let volume = u32::try_from(address >> 32).ok().and_then(|number| slice.volume(number));
    let written = volume.map(|volume| volume.write_ahead(address & 0xFFFF_FFFF, units));
    match written {
        Some(Ok(())) => {
            slice.space.add(address, units, FreeKind::Written);
            true
        }
        failed => {
            let error = failed.and_then(Result::err);
            tracing::error!(target: "service::engine", slice = slice.number, ?error, "writing ahead failed: the space is kept out of use");
            false
        }
    }
}
