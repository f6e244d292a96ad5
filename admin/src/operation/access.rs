//! Permission: the principals that may call an operation.

use cairn_identity::Role;
use cairn_identity::policy::Action;

/// The principals that may call an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    /// Everyone, without a credential (specification, "Unauthenticated").
    Public,
    /// Everyone, also where another site sends a browser: the provider of sign-ins.
    Redirected,
    /// Everyone, without a browser: the provider of sign-ins, whose signed token is what counts.
    Signed,
    /// Clients with the scrape token only (specification, "Metrics").
    Scraper,
    /// Callers with one of these roles.
    Roles(&'static [Role]),
}

impl Access {
    /// Returns whether callers with this role may call the operation.
    pub(crate) fn admits(self, role: Role) -> bool {
        matches!(self, Self::Roles(roles) if roles.contains(&role))
    }
}

/// The requirement of an operation for a member: a person without a role, whose policies decide. The actions are those that
/// the S3 API asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MemberAccess {
    /// Nothing: it is about the own session.
    Session,
    /// Nothing: the answer has only buckets on which the policies allow something.
    OwnBuckets,
    /// This action on the bucket of the path.
    Bucket(Action),
    /// This action on the object of the path.
    Object(Action),
    /// This action on the object of the path, which must exist: a right to write absent objects is not enough.
    Existing(Action),
    /// Nothing: the answer has only shares that the member created.
    OwnShares,
    /// To be the creator of the share of the path.
    OwnShare,
    /// The same, and this action on the object of the share.
    OwnShareOf(Action),
    /// This action on an object that the path does not name. The handler asks `Call::authorize_object`.
    Upload(Action),
}
