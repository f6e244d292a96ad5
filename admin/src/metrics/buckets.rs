//! The samples of the largest buckets.
//!
//! Clients create buckets, so only a limited number of them has series. The counters of all buckets are in memory: finding
//! the largest reads no record and sorts only those that are shown.

use std::cmp::Reverse;
use std::sync::Arc;

use cairn_engine::{Bucket, Usage};
use cairn_observe::MetricValue::Whole;
use cairn_observe::Sample;

/// One of the largest buckets, with what it holds.
pub(super) struct LargestBucket {
    name: String,
    usage: Usage,
}

/// Returns the at most `count` buckets with the most bytes of stored payloads, the largest first. Of equal ones, those whose
/// names come first.
pub(super) fn largest(buckets: &[Arc<Bucket>], count: usize) -> Vec<LargestBucket> {
    let sized = buckets.iter().map(|bucket| (&bucket.name, bucket.usage()));
    let largest = largest_of(sized, count, |(name, usage)| (Reverse(usage.physical_bytes()), *name));
    largest.into_iter().map(|(name, usage)| LargestBucket { name: name.as_str().to_owned(), usage }).collect()
}

/// Returns the `count` items with the smallest ranks, in this order. Ranks are unique.
fn largest_of<T, R: Ord>(items: impl Iterator<Item = T>, count: usize, rank: impl Fn(&T) -> R) -> Vec<T> {
    if count == 0 {
        return Vec::new();
    }
    let mut items: Vec<T> = items.collect();
    if items.len() > count {
        items.select_nth_unstable_by_key(count - 1, &rank);
        items.truncate(count);
    }
    items.sort_unstable_by_key(&rank);
    items
}

/// Returns one value of each of these buckets.
pub(super) fn samples(buckets: &[LargestBucket], value: fn(&Usage) -> u64) -> Vec<Sample> {
    let sample =
        |bucket: &LargestBucket| Sample::labelled("bucket", &*bucket.name, Whole(value(&bucket.usage)));
    buckets.iter().map(sample).collect()
}

#[cfg(test)]
mod tests {
    use super::largest_of;

    #[test]
    fn the_first_ranks_are_found_whatever_the_order() {
        let numbers = || (0..10_000u32).map(|number| number.wrapping_mul(7919) % 10_000);
        assert_eq!(largest_of(numbers(), 3, |number| *number), [0, 1, 2]);
        assert_eq!(largest_of(numbers(), 1, |number| *number), [0]);
        assert!(largest_of(numbers(), 0, |number| *number).is_empty());
        assert_eq!(largest_of([2, 1].into_iter(), 5, |number| *number), [1, 2]);
        assert_eq!(largest_of([2, 1].into_iter(), 2, |number| *number), [1, 2]);
    }
}
