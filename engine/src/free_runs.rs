//! Which units are free, in memory: maximal runs, found by address and by length.
//!
//! Pure: no I/O, no locks. Best fit with joining of neighbours, logarithmic in the number of runs.

use std::collections::{BTreeMap, BTreeSet};

/// A set of disjoint runs of units that never touch one another.
#[derive(Debug, Default, Clone)]
pub(crate) struct FreeRuns {
    by_start: BTreeMap<u64, u64>,
    by_length: BTreeSet<(u64, u64)>,
    units: u64,
}

impl FreeRuns {
    /// Units in all runs.
    pub(crate) const fn units(&self) -> u64 {
        self.units
    }

    /// Adds a run, joining it with runs that touch it. Returns `false`, changing nothing, when a unit of it is in
    /// the set already: space given back twice.
    #[must_use]
    pub(crate) fn insert(&mut self, start: u64, units: u64) -> bool {
        let Some(end) = start.checked_add(units) else { return false };
        let before = self.by_start.range(..end).next_back().map(|(s, n)| (*s, *n));
        if before.is_some_and(|(s, n)| s + n > start) {
            return false;
        }
        if units == 0 {
            return true;
        }
        let (mut start, mut joined) = (start, units);
        if let Some((s, n)) = before
            && s + n == start
        {
            self.forget(s, n);
            start = s;
            joined += n;
        }
        if let Some(n) = self.by_start.get(&end).copied() {
            self.forget(end, n);
            joined += n;
        }
        self.by_start.insert(start, joined);
        self.by_length.insert((joined, start));
        self.units += units;
        true
    }

    /// Whether a unit of a run is in the set.
    pub(crate) fn overlaps(&self, start: u64, units: u64) -> bool {
        let before = self.by_start.range(..start.saturating_add(units)).next_back();
        before.is_some_and(|(s, n)| s + n > start)
    }

    /// Takes `units` units out of the smallest run that holds them all, lowest address first.
    pub(crate) fn take(&mut self, units: u64) -> Option<u64> {
        let (length, start) = self.by_length.range((units, 0)..).next().copied()?;
        self.cut(start, length, units);
        Some(start)
    }

    /// Takes the front of the longest run: at most `units_max`, at least `units_min`, and a multiple of `step`.
    pub(crate) fn take_longest(&mut self, units_max: u64, step: u64, units_min: u64) -> Option<(u64, u64)> {
        let (length, start) = self.by_length.last().copied()?;
        let units = length.min(units_max) / step * step;
        if units == 0 || units < units_min {
            return None;
        }
        self.cut(start, length, units);
        Some((start, units))
    }

    /// Takes the end of the longest run: at most `units_max`, at least `units_min`.
    pub(crate) fn take_longest_end(&mut self, units_max: u64, units_min: u64) -> Option<(u64, u64)> {
        let (length, start) = self.by_length.last().copied()?;
        let units = length.min(units_max);
        if units == 0 || units < units_min {
            return None;
        }
        self.forget(start, length);
        if length > units {
            self.by_start.insert(start, length - units);
            self.by_length.insert((length - units, start));
        }
        self.units -= units;
        Some((start + length - units, units))
    }

    /// Takes up to `units_max` units from the front of the run with the lowest address.
    pub(crate) fn take_first(&mut self, units_max: u64) -> Option<(u64, u64)> {
        let (start, length) = self.by_start.first_key_value().map(|(s, n)| (*s, *n))?;
        let units = length.min(units_max);
        self.cut(start, length, units);
        Some((start, units))
    }

    /// All runs in order of address.
    #[cfg(test)]
    pub(crate) fn runs(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.by_start.iter().map(|(s, n)| (*s, *n))
    }

    fn cut(&mut self, start: u64, length: u64, units: u64) {
        self.by_start.remove(&start);
        self.by_length.remove(&(length, start));
        if length > units {
            self.by_start.insert(start + units, length - units);
            self.by_length.insert((length - units, start + units));
        }
        self.units -= units;
    }

    fn forget(&mut self, start: u64, length: u64) {
        self.by_start.remove(&start);
        self.by_length.remove(&(length, start));
    }
}

#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "the numbers are below 128")]
mod tests {
    use super::FreeRuns;
    use proptest::prelude::*;

    #[test]
    fn neighbours_join_and_double_frees_are_refused() {
        let mut runs = FreeRuns::default();
        assert!(runs.insert(10, 5) && runs.insert(20, 5) && runs.insert(15, 5));
        assert_eq!(runs.runs().collect::<Vec<_>>(), [(10, 15)]);
        assert!(!runs.insert(24, 3) && !runs.insert(8, 3) && !runs.insert(12, 1) && !runs.insert(5, 100));
        assert_eq!(runs.units(), 15);
    }

    #[test]
    fn the_smallest_run_that_fits_is_taken() {
        let mut runs = FreeRuns::default();
        assert!(runs.insert(0, 100) && runs.insert(200, 8) && runs.insert(300, 9));
        assert_eq!(runs.take(8), Some(200));
        assert_eq!(runs.take(8), Some(300));
        assert_eq!(runs.take(101), None);
        assert_eq!(runs.take_longest(64, 16, 1), Some((0, 64)));
        assert_eq!(runs.take_longest(64, 16, 1), Some((64, 32)));
        assert_eq!(runs.take_longest(64, 16, 1), None);
        assert_eq!(runs.units(), 5);
    }

    proptest! {
        /// Against a plain array of flags: no unit is handed out twice, none is lost.
        #[test]
        fn agrees_with_an_array_of_flags(ops in prop::collection::vec((0u8..5, 0u64..64, 1u64..20), 1..200)) {
            let mut runs = FreeRuns::default();
            let mut free = [false; 128];
            for (op, at, units) in ops {
                let taken = match op {
                    0 => {
                        let span = at as usize..(at + units) as usize;
                        let clear = free[span.clone()].iter().all(|f| !f);
                        prop_assert_eq!(runs.insert(at, units), clear);
                        if clear { free[span].fill(true); }
                        None
                    }
                    1 => runs.take(units).map(|start| (start, units)),
                    2 => runs.take_longest(units, 4, 4),
                    3 => runs.take_longest_end(units, 3),
                    _ => runs.take_first(units),
                };
                if let Some((start, units)) = taken {
                    let span = start as usize..(start + units) as usize;
                    prop_assert!(free[span.clone()].iter().all(|f| *f));
                    free[span].fill(false);
                }
                prop_assert_eq!(runs.units(), free.iter().filter(|f| **f).count() as u64);
                let mut flags = [false; 128];
                for (start, units) in runs.runs() {
                    prop_assert!(start == 0 || !flags[start as usize - 1], "runs touch");
                    flags[start as usize..(start + units) as usize].fill(true);
                }
                prop_assert_eq!(flags, free);
            }
        }
    }
}
