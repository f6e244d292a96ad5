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
//! While a *hold* is in progress, extents of removed payloads are kept after step 4 until it ends (`space/held.rs`).
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
    BLOCK_UNITS, FREE_LOW_UNITS, HELD_RELEASED_AT_ONCE, LONG_PIECE_UNITS, RECLAIM_PIECE_UNITS_MAX,
    RECLAIM_PIECE_UNITS_MIN, REUSED_HOLES_MAX, SMALL_PAYLOAD_BYTES, WRITTEN_POOL_LOW_UNITS,
    WRITTEN_POOL_UNITS,
};
use crate::space::free_runs::{FreeRuns, Run};
use crate::space::held::{Held, HoldLoss};
use cairn_sync::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The allocator of one slice, shared by executors, committer and maintainer. The lock is held for microseconds.
///
/// Every method takes units out of one set before it adds them to another. So a panic cannot lead to units that are handed
/// out twice.
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
    /// Extents of removed payloads that a hold keeps.
    held: Held,
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
    /// Takes extents for `bytes` bytes out of the free sets, and registers them. Returns their number: see
    /// `space/reservation.rs`.
    ///
    /// All extents but the last hold whole blocks. Returns `None` if there is not enough free space in extents that are
    /// long enough: then the volume must grow.
    pub(super) fn register(&self, bytes: u64, shortest: MinExtent) -> Option<(u64, Vec<Extent>)> {
        let mut state = self.state.lock();
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
        let mut state = self.state.lock();
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
        self.state.lock().add(extent, kind);
    }

    /// Takes a long run of free space out of use, so that the maintainer can give it back to the file system.
    ///
    /// Fresh space is taken first. Of written space the pool for small payloads is kept. Returns `None` if only short runs
    /// are free.
    pub(crate) fn take_surplus(&self, units_max: u64) -> Option<(Extent, FreeKind)> {
        let mut state = self.state.lock();
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
        let mut state = self.state.lock();
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
        let mut state = self.state.lock();
        let free = state.free_units();
        std::mem::replace(&mut state.lowest_free, free).min(free)
    }

    /// Takes a run of fresh space, so that the maintainer can write it and add it as written.
    pub(crate) fn take_fresh(&self, units_max: u64) -> Option<Extent> {
        self.state.lock().fresh.take_first(units_max).map(extent_of)
    }

    /// Takes all units of a volume of `units` units out of use, if every unit but its header is free, so that it can be
    /// truncated. Returns how many of them are allocated on the disk.
    pub(crate) fn take_empty_volume(&self, volume: u32, units: u32) -> Option<u64> {
        let start = Extent { volume, start: 0, units }.address();
        let addresses = start..start + u64::from(units);
        let mut state = self.state.lock();
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
        let mut state = self.state.lock();
        self.free_epoch.fetch_add(1, Ordering::SeqCst);
        for RemovedPayload { id, extents } in removed {
            if state.pins.contains_key(&id) {
                state.deferred.insert(id, extents);
            } else {
                state.free_unless_held(&extents);
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
        let mut state = self.state.lock();
        orphans.retain(|orphan| {
            let in_use = state.holds(orphan);
            if in_use {
                tracing::error!(target: "service::engine", ?orphan, "space without an owner is in use or already free: it is left as it is");
            }
            !in_use
        });
        self.free_epoch.fetch_add(1, Ordering::SeqCst);
        if state.pins.is_empty() {
            state.free_unless_held(&orphans);
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
        let mut state = self.state.lock();
        if self.free_epoch.load(Ordering::SeqCst) != free_epoch {
            return None;
        }
        *state.pins.entry(id).or_insert(0) += 1;
        Some(Pin { allocator: Arc::clone(self), id })
    }

    /// Begins a hold: from now on extents of removed payloads are kept.
    pub(crate) fn begin_hold(&self) {
        self.state.lock().held.begin();
    }

    /// Returns whether every extent that was removed since the hold began is kept.
    ///
    /// # Errors
    /// The reason why it is not.
    pub(crate) fn check_hold(&self) -> Result<(), HoldLoss> {
        self.state.lock().held.check()
    }

    /// Ends the hold, if there is one. What was kept stays out of use until [`Allocator::release_held`].
    pub(crate) fn end_hold(&self) {
        self.state.lock().held.end();
    }

    /// Gives the hold up if it keeps extents, and frees some of them: writers come first. Returns whether any were freed.
    pub(crate) fn give_up_hold(&self) -> bool {
        self.state.lock().held.lose(HoldLoss::NoSpace);
        self.release_held() > 0
    }

    /// Frees some of the extents that a hold kept which has ended or was given up. Returns their number: 0 if none is left.
    pub(crate) fn release_held(&self) -> usize {
        let mut state = self.state.lock();
        let released = state.held.release(HELD_RELEASED_AT_ONCE);
        state.free(&released);
        released.len()
    }

    /// Returns the number of units that a hold keeps.
    pub(crate) fn held_units(&self) -> u64 {
        self.state.lock().held.units()
    }

    /// Returns the number of reserved units.
    pub(crate) fn reserved_units(&self) -> u64 {
        total_units(self.state.lock().reserved.values().flatten())
    }

    /// Returns the lengths of all runs that can be handed out.
    #[cfg(test)]
    pub(crate) fn free_runs(&self) -> Vec<u64> {
        let state = self.state.lock();
        state.written.runs().chain(state.fresh.runs()).map(|run| run.units).collect()
    }

    /// Returns the amounts of free space.
    pub(crate) fn free_space(&self) -> FreeSpace {
        let mut state = self.state.lock();
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
        let state = self.state.lock();
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

    /// Makes extents of removed payloads free, unless a hold keeps them.
    fn free_unless_held(&mut self, extents: &[Extent]) {
        for extent in extents {
            if !self.held.keep(*extent) {
                self.add(*extent, FreeKind::Written);
            }
        }
    }

    /// Returns whether a unit of `extent` is free, reserved, deferred or held.
    fn holds(&self, extent: &Extent) -> bool {
        let orphans = self.deferred_orphans.iter().map(|orphans| &orphans.extents);
        self.reserved
            .values()
            .chain(self.deferred.values())
            .chain(orphans)
            .flatten()
            .chain(self.held.extents())
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
        self.free_unless_held(&free);
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
        self.allocator.state.lock().unpin(self.id);
    }
}

#[cfg(test)]
mod tests;
