//! The space of each bucket on each of the last 90 days.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use cairn_engine::Store;
use cairn_model::{Timestamp, u64_of};

/// Days that are kept.
pub(super) const DAYS_MAX: usize = 90;
/// Most buckets of a day, the largest ones. The others are one sum, so that memory and file stay small.
pub(super) const BUCKETS_OF_DAY_MAX: usize = 100;
const DAY_MILLISECONDS: u64 = 86_400_000;

/// Bytes and objects of one bucket, or of several.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Held {
    pub(crate) bytes: u64,
    pub(crate) objects: u64,
}

/// The figures of one day (UTC): the latest that were taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct DayOfBuckets {
    /// The time when they were taken.
    pub(crate) at: Timestamp,
    /// Size of the file system.
    pub(crate) capacity: u64,
    /// Its free bytes.
    pub(crate) available: u64,
    /// The largest buckets.
    pub(crate) buckets: Vec<(Arc<str>, Held)>,
    /// All others together.
    pub(crate) others: Held,
}

impl DayOfBuckets {
    fn number(&self) -> u64 {
        self.at.0 / DAY_MILLISECONDS
    }
}

/// The days, the oldest first.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct BucketDays(VecDeque<DayOfBuckets>);

/// One bucket over all days; `None` on days without it.
pub(crate) struct BucketLine {
    pub(crate) bucket: Arc<str>,
    pub(crate) days: Vec<Option<Held>>,
}

impl BucketDays {
    /// Takes what was kept, at most the latest 90 days.
    pub(super) fn kept(days: Vec<DayOfBuckets>) -> Self {
        let mut kept = Self::default();
        days.into_iter().for_each(|day| kept.add(day));
        kept
    }

    /// Returns the days, the oldest first.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &DayOfBuckets> {
        self.0.iter()
    }

    /// Takes the figures of now, in place of earlier ones of the same day.
    pub(super) fn record(&mut self, store: &Store, now: Timestamp) {
        let usage = store.usage();
        let held = |bucket: &cairn_engine::Bucket| {
            let usage = bucket.usage();
            let held = Held { bytes: usage.physical_bytes(), objects: usage.objects };
            (Arc::from(bucket.name.as_str()), held)
        };
        let buckets = store.buckets().iter().map(|bucket| held(bucket)).collect();
        self.add(day_of(now, usage.capacity_bytes, usage.available_bytes, buckets));
    }

    /// Adds a day. Days from it on are replaced: the clock was wrong.
    fn add(&mut self, day: DayOfBuckets) {
        while self.0.back().is_some_and(|last| last.number() >= day.number()) {
            self.0.pop_back();
        }
        if self.0.len() >= DAYS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(day);
        assert!(self.0.len() <= DAYS_MAX, "the oldest day has made room");
    }

    /// Returns a line for each of the largest buckets, the largest first, and the sum of all others on each day.
    pub(crate) fn lines(&self) -> (Vec<BucketLine>, Vec<Held>) {
        let mut lines: BTreeMap<&Arc<str>, Vec<Option<Held>>> = BTreeMap::new();
        let mut others: Vec<Held> = self.0.iter().map(|day| day.others).collect();
        for (index, day) in self.0.iter().enumerate() {
            for (bucket, held) in &day.buckets {
                lines.entry(bucket).or_insert_with(|| vec![None; self.0.len()])[index] = Some(*held);
            }
        }
        let last = |days: &[Option<Held>]| days.iter().rev().flatten().next().map_or(0, |held| held.bytes);
        let mut lines: Vec<_> = lines.into_iter().collect();
        // Buckets that are still there come before those that are gone.
        lines.sort_by_key(|(_, days)| (days.last().is_none_or(Option::is_none), Reverse(last(days))));
        for (_, days) in lines.drain(BUCKETS_OF_DAY_MAX.min(lines.len())..) {
            for (sum, held) in others.iter_mut().zip(days) {
                *sum = sum.plus(held.unwrap_or_default());
            }
        }
        let lines = lines.into_iter().map(|(bucket, days)| BucketLine { bucket: Arc::clone(bucket), days });
        (lines.collect(), others)
    }
}

impl Held {
    const fn plus(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_add(other.bytes),
            objects: self.objects.saturating_add(other.objects),
        }
    }
}

fn day_of(at: Timestamp, capacity: u64, available: u64, mut buckets: Vec<(Arc<str>, Held)>) -> DayOfBuckets {
    buckets.sort_by(|(name, held), (other_name, other)| {
        (Reverse(held.bytes), name).cmp(&(Reverse(other.bytes), other_name))
    });
    let rest = buckets.split_off(BUCKETS_OF_DAY_MAX.min(buckets.len()));
    let others = rest.into_iter().fold(Held::default(), |sum, (_, held)| sum.plus(held));
    assert!(u64_of(buckets.len()) <= u64_of(BUCKETS_OF_DAY_MAX), "the rest was cut off");
    DayOfBuckets { at, capacity, available, buckets, others }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(number: u64, buckets: &[(&str, u64)]) -> DayOfBuckets {
        let held = |bytes: u64| Held { bytes, objects: 1 };
        let buckets = buckets.iter().map(|(name, bytes)| (Arc::from(*name), held(*bytes))).collect();
        day_of(Timestamp(number * DAY_MILLISECONDS + 5), 1000, 10, buckets)
    }

    #[test]
    fn days_are_replaced_limited_and_in_order() {
        let mut days = BucketDays::default();
        for number in 0..100 {
            days.add(day(number, &[("a", number)]));
        }
        days.add(day(99, &[("a", 7)]));
        assert_eq!(days.iter().len(), DAYS_MAX);
        let (lines, _) = days.lines();
        let of = |index: usize| lines[0].days[index].map(|held| held.bytes);
        assert_eq!((lines.len(), of(0), of(88), of(89)), (1, Some(10), Some(98), Some(7)));
        // The clock was set back: what it said before is wrong.
        days.add(day(50, &[("a", 1)]));
        assert_eq!(days.iter().last().map(|day| day.number()), Some(50));
        assert_eq!(days.iter().len(), 41);
    }

    #[test]
    fn smaller_buckets_are_one_sum() {
        let names: Vec<String> = (0..150).map(|number| format!("b{number:03}")).collect();
        let all: Vec<(&str, u64)> =
            names.iter().zip(1..).map(|(name, bytes)| (name.as_str(), bytes)).collect();
        let mut days = BucketDays::default();
        days.add(day(1, &[("gone", 1_000_000)]));
        days.add(day(2, &all));
        let (lines, others) = days.lines();
        assert_eq!((lines.len(), &*lines[0].bucket), (BUCKETS_OF_DAY_MAX, "b149"));
        // The one that is gone has no line, and is in the sum of its day.
        assert_eq!((others[0].bytes, others[1].bytes, others[1].objects), (1_000_000, (1..=50).sum(), 50));
    }
}
