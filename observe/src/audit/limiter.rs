//! Keeps a flood of like events from filling the trail: each source may cause so many records at once and then one in
//! each interval, and all sources together likewise.
//!
//! What is not admitted is counted for its source; the next record of that source that is admitted says how many were
//! left out, so that the trail itself shows where it is incomplete.

use super::limits::{Allowance, SOURCES_MAX};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Whether an event is recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Admission {
    /// It is; so many before it of the same source were not.
    Admitted {
        /// Events of this source since its last recorded one.
        left_out: u64,
    },
    /// It is not.
    LeftOut,
}

/// When a source's allowance would be whole again, as in the generic cell rate algorithm.
#[derive(Clone, Copy, Debug)]
struct Meter {
    whole_at: Instant,
    left_out: u64,
}

impl Meter {
    /// When the allowance would be whole again after one more event; `None` when that one is too many.
    fn after_one(&self, now: Instant, burst: u32, interval: Duration) -> Option<Instant> {
        let whole_at = self.whole_at.max(now) + interval;
        (whole_at - now <= interval * burst).then_some(whole_at)
    }
}

/// See the file's first lines.
#[derive(Debug)]
pub(crate) struct Limiter {
    allowance: Allowance,
    sources: HashMap<u64, Meter>,
    /// Of all sources that found no place in the table.
    others: Meter,
    overall: Meter,
    swept_at: Instant,
}

/// The table is searched for sources that are whole again at most this often.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

impl Limiter {
    pub(crate) fn new(allowance: Allowance, now: Instant) -> Self {
        let meter = Meter { whole_at: now, left_out: 0 };
        Self { allowance, sources: HashMap::new(), others: meter, overall: meter, swept_at: now }
    }

    /// Decides on one event of `source`.
    pub(crate) fn admit(&mut self, source: u64, now: Instant) -> Admission {
        self.make_room(source, now);
        let has_room = self.sources.len() < SOURCES_MAX;
        let meter = match self.sources.entry(source) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(place) if has_room => {
                place.insert(Meter { whole_at: now, left_out: 0 })
            }
            std::collections::hash_map::Entry::Vacant(_) => &mut self.others,
        };
        let Allowance { source_burst, source_interval, overall_burst, overall_interval } = self.allowance;
        let own = meter.after_one(now, source_burst, source_interval);
        let overall = self.overall.after_one(now, overall_burst, overall_interval);
        let (Some(own), Some(overall)) = (own, overall) else {
            meter.left_out += 1;
            return Admission::LeftOut;
        };
        meter.whole_at = own;
        self.overall.whole_at = overall;
        Admission::Admitted { left_out: std::mem::take(&mut meter.left_out) }
    }

    /// Takes back what [`Limiter::admit`] said: the record found no place in the queue.
    pub(crate) fn left_out_after_all(&mut self, source: u64, left_out: u64) {
        let meter = self.sources.get_mut(&source).unwrap_or(&mut self.others);
        meter.left_out += left_out + 1;
    }

    /// Forgets the sources whose allowance is whole again, when the table is full and a new source comes.
    fn make_room(&mut self, source: u64, now: Instant) {
        if self.sources.len() < SOURCES_MAX
            || self.sources.contains_key(&source)
            || now < self.swept_at + SWEEP_INTERVAL
        {
            return;
        }
        self.swept_at = now;
        self.sources.retain(|_, meter| meter.whole_at > now);
    }
}

#[cfg(test)]
mod tests {
    use super::{Admission, Limiter};
    use crate::audit::limits::{Allowance, SOURCES_MAX};
    use std::time::{Duration, Instant};

    const SECOND: Duration = Duration::from_secs(1);
    const ALLOWANCE: Allowance = Allowance {
        source_burst: 3,
        source_interval: SECOND,
        overall_burst: 8,
        overall_interval: Duration::from_millis(100),
    };

    fn admitted(limiter: &mut Limiter, source: u64, now: Instant, count: usize) -> usize {
        (0..count).filter(|_| limiter.admit(source, now) != Admission::LeftOut).count()
    }

    #[test]
    fn one_source_cannot_fill_the_trail_and_does_not_silence_another() {
        let begun = Instant::now();
        let mut limiter = Limiter::new(ALLOWANCE, begun);
        assert_eq!(admitted(&mut limiter, 1, begun, 1000), 3);
        assert_eq!(admitted(&mut limiter, 2, begun, 1000), 3);
        assert_eq!(limiter.admit(1, begun + SECOND), Admission::Admitted { left_out: 997 });
        assert_eq!(limiter.admit(1, begun + SECOND), Admission::LeftOut);
    }

    #[test]
    fn many_sources_have_a_limit_together() {
        let begun = Instant::now();
        let mut limiter = Limiter::new(ALLOWANCE, begun);
        let all: usize = (0..1000).map(|source| admitted(&mut limiter, source, begun, 1)).sum();
        assert_eq!(all, 8);
        assert_eq!(admitted(&mut limiter, 5000, begun + SECOND, 3), 3);
    }

    #[test]
    fn sources_beyond_the_table_share_one_allowance_until_others_are_forgotten() {
        let begun = Instant::now();
        let allowance = Allowance { overall_burst: 1_000_000, ..ALLOWANCE };
        let mut limiter = Limiter::new(allowance, begun);
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
