//! Best-fit free list: maximal runs of free units, indexed by address and by length.
//!
//! This is a pure data structure without I/O or locks. Neighbouring runs are joined. Every operation is logarithmic in the
//! number of runs.
//!
//! Invariants, kept by every method:
//! * No run is empty, no two runs overlap, and no two runs touch: each is maximal.
//! * Both indexes hold the same runs, and `units` is the sum of their lengths.

use std::collections::{BTreeMap, BTreeSet};

/// A run of consecutive units at a flat address (`Extent::address`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) start: u64,
    pub(crate) units: u64,
}

impl Run {
    const fn end(self) -> u64 {
        self.start + self.units
    }
}

/// A set of disjoint runs of units that do not touch each other.
#[derive(Debug, Default, Clone)]
pub(crate) struct FreeRuns {
    by_start: BTreeMap<u64, u64>,
    by_length: BTreeSet<(u64, u64)>,
    units: u64,
}

impl FreeRuns {
    /// Returns the number of units in all runs.
    pub(crate) const fn units(&self) -> u64 {
        self.units
    }

    /// Adds a run and joins it with the runs that it touches.
    ///
    /// Returns `false` and changes nothing if the set already holds one of its units: the run was freed twice.
    ///
    /// # Panics
    /// If the run is empty, or its end is not an address.
    #[must_use]
    pub(crate) fn insert(&mut self, run: Run) -> bool {
        assert!(run.units > 0, "a free run has at least one unit");
        assert!(run.start.checked_add(run.units).is_some(), "a free run ends at an address");
        if self.overlaps(run) {
            return false;
        }
        let mut joined = run;
        if let Some(before) = self.last_before(run.start)
            && before.end() == run.start
        {
            self.remove_run(before);
            joined = Run { start: before.start, units: before.units + joined.units };
        }
        if let Some(units) = self.by_start.get(&run.end()).copied() {
            self.remove_run(Run { start: run.end(), units });
            joined.units += units;
        }
        self.add_run(joined);
        true
    }

    /// Returns whether the set holds a unit of `run`.
    pub(crate) fn overlaps(&self, run: Run) -> bool {
        self.last_before(run.end()).is_some_and(|before| before.end() > run.start)
    }

    /// Takes `units` units out of the shortest run that holds them all. Of several, the one with the lowest address.
    pub(crate) fn take(&mut self, units: u64) -> Option<Run> {
        let (length, start) = self.by_length.range((units, 0)..).next().copied()?;
        Some(self.take_front(Run { start, units: length }, units))
    }

    /// Takes the front of the longest run: at most `units_max` units, at least `units_min`, and a multiple of `step`.
    pub(crate) fn take_longest(&mut self, units_max: u64, step: u64, units_min: u64) -> Option<Run> {
        let longest = self.longest()?;
        let units = longest.units.min(units_max) / step * step;
        (units > 0 && units >= units_min).then(|| self.take_front(longest, units))
    }

    /// Takes the end of the longest run: at most `units_max` units, at least `units_min`.
    pub(crate) fn take_longest_end(&mut self, units_max: u64, units_min: u64) -> Option<Run> {
        let longest = self.longest()?;
        let units = longest.units.min(units_max);
        if units == 0 || units < units_min {
            return None;
        }
        let rest = longest.units - units;
        self.remove_run(longest);
        if rest > 0 {
            self.add_run(Run { start: longest.start, units: rest });
        }
        Some(Run { start: longest.start + rest, units })
    }

    /// Takes up to `units_max` units from the front of the run with the lowest address.
    pub(crate) fn take_first(&mut self, units_max: u64) -> Option<Run> {
        let first =
            self.by_start.first_key_value().map(|(start, units)| Run { start: *start, units: *units })?;
        let units = first.units.min(units_max);
        (units > 0).then(|| self.take_front(first, units))
    }

    /// Returns the number of units in the runs that begin in a range of addresses.
    pub(crate) fn units_in(&self, addresses: std::ops::Range<u64>) -> u64 {
        self.by_start.range(addresses).map(|(_, units)| units).sum()
    }

    /// Removes the runs that begin in a range of addresses.
    pub(crate) fn remove_in(&mut self, addresses: std::ops::Range<u64>) {
        let found = self.by_start.range(addresses).map(|(start, units)| Run { start: *start, units: *units });
        found.collect::<Vec<_>>().into_iter().for_each(|run| self.remove_run(run));
    }

