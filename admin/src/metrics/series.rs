//! Samples of metrics: differences of counters, in series of fixed length.

use std::collections::VecDeque;
use std::time::Instant;

use cairn_engine::Store;
use cairn_model::{Clock, HistogramSnapshot, SystemClock, Timestamp, usize_of};
use cairn_observe::Plane;
use cairn_observe::metrics::{PlaneTotals, plane_totals};

/// The requests of each plane, in the order of [`Plane::ALL`].
pub(super) type Planes<T> = [T; Plane::ALL.len()];

cairn_model::named_enum! {
    /// A period that the history covers, with the interval of its samples. Named as in the API.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(crate) enum Period {
        /// The last hour, in intervals of ten seconds.
        Hour => "hour",
        /// The last day, in intervals of a minute.
        Day => "day",
        /// The last thirty days, in intervals of an hour.
        Month => "month",
    }
}

impl Period {
    /// Returns its length in seconds.
    pub(crate) const fn seconds(self) -> u64 {
        match self {
            Self::Hour => 3600,
            Self::Day => 24 * 3600,
            Self::Month => 30 * 24 * 3600,
        }
    }

    /// Returns the time between two samples in seconds.
    pub(crate) const fn interval_seconds(self) -> u64 {
        match self {
            Self::Hour => TICK_SECONDS,
            Self::Day => 60,
            Self::Month => 3600,
        }
    }

    /// Returns how many samples cover the period.
    pub(super) fn samples_max(self) -> usize {
        usize_of(self.seconds() / self.interval_seconds())
    }
}

/// Time between two reads of the counters.
pub(super) const TICK_SECONDS: u64 = 10;

/// The requests of one plane in one interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PlaneSample {
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    pub(crate) lists: u64,
    pub(crate) other: u64,
    pub(crate) client_errors: u64,
    pub(crate) server_errors: u64,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    /// Half of the requests took at most so many nanoseconds; `None` without requests.
    pub(crate) latency_p50: Option<u64>,
    /// 99 % of the requests took at most so many nanoseconds.
    pub(crate) latency_p99: Option<u64>,
}

/// The space of the store at the end of an interval, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct SpaceSample {
    /// Bytes of current objects.
    pub(crate) logical: u64,
    /// Bytes of all versions and unfinished uploads.
    pub(crate) physical: u64,
    /// Size of the file system.
    pub(crate) capacity: u64,
    /// Free bytes of the file system.
    pub(crate) available: u64,
}

/// The figures of one interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MetricSample {
    /// The end of the interval.
    pub(crate) end: Timestamp,
    /// Its length in milliseconds.
    pub(crate) milliseconds: u64,
    pub(crate) planes: Planes<PlaneSample>,
    pub(crate) space: SpaceSample,
}

/// The values of the counters at one time.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    pub(super) at: Timestamp,
    /// Of a clock that is never set.
    monotonic: Instant,
    planes: Planes<PlaneTotals>,
    space: SpaceSample,
}

impl Reading {
    /// Reads the counters and the space of the store.
    pub(super) fn take(store: &Store) -> Self {
        let usage = store.usage();
        Self {
            at: SystemClock.now(),
            monotonic: Instant::now(),
            planes: plane_totals(),
            space: SpaceSample {
                logical: usage.held.bytes,
                physical: usage.held.physical_bytes(),
                capacity: usage.capacity_bytes,
                available: usage.available_bytes,
            },
        }
    }
}

/// The samples of one period, the oldest first.
#[derive(Debug)]
pub(super) struct Series {
    pub(super) period: Period,
    pub(super) samples: VecDeque<MetricSample>,
    last: Reading,
}

impl Series {
    /// Continues a series that was kept: the time since then is a gap. At most the latest samples are kept.
    pub(super) fn new(period: Period, kept: Vec<MetricSample>, first: Reading) -> Self {
        let mut samples = VecDeque::with_capacity(period.samples_max());
        samples.extend(kept.into_iter().rev().take(period.samples_max()).rev());
        Self { period, samples, last: first }
    }

    /// Adds what happened since the last sample, once an interval of this period has ended.
    pub(super) fn add(&mut self, reading: &Reading) {
        // The reads are a few milliseconds late, each by another time.
        const EARLY_MILLISECONDS: u64 = TICK_SECONDS * 1000 / 2;
        let elapsed = reading.monotonic.saturating_duration_since(self.last.monotonic);
        let milliseconds = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        let interval = self.period.interval_seconds() * 1000;
        let ends_interval = reading.at.0 % interval < EARLY_MILLISECONDS || milliseconds >= interval;
        if !ends_interval || milliseconds == 0 {
            return;
        }
        if self.samples.len() >= self.period.samples_max() {
            self.samples.pop_front();
        }
        let planes =
            std::array::from_fn(|plane| difference(&self.last.planes[plane], &reading.planes[plane]));
        self.samples.push_back(MetricSample { end: reading.at, milliseconds, planes, space: reading.space });
        self.last = reading.clone();
        assert!(self.samples.len() <= self.period.samples_max(), "the oldest sample has made room");
    }
}

fn difference(before: &PlaneTotals, after: &PlaneTotals) -> PlaneSample {
    let since = |of: fn(&PlaneTotals) -> u64| of(after).saturating_sub(of(before));
    let counts = after.latency.counts.iter().zip(&before.latency.counts);
    let latency = HistogramSnapshot {
        bounds: after.latency.bounds,
        counts: counts.map(|(after, before)| after.saturating_sub(*before)).collect(),
        sum: 0,
    };
    PlaneSample {
        reads: since(|totals| totals.reads),
        writes: since(|totals| totals.writes),
        lists: since(|totals| totals.lists),
        other: since(|totals| totals.other),
        client_errors: since(|totals| totals.client_errors),
        server_errors: since(|totals| totals.server_errors),
        bytes_in: since(|totals| totals.bytes_in),
        bytes_out: since(|totals| totals.bytes_out),
        latency_p50: quantile(&latency, 50),
        latency_p99: quantile(&latency, 99),
    }
}

