//! Returns surplus space to the file system by punching holes.
//!
//! Space that was given back costs twice to use again: it must be allocated, and its first flush needs a journal commit of the
//! file system. So a store that overwrites and deletes all the time must not give back what it will need soon. The maintainer
//! therefore observes the least free space of a whole period. What was free during all of it, less what a slice keeps anyway,
//! is surplus.
//!
//! A run is taken out of the free sets while it is punched, so nobody can reserve it. Owned, reserved and deferred extents are
//! not in these sets at all.

use crate::device::file_map::FreeKind;
use crate::limits::{FREE_LOW_UNITS, RECLAIM_DUTY, RECLAIM_UNITS_MIN};
use crate::slice::Slice;
use crate::space::growth::growth_step;
use std::time::{Duration, Instant};

/// Decides when and how much space a slice gives back. Owned by its maintainer.
#[derive(Debug)]
pub(crate) struct Reclaim {
    /// The time for which space must have been free. `None` if nothing is given back, or the file system cannot punch holes.
    period: Option<Duration>,
    /// Begin of the current period.
    watched_since: Option<Instant>,
    /// Units of the last period's surplus that have not been given back yet.
    surplus: u64,
    /// The earliest time for the next run.
    not_before: Option<Instant>,
}

impl Reclaim {
    pub(crate) const fn new(period: Option<Duration>) -> Self {
        Self { period, watched_since: None, surplus: 0, not_before: None }
    }

    /// Gives one run back if it is time. Returns for how long the maintainer may sleep at most; `None` means any time.
    pub(crate) fn step(&mut self, slice: &Slice, now: Instant) -> Option<Duration> {
        let period = self.period?;
        if self.watched_since.is_none_or(|since| now.duration_since(since) >= period) {
            let lowest = slice.space.allocator.take_lowest_free();
            // The free space before the first period is unknown.
            let lowest = self.watched_since.replace(now).map_or(0, |_| lowest);
            self.surplus =
                surplus(lowest, slice.space.allocated_units(), slice.space.allocator.free_space().free_units);
        }
        if self.surplus == 0 {
            return None;
        }
        if let Some(wait) = self.not_before.and_then(|time| time.checked_duration_since(now))
            && !wait.is_zero()
        {
            return Some(wait);
        }
        self.give_back(slice);
        let took = now.elapsed();
        let pause = took * (RECLAIM_DUTY - 1);
        self.not_before = Some(now + took + pause);
        (self.surplus > 0).then_some(pause)
    }

    fn give_back(&mut self, slice: &Slice) {
        let Some((free, kind)) = slice.space.allocator.take_surplus(self.surplus) else {
            self.surplus = 0;
            return;
        };
        let units = u64::from(free.units);
        assert!(units <= self.surplus, "no more than the surplus is taken");
        self.surplus -= units;
        let volume = slice.space.volume(free.volume).expect("free space is in a volume of the slice");
        match volume.punch(free) {
            Ok(()) => {
                slice.space.allocator.add(free, FreeKind::Hole);
                tracing::debug!(target: "service::engine", slice = slice.number, bytes = free.bytes(), "free space given back to the file system");
            }
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
                slice.space.allocator.add(free, kind);
                tracing::info!(target: "service::engine", slice = slice.number, "the file system cannot punch holes: free space stays in the volumes");
                self.stop();
            }
            Err(error) => {
                // It is unknown how much of the run is still allocated. Allocating it again does no harm.
                slice.space.allocator.add(free, FreeKind::Hole);
                tracing::warn!(target: "service::engine", slice = slice.number, %error, "free space could not be given back: it stays in the volumes until the next start");
                self.stop();
            }
        }
    }

    fn stop(&mut self) {
        (self.period, self.surplus) = (None, 0);
    }
}

/// Returns the units to give back. `lowest` units were free during the whole period. Of `allocated` units, `free` are free now.
fn surplus(lowest: u64, allocated: u64, free: u64) -> u64 {
    let kept = growth_step(allocated.saturating_sub(free)) + FREE_LOW_UNITS;
    let surplus = lowest.min(free).saturating_sub(kept);
    if surplus < RECLAIM_UNITS_MIN { 0 } else { surplus }
}

#[cfg(test)]
mod tests {
    use super::surplus;
    use crate::limits::{FREE_LOW_UNITS, GROWTH_BYTES_MIN, RECLAIM_UNITS_MIN, UNIT_BYTES};
    use crate::space::growth::growth_step;

    const GIB: u64 = (1 << 30) / UNIT_BYTES;

    #[test]
    fn only_space_that_was_free_all_the_time_is_surplus() {
        let kept = GROWTH_BYTES_MIN / UNIT_BYTES + FREE_LOW_UNITS;
        assert_eq!(surplus(100 * GIB, 100 * GIB, 100 * GIB), 100 * GIB - kept);
        assert_eq!(surplus(0, 100 * GIB, 100 * GIB), 0, "all of it was used during the period");
        assert_eq!(surplus(50 * GIB, 1000 * GIB, 500 * GIB), 49 * GIB - FREE_LOW_UNITS);
        assert_eq!(surplus(50 * GIB, 1000 * GIB, 0), 0, "all of it is used now");
    }

    /// A store that grows by a step and gives the rest of it back would grow again at once, endlessly.
    #[test]
    fn growth_step_is_not_surplus() {
        for owned in [0, GIB / 2, 10 * GIB, 1000 * GIB] {
            let allocated = owned + FREE_LOW_UNITS;
            let free = FREE_LOW_UNITS + growth_step(allocated);
            let slack = surplus(free, owned + free, free);
            assert!(slack < RECLAIM_UNITS_MIN, "{owned}: {slack}");
        }
    }
}
