//! The five actions of policies, and sets of them.

use std::fmt;

cairn_model::named_enum! {
    /// An action that a policy can allow or deny. Named as in policies.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    pub enum Action {
        /// Reading a bucket's metadata and listing it.
        ListBucket => "s3:ListBucket",
        /// Reading objects.
        GetObject => "s3:GetObject",
        /// Writing objects.
        PutObject => "s3:PutObject",
        /// Deleting objects.
        DeleteObject => "s3:DeleteObject",
        /// Creating, deleting and configuring a bucket.
        ManageBucket => "s3:ManageBucket",
    }
}

impl Action {
    /// Returns the action of this name. Names are case-sensitive.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.name() == name)
    }

    /// Returns whether requests do this to a bucket. The other actions are done to objects.
    #[must_use]
    pub const fn is_on_buckets(self) -> bool {
        matches!(self, Self::ListBucket | Self::ManageBucket)
    }

    /// Returns the index in arrays with one element for each action.
    pub(super) const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Action {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// A set of actions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ActionSet(u8);

impl ActionSet {
    /// Adds an action. Returns whether it was new.
    pub const fn insert(&mut self, action: Action) -> bool {
        let is_new = !self.contains(action);
        self.0 |= 1 << action as u8;
        is_new
    }

    /// Returns whether the set contains the action.
    #[must_use]
    pub const fn contains(self, action: Action) -> bool {
        self.0 & (1 << action as u8) != 0
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}