/// Returns the value that `percent` of all values do not exceed, as Prometheus' `histogram_quantile` does: values are assumed
/// to be spread evenly between two bounds. Above the last bound, it is that bound.
fn quantile(histogram: &HistogramSnapshot, percent: u64) -> Option<u64> {
    let total = histogram.count();
    if total == 0 {
        return None;
    }
    // In hundredths of a value, so that nothing is rounded before the end.
    let wanted = u128::from(total) * u128::from(percent);
    let (mut below, mut lower) = (0_u128, 0_u64);
    for (bound, count) in histogram.bounds.iter().zip(&histogram.counts) {
        let within = u128::from(*count) * 100;
        if below + within >= wanted && within > 0 {
            let part = u128::from(bound - lower) * (wanted - below) / within;
            return Some(lower + u64::try_from(part).expect("a part of a difference of bounds"));
        }
        (below, lower) = (below + within, *bound);
    }
    Some(lower)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_model::{DurationHistogram, u64_of};
    use std::time::Duration;

    const BEGIN: u64 = 1_795_237_200_000;

    fn totals(reads: u64, latencies: &[u64]) -> PlaneTotals {
        let histogram = DurationHistogram::default();
        latencies.iter().for_each(|latency| histogram.record(*latency));
        PlaneTotals { reads, bytes_out: reads * 10, latency: histogram.snapshot(), ..PlaneTotals::default() }
    }

    fn reading(start: Instant, milliseconds: u64, data: PlaneTotals) -> Reading {
        Reading {
            at: Timestamp(BEGIN + milliseconds),
            monotonic: start + Duration::from_millis(milliseconds),
            planes: [data, PlaneTotals::default(), PlaneTotals::default()],
            space: SpaceSample { logical: milliseconds, ..SpaceSample::default() },
        }
    }

    #[test]
    fn samples_are_differences_and_their_number_is_limited() {
        let start = Instant::now();
        let mut series =
            Period::ALL.map(|period| Series::new(period, Vec::new(), reading(start, 0, totals(0, &[]))));
        for tick in 1..=9000 {
            let reading = reading(start, tick * 10_000 + 3, totals(tick * 2, &[]));
            series.iter_mut().for_each(|series| series.add(&reading));
        }
        let [hour, day, month] = &series;
        assert_eq!((hour.samples.len(), day.samples.len(), month.samples.len()), (360, 1440, 25));
        let last = |series: &Series| *series.samples.back().expect("samples");
        assert_eq!((last(hour).planes[0].reads, last(hour).planes[0].bytes_out), (2, 20));
        assert_eq!((last(day).planes[0].reads, last(day).milliseconds), (12, 60_000));
        assert_eq!(last(day).space.logical, 90_000_003);
        let ends: Vec<_> = day.samples.iter().map(|sample| sample.end.0).collect();
        assert!(ends.windows(2).all(|pair| pair[1] - pair[0] == 60_000));
    }

    /// A machine that slept: the clock of the day went on, the monotonic one did not. The sample covers only the time that
    /// the process ran, so the sleep is a gap before it.
    #[test]
    fn time_in_which_the_machine_slept_is_a_gap() {
        let start = Instant::now();
        let mut hour = Series::new(Period::Hour, Vec::new(), reading(start, 0, totals(0, &[])));
        hour.add(&reading(start, 10_000, totals(1, &[])));
        let woken = Reading { at: Timestamp(BEGIN + 1_810_000), ..reading(start, 20_000, totals(2, &[])) };
        hour.add(&woken);
        let [first, second] = [hour.samples[0], hour.samples[1]];
        assert_eq!(second.milliseconds, 10_000);
        assert!(second.end.0 - second.milliseconds > first.end.0 + 1_000_000);
    }

    #[test]
    fn quantiles_lie_between_the_bounds() {
        let of = |latencies: &[u64], percent| quantile(&totals(0, latencies).latency, percent);
        assert_eq!(of(&[], 50), None);
        // All between 500 µs and 1 ms: spread evenly.
        assert_eq!(of(&[700_000; 4], 50), Some(750_000));
        assert_eq!(of(&[10_000], 99), Some(49_500));
        // 98 fast ones and two slow ones: half of the slow ones are above the 99th percentile.
        let mixed = [vec![60_000; 98], vec![4_000_000; 2]].concat();
        assert_eq!(of(&mixed, 99), Some(2_500_000 + 2_500_000 / 2));
        assert!(of(&mixed, 50).is_some_and(|p50| (50_000..100_000).contains(&p50)));
        // Above the last bound nothing more is known.
        assert_eq!(of(&[u64::MAX / 2], 50), Some(300_000_000_000));
    }

    #[test]
    fn latencies_are_those_of_the_interval() {
        let before = totals(4, &[100_000_000; 4]);
        let after = totals(5, &[vec![100_000_000; 4], vec![700_000]].concat());
        let sample = difference(&before, &after);
        assert_eq!((sample.reads, sample.latency_p50), (1, Some(750_000)));
        assert_eq!(difference(&after, &after).latency_p99, None);
    }

    #[test]
    fn memory_is_less_than_a_megabyte() {
        let samples: usize = Period::ALL.iter().map(|period| period.samples_max()).sum();
        let bytes = u64_of(samples * size_of::<MetricSample>());
        assert!(bytes < 1 << 20, "{bytes}");
    }
}
