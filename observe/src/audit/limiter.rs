//! Rate limiter for audit records, per source and overall.
//!
//! Keeps a flood of similar events from filling the trail. Each source may cause a burst of records and then one in each
//! interval; the same holds for all sources together. Events over the limit are counted for their source. The next admitted
//! record of that source states the count, so that the trail shows where it is incomplete.

use super::limits::{RateLimit, SOURCES_MAX};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The decision of the limiter about an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Admission {
    /// The event is recorded.
    Admitted {
        /// Number of events of this source that were left out since its last recorded one.
        left_out: u64,
    },
    /// The event is left out.
    LeftOut,
}

/// The generic cell rate algorithm for one source.
#[derive(Clone, Copy, Debug)]
struct Meter {
    /// The time when the full burst will be available again.
    full_at: Instant,
    left_out: u64,
}

impl Meter {
    /// Returns when the full burst will be available again after one more event. Returns `None` if the event is over the
    /// limit.
    fn after_one(&self, now: Instant, burst: u32, interval: Duration) -> Option<Instant> {
        let full_at = self.full_at.max(now) + interval;
        (full_at - now <= interval * burst).then_some(full_at)
    }
}

/// Limits the records of each source and of all sources together.
#[derive(Debug)]
pub(crate) struct Limiter {
    limit: RateLimit,
    sources: HashMap<u64, Meter>,
    /// Shared by all sources for which the table has no room.
    others: Meter,
    overall: Meter,
    swept_at: Instant,
}

/// Shortest time between two searches of the table for idle sources.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

impl Limiter {
    pub(crate) fn new(limit: RateLimit, now: Instant) -> Self {
        let meter = Meter { full_at: now, left_out: 0 };
        Self { limit, sources: HashMap::new(), others: meter, overall: meter, swept_at: now }
    }

    /// Decides on one event of `source`.
    pub(crate) fn admit(&mut self, source: u64, now: Instant) -> Admission {
        self.make_room(source, now);
        let has_room = self.sources.len() < SOURCES_MAX;
        let meter = match self.sources.entry(source) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(slot) if has_room => {
                slot.insert(Meter { full_at: now, left_out: 0 })
            }
            std::collections::hash_map::Entry::Vacant(_) => &mut self.others,
        };
        let RateLimit { source_burst, source_interval, overall_burst, overall_interval } = self.limit;
        let source_full_at = meter.after_one(now, source_burst, source_interval);
        let overall_full_at = self.overall.after_one(now, overall_burst, overall_interval);
        let (Some(source_full_at), Some(overall_full_at)) = (source_full_at, overall_full_at) else {
            meter.left_out += 1;
            return Admission::LeftOut;
        };
        meter.full_at = source_full_at;
        self.overall.full_at = overall_full_at;
        Admission::Admitted { left_out: std::mem::take(&mut meter.left_out) }
    }

    /// Reverts an [`Admission::Admitted`] because the queue had no room for the record.
    pub(crate) fn revert_admission(&mut self, source: u64, left_out: u64) {
        let meter = self.sources.get_mut(&source).unwrap_or(&mut self.others);
        meter.left_out += left_out + 1;
    }

    /// Removes idle sources if the table is full and `source` is new.
    fn make_room(&mut self, source: u64, now: Instant) {
        if self.sources.len() < SOURCES_MAX
            || self.sources.contains_key(&source)
            || now < self.swept_at + SWEEP_INTERVAL
        {
            return;
        }
        self.swept_at = now;
        self.sources.retain(|_, meter| meter.full_at > now);
    }
}

#[cfg(test)]
mod tests {
    use super::{Admission, Limiter};
    use crate::audit::limits::{RateLimit, SOURCES_MAX};
    use std::time::{Duration, Instant};

    const SECOND: Duration = Duration::from_secs(1);
    const LIMIT: RateLimit = RateLimit {
        source_burst: 3,
        source_interval: SECOND,
        overall_burst: 8,
        overall_interval: Duration::from_millis(100),
    };

    fn admitted(limiter: &mut Limiter, source: u64, now: Instant, count: usize) -> usize {
        (0..count).filter(|_| limiter.admit(source, now) != Admission::LeftOut).count()
    }

    #[test]
    fn one_source_is_limited_without_affecting_another() {
        let begun = Instant::now();
        let mut limiter = Limiter::new(LIMIT, begun);
        assert_eq!(admitted(&mut limiter, 1, begun, 1000), 3);
        assert_eq!(admitted(&mut limiter, 2, begun, 1000), 3);
        assert_eq!(limiter.admit(1, begun + SECOND), Admission::Admitted { left_out: 997 });
        assert_eq!(limiter.admit(1, begun + SECOND), Admission::LeftOut);
    }

    #[test]
    fn all_sources_together_are_limited() {
        let begun = Instant::now();
        let mut limiter = Limiter::new(LIMIT, begun);
        let all: usize = (0..1000).map(|source| admitted(&mut limiter, source, begun, 1)).sum();
        assert_eq!(all, 8);
        assert_eq!(admitted(&mut limiter, 5000, begun + SECOND, 3), 3);
    }

    #[test]
    fn sources_without_room_in_the_table_share_one_limit() {
        let begun = Instant::now();
        let limit = RateLimit { overall_burst: 1_000_000, ..LIMIT };
        let mut limiter = Limiter::new(limit, begun);
        for source in 0..SOURCES_MAX as u64 {
            assert_eq!(admitted(&mut limiter, source, begun, 2), 2);
        }
        let beyond: usize = (0..100).map(|n| admitted(&mut limiter, 1_000_000 + n, begun, 1)).sum();
        assert_eq!(beyond, 3);
        let later = begun + 10 * SECOND;
        let after: usize = (0..100).map(|n| admitted(&mut limiter, 1_000_000 + n, later, 1)).sum();
        assert_eq!(after, 100);
        assert!(limiter.sources.len() <= SOURCES_MAX);
    }
}
