//! The five actions that policies speak of, and sets of them.

use std::fmt;

/// What a request does, as policies call it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    /// Looking at a bucket and its lists.
    ListBucket,
    /// Reading objects.
    GetObject,
    /// Writing objects.
    PutObject,
    /// Removing objects.
    DeleteObject,
    /// Making, removing and configuring a bucket.
    ManageBucket,
}

impl Action {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::ListBucket, Self::GetObject, Self::PutObject, Self::DeleteObject, Self::ManageBucket];

    /// As policies spell it.
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

    /// The action of this name; names are exact.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.name() == name)
    }

    /// Its place in arrays that have one for each action.
    pub(super) const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Action {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// Some of the actions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ActionSet(u8);

impl ActionSet {
    /// Adds an action; says whether it was new.
    pub const fn insert(&mut self, action: Action) -> bool {
        let is_new = !self.contains(action);
        self.0 |= 1 << action as u8;
        is_new
    }

    /// Whether the action is one of them.
    #[must_use]
    pub const fn contains(self, action: Action) -> bool {
        self.0 & (1 << action as u8) != 0
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}
