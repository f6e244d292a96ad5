//! Counts refused accesses to links, by kind and reason.

use crate::types::link::{LinkKind, LinkStatus};
use cairn_model::Counter;

/// The reason why a visitor was refused. The names are labels of a metric.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DeniedReason {
    /// No link has this token.
    NotFound,
    /// The link was revoked.
    Revoked,
    /// The link has expired.
    Expired,
    /// The share was downloaded as often as allowed.
    Exhausted,
    /// The share has a password, which was not given.
    Locked,
    /// The password is wrong.
    Password,
    /// Too many passwords were tried.
    Attempts,
    /// The page is not of an origin that the embed allows.
    Origin,
    /// The browser wants to use the embed as a script, style sheet, object or plug-in.
    Destination,
    /// The type of the content does not allow that a page shows it.
    ContentType,
    /// The configuration turns embeds off.
    Disabled,
    /// The object, its version or its bucket does not exist any more.
    ObjectMissing,
    /// The policies of the member who created the share do not allow this visit.
    Author,
}

impl DeniedReason {
    /// All reasons.
    pub const ALL: [Self; 13] = [
        Self::NotFound,
        Self::Revoked,
        Self::Expired,
        Self::Exhausted,
        Self::Locked,
        Self::Password,
        Self::Attempts,
        Self::Origin,
        Self::Destination,
        Self::ContentType,
        Self::Disabled,
        Self::ObjectMissing,
        Self::Author,
    ];

    /// Returns the label of the reason.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotFound => "not_found",
            Self::Revoked => "revoked",
            Self::Expired => "expired",
            Self::Exhausted => "exhausted",
            Self::Locked => "locked",
            Self::Password => "password",
            Self::Attempts => "attempts",
            Self::Origin => "origin",
            Self::Destination => "destination",
            Self::ContentType => "content_type",
            Self::Disabled => "disabled",
            Self::ObjectMissing => "object_missing",
            Self::Author => "author",
        }
    }

    /// Returns why a link with this status is refused; `None` if it is active.
    #[must_use]
    pub const fn of(status: LinkStatus) -> Option<Self> {
        match status {
            LinkStatus::Active => None,
            LinkStatus::Revoked => Some(Self::Revoked),
            LinkStatus::Expired => Some(Self::Expired),
            LinkStatus::Exhausted => Some(Self::Exhausted),
        }
    }
}

/// Refused accesses since the start, of all executors.
#[derive(Default)]
pub(crate) struct DeniedCounters([[Counter; DeniedReason::ALL.len()]; LinkKind::ALL.len()]);

impl DeniedCounters {
    /// Counts a refused access.
    pub(crate) fn count(&self, kind: LinkKind, reason: DeniedReason) {
        self.0[kind.index()][reason as usize].add(1);
    }

    /// Returns the counts, by kind in the order of [`LinkKind::ALL`] and reason in the order of [`DeniedReason::ALL`].
    pub(crate) fn values(&self) -> DeniedCounts {
        self.0.each_ref().map(|counters| counters.each_ref().map(Counter::value))
    }
}

/// Refused accesses, by kind in the order of [`LinkKind::ALL`] and reason in the order of [`DeniedReason::ALL`].
pub type DeniedCounts = [[u64; DeniedReason::ALL.len()]; LinkKind::ALL.len()];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_counted_by_kind_and_reason() {
        let counters = DeniedCounters::default();
        for (number, reason) in DeniedReason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, number, "the order is that of the counters");
        }
        for (number, kind) in LinkKind::ALL.into_iter().enumerate() {
            assert_eq!(kind.index(), number, "the order is that of the counters");
        }
        counters.count(LinkKind::Embed, DeniedReason::Origin);
        let mut expected = DeniedCounts::default();
        expected[1][DeniedReason::Origin as usize] = 1;
        assert_eq!(counters.values(), expected);
    }
}
