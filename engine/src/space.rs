//! Space of one slice: what is free, what is promised, what readers still need.
//!
//! A unit is in one of three states in memory: free, reserved by a payload that is not committed yet, or owned by a
//! record. On disk (`free_map.rs`) only the last is marked, in the transaction of the record; so a crash gives back
//! every reservation by itself. Space of a removed payload becomes free when the removal is durable *and* no reader
//! has the payload pinned.
//!
//! Free space is kept in two sets: `written` holds units that were written before, where a flush needs no journal
//! commit of the file system; `fresh` holds space that was only preallocated. Small payloads prefer the former, large
//! ones the latter; both use all of it before the volume grows.
//!
//! A third set, `holes`, is space that was given back to the file system (`reclaim.rs`). It is handed to nobody: writing to
//! it could find the disk full. The keeper allocates it again, as a part of growing, and then it is fresh.

use crate::allocation::FreeKind;
use crate::codec::PayloadId;
use crate::extent::{Extent, push_extent, units_for};
use crate::free_runs::FreeRuns;
use crate::limits::{
    BLOCK_UNITS, FREE_LOW_UNITS, LONG_PIECE_UNITS, RECLAIM_PIECE_UNITS_MAX, RECLAIM_PIECE_UNITS_MIN,
    REUSED_HOLES_MAX, SMALL_PAYLOAD_BYTES, WRITTEN_POOL_LOW_UNITS, WRITTEN_POOL_UNITS,
};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Space of one slice, shared by its executors, its committer and its keeper. The lock is held for microseconds.
#[derive(Debug, Default)]
pub(crate) struct Space {
    state: Mutex<State>,
    /// Rises, under the lock, before removed payloads are given back. A reader that saw the same value before it
    /// looked a record up and while it pins it knows that the payload has not been given back in between.
    removals: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    written: FreeRuns,
    fresh: FreeRuns,
    holes: FreeRuns,
    /// The least free space, written or fresh, since the keeper last began to watch.
    lowest_free: u64,
    pins: HashMap<PayloadId, u32>,
    /// Removed payloads that were pinned at the time.
    doomed: HashMap<PayloadId, Vec<Extent>>,
    /// Space that a repair found without an owner, with the readers that were there at the time: nobody knows what space
    /// a pin stands for, so all of them are waited for.
    quarantined: Vec<(HashSet<PayloadId>, Vec<Extent>)>,
    /// Reservations that are neither committed nor dropped.
    reserved: HashMap<u64, Vec<Extent>>,
    last_reservation: u64,
    /// Small payloads were allocated since the keeper last looked.
    small_demand: bool,
}

/// How short the pieces of a large payload may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pieces {
    /// Long ones: better to grow than to scatter.
    Long,
    /// Single blocks.
    Any,
}

/// What the keeper wants to know.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SpaceState {
    /// Free units that may be handed out.
    pub(crate) free_units: u64,
    /// Free units that the file system has back.
    pub(crate) hole_units: u64,
    /// Units that the keeper should write ahead for small payloads now; 0: nothing to do.
    pub(crate) wanted_written_units: u64,
}

impl Space {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic while the lock was held cannot leave the sets half-changed in a way that hands a unit out twice:
        // every method takes units out before it gives them to anyone.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves space for `bytes` bytes: all extents but the last hold whole blocks. `None`: the volume must grow.
    pub(crate) fn reserve(self: &Arc<Self>, bytes: u64, pieces: Pieces) -> Option<Reservation> {
        let mut state = self.lock();
        let small = bytes <= SMALL_PAYLOAD_BYTES;
        state.small_demand |= small;
        let State { written, fresh, .. } = &mut *state;
        let (first, second) = if small { (written, fresh) } else { (fresh, written) };
        let mut reservation =
            Reservation { space: Arc::clone(self), numbers: Vec::new(), extents: Vec::new() };
        let mut missing = units_for(bytes);
        while missing > 0 {
            let whole = first.take(missing).or_else(|| second.take(missing)).map(|start| (start, missing));
            let least = match pieces {
                Pieces::Long => LONG_PIECE_UNITS.min(missing),
                Pieces::Any => BLOCK_UNITS,
            };
            let piece = whole
                .or_else(|| first.take_longest(missing, BLOCK_UNITS, least))
                .or_else(|| second.take_longest(missing, BLOCK_UNITS, least));
            let Some((start, units)) = piece else {
                let taken = std::mem::take(&mut reservation.extents);
                state.give_back(&taken);
                return None;
            };
            missing -= units;
            // The address came out of an extent, so it is one.
            reservation.extents.extend(Extent::at(start, units));
        }
        state.lowest_free = state.lowest_free.min(state.free_units());
        state.last_reservation += 1;
        let number = state.last_reservation;
        state.reserved.insert(number, reservation.extents.clone());
        reservation.numbers.push(number);
        Some(reservation)
    }

