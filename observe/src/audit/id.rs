//! Ids of audit events: UUIDs of version 7, in the order of recording.
//!
//! An id is the event's key in the trail, and its time is the event's time. Ids always increase, even across a restart or when
//! the clock is set back: new events then keep the latest time, with an increasing counter, until the clock has caught up.

use cairn_model::{Timestamp, time_id};

/// The counter is in the 12 bits after the version.
const COUNTER_MAX: u16 = (1 << 12) - 1;

time_id! {
    /// The id of an audit event. Later events have greater ids.
    AuditId
}

impl AuditId {
    /// Returns when the event was recorded.
    #[must_use]
    pub const fn time(self) -> Timestamp {
        let [a, b, c, d, e, f, ..] = self.0;
        Timestamp(u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
    }

    const fn counter(self) -> u16 {
        u16::from_be_bytes([self.0[6] & 0x0F, self.0[7]])
    }

    /// Returns the lower bound of the keys of events at this time.
    pub(crate) fn first_key_at(time: Timestamp) -> [u8; time_id::ID_BYTES] {
        let mut key = time_id::new(time, &[0; 10]);
        key[6..].fill(0);
        key
    }
}

/// Generates increasing ids.
#[derive(Debug)]
pub(crate) struct AuditIds {
    last: Option<AuditId>,
}

impl AuditIds {
    /// Continues after `last`, the latest event of the trail.
    pub(crate) const fn after(last: Option<AuditId>) -> Self {
        Self { last }
    }

    /// Returns the id of an event recorded at `now`. `random` makes ids of different trails distinct and hard to guess.
    pub(crate) fn next(&mut self, now: Timestamp, random: [u8; 8]) -> AuditId {
        let (time, counter) = match self.last {
            Some(last) if now <= last.time() && last.counter() < COUNTER_MAX => {
                (last.time().0, last.counter() + 1)
            }
            Some(last) if now <= last.time() => (last.time().0 + 1, 0),
            _ => (now.0, 0),
        };
        let mut tail = [0; 10];
        tail[..2].copy_from_slice(&counter.to_be_bytes());
        tail[2..].copy_from_slice(&random);
        let id = AuditId(time_id::new(Timestamp(time), &tail));
        self.last = Some(id);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::{AuditId, AuditIds};
    use cairn_model::Timestamp;
    use proptest::prelude::*;

    #[test]
    fn an_id_has_its_time_and_a_counter() {
        let id = AuditIds::after(None).next(Timestamp(0x0001_0203_0405), [0xFF; 8]);
        assert_eq!(id.to_string(), "00010203-0405-7000-bfff-ffffffffffff");
        assert_eq!((AuditId::parse(&id.to_string()), id.time()), (Some(id), Timestamp(0x0001_0203_0405)));
        assert!(AuditId::first_key_at(id.time()) <= id.0);
    }

    proptest! {
        /// A clock that is set back must not sort new events before old ones.
        #[test]
        fn ids_increase_whatever_the_clock_does(clock in proptest::collection::vec(0u64..50, 2..200), random: [u8; 8]) {
            let mut ids = AuditIds::after(None);
            let made: Vec<_> = clock.iter().map(|&now| ids.next(Timestamp(now), random)).collect();
            prop_assert!(made.is_sorted_by(|a, b| a < b));
        }
    }

    #[test]
    fn ids_increase_when_the_counter_overflows() {
        let mut ids = AuditIds::after(None);
        let made: Vec<_> = (0..10_000).map(|_| ids.next(Timestamp(7), [0; 8])).collect();
        assert!(made.is_sorted_by(|a, b| a < b));
        assert_eq!(made[9_999].time(), Timestamp(7 + 2));
        let mut after_restart = AuditIds::after(made.last().copied());
        assert!(after_restart.next(Timestamp(1), [0; 8]) > made[9_999]);
    }
}
