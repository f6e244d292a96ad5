//! Counts refused accesses to links, by kind and reason.

use crate::types::link::{LinkKind, LinkStatus};
use cairn_model::Counter;

cairn_model::named_enum! {
    /// The reason why a visitor was refused. The names are labels of a metric. Named as in labels.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    pub enum DeniedReason {
        /// No link has this token.
        NotFound => "not_found",
        /// The link was revoked.
        Revoked => "revoked",
        /// The link has expired.
        Expired => "expired",
        /// The share was downloaded as often as allowed.
        Exhausted => "exhausted",
        /// The share has a password, which was not given.
        Locked => "locked",
        /// The password is wrong.
        Password => "password",
        /// Too many passwords were tried.
        Attempts => "attempts",
        /// The page is not of an origin that the embed allows.
        Origin => "origin",
        /// The browser wants to use the embed as a script, style sheet, object or plug-in.
        Destination => "destination",
        /// The type of the content does not allow that a page shows it.
        ContentType => "content_type",
        /// The configuration turns embeds off.
        Disabled => "disabled",
        /// The object, its version or its bucket does not exist any more.
        ObjectMissing => "object_missing",
        /// The policies of the member who created the share do not allow this visit.
        Author => "author",
    }
}

impl DeniedReason {
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
