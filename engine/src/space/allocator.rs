//! The allocator of one slice: hands out extents and keeps removed ones until no reader needs them.
//!
//! # Life of an extent
//! 1. **Free.** The extent is in one of the free sets.
//! 2. **Reserved.** [`Allocator::reserve`] takes it out of its set for a payload that is being written. The free map on disk
//!    (`format/free_map.rs`) does not show reservations, so a crash makes the extent free again. Dropping the
//!    `Reservation` does the same.
//! 3. **Owned.** The committer marks it in the free map in the transaction that writes the record of the payload.
//!    `Reservation::commit` then ends the reservation. The allocator does not know owned extents.
//! 4. **Deferred free.** The transaction that removes the record clears the marks. After it is durable,
//!    [`Allocator::free_removed`] takes the extent back. As long as a [`Pin`] of the payload exists, the extent is kept aside.
//! 5. **Free** again, when the last pin is dropped, or at once if there is none.
//!
//! A repair removes marks of extents that no record owns, and gives these orphans to [`Allocator::free_orphans`]. A pin names
//! a payload, not its extents, so orphans are deferred until every pin of that moment is dropped.
//!
//! # Free sets
//! * `written` holds units that were written before. Flushing them needs no journal commit of the file system. Small
//!   payloads prefer this set.
//! * `fresh` holds units that were only preallocated ("unwritten extents" in ext4). Large payloads prefer this set. Both
//!   kinds of payload use up both sets before the volume grows.
//! * `holes` holds units that were given back to the file system (`maintenance/reclaim.rs`). They are never handed out,
//!   because writing to a hole could find the disk full. The maintainer allocates them again as a part of growing; then
//!   they are fresh.

use crate::device::file_map::FreeKind;
use crate::format::extent::{Extent, total_units, units_for};
use crate::format::payload_id::PayloadId;
use crate::limits::{
    BLOCK_UNITS, FREE_LOW_UNITS, LONG_PIECE_UNITS, RECLAIM_PIECE_UNITS_MAX, RECLAIM_PIECE_UNITS_MIN,
    REUSED_HOLES_MAX, SMALL_PAYLOAD_BYTES, WRITTEN_POOL_LOW_UNITS, WRITTEN_POOL_UNITS,
};
use crate::space::free_runs::{FreeRuns, Run};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The allocator of one slice, shared by executors, committer and maintainer. The lock is held for microseconds.
#[derive(Debug, Default)]
pub(crate) struct Allocator {
    state: Mutex<State>,
    /// Number of batches of extents that were freed. It rises, under the lock, before they are freed. A reader that sees
    /// the same number before it reads a record and while it pins the payload knows that the payload was not freed in
    /// between.
    free_epoch: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    written: FreeRuns,
    fresh: FreeRuns,
    holes: FreeRuns,
    /// The least number of allocatable units since [`Allocator::take_lowest_free`] was last called.
    lowest_free: u64,
    /// Number of pins of each pinned payload, at least 1.
    pins: HashMap<PayloadId, u32>,
    /// Extents of removed payloads that are still pinned.
    deferred: HashMap<PayloadId, Vec<Extent>>,
    /// Orphans, with the payloads that were pinned when they were freed and still are.
    deferred_orphans: Vec<DeferredOrphans>,
    /// Extents of each reservation that is neither committed nor dropped, by its number.
    reserved: HashMap<u64, Vec<Extent>>,
    last_reservation: u64,
    /// Whether small payloads were allocated since the written pool was last full enough.
    small_demand: bool,
}

#[derive(Debug)]
struct DeferredOrphans {
    readers: HashSet<PayloadId>,
    extents: Vec<Extent>,
}

/// A payload whose record was removed, with the extents that it owned.
#[derive(Debug)]
pub(crate) struct RemovedPayload {
    pub(crate) id: PayloadId,
    pub(crate) extents: Vec<Extent>,
}

/// The shortest extents that a reservation of a large payload may consist of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MinExtent {
    /// `LONG_PIECE_UNITS`: growing the volume is better than scattering the payload.
    Long,
    /// One block.
    OneBlock,
}

