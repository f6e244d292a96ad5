//! Free space of the file system, its reserve and its state.
//!
//! The state changes late in one direction, so that it does not alternate at a limit:
//!
//! | change | when |
//! |---|---|
//! | to low | less than `storage.low_space_percent` of the file system is free above the reserve |
//! | back to ok | 2 % of the file system more than that are free above it |
//! | to refusing | files cannot grow, and a slice has less than 8 MiB of free space in its volumes or no room for metadata |
//! | back | files can grow by a step, or every slice has twice as much free space and more than the least room again |
//!
//! Each change is one line in the log.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use cairn_sync::Mutex;

use crate::limits::{
    FIRST_RESERVATION_BYTES, GROWTH_BYTES_MIN, LOW_PERCENT_RECOVERY, METADATA_HEADROOM_FIRST,
    METADATA_HEADROOM_MIN, ROOM_LOW_UNITS, SLICES_MAX,
};
use crate::types::disk_state::DiskState;

const _: () = assert!(SLICES_MAX as u32 <= u64::BITS, "each slice has a bit");

/// Free space of the file system that holds the store.
#[derive(Debug)]
pub(crate) struct DiskSpace {
    path: PathBuf,
    reserve_bytes: u64,
    /// Part of the file system in percent below which free space counts as low.
    low_percent: u8,
    available_bytes: AtomicU64,
    capacity_bytes: AtomicU64,
    low: AtomicBool,
    /// A bit for each slice that has no free space in its volumes.
    full_slices: AtomicU64,
    /// A bit for each slice that has no room for metadata.
    slices_without_metadata_room: AtomicU64,
    /// A [`DiskState`].
    state: AtomicU8,
    /// Held while a volume grows. Volumes grow one at a time and measure the free space first, so that together they do not
    /// use up the reserve.
    pub(crate) growing: Mutex<()>,
}

impl DiskSpace {
    pub(crate) fn new(path: PathBuf, reserve_bytes: u64, low_percent: u8) -> Self {
        let space = Self {
            path,
            reserve_bytes,
            low_percent,
            available_bytes: AtomicU64::new(0),
            capacity_bytes: AtomicU64::new(0),
            low: AtomicBool::new(false),
            full_slices: AtomicU64::new(0),
            slices_without_metadata_room: AtomicU64::new(0),
            state: AtomicU8::new(DiskState::Ok as u8),
            growing: Mutex::new(()),
        };
        space.measure();
        space
    }

    /// Measures the free space. Returns the bytes above the reserve.
    ///
    /// Blocks, so only plain threads may call it.
    pub(crate) fn measure(&self) -> u64 {
        let Ok(stat) = rustix::fs::statvfs(&self.path) else { return 0 };
        let available = stat.f_bavail.saturating_mul(stat.f_frsize);
        self.available_bytes.store(available, Ordering::Relaxed);
        self.capacity_bytes.store(stat.f_blocks.saturating_mul(stat.f_frsize), Ordering::Relaxed);
        self.low.store(available < self.reserve_bytes, Ordering::Relaxed);
        available.saturating_sub(self.reserve_bytes)
    }

