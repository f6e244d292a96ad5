//! Metrics for hot paths: counters and histograms.
//!
//! Adding takes no lock, allocates nothing and orders no other memory access. Every executor and every committer has
//! its own metrics on cache lines that no other thread writes. A reader sums them up.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A counter that only grows.
#[derive(Default, Debug)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Makes a counter of 0.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Adds `count`.
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// Returns the current value.
    #[must_use]
    pub fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Upper bounds for durations, in nanoseconds.
///
/// They range from 50 µs, less than a read from a fast device, to five minutes, the time of a slow client for a large
/// object. Two or three bounds per decade give a quantile to within a factor of 2.5.
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

/// Counts values between bounds, and sums them up.
#[derive(Debug)]
pub struct Histogram<const N: usize> {
    /// Upper bounds in ascending order. A value is counted at the first bound that is not less than it.
    bounds: &'static [u64; N],
    counts: [Counter; N],
    /// Values above the last bound.
    above: Counter,
    sum: Counter,
}

/// A histogram of durations.
pub type DurationHistogram = Histogram<{ DURATION_BOUNDS.len() }>;

impl Default for DurationHistogram {
    fn default() -> Self {
        Self::new(&DURATION_BOUNDS)
    }
}

impl DurationHistogram {
    /// Records a duration.
    pub fn record_duration(&self, time: Duration) {
        // 2^64 ns are 584 years.
        self.record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }
}

impl<const N: usize> Histogram<N> {
    /// Makes an empty histogram. `bounds` must be in ascending order.
    #[must_use]
    pub const fn new(bounds: &'static [u64; N]) -> Self {
        let counts = [const { Counter::new() }; N];
        Self { bounds, counts, above: Counter::new(), sum: Counter::new() }
    }

    /// Records a value.
    pub fn record(&self, value: u64) {
        let index = self.bounds.partition_point(|bound| *bound < value);
        self.counts.get(index).unwrap_or(&self.above).add(1);
        self.sum.add(value);
    }

    /// Returns the current counts and sum. Concurrent values may be in one of them and not yet in the other.
    #[must_use]
    pub fn snapshot(&self) -> HistogramSnapshot {
        let counts = self.counts.iter().chain([&self.above]).map(Counter::value).collect();
        HistogramSnapshot { bounds: self.bounds, counts, sum: self.sum.value() }
    }
}

/// The values of one or more histograms with the same bounds, at one time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HistogramSnapshot {
    /// The upper bounds.
    pub bounds: &'static [u64],
    /// Number of values at or below each bound and above the previous one. The last counts values above all bounds.
    pub counts: Vec<u64>,
    /// Sum of all values.
    pub sum: u64,
}

impl HistogramSnapshot {
    /// Returns the number of values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Adds the values of another histogram with the same bounds.
    pub fn add(&mut self, other: &Self) {
        assert_eq!(self.counts.len(), other.counts.len(), "histograms that are summed have the same bounds");
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.sum = self.sum.wrapping_add(other.sum);
    }

    /// Returns the sum of histograms with the same bounds.
    #[must_use]
    pub fn sum_of<const N: usize>(
        bounds: &'static [u64; N],
        parts: impl Iterator<Item = HistogramSnapshot>,
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
    fn a_value_is_counted_at_the_first_bound_not_less() {
        static BOUNDS: [u64; 3] = [1, 10, 100];
        let histogram = Histogram::new(&BOUNDS);
        for value in [0, 1, 2, 10, 11, 100, 101, 1_000_000] {
            histogram.record(value);
        }
        let snapshot = histogram.snapshot();
        assert_eq!(snapshot.counts, [2, 2, 2, 2]);
        assert_eq!((snapshot.count(), snapshot.sum), (8, 1_000_225));
        let both = HistogramSnapshot::sum_of(&BOUNDS, [snapshot.clone(), snapshot].into_iter());
        assert_eq!((both.counts, both.sum), (vec![4; 4], 2_000_450));
    }

    #[test]
    fn the_bounds_of_durations_ascend() {
        assert!(DURATION_BOUNDS.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn the_longest_duration_is_counted_above_all_bounds() {
        let durations = DurationHistogram::default();
        durations.record_duration(Duration::MAX);
        assert_eq!(durations.snapshot().counts.last(), Some(&1));
    }
}
