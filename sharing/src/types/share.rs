//! Shares: links for people.

use crate::types::author::Author;
use crate::types::link::{Disposition, Link, LinkStatus, NewLink};
use crate::types::password::PasswordVerifier;
use cairn_model::Timestamp;
use zeroize::Zeroizing;

/// A share (specification, "Share link").
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Share {
    /// The common fields of every link.
    pub link: Link,
    /// Checks the password; `None` if the share has no password.
    pub(crate) password: Option<PasswordVerifier>,
    /// The disposition of the content.
    pub disposition: Disposition,
    /// Downloads after which it is exhausted; `None`: no limit.
    pub maximum_downloads: Option<u64>,
    /// The member that created the share, or `None` if its creator has a role.
    pub author: Option<Author>,
}

impl Share {
    /// Returns whether a password is required.
    #[must_use]
    pub const fn is_password_protected(&self) -> bool {
        self.password.is_some()
    }

    /// Returns whether this member created the share.
    #[must_use]
    pub fn is_created_by(&self, member: &Author) -> bool {
        self.author.as_ref().is_some_and(|author| author.is_same_person(member))
    }

    /// Returns the status at `now`.
    #[must_use]
    pub fn status_at(&self, now: Timestamp) -> LinkStatus {
        let is_used_up = self.maximum_downloads.is_some_and(|maximum| self.link.access_count >= maximum);
        match self.link.status_at(now) {
            LinkStatus::Active if is_used_up => LinkStatus::Exhausted,
            status => status,
        }
    }
}

/// A new share.
pub struct NewShare {
    /// The common fields of every link.
    pub link: NewLink,
    /// The password, if one is required.
    pub password: Option<Zeroizing<String>>,
    /// The disposition of the content.
    pub disposition: Disposition,
    /// Downloads after which it is exhausted, at least 1; `None`: no limit.
    pub maximum_downloads: Option<u64>,
    /// The member that creates the share, or `None` if its creator has a role.
    pub author: Option<Author>,
}

/// A change of a share. `None` leaves a value as it is; `Some(None)` removes it.
#[derive(Default)]
pub struct ShareChange {
    /// The label; empty removes it.
    pub label: Option<String>,
    /// The time when it stops working.
    pub expires_at: Option<Option<Timestamp>>,
    /// The password. Every change of it ends all unlocks.
    pub password: Option<Option<Zeroizing<String>>>,
    /// Downloads after which it is exhausted.
    pub maximum_downloads: Option<Option<u64>>,
}
