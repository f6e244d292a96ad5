//! Ids of audit events: UUIDs of version 7, in the order of recording.
//!
//! An id is the event's key in the trail, and its time is the event's time. Ids always increase, even across a restart or when
//! the clock is set back: new events then keep the latest time, with an increasing counter, until the clock has caught up.

use cairn_model::Timestamp;
use std::fmt;
use uuid::{Builder, Uuid};

/// Milliseconds have 48 bits in a UUID of version 7 (RFC 9562, section 5.7).
const TIME_MAX: u64 = (1 << 48) - 1;
/// The counter is in the 12 bits after the version.
const COUNTER_MAX: u16 = (1 << 12) - 1;

/// The id of an audit event. Later events have greater ids.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct AuditId(pub(crate) [u8; 16]);

impl AuditId {
    /// Parses a hyphenated UUID of version 7: 36 characters, in upper or lower case.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        const HYPHENATED_BYTES: usize = 36;
        let id = Some(text).filter(|text| text.len() == HYPHENATED_BYTES).map(Uuid::try_parse)?.ok()?;
        (id.get_version_num() == 7).then_some(Self(id.into_bytes()))
    }

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
    pub(crate) fn first_key_at(time: Timestamp) -> [u8; 16] {
        let mut key = [0; 16];
        key[..6].copy_from_slice(&time.0.min(TIME_MAX).to_be_bytes()[2..]);
        key
    }
}

impl fmt::Display for AuditId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        Uuid::from_bytes(self.0).hyphenated().fmt(out)
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
        let id =
            AuditId(Builder::from_unix_timestamp_millis(time.min(TIME_MAX), &tail).into_uuid().into_bytes());
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
    fn ids_are_version_7_uuids_and_round_trip() {
        let id = AuditIds::after(None).next(Timestamp(0x0001_0203_0405), [0xFF; 8]);
        assert_eq!(id.to_string(), "00010203-0405-7000-bfff-ffffffffffff");
        assert_eq!((AuditId::parse(&id.to_string()), id.time()), (Some(id), Timestamp(0x0001_0203_0405)));
        for bad in [
            "",
            "00010203-0405-4000-bfff-ffffffffffff",
            "0001020304057000bfffffffffffffff",
            "{00010203-0405-7000-bfff-ffffffffffff}",
            "00010203-0405-7000-bfff-fffffffffff",
            "00010203-0405-7000-bfff-ffffffffffffg",
        ] {
            assert_eq!(AuditId::parse(bad), None, "{bad}");
        }
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
