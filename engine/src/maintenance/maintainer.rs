//! The maintainer of a slice: the thread that manages its volumes.
//!
//! It grows volumes, writes free space in advance, gives surplus space back to the file system (`reclaim.rs`), keeps written
//! space after the last page of the metadata file, and measures the free space of the disk. After a failure of the device it
//! recovers the slice (`recovery.rs`).
//!
//! Growing first allocates holes again. Only then does it preallocate space at the end of a volume and flush the new length,
//! so that no unit is handed out that a power cut could take away. Writing in advance turns preallocated space into written
//! space while no upload waits for it.

use crate::device::disk_space::DiskSpace;
use crate::device::file_map::FreeKind;
use crate::device::files::Files;
use crate::device::volume::Volume;
use crate::error::EngineError;
use crate::fault_reports::StoreFault;
use crate::format::extent::{Extent, units_for};
use crate::limits::{
    BLOCK_BYTES, FREE_LOW_UNITS, METADATA_HEADROOM, METADATA_HEADROOM_LOW, READ_AGE_MAX,
    READERS_CHECK_INTERVAL, SPACE_CHECK_INTERVAL, UNIT_BYTES, unused_headroom,
};
use crate::maintenance::reclaim::Reclaim;
use crate::maintenance::recovery::Recovery;
use crate::slice::Slice;
use crate::slice::volume_space::GrowthRequest;
use crate::space::growth::growth_step;
use cairn_model::u64_of;
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Units that are written in advance before the maintainer checks its requests again (8 MiB).
const WRITE_AHEAD_UNITS: u64 = (8 << 20) / UNIT_BYTES;

/// Runs until the slice's maintainer is told to stop.
pub(crate) fn run(slice: &Arc<Slice>, disk: &DiskSpace, reclaim: &mut Reclaim) {
    let mut writes_ahead = true;
    let mut pause = SPACE_CHECK_INTERVAL;
    let mut readers_checked = Instant::now();
    let mut reported = BTreeSet::new();
    let mut recovery = Recovery::new();
    loop {
        slice.faults.maintainer_is_idle(slice.number);
        let space = slice.space.allocator.free_space();
        let wanted_ahead = if writes_ahead { space.wanted_written_units } else { 0 };
        let requests = wait_for_requests(slice, wanted_ahead == 0, pause);
        report_failed_volumes(slice, &mut reported);
        if let Some(failure) = slice.environment.log_failure() {
            slice.stop_if_broken(&EngineError::Io(failure));
        }
        recovery.step(slice, disk, Instant::now());
        let Some(requests) = requests else { return };
        disk.measure();
        if requests.is_empty() && slice.space.is_in_use() && space.free_units < FREE_LOW_UNITS {
            // No upload waits for this space, so a failure is reported to none. An upload that needs space will request it.
            let _ = grow(slice, disk, 0);
        }
        complete_growth(slice, disk, requests);
        keep_metadata_headroom(slice, disk);
        let free_units = slice.space.allocator.free_space().free_units;
        disk.note_slice(slice.number, free_units, slice.environment.headroom());
        if wanted_ahead > 0 {
            writes_ahead = write_ahead(slice, wanted_ahead);
        }
        if readers_checked.elapsed() >= READERS_CHECK_INTERVAL {
            readers_checked = Instant::now();
            check_readers(slice);
        }
        let until_reclaim = reclaim.step(slice, Instant::now());
        pause = until_reclaim.map_or(SPACE_CHECK_INTERVAL, |wait| wait.min(SPACE_CHECK_INTERVAL));
    }
}

/// Takes the requests for growth. If there is nothing to do, waits for at most `pause`. Returns `None` if the maintainer must
/// stop.
fn wait_for_requests(slice: &Slice, is_idle: bool, pause: Duration) -> Option<Vec<GrowthRequest>> {
    let mut requests = slice.space.maintenance.lock();
    if is_idle && requests.growth.is_empty() && !requests.woken && !requests.stop {
        requests = slice.space.maintenance_wake.wait_timeout(requests, pause);
    }
    let growth = std::mem::take(&mut requests.growth);
    requests.woken = false;
    // Dropping the requests tells their senders that the store is closing.
    (!requests.stop).then_some(growth)
}

/// Reports each volume that has become read-only. The failed flush may have been that of another thread.
fn report_failed_volumes(slice: &Slice, reported: &mut BTreeSet<u32>) {
    let volumes = slice.space.volumes.read();
    for volume in volumes.iter() {
        if !volume.failed() {
            reported.remove(&volume.number);
        } else if reported.insert(volume.number) {
            slice
                .failures
                .reports
                .report(&StoreFault::VolumeReadOnly { path: &volume.path.display().to_string() });
        }
    }
}

/// Grows for all requests at once. If that is too much, grows for one after the other as long as there is space.
fn complete_growth(slice: &Slice, disk: &DiskSpace, requests: Vec<GrowthRequest>) {
    if requests.is_empty() {
        return;
    }
    let all = grow(slice, disk, requests.iter().map(|request| request.bytes).sum());
    let singly = requests.len() > 1 && matches!(all, Err(EngineError::StorageFull));
    for GrowthRequest { bytes, reply } in requests {
        let _ = reply.send(if singly { grow(slice, disk, bytes) } else { all.clone() });
    }
}

/// Clears readers of the metadata whose process has ended, and warns about a long read transaction. Both prevent the reuse of
/// freed pages.
fn check_readers(slice: &Slice) {
    if let Err(error) = slice.environment.clear_stale_readers() {
        tracing::warn!(target: "service::engine", slice = slice.number, %error, "stale readers could not be cleared");
    }
    if let Some(age) = slice.environment.oldest_read_age().filter(|age| *age > READ_AGE_MAX) {
        tracing::warn!(target: "service::engine", slice = slice.number, seconds = age.as_secs(), "a read transaction has been open for a long time: the metadata grows meanwhile");
    }
}