    /// Adds free space to the set of its kind.
    pub(crate) fn add(&self, address: u64, units: u64, kind: FreeKind) {
        let mut state = self.lock();
        let runs = match kind {
            FreeKind::Written => &mut state.written,
            FreeKind::Fresh => &mut state.fresh,
            FreeKind::Hole => &mut state.holes,
        };
        if !runs.insert(address, units) {
            tracing::error!(target: "service::engine", address, units, "space was freed twice: kept out of use");
        }
    }

    /// Takes a long run of free space out of use, for the keeper to give back to the file system: `(address, units, kind)`.
    /// Fresh space goes first; of written space the pool for small payloads stays. `None`: what is free is short runs.
    pub(crate) fn take_surplus(&self, units_max: u64) -> Option<(u64, u64, FreeKind)> {
        let mut state = self.lock();
        let most = units_max.min(RECLAIM_PIECE_UNITS_MAX);
        let fresh = state.fresh.take_longest_end(most, RECLAIM_PIECE_UNITS_MIN);
        let of_written = most.min(state.written.units().saturating_sub(WRITTEN_POOL_UNITS));
        let taken = fresh.map(|(address, units)| (address, units, FreeKind::Fresh)).or_else(|| {
            let written = state.written.take_longest_end(of_written, RECLAIM_PIECE_UNITS_MIN);
            written.map(|(address, units)| (address, units, FreeKind::Written))
        });
        state.lowest_free = state.lowest_free.min(state.free_units());
        taken
    }

    /// Takes holes, at most `units_max` units and at least `units_min` in all, for the keeper to allocate again. Empty when
    /// it would take many short ones: space at the end of a volume then makes longer extents.
    pub(crate) fn take_holes(&self, units_max: u64, units_min: u64) -> Vec<(u64, u64)> {
        let mut state = self.lock();
        let shortest = LONG_PIECE_UNITS.max(units_min / REUSED_HOLES_MAX);
        let (mut taken, mut units) = (Vec::new(), 0);
        while units < units_max
            && let Some(hole) =
                state.holes.take_longest(units_max - units, 1, shortest.min(units_max - units))
        {
            units += hole.1;
            taken.push(hole);
        }
        if units < units_min {
            for (address, units) in taken.drain(..) {
                state.put_back_hole(address, units);
            }
        }
        taken
    }

    /// The least free space since this was last asked.
    pub(crate) fn take_lowest_free(&self) -> u64 {
        let mut state = self.lock();
        let free = state.free_units();
        std::mem::replace(&mut state.lowest_free, free).min(free)
    }

    /// Takes a run of fresh space, for the keeper to write and give back as written.
    pub(crate) fn take_fresh(&self, units_max: u64) -> Option<(u64, u64)> {
        self.lock().fresh.take_first(units_max)
    }

    /// Gives removed payloads back, after their removal is durable. Pinned ones wait for their readers.
    pub(crate) fn release_removed(&self, removed: Vec<(PayloadId, Vec<Extent>)>) {
        if removed.is_empty() {
            return;
        }
        let mut state = self.lock();
        self.removals.fetch_add(1, Ordering::SeqCst);
        for (id, extents) in removed {
            if state.pins.contains_key(&id) {
                state.doomed.insert(id, extents);
            } else {
                state.give_back(&extents);
            }
        }
    }