/// Amounts of free space.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FreeSpace {
    /// Units that can be handed out.
    pub(crate) free_units: u64,
    /// Units that were given back to the file system.
    pub(crate) hole_units: u64,
    /// Units that the maintainer should write in advance for small payloads now; 0 if none.
    pub(crate) wanted_written_units: u64,
}

impl Allocator {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic while the lock is held cannot lead to units that are handed out twice: every method takes units out of
        // one set before it adds them to another.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes extents for `bytes` bytes out of the free sets, and registers them. Returns their number: see
    /// `space/reservation.rs`.
    ///
    /// All extents but the last hold whole blocks. Returns `None` if there is not enough free space in extents that are
    /// long enough: then the volume must grow.
    pub(super) fn register(&self, bytes: u64, shortest: MinExtent) -> Option<(u64, Vec<Extent>)> {
        let mut state = self.lock();
        let small = bytes <= SMALL_PAYLOAD_BYTES;
        state.small_demand |= small;
        let extents = state.take_extents(units_for(bytes), small, shortest)?;
        assert_eq!(total_units(&extents), units_for(bytes), "a reservation has exactly the units asked for");
        state.lowest_free = state.lowest_free.min(state.free_units());
        state.last_reservation += 1;
        let number = state.last_reservation;
        state.reserved.insert(number, extents.clone());
        Some((number, extents))
    }

    /// Ends the reservations with these numbers. `freed` is what they do not hand over to a record. `kept`, if it has any
    /// extents, becomes a new reservation, whose number is returned.
    pub(super) fn end_reservations(&self, numbers: &[u64], freed: &[Extent], kept: &[Extent]) -> Option<u64> {
        let mut state = self.lock();
        for number in numbers {
            let registered = state.reserved.remove(number);
            assert!(registered.is_some(), "a reservation is registered until it ends");
        }
        state.free(freed);
        if kept.is_empty() {
            return None;
        }
        state.last_reservation += 1;
        let number = state.last_reservation;
        state.reserved.insert(number, kept.to_vec());
        Some(number)
    }

    /// Adds free space to the set of its kind.
    pub(crate) fn add(&self, extent: Extent, kind: FreeKind) {
        self.lock().add(extent, kind);
    }

    /// Takes a long run of free space out of use, so that the maintainer can give it back to the file system.
    ///
    /// Fresh space is taken first. Of written space the pool for small payloads is kept. Returns `None` if only short runs
    /// are free.
    pub(crate) fn take_surplus(&self, units_max: u64) -> Option<(Extent, FreeKind)> {
        let mut state = self.lock();
        let most = units_max.min(RECLAIM_PIECE_UNITS_MAX);
        let fresh = state.fresh.take_longest_end(most, RECLAIM_PIECE_UNITS_MIN);
        let most_written = most.min(state.written.units().saturating_sub(WRITTEN_POOL_UNITS));
        let taken = fresh.map(|run| (extent_of(run), FreeKind::Fresh)).or_else(|| {
            let written = state.written.take_longest_end(most_written, RECLAIM_PIECE_UNITS_MIN);
            written.map(|run| (extent_of(run), FreeKind::Written))
        });
        state.lowest_free = state.lowest_free.min(state.free_units());
        taken
    }

    /// Takes holes of `units_min` to `units_max` units in total, so that the maintainer can allocate them again.
    ///
    /// Returns none if that would take many short ones: extents at the end of a volume are longer.
    pub(crate) fn take_holes(&self, units_max: u64, units_min: u64) -> Vec<Extent> {
        let mut state = self.lock();
        let shortest = LONG_PIECE_UNITS.max(units_min / REUSED_HOLES_MAX);
        let (mut taken, mut units) = (Vec::new(), 0);
        while units < units_max
            && let Some(hole) =
                state.holes.take_longest(units_max - units, 1, shortest.min(units_max - units))
        {
            units += hole.units;
            taken.push(extent_of(hole));
        }
        if units < units_min {
            taken.drain(..).for_each(|hole| state.add(hole, FreeKind::Hole));
        }
        taken
    }

    /// Returns the least number of allocatable units since this was last called.
    pub(crate) fn take_lowest_free(&self) -> u64 {
        let mut state = self.lock();
        let free = state.free_units();
        std::mem::replace(&mut state.lowest_free, free).min(free)
    }

