//! The five actions of policies, and sets of them.

use std::fmt;

/// An action that a policy can allow or deny.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    /// Reading a bucket's metadata and listing it.
    ListBucket,
    /// Reading objects.
    GetObject,
    /// Writing objects.
    PutObject,
    /// Deleting objects.
    DeleteObject,
    /// Creating, deleting and configuring a bucket.
    ManageBucket,
}

impl Action {
    /// All actions.
    pub const ALL: [Self; 5] =
        [Self::ListBucket, Self::GetObject, Self::PutObject, Self::DeleteObject, Self::ManageBucket];

    /// Returns the name that policies use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ListBucket => "s3:ListBucket",
            Self::GetObject => "s3:GetObject",
            Self::PutObject => "s3:PutObject",
            Self::DeleteObject => "s3:DeleteObject",
            Self::ManageBucket => "s3:ManageBucket",
        }
    }

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
