//! Object lock: what keeps a version from being removed (AWS: "Locking objects with Object Lock").
//!
//! A version is locked while its retention lasts or while it has a legal hold. Both stand in its record, so the committer
//! decides about them where it decides about the removal; a record that cannot be read is never removed.

use cairn_model::Timestamp;

/// Milliseconds of a day.
const DAY: u64 = 24 * 60 * 60 * 1000;
/// Days of a year of retention, as AWS counts.
const YEAR_DAYS: u64 = 365;

/// Who may shorten a retention.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RetentionMode {
    /// Who may bypass governance.
    Governance,
    /// Nobody.
    Compliance,
}

/// A version must not be removed before a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retention {
    /// Who may shorten it.
    pub mode: RetentionMode,
    /// When it ends.
    pub until: Timestamp,
}

/// What locks a version.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ObjectLock {
    /// Its retention, ended or not.
    pub retention: Option<Retention>,
    /// Whether it has a legal hold; `None`: it never had one.
    pub legal_hold: Option<bool>,
}

/// How long a bucket's default retention lasts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RetentionPeriod {
    /// So many days.
    Days(u32),
    /// So many years of 365 days.
    Years(u32),
}

/// The retention that versions of a bucket get which are written without one of their own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DefaultRetention {
    /// Its mode.
    pub mode: RetentionMode,
    /// How long it lasts from the moment of writing.
    pub period: RetentionPeriod,
}

impl DefaultRetention {
    /// The retention of a version that is written at `now`.
    pub(crate) fn from(self, now: Timestamp) -> Retention {
        let days = match self.period {
            RetentionPeriod::Days(days) => u64::from(days),
            RetentionPeriod::Years(years) => u64::from(years) * YEAR_DAYS,
        };
        Retention { mode: self.mode, until: Timestamp(now.0.saturating_add(days.saturating_mul(DAY))) }
    }
}

impl ObjectLock {
    /// Whether the lock forbids a removal at `now`; `bypasses_governance`: who asks may bypass governance and wants to.
    pub(crate) fn forbids_removal(&self, now: Timestamp, bypasses_governance: bool) -> bool {
        let retained = self.retention.is_some_and(|retention| {
            let yields = retention.mode == RetentionMode::Governance && bypasses_governance;
            retention.until > now && !yields
        });
        self.legal_hold == Some(true) || retained
    }

    /// Whether `new` may take the place of the retention at `now`: it may be made longer by anyone with the right to set it;
    /// of governance, anything else, a change to compliance too, takes bypass; of compliance, nobody may.
    pub(crate) fn may_retain(
        &self,
        new: Option<Retention>,
        now: Timestamp,
        bypasses_governance: bool,
    ) -> bool {
        let Some(old) = self.retention.filter(|old| old.until > now) else { return true };
        let lasts = new.is_some_and(|new| new.mode == old.mode && new.until >= old.until);
        match old.mode {
            RetentionMode::Compliance => lasts,
            RetentionMode::Governance => lasts || bypasses_governance,
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
    fn governance_yields_to_bypass_compliance_and_holds_to_nobody() {
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
    fn a_retention_is_lengthened_by_all_and_shortened_by_bypass_alone() {
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
            assert_eq!(lock(old).may_retain(new, NOW, bypass), allowed, "{old:?} {new:?} {bypass}");
        }
    }

    #[test]
    fn a_default_retention_counts_days_and_years_of_365_days() {
        let of = |period| DefaultRetention { mode: Governance, period }.from(Timestamp(5));
        assert_eq!(of(RetentionPeriod::Days(2)).until, Timestamp(5 + 2 * 86_400_000));
        assert_eq!(of(RetentionPeriod::Years(1)).until, of(RetentionPeriod::Days(365)).until);
    }
}
