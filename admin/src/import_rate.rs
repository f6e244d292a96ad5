//! Measures the recent throughput of imports.

use std::collections::VecDeque;

use cairn_api::ImportRate;
use cairn_model::{Timestamp, u64_of, usize_of};
use cairn_sync::Mutex;

use crate::limits::{IMPORT_INTERVAL_SECONDS, IMPORT_INTERVALS};

const INTERVAL_MILLIS: u64 = IMPORT_INTERVAL_SECONDS * 1000;

/// The bytes of the latest intervals in which any came, each with the number of its interval since the Unix epoch.
#[derive(Default)]
pub(crate) struct RecentBytes(Mutex<VecDeque<(u64, u64)>>);

impl RecentBytes {
    /// Counts bytes that came at a time.
    pub(crate) fn add(&self, now: Timestamp, bytes: u64) {
        let interval = now.0 / INTERVAL_MILLIS;
        let mut counted = self.0.lock();
        match counted.back_mut() {
            Some((last, sum)) if *last == interval => *sum = sum.saturating_add(bytes),
            _ => counted.push_back((interval, bytes)),
        }
        // The present interval is one more.
        if counted.len() > IMPORT_INTERVALS + 1 {
            counted.pop_front();
        }
    }

    /// Returns what came in the intervals that are over at a time.
    pub(crate) fn body(&self, now: Timestamp) -> ImportRate {
        let end = now.0 / INTERVAL_MILLIS;
        let mut bytes = vec![0; IMPORT_INTERVALS];
        for (interval, sum) in self.0.lock().iter() {
            let place = (interval + u64_of(IMPORT_INTERVALS)).checked_sub(end).map(usize_of);
            if let Some(total) = place.and_then(|place| bytes.get_mut(place)) {
                // A clock that was set back has an interval twice.
                *total += sum;
            }
        }
        let until = Timestamp(end * INTERVAL_MILLIS).into();
        ImportRate { interval_seconds: IMPORT_INTERVAL_SECONDS, until, bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_in_their_interval_until_they_are_too_old() {
        let recent = RecentBytes::default();
        let at = |interval: u64, millis: u64| Timestamp(interval * INTERVAL_MILLIS + millis);
        recent.add(at(1000, 0), 1);
        recent.add(at(1000, INTERVAL_MILLIS - 1), 2);
        recent.add(at(1002, 5), 4);
        assert_eq!(recent.body(at(1000, 9)).bytes, [0; IMPORT_INTERVALS], "it is not over");
        let rate = recent.body(at(1003, 0));
        assert_eq!(rate.bytes[IMPORT_INTERVALS - 3..], [3, 0, 4]);
        assert_eq!(rate.bytes.iter().sum::<u64>(), 7);
        assert_eq!(recent.body(at(1000 + u64_of(IMPORT_INTERVALS), 0)).bytes[0], 3);
        assert_eq!(recent.body(at(1001 + u64_of(IMPORT_INTERVALS), 0)).bytes.iter().sum::<u64>(), 4);
    }

    #[test]
    fn a_clock_that_jumps_keeps_the_limit() {
        let recent = RecentBytes::default();
        for turn in 0..10 * u64_of(IMPORT_INTERVALS) {
            recent.add(Timestamp((1 + turn % 2) * INTERVAL_MILLIS), 1);
        }
        assert_eq!(recent.0.lock().len(), IMPORT_INTERVALS + 1);
        assert!(recent.body(Timestamp(0)).bytes.iter().all(|sum| *sum == 0), "they are in the future");
    }
}