    /// Gives space back that was marked and that no record owned, after its marks are durably gone. It is handed out when
    /// all readers of now have ended; what something else holds in memory against all expectation is left to that.
    pub(crate) fn release_orphans(&self, mut orphans: Vec<Extent>) {
        if orphans.is_empty() {
            return;
        }
        let mut state = self.lock();
        orphans.retain(|orphan| {
            let (start, units) = (orphan.address(), u64::from(orphan.units));
            let is_held = state.held().any(|extent| extent.overlaps(orphan))
                || [&state.written, &state.fresh, &state.holes].iter().any(|free| free.overlaps(start, units));
            if is_held {
                tracing::error!(target: "service::engine", ?orphan, "space without an owner is in use, or free already: left as it is");
            }
            !is_held
        });
        self.removals.fetch_add(1, Ordering::SeqCst);
        if state.pins.is_empty() {
            state.give_back(&orphans);
        } else {
            let readers = state.pins.keys().copied().collect();
            state.quarantined.push((readers, orphans));
        }
    }

    /// To be read before looking a record up that is then pinned.
    pub(crate) fn removals(&self) -> u64 {
        self.removals.load(Ordering::SeqCst)
    }

    /// Keeps a payload's space from being handed out while the pin lives. `None` when space was given back since
    /// `removals` was read: the record may be stale, look it up again.
    pub(crate) fn pin(self: &Arc<Self>, id: PayloadId, removals: u64) -> Option<Pin> {
        let mut state = self.lock();
        if self.removals.load(Ordering::SeqCst) != removals {
            return None;
        }
        *state.pins.entry(id).or_insert(0) += 1;
        Some(Pin { space: Arc::clone(self), id })
    }

    /// Units that payloads hold which are not committed yet.
    pub(crate) fn reserved_units(&self) -> u64 {
        self.lock().reserved.values().flatten().map(|extent| u64::from(extent.units)).sum()
    }

    /// Lengths of all runs of free space that may be handed out.
    #[cfg(test)]
    pub(crate) fn free_runs(&self) -> Vec<u64> {
        let state = self.lock();
        state.written.runs().chain(state.fresh.runs()).map(|(_, units)| units).collect()
    }

    /// Figures for the keeper.
    pub(crate) fn state(&self) -> SpaceState {
        let mut state = self.lock();
        let low = state.small_demand && state.written.units() < WRITTEN_POOL_LOW_UNITS;
        state.small_demand &= low;
        let wanted = if low { WRITTEN_POOL_UNITS - state.written.units() } else { 0 };
        SpaceState {
            free_units: state.free_units(),
            hole_units: state.holes.units(),
            wanted_written_units: wanted.min(state.fresh.units()),
        }
    }

    /// Whether the keeper should grow the volume or write ahead.
    pub(crate) fn wants_keeper(&self) -> bool {
        let state = self.lock();
        state.free_units() < FREE_LOW_UNITS
            || (state.small_demand
                && state.written.units() < WRITTEN_POOL_LOW_UNITS
                && state.fresh.units() > 0)
    }
}

impl State {
    /// Units that may be handed out.
    const fn free_units(&self) -> u64 {
        self.written.units() + self.fresh.units()
    }

    fn put_back_hole(&mut self, address: u64, units: u64) {
        if !self.holes.insert(address, units) {
            tracing::error!(target: "service::engine", address, units, "space was freed twice: kept out of use");
        }
    }

    /// Space that is neither free nor a record's: reserved, or waiting for its readers.
    fn held(&self) -> impl Iterator<Item = &Extent> {
        let waiting = self.quarantined.iter().map(|(_, extents)| extents);
        self.reserved.values().chain(self.doomed.values()).chain(waiting).flatten()
    }

    /// The last reader of a payload has ended.
    fn reader_gone(&mut self, id: PayloadId) {
        let mut free = self.doomed.remove(&id).unwrap_or_default();
        self.quarantined.retain_mut(|(readers, extents)| {
            readers.remove(&id);
            if readers.is_empty() {
                free.append(extents);
            }
            !readers.is_empty()
        });
        self.give_back(&free);
    }

    fn give_back(&mut self, extents: &[Extent]) {
        for extent in extents {
            if !self.written.insert(extent.address(), u64::from(extent.units)) {
                tracing::error!(target: "service::engine", ?extent, "space was freed twice: kept out of use");
            }
        }
    }
}

/// Space that is promised to a payload. Dropped: it is free again. All writes to it must have ended by then.
#[derive(Debug)]
pub(crate) struct Reservation {
    space: Arc<Space>,
    /// Under which it stands among the reservations; several after [`Reservation::append`].
    numbers: Vec<u64>,
    extents: Vec<Extent>,
}

