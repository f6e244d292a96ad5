//! Authors of shares: members, people whose rights come from policies.

use serde::{Deserialize, Serialize};

/// The member that created a share. Its policies are checked at each use of the share.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Author {
    /// The OpenID provider.
    pub issuer: String,
    /// The identity of the person at the provider.
    pub subject: String,
    /// The names of the policies that the member had.
    pub policies: Vec<String>,
}

impl Author {
    /// Returns whether both are the same person, with whatever policies.
    #[must_use]
    pub fn is_same_person(&self, other: &Self) -> bool {
        self.issuer == other.issuer && self.subject == other.subject
    }
}