    /// Takes a run of fresh space, so that the maintainer can write it and add it as written.
    pub(crate) fn take_fresh(&self, units_max: u64) -> Option<Extent> {
        self.lock().fresh.take_first(units_max).map(extent_of)
    }

    /// Takes all units of a volume of `units` units out of use, if every unit but its header is free, so that it can be
    /// truncated. Returns how many of them are allocated on the disk.
    pub(crate) fn take_empty_volume(&self, volume: u32, units: u32) -> Option<u64> {
        let start = Extent { volume, start: 0, units }.address();
        let addresses = start..start + u64::from(units);
        let mut state = self.lock();
        let State { written, fresh, holes, .. } = &mut *state;
        let allocated = written.units_in(addresses.clone()) + fresh.units_in(addresses.clone());
        if units <= 1 || allocated + holes.units_in(addresses.clone()) != u64::from(units) - 1 {
            return None;
        }
        [written, fresh, holes].into_iter().for_each(|runs| runs.remove_in(addresses.clone()));
        state.lowest_free = state.lowest_free.min(state.free_units());
        Some(allocated)
    }

    /// Frees the extents of removed payloads. Extents of pinned payloads are deferred until the last pin is dropped.
    ///
    /// The removal must be durable.
    pub(crate) fn free_removed(&self, removed: Vec<RemovedPayload>) {
        if removed.is_empty() {
            return;
        }
        let mut state = self.lock();
        self.free_epoch.fetch_add(1, Ordering::SeqCst);
        for RemovedPayload { id, extents } in removed {
            if state.pins.contains_key(&id) {
                state.deferred.insert(id, extents);
            } else {
                state.free(&extents);
            }
        }
    }

    /// Frees extents that were marked in the free map although no record owned them.
    ///
    /// The removal of the marks must be durable. The extents are reusable once every current reader has finished. Extents
    /// that are unexpectedly reserved, deferred or free are skipped.
    pub(crate) fn free_orphans(&self, mut orphans: Vec<Extent>) {
        if orphans.is_empty() {
            return;
        }
        let mut state = self.lock();
        orphans.retain(|orphan| {
            let in_use = state.holds(orphan);
            if in_use {
                tracing::error!(target: "service::engine", ?orphan, "space without an owner is in use or already free: it is left as it is");
            }
            !in_use
        });
        self.free_epoch.fetch_add(1, Ordering::SeqCst);
        if state.pins.is_empty() {
            state.free(&orphans);
        } else {
            let readers = state.pins.keys().copied().collect();
            state.deferred_orphans.push(DeferredOrphans { readers, extents: orphans });
        }
    }

    /// Returns the free epoch, which must be read before the record of the payload that is then pinned.
    pub(crate) fn free_epoch(&self) -> u64 {
        self.free_epoch.load(Ordering::SeqCst)
    }

    /// Pins a payload: its extents are not handed out while the pin lives.
    ///
    /// Returns `None` if space was freed since `free_epoch` was read. Then the record may be stale and must be read again.
    pub(crate) fn pin(self: &Arc<Self>, id: PayloadId, free_epoch: u64) -> Option<Pin> {
        let mut state = self.lock();
        if self.free_epoch.load(Ordering::SeqCst) != free_epoch {
            return None;
        }
        *state.pins.entry(id).or_insert(0) += 1;
        Some(Pin { allocator: Arc::clone(self), id })
    }

    /// Returns the number of reserved units.
    pub(crate) fn reserved_units(&self) -> u64 {
        total_units(self.lock().reserved.values().flatten())
    }

    /// Returns the lengths of all runs that can be handed out.
    #[cfg(test)]
    pub(crate) fn free_runs(&self) -> Vec<u64> {
        let state = self.lock();
        state.written.runs().chain(state.fresh.runs()).map(|run| run.units).collect()
    }

    /// Returns the amounts of free space.
    pub(crate) fn free_space(&self) -> FreeSpace {
        let mut state = self.lock();
        let low = state.small_demand && state.written.units() < WRITTEN_POOL_LOW_UNITS;
        state.small_demand &= low;
        let wanted = if low { WRITTEN_POOL_UNITS - state.written.units() } else { 0 };
        FreeSpace {
            free_units: state.free_units(),
            hole_units: state.holes.units(),
            wanted_written_units: wanted.min(state.fresh.units()),
        }
    }