impl Reservation {
    /// The space, in order.
    pub(crate) fn extents(&self) -> &[Extent] {
        &self.extents
    }

    /// Adds another reservation of the same slice behind this one.
    pub(crate) fn append(&mut self, mut more: Self) {
        self.numbers.append(&mut more.numbers);
        for extent in std::mem::take(&mut more.extents) {
            push_extent(&mut self.extents, extent);
        }
    }

    /// The space belongs to a committed record from now on.
    pub(crate) fn commit(mut self) {
        self.extents.clear();
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if !self.numbers.is_empty() || !self.extents.is_empty() {
            let mut state = self.space.lock();
            for number in &self.numbers {
                state.reserved.remove(number);
            }
            state.give_back(&self.extents);
        }
    }
}

/// Keeps the space of a payload while it is read.
#[derive(Debug)]
pub(crate) struct Pin {
    space: Arc<Space>,
    id: PayloadId,
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut state = self.space.lock();
        let Some(count) = state.pins.get_mut(&self.id) else { return };
        *count -= 1;
        if *count == 0 {
            state.pins.remove(&self.id);
            state.reader_gone(self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Pieces, Space};
    use crate::allocation::FreeKind;
    use crate::codec::PayloadId;
    use crate::limits::{
        BLOCK_UNITS, LONG_PIECE_UNITS, RECLAIM_PIECE_UNITS_MAX, UNIT_BYTES, WRITTEN_POOL_UNITS,
    };
    use std::sync::Arc;

    fn space(units: u64) -> Arc<Space> {
        let space = Arc::new(Space::default());
        space.add(1, units, FreeKind::Fresh);
        space
    }

    #[test]
    fn a_dropped_reservation_is_free_again_and_a_committed_one_is_not() {
        let space = space(64);
        drop(space.reserve(10 * UNIT_BYTES, Pieces::Any).expect("fits"));
        assert_eq!(space.state().free_units, 64);
        space.reserve(10 * UNIT_BYTES, Pieces::Any).expect("fits").commit();
        assert_eq!(space.state().free_units, 54);
        assert!(space.reserve(100 * UNIT_BYTES, Pieces::Any).is_none());
        assert_eq!(space.state().free_units, 54, "a reservation that fails gives back what it had");
    }

    #[test]
    fn all_extents_but_the_last_hold_whole_blocks() {
        let space = Arc::new(Space::default());
        for start in [1, 100, 200] {
            space.add(start, BLOCK_UNITS + 3, FreeKind::Fresh);
        }
        let scattered = space.reserve((2 * BLOCK_UNITS + 5) * UNIT_BYTES, Pieces::Long);
        assert!(scattered.is_none(), "a volume that can grow is not scattered over");
        let reservation = space.reserve((2 * BLOCK_UNITS + 5) * UNIT_BYTES, Pieces::Any).expect("fits");
        let units: Vec<u64> = reservation.extents().iter().map(|e| u64::from(e.units)).collect();
        assert_eq!(units.iter().sum::<u64>(), 2 * BLOCK_UNITS + 5);
        assert!(units.iter().rev().skip(1).all(|n| n % BLOCK_UNITS == 0), "{units:?}");
    }

    /// A reader pins a payload, the object is overwritten, other payloads are written: the reader's space must not
    /// be handed out before it ends.
    #[test]
    fn removed_space_waits_for_its_readers() {
        let space = space(16);
        let id = PayloadId([1; 16]);
        let reservation = space.reserve(16 * UNIT_BYTES, Pieces::Any).expect("fits");
        let extents = reservation.extents().to_vec();
        reservation.commit();
        let pin = space.pin(id, space.removals()).expect("nothing was removed");
        let second = space.pin(id, space.removals()).expect("nothing was removed");
        space.release_removed(vec![(id, extents)]);
        assert!(space.reserve(UNIT_BYTES, Pieces::Any).is_none());
        drop(pin);
        assert!(space.reserve(UNIT_BYTES, Pieces::Any).is_none());
        drop(second);
        assert_eq!(space.reserve(16 * UNIT_BYTES, Pieces::Any).expect("free again").extents().len(), 1);
    }

    /// A record vanished while it was read, a repair took its space for an orphan: the reader, whose pin does not say which
    /// space it reads, must be gone before anyone else writes there.
    #[test]
    fn orphaned_space_waits_for_every_reader_of_its_time() {
        let space = space(16);
        let reservation = space.reserve(16 * UNIT_BYTES, Pieces::Any).expect("fits");
        assert_eq!(space.reserved_units(), 16);
        let extents = reservation.extents().to_vec();
        reservation.commit();
        assert_eq!(space.reserved_units(), 0);
        let pins = [1, 2].map(|n| space.pin(PayloadId([n; 16]), space.removals()).expect("nothing removed"));
        space.release_orphans(extents);
        for pin in pins {
            assert!(space.reserve(UNIT_BYTES, Pieces::Any).is_none());
            let later = space.pin(PayloadId([3; 16]), space.removals()).expect("nothing removed");
            drop(pin);
            drop(later);
        }
        assert!(space.reserve(16 * UNIT_BYTES, Pieces::Any).is_some());
    }

    #[test]
    fn orphaned_space_that_an_upload_holds_is_not_handed_out_a_second_time() {
        let space = space(16);
        let upload = space.reserve(4 * UNIT_BYTES, Pieces::Any).expect("fits");
        space.release_orphans(upload.extents().to_vec());
        assert_eq!(space.state().free_units, 12);
        drop(upload);
        assert_eq!((space.state().free_units, space.reserved_units()), (16, 0));
    }

    #[test]
    fn a_pin_after_a_removal_is_refused() {
        let space = space(16);
        let before = space.removals();
        let reservation = space.reserve(UNIT_BYTES, Pieces::Any).expect("fits");
        let extents = reservation.extents().to_vec();
        reservation.commit();
        space.release_removed(vec![(PayloadId([1; 16]), extents)]);
        assert!(space.pin(PayloadId([1; 16]), before).is_none());
    }
    #[test]
    fn what_is_given_back_is_long_free_space_and_the_written_pool_stays() {
        let space = Arc::new(Space::default());
        space.add(1, 1000, FreeKind::Fresh);
        space.add(2000, 2 * WRITTEN_POOL_UNITS, FreeKind::Written);
        let held = space.reserve(100 * UNIT_BYTES, Pieces::Any).expect("fits");
        let mut given_back = 0;
        while let Some((address, units, kind)) = space.take_surplus(u64::MAX) {
            assert!((LONG_PIECE_UNITS..=RECLAIM_PIECE_UNITS_MAX).contains(&units));
            let held = held.extents()[0];
            assert!(address >= held.address() + u64::from(held.units) || address + units <= held.address());
            given_back += units;
            space.add(address, units, FreeKind::Hole);
            assert!(given_back > 900 || kind == FreeKind::Fresh, "fresh space goes first");
        }
        let state = space.state();
        assert_eq!((state.free_units, state.hole_units), (WRITTEN_POOL_UNITS, given_back));
        assert_eq!(given_back, 900 + WRITTEN_POOL_UNITS);
    }

    #[test]
    fn holes_are_handed_to_nobody_until_they_are_allocated_again() {
        let space = Arc::new(Space::default());
        for hole in 0..20 {
            space.add(hole * 1000, LONG_PIECE_UNITS, FreeKind::Hole);
        }
        assert!(space.reserve(UNIT_BYTES, Pieces::Any).is_none());
        assert_eq!(space.take_holes(16 * LONG_PIECE_UNITS, 16 * LONG_PIECE_UNITS), [], "too many short ones");
        assert_eq!(space.state().hole_units, 20 * LONG_PIECE_UNITS);
        let taken = space.take_holes(4 * LONG_PIECE_UNITS, LONG_PIECE_UNITS + 1);
        assert_eq!(taken.iter().map(|(_, units)| units).sum::<u64>(), 4 * LONG_PIECE_UNITS);
        assert_eq!(space.state().hole_units, 16 * LONG_PIECE_UNITS);
    }

    #[test]
    fn the_lowest_free_space_of_a_time_is_what_nobody_needed() {
        let space = space(100);
        space.take_lowest_free();
        drop(space.reserve(70 * UNIT_BYTES, Pieces::Any).expect("fits"));
        assert_eq!(space.take_lowest_free(), 30);
        assert_eq!(space.take_lowest_free(), 100);
    }
}
