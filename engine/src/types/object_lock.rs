//! Object locks, which prevent the removal of versions (AWS: "Locking objects with Object Lock").
//!
//! A version is locked until its retention ends, and as long as it has a legal hold. Both are stored in its record, so the
//! committer checks them in the transaction that removes the version. A record that cannot be read is never removed.

use cairn_model::Timestamp;
use std::fmt;

/// Milliseconds per day.
const DAY: u64 = 24 * 60 * 60 * 1000;
/// Days in a year of retention, as AWS counts them.
const YEAR_DAYS: u64 = 365;

/// The mode of a retention: it decides which requests may shorten it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RetentionMode {
    /// Requests with the permission to bypass governance.
    Governance,
    /// No one.
    Compliance,
}

impl RetentionMode {
    /// Returns the name that clients use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Governance => "GOVERNANCE",
            Self::Compliance => "COMPLIANCE",
        }
    }

    /// Returns the mode of this name. Names are case-sensitive.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Governance, Self::Compliance].into_iter().find(|mode| mode.name() == name)
    }
}

/// A period during which a version must not be removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retention {
    /// The mode.
    pub mode: RetentionMode,
    /// End of the retention.
    pub until: Timestamp,
}

impl Retention {
    /// The latest end: the last millisecond of the year 9999, the latest that ISO 8601 can represent.
    pub const UNTIL_MAX: Timestamp = Timestamp(253_402_300_799_999);
}

/// The lock of a version.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ObjectLock {
    /// The retention, which may have ended.
    pub retention: Option<Retention>,
    /// Whether there is a legal hold. `None` if there never was one.
    pub legal_hold: Option<bool>,
}

/// The period of a bucket's default retention.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RetentionPeriod {
    /// Days.
    Days(u32),
    /// Years of 365 days.
    Years(u32),
}

impl RetentionPeriod {
    /// Longest period in days (AWS: "Object Lock considerations").
    pub const DAYS_MAX: u32 = 36_500;
    /// Longest period in years.
    pub const YEARS_MAX: u32 = 100;
}

/// The retention of a bucket's versions that are written without one of their own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DefaultRetention {
    /// The mode.
    pub mode: RetentionMode,
    /// Duration from the time of writing.
    pub period: RetentionPeriod,
}

/// The retention, for people: `GOVERNANCE for 30 days`.
impl fmt::Display for DefaultRetention {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, unit) = match self.period {
            RetentionPeriod::Days(days) => (days, "days"),
            RetentionPeriod::Years(years) => (years, "years"),
        };
        write!(out, "{} for {number} {unit}", self.mode.name())
    }
}

impl DefaultRetention {
    /// Returns the retention of a version that is written at `now`.
    pub(crate) fn starting_at(self, now: Timestamp) -> Retention {
        let days = match self.period {
            RetentionPeriod::Days(days) => u64::from(days),
            RetentionPeriod::Years(years) => u64::from(years) * YEAR_DAYS,
        };
        Retention { mode: self.mode, until: Timestamp(now.0.saturating_add(days.saturating_mul(DAY))) }
    }
}

impl ObjectLock {
    /// Returns whether the lock forbids a removal at `now`. `bypasses_governance` says that the request may and does bypass
    /// governance.
    pub(crate) fn forbids_removal(&self, now: Timestamp, bypasses_governance: bool) -> bool {
        let retained = self.retention.is_some_and(|retention| {
            let is_bypassed = retention.mode == RetentionMode::Governance && bypasses_governance;
            retention.until > now && !is_bypassed
        });
        self.legal_hold == Some(true) || retained
    }

    /// Returns whether `new` may replace the retention at `now`.
    ///
    /// Every request may make a retention longer in its mode. Any other change of governance, even to compliance, needs the
    /// bypass. Any other change of compliance is forbidden.
    pub(crate) fn allows_retention(
        &self,
        new: Option<Retention>,
        now: Timestamp,
        bypasses_governance: bool,
    ) -> bool {
        let Some(old) = self.retention.filter(|old| old.until > now) else { return true };
        let extends = new.is_some_and(|new| new.mode == old.mode && new.until >= old.until);
        match old.mode {
            RetentionMode::Compliance => extends,
            RetentionMode::Governance => extends || bypasses_governance,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::RetentionMode::{Compliance, Governance};
    use super::{DefaultRetention, ObjectLock, Retention, RetentionMode, RetentionPeriod};
    use cairn_model::Timestamp;

    const NOW: Timestamp = Timestamp(1000);

    fn until(mode: RetentionMode, until: u64) -> Option<Retention> {
        Some(Retention { mode, until: Timestamp(until) })
    }

    fn lock(retention: Option<Retention>) -> ObjectLock {
        ObjectLock { retention, legal_hold: Some(false) }
    }

    #[test]
    fn only_governance_can_be_bypassed() {
        for (lock, bypass, forbidden) in [
            (lock(None), false, false),
            (lock(until(Governance, 1001)), false, true),
            (lock(until(Governance, 1001)), true, false),
            (lock(until(Compliance, 1001)), true, true),
            (lock(until(Compliance, 1000)), false, false),
            (ObjectLock { retention: None, legal_hold: Some(true) }, true, true),
            (ObjectLock { retention: until(Governance, 1001), legal_hold: Some(true) }, true, true),
        ] {
            assert_eq!(lock.forbids_removal(NOW, bypass), forbidden, "{lock:?} {bypass}");
        }
    }

    #[test]
    fn retention_is_shortened_only_by_a_bypass() {
        for (old, new, bypass, allowed) in [
            (None, until(Compliance, 2000), false, true),
            (until(Governance, 2000), until(Governance, 2000), false, true),
            (until(Governance, 2000), until(Compliance, 3000), false, false),
            (until(Governance, 2000), until(Compliance, 3000), true, true),
            (until(Governance, 2000), until(Governance, 1999), false, false),
            (until(Governance, 2000), until(Governance, 1999), true, true),
            (until(Governance, 2000), None, false, false),
            (until(Governance, 2000), None, true, true),
            (until(Compliance, 2000), until(Compliance, 2001), false, true),
            (until(Compliance, 2000), until(Compliance, 1999), true, false),
            (until(Compliance, 2000), until(Governance, 3000), true, false),
            (until(Compliance, 2000), None, true, false),
            (until(Compliance, 1000), None, false, true),
        ] {
            assert_eq!(lock(old).allows_retention(new, NOW, bypass), allowed, "{old:?} {new:?} {bypass}");
        }
    }

    #[test]
    fn default_retention_counts_years_of_365_days() {
        let of = |period| DefaultRetention { mode: Governance, period }.starting_at(Timestamp(5));
        assert_eq!(of(RetentionPeriod::Days(2)).until, Timestamp(5 + 2 * 86_400_000));
        assert_eq!(of(RetentionPeriod::Years(1)).until, of(RetentionPeriod::Days(365)).until);
    }
}