    /// Returns whether the maintainer should grow the volume or write in advance.
    pub(crate) fn needs_maintenance(&self) -> bool {
        let state = self.lock();
        state.free_units() < FREE_LOW_UNITS
            || (state.small_demand
                && state.written.units() < WRITTEN_POOL_LOW_UNITS
                && state.fresh.units() > 0)
    }
}

fn run_of(extent: &Extent) -> Run {
    Run { start: extent.address(), units: u64::from(extent.units) }
}

/// Returns the extent of a run. Runs never span two volumes: unit 0 of each volume is its header and never free.
fn extent_of(run: Run) -> Extent {
    Extent::at(run.start, run.units)
}

impl State {
    /// Units that can be handed out.
    const fn free_units(&self) -> u64 {
        self.written.units() + self.fresh.units()
    }

    /// Takes free extents of `missing` units in total, or takes nothing.
    fn take_extents(&mut self, mut missing: u64, small: bool, shortest: MinExtent) -> Option<Vec<Extent>> {
        let Self { written, fresh, .. } = self;
        let (first, second) = if small { (written, fresh) } else { (fresh, written) };
        let mut extents = Vec::new();
        while missing > 0 {
            let least = match shortest {
                MinExtent::Long => LONG_PIECE_UNITS.min(missing),
                MinExtent::OneBlock => BLOCK_UNITS,
            };
            let piece = first
                .take(missing)
                .or_else(|| second.take(missing))
                .or_else(|| first.take_longest(missing, BLOCK_UNITS, least))
                .or_else(|| second.take_longest(missing, BLOCK_UNITS, least));
            let Some(run) = piece else {
                self.free(&extents);
                return None;
            };
            missing -= run.units;
            extents.push(extent_of(run));
        }
        Some(extents)
    }

    /// Adds an extent to the free set of its kind.
    ///
    /// A double free is logged, not asserted: which extents a record owned comes from the device. The extent stays out of
    /// the set, so that none of its units can be handed out twice.
    fn add(&mut self, extent: Extent, kind: FreeKind) {
        let runs = match kind {
            FreeKind::Written => &mut self.written,
            FreeKind::Fresh => &mut self.fresh,
            FreeKind::Hole => &mut self.holes,
        };
        if !runs.insert(run_of(&extent)) {
            tracing::error!(target: "service::engine", ?extent, "space was freed twice: it is kept out of use");
        }
    }

    /// Makes extents free that a payload has owned or reserved.
    fn free(&mut self, extents: &[Extent]) {
        extents.iter().for_each(|extent| self.add(*extent, FreeKind::Written));
    }

    /// Returns whether a unit of `extent` is free, reserved or deferred.
    fn holds(&self, extent: &Extent) -> bool {
        let orphans = self.deferred_orphans.iter().map(|orphans| &orphans.extents);
        self.reserved
            .values()
            .chain(self.deferred.values())
            .chain(orphans)
            .flatten()
            .any(|held| held.overlaps(extent))
            || [&self.written, &self.fresh, &self.holes].iter().any(|free| free.overlaps(run_of(extent)))
    }

    /// Drops one pin of a payload. The last one frees what was deferred for it.
    fn unpin(&mut self, id: PayloadId) {
        let count = self.pins.get_mut(&id).expect("a payload is counted as pinned while a pin of it lives");
        *count = count.checked_sub(1).expect("a pinned payload has at least one pin");
        if *count > 0 {
            return;
        }
        self.pins.remove(&id);
        let mut free = self.deferred.remove(&id).unwrap_or_default();
        self.deferred_orphans.retain_mut(|orphans| {
            orphans.readers.remove(&id);
            if orphans.readers.is_empty() {
                free.append(&mut orphans.extents);
            }
            !orphans.readers.is_empty()
        });
        self.free(&free);
    }
}

/// Keeps the extents of a payload from being handed out while it is read.
#[derive(Debug)]
pub(crate) struct Pin {
    allocator: Arc<Allocator>,
    id: PayloadId,
}