    /// Notes how much free space a slice has in its volumes, and the headroom of its metadata in bytes. Updates the state
    /// from this and from the last measurement, and logs a change.
    pub(crate) fn note_slice(&self, slice: u16, free_units: u64, metadata_headroom: u64) {
        assert!(slice < SLICES_MAX, "slices are numbered from 0");
        let bit = 1 << slice;
        let enough = |was_full| if was_full { 2 * ROOM_LOW_UNITS } else { ROOM_LOW_UNITS };
        let is_full = update(&self.full_slices, bit, |was_full| free_units < enough(was_full));
        let lacks_room = update(&self.slices_without_metadata_room, bit, |lacked_room| {
            // The free space of the file system moves around the reserve when other files change.
            let (needed, low) = if lacked_room {
                (METADATA_HEADROOM_FIRST, self.growable_bytes() < self.step_back_bytes())
            } else {
                (METADATA_HEADROOM_MIN, self.is_low())
            };
            low && metadata_headroom < needed
        });
        let has_full_slice = is_full || lacks_room;
        let before = self.state.load(Ordering::Relaxed);
        let above = self.available_bytes().saturating_sub(self.reserve_bytes);
        let next =
            next_state(state_of(before), above, self.capacity_bytes(), self.low_percent, has_full_slice);
        // Several maintainers may find the same change. One of them logs it.
        let changed = next as u8 != before
            && self.state.compare_exchange(before, next as u8, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if changed {
            self.log_change(state_of(before), next);
        }
    }

    /// Returns how far the free space must be above the reserve again before writes are accepted.
    fn step_back_bytes(&self) -> u64 {
        GROWTH_BYTES_MIN.min(self.capacity_bytes() / 50)
    }

    fn log_change(&self, before: DiskState, state: DiskState) {
        let (available, reserve) = (self.available_bytes(), self.reserve_bytes);
        let state_name = state.name();
        match state {
            DiskState::Refusing => {
                tracing::error!(target: "service::engine", available, reserve, state = state_name, "writes are refused: no disk space is left above the reserve, and too little in the volumes. Delete objects or enlarge the file system");
            }
            _ if before == DiskState::Refusing => {
                tracing::warn!(target: "service::engine", available, reserve, state = state_name, "writes are accepted again");
            }
            DiskState::Low => {
                tracing::warn!(target: "service::engine", available, reserve, state = state_name, "disk space is low: when only the reserve is left, writes are refused as soon as the volumes are full. Delete objects or enlarge the file system");
            }
            DiskState::Ok => {
                tracing::info!(target: "service::engine", available, reserve, state = state_name, "disk space is sufficient again");
            }
        }
    }

    /// Returns the state of the free space.
    pub(crate) fn state(&self) -> DiskState {
        state_of(self.state.load(Ordering::Relaxed))
    }

    /// Returns whether less than the reserve is free, as last measured.
    pub(crate) fn is_low(&self) -> bool {
        self.low.load(Ordering::Relaxed)
    }

    /// Returns the data folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the size of the file system in bytes, as last measured.
    pub(crate) fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes.load(Ordering::Relaxed)
    }

    /// Returns the bytes by which files may grow until the reserve is reached, as last measured.
    pub(crate) fn growable_bytes(&self) -> u64 {
        self.available_bytes().saturating_sub(self.reserve_bytes)
    }

    /// Returns the free bytes, as last measured.
    pub(crate) fn available_bytes(&self) -> u64 {
        self.available_bytes.load(Ordering::Relaxed)
    }
}

/// Sets or clears the bit of a slice, as `decide` says from its earlier value. Returns whether any bit is set.
fn update(bits: &AtomicU64, bit: u64, decide: impl FnOnce(bool) -> bool) -> bool {
    let before = bits.load(Ordering::Relaxed);
    if decide(before & bit != 0) {
        bits.fetch_or(bit, Ordering::Relaxed) | bit != 0
    } else {
        bits.fetch_and(!bit, Ordering::Relaxed) & !bit != 0
    }
}

fn state_of(number: u8) -> DiskState {
    DiskState::ALL[usize::from(number)]
}