    /// Iterates over all runs in order of address.
    #[cfg(test)]
    pub(crate) fn runs(&self) -> impl Iterator<Item = Run> + '_ {
        self.by_start.iter().map(|(start, units)| Run { start: *start, units: *units })
    }

    fn longest(&self) -> Option<Run> {
        self.by_length.last().map(|(units, start)| Run { start: *start, units: *units })
    }

    /// Returns the last run that begins before `address`.
    fn last_before(&self, address: u64) -> Option<Run> {
        self.by_start.range(..address).next_back().map(|(start, units)| Run { start: *start, units: *units })
    }

    /// Takes the first `units` units of `run`, a run of the set.
    fn take_front(&mut self, run: Run, units: u64) -> Run {
        assert!(0 < units && units <= run.units, "no more units are taken than the run has");
        self.remove_run(run);
        if run.units > units {
            self.add_run(Run { start: run.start + units, units: run.units - units });
        }
        Run { start: run.start, units }
    }

    fn add_run(&mut self, run: Run) {
        let replaced = self.by_start.insert(run.start, run.units);
        assert!(replaced.is_none(), "no two runs begin at one address");
        self.by_length.insert((run.units, run.start));
        self.units += run.units;
    }

    fn remove_run(&mut self, run: Run) {
        let (by_start, by_length) =
            (self.by_start.remove(&run.start), self.by_length.remove(&(run.units, run.start)));
        assert!(by_start == Some(run.units) && by_length, "both indexes hold the same runs");
        assert!(self.units >= run.units, "the total is the sum of all runs");
        self.units -= run.units;
    }
}

#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "the numbers are below 128")]
mod tests {
    use super::{FreeRuns, Run};
    use proptest::prelude::*;

    const fn run(start: u64, units: u64) -> Run {
        Run { start, units }
    }

    #[test]
    fn neighbours_join_and_double_frees_are_refused() {
        let mut runs = FreeRuns::default();
        assert!(runs.insert(run(10, 5)) && runs.insert(run(20, 5)) && runs.insert(run(15, 5)));
        assert_eq!(runs.runs().collect::<Vec<_>>(), [run(10, 15)]);
        for freed in [run(24, 3), run(8, 3), run(12, 1), run(5, 100)] {
            assert!(!runs.insert(freed), "{freed:?}");
        }
        assert_eq!(runs.units(), 15);
    }

    #[test]
    fn shortest_run_that_fits_is_taken() {
        let mut runs = FreeRuns::default();
        assert!(runs.insert(run(0, 100)) && runs.insert(run(200, 8)) && runs.insert(run(300, 9)));
        assert_eq!(runs.take(8), Some(run(200, 8)));
        assert_eq!(runs.take(8), Some(run(300, 8)));
        assert_eq!(runs.take(101), None);
        assert_eq!(runs.take_longest(64, 16, 1), Some(run(0, 64)));
        assert_eq!(runs.take_longest(64, 16, 1), Some(run(64, 32)));
        assert_eq!(runs.take_longest(64, 16, 1), None);
        assert_eq!(runs.units(), 5);
    }

    #[test]
    #[should_panic(expected = "at least one unit")]
    fn empty_run_is_a_mistake_of_the_caller() {
        let _ = FreeRuns::default().insert(run(1, 0));
    }

    proptest! {
        /// Compares the set with an array of flags: no unit is handed out twice, and none is lost.
        #[test]
        fn set_agrees_with_an_array_of_flags(ops in prop::collection::vec((0u8..5, 0u64..64, 1u64..20), 1..200)) {
            let mut runs = FreeRuns::default();
            let mut free = [false; 128];
            let span = |run: Run| run.start as usize..run.end() as usize;
            for (op, at, units) in ops {
                let taken = match op {
                    0 => {
                        let freed = run(at, units);
                        let clear = free[span(freed)].iter().all(|f| !f);
                        prop_assert_eq!(runs.insert(freed), clear);
                        if clear { free[span(freed)].fill(true); }
                        None
                    }
                    1 => runs.take(units),
                    2 => runs.take_longest(units, 4, 4),
                    3 => runs.take_longest_end(units, 3),
                    _ => runs.take_first(units),
                };
                if let Some(taken) = taken {
                    prop_assert!(free[span(taken)].iter().all(|f| *f));
                    free[span(taken)].fill(false);
                }
                prop_assert_eq!(runs.units(), free.iter().filter(|f| **f).count() as u64);
                let mut flags = [false; 128];
                for run in runs.runs() {
                    prop_assert!(run.start == 0 || !flags[run.start as usize - 1], "runs touch");
                    flags[span(run)].fill(true);
                }
                prop_assert_eq!(flags, free);
            }
        }
    }
}