impl Drop for Pin {
    fn drop(&mut self) {
        self.allocator.lock().unpin(self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::{Allocator, MinExtent, RemovedPayload};
    use crate::device::file_map::FreeKind;
    use crate::format::extent::{Extent, total_units};
    use crate::format::payload_id::PayloadId;
    use crate::limits::{
        BLOCK_UNITS, LONG_PIECE_UNITS, RECLAIM_PIECE_UNITS_MAX, UNIT_BYTES, WRITTEN_POOL_UNITS,
    };
    use std::sync::Arc;

    fn extent(start: u32, units: u64) -> Extent {
        Extent { volume: 0, start, units: u32::try_from(units).expect("small") }
    }

    fn with_fresh_units(units: u64) -> Arc<Allocator> {
        let allocator = Arc::new(Allocator::default());
        allocator.add(extent(1, units), FreeKind::Fresh);
        allocator
    }

    #[test]
    fn dropped_reservation_is_free_again_and_committed_one_is_not() {
        let allocator = with_fresh_units(64);
        drop(allocator.reserve(10 * UNIT_BYTES, MinExtent::OneBlock).expect("fits"));
        assert_eq!(allocator.free_space().free_units, 64);
        allocator.reserve(10 * UNIT_BYTES, MinExtent::OneBlock).expect("fits").commit();
        assert_eq!(allocator.free_space().free_units, 54);
        assert!(allocator.reserve(100 * UNIT_BYTES, MinExtent::OneBlock).is_none());
        assert_eq!(allocator.free_space().free_units, 54, "a failed reservation takes nothing");
    }

    #[test]
    fn all_extents_but_the_last_hold_whole_blocks() {
        let allocator = Arc::new(Allocator::default());
        for start in [1, 100, 200] {
            allocator.add(extent(start, BLOCK_UNITS + 3), FreeKind::Fresh);
        }
        let scattered = allocator.reserve((2 * BLOCK_UNITS + 5) * UNIT_BYTES, MinExtent::Long);
        assert!(scattered.is_none(), "short extents are not used while the volume can grow");
        let reservation =
            allocator.reserve((2 * BLOCK_UNITS + 5) * UNIT_BYTES, MinExtent::OneBlock).expect("fits");
        let units: Vec<u64> = reservation.extents().iter().map(|e| u64::from(e.units)).collect();
        assert_eq!(units.iter().sum::<u64>(), 2 * BLOCK_UNITS + 5);
        assert!(units.iter().rev().skip(1).all(|n| n % BLOCK_UNITS == 0), "{units:?}");
    }

    /// A reader pins a payload, then the object is overwritten and other payloads are written. The reader's extents must
    /// not be handed out before it ends.
    #[test]
    fn removed_extents_are_deferred_until_their_readers_end() {
        let allocator = with_fresh_units(16);
        let id = PayloadId([1; 16]);
        let reservation = allocator.reserve(16 * UNIT_BYTES, MinExtent::OneBlock).expect("fits");
        let extents = reservation.extents().to_vec();
        reservation.commit();
        let pin = allocator.pin(id, allocator.free_epoch()).expect("nothing was removed");
        let second = allocator.pin(id, allocator.free_epoch()).expect("nothing was removed");
        allocator.free_removed(vec![RemovedPayload { id, extents }]);
        assert!(allocator.reserve(UNIT_BYTES, MinExtent::OneBlock).is_none());
        drop(pin);
        assert!(allocator.reserve(UNIT_BYTES, MinExtent::OneBlock).is_none());
        drop(second);
        assert_eq!(
            allocator.reserve(16 * UNIT_BYTES, MinExtent::OneBlock).expect("free again").extents().len(),
            1
        );
    }

    /// A record vanished while its payload was read, and a repair took its extents for orphans. The reader must end before
    /// anyone else writes there, and its pin does not say which extents it reads.
    #[test]
    fn orphans_are_deferred_until_all_current_readers_end() {
        let allocator = with_fresh_units(16);
        let reservation = allocator.reserve(16 * UNIT_BYTES, MinExtent::OneBlock).expect("fits");
        assert_eq!(allocator.reserved_units(), 16);
        let extents = reservation.extents().to_vec();
        reservation.commit();
        assert_eq!(allocator.reserved_units(), 0);
        let pins = [1, 2]
            .map(|n| allocator.pin(PayloadId([n; 16]), allocator.free_epoch()).expect("nothing removed"));
        allocator.free_orphans(extents);
        for pin in pins {
            assert!(allocator.reserve(UNIT_BYTES, MinExtent::OneBlock).is_none());
            let later = allocator.pin(PayloadId([3; 16]), allocator.free_epoch()).expect("nothing removed");
            drop(pin);
            drop(later);
        }
        assert!(allocator.reserve(16 * UNIT_BYTES, MinExtent::OneBlock).is_some());
    }

    #[test]
    fn orphan_that_an_upload_has_reserved_is_skipped() {
        let allocator = with_fresh_units(16);
        let upload = allocator.reserve(4 * UNIT_BYTES, MinExtent::OneBlock).expect("fits");
        allocator.free_orphans(upload.extents().to_vec());
        assert_eq!(allocator.free_space().free_units, 12);
        drop(upload);
        assert_eq!((allocator.free_space().free_units, allocator.reserved_units()), (16, 0));
    }

    #[test]
    fn pin_with_an_old_free_epoch_is_refused() {
        let allocator = with_fresh_units(16);
        let before = allocator.free_epoch();
        let reservation = allocator.reserve(UNIT_BYTES, MinExtent::OneBlock).expect("fits");
        let extents = reservation.extents().to_vec();
        reservation.commit();
        allocator.free_removed(vec![RemovedPayload { id: PayloadId([1; 16]), extents }]);
        assert!(allocator.pin(PayloadId([1; 16]), before).is_none());
    }

    #[test]
    fn surplus_is_long_runs_and_keeps_the_written_pool() {
        let allocator = Arc::new(Allocator::default());
        allocator.add(extent(1, 1000), FreeKind::Fresh);
        allocator.add(extent(2000, 2 * WRITTEN_POOL_UNITS), FreeKind::Written);
        let held = allocator.reserve(100 * UNIT_BYTES, MinExtent::OneBlock).expect("fits");
        let mut given_back = 0;
        while let Some((surplus, kind)) = allocator.take_surplus(u64::MAX) {
            let units = u64::from(surplus.units);
            assert!((LONG_PIECE_UNITS..=RECLAIM_PIECE_UNITS_MAX).contains(&units));
            assert!(!surplus.overlaps(&held.extents()[0]));
            given_back += units;
            allocator.add(surplus, FreeKind::Hole);
            assert!(given_back > 900 || kind == FreeKind::Fresh, "fresh space is taken first");
        }
        let state = allocator.free_space();
        assert_eq!((state.free_units, state.hole_units), (WRITTEN_POOL_UNITS, given_back));
        assert_eq!(given_back, 900 + WRITTEN_POOL_UNITS);
    }

    #[test]
    fn holes_are_not_reserved_until_they_are_allocated_again() {
        let allocator = Arc::new(Allocator::default());
        for hole in 0..20 {
            allocator.add(extent(hole * 1000 + 1, LONG_PIECE_UNITS), FreeKind::Hole);
        }
        assert!(allocator.reserve(UNIT_BYTES, MinExtent::OneBlock).is_none());
        assert_eq!(
            allocator.take_holes(16 * LONG_PIECE_UNITS, 16 * LONG_PIECE_UNITS),
            [],
            "too many short ones"
        );
        assert_eq!(allocator.free_space().hole_units, 20 * LONG_PIECE_UNITS);
        let taken = allocator.take_holes(4 * LONG_PIECE_UNITS, LONG_PIECE_UNITS + 1);
        assert_eq!(total_units(&taken), 4 * LONG_PIECE_UNITS);
        assert_eq!(allocator.free_space().hole_units, 16 * LONG_PIECE_UNITS);
    }

    #[test]
    fn lowest_free_space_is_reset_when_it_is_taken() {
        let allocator = with_fresh_units(100);
        allocator.take_lowest_free();
        drop(allocator.reserve(70 * UNIT_BYTES, MinExtent::OneBlock).expect("fits"));
        assert_eq!(allocator.take_lowest_free(), 30);
        assert_eq!(allocator.take_lowest_free(), 100);
    }
}