/// Returns the state that follows `before`. `above` are the free bytes above the reserve.
fn next_state(
    before: DiskState,
    above: u64,
    capacity: u64,
    low_percent: u8,
    has_full_slice: bool,
) -> DiskState {
    let percent = |percent: u64| capacity / 100 * percent;
    let grows_from = match before {
        DiskState::Refusing => GROWTH_BYTES_MIN.min(percent(2)),
        _ => 2 * FIRST_RESERVATION_BYTES,
    };
    let low = u64::from(low_percent);
    let enough = match (before, low) {
        (_, 0) => 0,
        (DiskState::Ok, _) => percent(low),
        _ => percent(low + LOW_PERCENT_RECOVERY),
    };
    if above < grows_from && has_full_slice {
        DiskState::Refusing
    } else if above < enough {
        DiskState::Low
    } else {
        DiskState::Ok
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPACITY: u64 = 100 << 30;
    const ROOM: u64 = METADATA_HEADROOM_FIRST;

    #[test]
    fn the_state_follows_the_free_space_and_does_not_alternate_at_a_limit() {
        use DiskState::{Low, Ok, Refusing};
        let percent = CAPACITY / 100;
        let next = |before, above, is_full| next_state(before, above, CAPACITY, 15, is_full);
        assert_eq!(next(Ok, 15 * percent, true), Ok, "a full slice can still grow");
        assert_eq!(next(Ok, 15 * percent - 1, false), Low);
        assert_eq!(next(Low, 16 * percent, false), Low);
        assert_eq!(next(Low, 17 * percent, false), Ok);
        assert_eq!(next(Low, 0, false), Low, "there is free space in the volumes");
        assert_eq!(next(Low, 2 * FIRST_RESERVATION_BYTES, true), Low);
        assert_eq!(next(Low, 2 * FIRST_RESERVATION_BYTES - 1, true), Refusing);
        assert_eq!(next(Refusing, GROWTH_BYTES_MIN - 1, true), Refusing);
        assert_eq!(next(Refusing, GROWTH_BYTES_MIN, true), Low);
        assert_eq!(next(Refusing, 0, false), Low);
        assert_eq!(next(Refusing, 20 * percent, true), Ok);
        assert_eq!(next_state(Low, 0, CAPACITY, 0, false), Ok, "without a limit, space is never low");
        assert_eq!(next_state(Ok, 0, CAPACITY, 0, true), Refusing);
    }

    #[test]
    fn one_full_slice_suffices_and_it_needs_twice_as_much_space_to_recover() {
        let space = DiskSpace::new(PathBuf::from("."), u64::MAX, 15);
        space.note_slice(0, ROOM_LOW_UNITS, ROOM);
        assert_eq!(space.state(), DiskState::Low);
        space.note_slice(63, ROOM_LOW_UNITS - 1, ROOM);
        assert!(space.state().refuses_writes());
        space.note_slice(0, ROOM_LOW_UNITS, ROOM);
        space.note_slice(63, 2 * ROOM_LOW_UNITS - 1, ROOM);
        assert!(space.state().refuses_writes(), "slice 63 has not recovered");
        space.note_slice(63, 2 * ROOM_LOW_UNITS, ROOM);
        assert_eq!(space.state(), DiskState::Low);
        space.note_slice(0, ROOM_LOW_UNITS, METADATA_HEADROOM_MIN - 1);
        assert!(space.state().refuses_writes(), "metadata needs room too");
    }

    /// The free space of a full disk went up and down by a few pages, twice a second, and with it the state and the log.
    #[test]
    fn free_space_that_moves_around_the_reserve_does_not_change_the_state() {
        let reserve = 1 << 30;
        let space = DiskSpace::new(PathBuf::from("."), reserve, 15);
        let free = |bytes: u64| {
            space.capacity_bytes.store(CAPACITY, Ordering::Relaxed);
            space.available_bytes.store(bytes, Ordering::Relaxed);
            space.low.store(bytes < reserve, Ordering::Relaxed);
            space.note_slice(0, ROOM_LOW_UNITS, METADATA_HEADROOM_MIN - 1);
            space.state()
        };
        assert_eq!(free(reserve), DiskState::Low);
        for _ in 0..3 {
            assert_eq!(free(reserve - 1), DiskState::Refusing);
            assert_eq!(free(reserve + 4096), DiskState::Refusing, "a few pages are no room");
        }
        assert_eq!(free(reserve + space.step_back_bytes()), DiskState::Low);
        assert_eq!(free(reserve + 4096), DiskState::Low);
    }
}
