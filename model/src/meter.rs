//! Numbers that a hot path adds to and a scrape reads: tallies and histograms.
//!
//! Adding takes no lock, allocates nothing and orders nothing. Every executor and every committer has meters of its own, on
//! cache lines that nobody else writes; whoever reads sums them up.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A number that only grows.
#[derive(Default, Debug)]
pub struct Tally(AtomicU64);

impl Tally {
    /// Nothing yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Adds `count`.
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// The number now.
    #[must_use]
    pub fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Upper bounds for durations, in nanoseconds: from 50 µs, less than a read of a fast device takes, to five minutes, in which a
/// slow client takes a large object. Two or three to a decade tell a quantile to a factor of 2.5.
pub static DURATION_BOUNDS: [u64; 20] = [
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    10_000_000_000,
    30_000_000_000,
    60_000_000_000,
    300_000_000_000,
];

/// How often values fell between bounds, and their sum.
#[derive(Debug)]
pub struct Histogram<const N: usize> {
    /// In ascending order; a value belongs to the first that is not less than it.
    bounds: &'static [u64; N],
    counts: [Tally; N],
    /// Values above the last bound.
    above: Tally,
    sum: Tally,
}

/// A histogram of durations.
pub type Durations = Histogram<{ DURATION_BOUNDS.len() }>;

impl Default for Durations {
    fn default() -> Self {
        Self::new(&DURATION_BOUNDS)
    }
}

impl Durations {
    /// Notes a duration.
    pub fn note_time(&self, time: Duration) {
        // 2^64 ns are 584 years.
        self.note(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }
}

impl<const N: usize> Histogram<N> {
    /// An empty histogram with these bounds, which ascend.
    #[must_use]
    pub const fn new(bounds: &'static [u64; N]) -> Self {
        let counts = [const { Tally::new() }; N];
        Self { bounds, counts, above: Tally::new(), sum: Tally::new() }
    }

    /// Notes a value.
    pub fn note(&self, value: u64) {
        let place = self.bounds.partition_point(|bound| *bound < value);
        self.counts.get(place).unwrap_or(&self.above).add(1);
        self.sum.add(value);
    }

    /// What it holds now. The sum may be a few values ahead of the counts, or behind.
    #[must_use]
    pub fn read(&self) -> HistogramReading {
        let counts = self.counts.iter().chain([&self.above]).map(Tally::value).collect();
        HistogramReading { bounds: self.bounds, counts, sum: self.sum.value() }
    }
}

/// What one or more histograms of the same bounds held when they were read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HistogramReading {
    /// The upper bounds.
    pub bounds: &'static [u64],
    /// Values at or below each bound and above the one before; the last: those above all bounds.
    pub counts: Vec<u64>,
    /// Sum of all values.
    pub sum: u64,
}

impl HistogramReading {
    /// How many values there were.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Adds what another histogram of the same bounds held.
    pub fn add(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.sum = self.sum.wrapping_add(other.sum);
    }

    /// The sum of histograms of the same bounds.
    #[must_use]
    pub fn sum_of<const N: usize>(
        bounds: &'static [u64; N],
        parts: impl Iterator<Item = HistogramReading>,
    ) -> Self {
        let mut total = Self { bounds, counts: vec![0; N + 1], sum: 0 };
        parts.for_each(|part| total.add(&part));
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_belongs_to_the_first_bound_that_is_not_less() {
        static BOUNDS: [u64; 3] = [1, 10, 100];
        let histogram = Histogram::new(&BOUNDS);
        for value in [0, 1, 2, 10, 11, 100, 101, 1_000_000] {
            histogram.note(value);
        }
        let read = histogram.read();
        assert_eq!(read.counts, [2, 2, 2, 2]);
        assert_eq!((read.count(), read.sum), (8, 1_000_225));
        let both = HistogramReading::sum_of(&BOUNDS, [read.clone(), read].into_iter());
        assert_eq!((both.counts, both.sum), (vec![4; 4], 2_000_450));
    }

    #[test]
    fn bounds_ascend() {
        assert!(DURATION_BOUNDS.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn an_endless_duration_is_counted_above_all() {
        let durations = Durations::default();
        durations.note_time(Duration::MAX);
        assert_eq!(durations.read().counts.last(), Some(&1));
    }
}