/// Restores the written space after the metadata's last page, if there is enough space above the reserve.
fn keep_metadata_headroom(slice: &Slice, disk: &DiskSpace) {
    let (low, wanted) = if slice.space.is_in_use() {
        (METADATA_HEADROOM_LOW, METADATA_HEADROOM)
    } else {
        let unused = unused_headroom(slice.superblock.slices);
        (unused / 2, unused)
    };
    let is_enough = slice.environment.headroom() >= low;
    if is_enough || slice.commits.stopped.is_set() || disk.measure() < wanted {
        return;
    }
    if let Err(error) = slice.environment.extend(wanted).map_err(EngineError::from) {
        slice.stop_if_broken(&error);
        tracing::warn!(target: "service::engine", slice = slice.number, %error, "the metadata file could not be extended in advance");
    }
}

/// Adds at least `wanted` bytes of free space, in one run or a few long ones.
///
/// With `wanted` 0 the slice grows in advance by one step, which takes at most half of the disk space above the reserve.
fn grow(slice: &Slice, disk: &DiskSpace, wanted: u64) -> Result<(), EngineError> {
    let _one_at_a_time = disk.growing.lock();
    let available = if wanted > 0 { disk.measure() } else { disk.measure() / 2 };
    let block = u64_of(BLOCK_BYTES);
    let needed = (units_for(wanted) * UNIT_BYTES).next_multiple_of(block) + block;
    let volumes = slice.space.volumes.read().clone();
    let step =
        (growth_step(slice.space.allocated_units()) * UNIT_BYTES).max(needed).min(available / block * block);
    if step < needed {
        return if wanted > 0 { Err(EngineError::StorageFull) } else { Ok(()) };
    }
    // Usually the last one. An earlier one has room after it was truncated.
    let growing = volumes.iter().rev().find(|volume| volume.room() >= step);
    if volumes.last().is_some_and(|last| last.failed()) || growing.is_some_and(|volume| volume.failed()) {
        return Err(EngineError::Io("the volume is read-only after a failed flush".to_owned()));
    }
    let holes = slice.space.allocator.take_holes(step / UNIT_BYTES, needed / UNIT_BYTES);
    let grown = if !holes.is_empty() {
        allocate_holes(slice, holes)
    } else if let Some(volume) = growing {
        extend(slice, volume, step)
    } else {
        let number = u32::try_from(volumes.len()).expect("a slice has fewer than 2^32 volumes");
        add_volume(slice, number, step)
    };
    grown.map_err(|error| {
        tracing::warn!(target: "service::engine", slice = slice.number, %error, step, "a volume could not grow");
        match error.raw_os_error() {
            Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG) => EngineError::StorageFull,
            _ => EngineError::Io(format!("growing a volume: {error}")),
        }
    })
}

/// Allocates space that was given back to the file system. Stops at the first failure; the rest are holes as before.
fn allocate_holes(slice: &Slice, holes: Vec<Extent>) -> io::Result<()> {
    let mut outcome = Ok(());
    for hole in holes {
        if outcome.is_err() {
            slice.space.allocator.add(hole, FreeKind::Hole);
            continue;
        }
        let volume = slice.space.volume(hole.volume).expect("free space is in a volume of the slice");
        match volume.allocate(hole) {
            Ok(()) => slice.space.allocator.add(hole, FreeKind::Fresh),
            Err(error) => {
                // A part of it may have been allocated. Give that back, because the disk is full.
                let _ = volume.punch(hole);
                slice.space.allocator.add(hole, FreeKind::Hole);
                outcome = Err(error);
            }
        }
    }
    outcome
}

/// Extends a volume by `step` bytes at its end.
fn extend(slice: &Slice, volume: &Volume, step: u64) -> io::Result<()> {
    let before = volume.units();
    volume.grow_to(u64::from(before) * UNIT_BYTES + step)?;
    slice.space.allocator.add(Extent::between(volume.number, before, volume.units()), FreeKind::Fresh);
    tracing::debug!(target: "service::engine", slice = slice.number, volume = volume.number, units = volume.units(), "volume grown");
    Ok(())
}

fn add_volume(slice: &Slice, number: u32, bytes: u64) -> io::Result<()> {
    let volume = Volume::create(
        &Files::on(&slice.faults),
        &slice.failures.flushes,
        &slice.folder,
        slice.superblock.store,
        slice.number,
        number,
        bytes,
    )?;
    // Unit 0 is the header.
    let free = Extent::between(number, 1, volume.units());
    slice.space.volumes.write().push(Arc::new(volume));
    slice.space.allocator.add(free, FreeKind::Fresh);
    Ok(())
}

/// Writes zeros over a run of fresh space and makes it written space. Returns `false` if that failed and must not be tried
/// again.
fn write_ahead(slice: &Slice, wanted: u64) -> bool {
    let Some(fresh) = slice.space.allocator.take_fresh(wanted.min(WRITE_AHEAD_UNITS)) else { return true };
    let volume = slice.space.volume(fresh.volume).expect("free space is in a volume of the slice");
    match volume.write_ahead(fresh) {
        Ok(()) => {
            slice.space.allocator.add(fresh, FreeKind::Written);
            true
        }
        Err(error) => {
            tracing::error!(target: "service::engine", slice = slice.number, %error, "writing in advance failed: the space is kept out of use");
            false
        }
    }
}
