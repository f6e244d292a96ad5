//! Gives free space that nobody needs back to the file system, by punching holes into the volumes.
//!
//! What is given back costs twice to use again: it must be allocated, and its first flush needs a journal commit of the file
//! system. So a store that overwrites and deletes all the time must not give back what it will need in a moment. The
//! keeper watches the least free space of a whole period: what was free all through it, less what a slice keeps anyway, is
//! surplus. A run is out of the free sets while it is punched, so nobody can be given it; space that is owned, reserved or
//! pinned by a reader is not in them to begin with.

use crate::allocation::FreeKind;
use crate::keeper::growth_step;
use crate::limits::{FREE_LOW_UNITS, RECLAIM_DUTY, RECLAIM_UNITS_MIN, UNIT_BYTES};
use crate::slice::Slice;
use std::time::{Duration, Instant};

/// When, and how much, a slice gives back. One keeper owns it.
#[derive(Debug)]
pub(crate) struct Reclaim {
    /// How long space must have been free; `None`: nothing is given back, or the file system cannot do it.
    period: Option<Duration>,
    watched_since: Option<Instant>,
    /// Units of the last period's surplus that are still to be given back.
    surplus: u64,
    /// No run is given back before.
    not_before: Option<Instant>,
}

impl Reclaim {
    pub(crate) const fn new(period: Option<Duration>) -> Self {
        Self { period, watched_since: None, surplus: 0, not_before: None }
    }

    /// Gives one run back, if there is one to give and it is time. Returns how long the keeper may sleep at most.
    pub(crate) fn step(&mut self, slice: &Slice, now: Instant) -> Option<Duration> {
        let period = self.period?;
        if self.watched_since.is_none_or(|since| now.duration_since(since) >= period) {
            let lowest = slice.space.take_lowest_free();
            // What happened before the first period is not known.
            let lowest = self.watched_since.replace(now).map_or(0, |_| lowest);
            self.surplus = surplus(lowest, slice.allocated_units(), slice.space.state().free_units);
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
        let Some((address, units, kind)) = slice.space.take_surplus(self.surplus) else {
            self.surplus = 0;
            return;
        };
        self.surplus -= units.min(self.surplus);
        let volume = u32::try_from(address >> 32).ok().and_then(|number| slice.volume(number));
        match volume.map(|volume| volume.punch(address & 0xFFFF_FFFF, units)) {
            Some(Ok(())) => {
                slice.space.add(address, units, FreeKind::Hole);
                tracing::debug!(target: "service::engine", slice = slice.number, bytes = units * UNIT_BYTES, "free space given back to the file system");
            }
            Some(Err(error)) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
                slice.space.add(address, units, kind);
                tracing::info!(target: "service::engine", slice = slice.number, "the file system punches no holes: free space stays in the volumes");
                self.stop();
            }
            failed => {
                let error = failed.and_then(Result::err);
                // What is left of it is unknown, and allocating it again does no harm.
                slice.space.add(address, units, FreeKind::Hole);
                tracing::warn!(target: "service::engine", slice = slice.number, ?error, "free space could not be given back: it stays in the volumes until the next start");
                self.stop();
            }
        }
    }

    fn stop(&mut self) {
        (self.period, self.surplus) = (None, 0);
    }
}

/// Units to give back when `lowest` units were free all the time, of `allocated` units of which `free` are free now.
fn surplus(lowest: u64, allocated: u64, free: u64) -> u64 {
    let kept = growth_step(allocated.saturating_sub(free)) + FREE_LOW_UNITS;
    let surplus = lowest.min(free).saturating_sub(kept);
    if surplus < RECLAIM_UNITS_MIN { 0 } else { surplus }
}

#[cfg(test)]
mod tests {
    use super::surplus;
    use crate::keeper::growth_step;
    use crate::limits::{FREE_LOW_UNITS, GROWTH_BYTES_MIN, RECLAIM_UNITS_MIN, UNIT_BYTES};

    const GIB: u64 = (1 << 30) / UNIT_BYTES;

    #[test]
    fn only_what_nobody_needed_is_given_back() {
        let kept = GROWTH_BYTES_MIN / UNIT_BYTES + FREE_LOW_UNITS;
        assert_eq!(surplus(100 * GIB, 100 * GIB, 100 * GIB), 100 * GIB - kept);
        assert_eq!(surplus(0, 100 * GIB, 100 * GIB), 0, "all of it was needed a moment ago");
        assert_eq!(surplus(50 * GIB, 1000 * GIB, 500 * GIB), 49 * GIB - FREE_LOW_UNITS);
        assert_eq!(surplus(50 * GIB, 1000 * GIB, 0), 0, "it is needed now");
    }

    /// A store that grew, and then gave the rest of the step back, and grew again, would do so for ever.
    #[test]
    fn a_growth_step_is_not_given_back() {
        for owned in [0, GIB / 2, 10 * GIB, 1000 * GIB] {
            let allocated = owned + FREE_LOW_UNITS;
            let free = FREE_LOW_UNITS + growth_step(allocated);
            let slack = surplus(free, owned + free, free);
            assert!(slack < RECLAIM_UNITS_MIN, "{owned}: {slack}");
        }
    }
}
