//! Description of one operation of the API: its method, path, permission and name.

use cairn_identity::policy::Action;
use cairn_identity::{Role, Standing};
use cairn_observe::AuditKind;
use http::Method;

use crate::error::AdminError;

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

/// The requirement of an operation for a member: a person without a role, whose policies decide.
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

/// The only operations that are open to members, with the actions that the S3 API asks for. Shares have rules of
/// their own. Every other operation, and every new one, is closed to members.
pub(crate) const MEMBER_OPERATIONS: [(&str, MemberAccess); 31] = {
    use MemberAccess::{
        Bucket, Existing, Object, OwnBuckets, OwnShare, OwnShareOf, OwnShares, Session, Upload,
    };
    [
        ("get_session", Session),
        ("list_console_sessions", Session),
        ("end_own_sessions", Session),
        ("end_session_by_id", Session),
        ("list_buckets", OwnBuckets),
        ("get_bucket", Bucket(Action::ListBucket)),
        ("list_objects", Bucket(Action::ListBucket)),
        ("get_object", Object(Action::GetObject)),
        ("download_object", Object(Action::GetObject)),
        ("preview_object", Object(Action::GetObject)),
        ("upload_object", Object(Action::PutObject)),
        ("delete_object", Object(Action::DeleteObject)),
        ("set_object_tags", Existing(Action::PutObject)),
        ("list_object_versions", Bucket(Action::ListBucket)),
        ("delete_object_version", Object(Action::DeleteObject)),
        // The handlers ask for the rights on the destination, and for that to delete the source.
        ("copy_object", Object(Action::GetObject)),
        ("move_object", Object(Action::GetObject)),
        ("restore_object", Object(Action::GetObject)),
        // The policies are asked again at each use of the share.
        ("create_share", Object(Action::GetObject)),
        // The handlers leave out the shares of others.
        ("list_shares", OwnShares),
        ("list_object_shares", Object(Action::GetObject)),
        ("get_share", OwnShare),
        // A share asks the policies that its author had when it was created, which may be others than those of now.
        ("get_share_url", OwnShareOf(Action::GetObject)),
        ("update_share", OwnShareOf(Action::GetObject)),
        ("revoke_share", OwnShare),
        ("delete_share", OwnShare),
        ("begin_browser_upload", Upload(Action::PutObject)),
        ("get_browser_upload", Upload(Action::GetObject)),
        ("upload_browser_part", Upload(Action::PutObject)),
        ("complete_browser_upload", Upload(Action::PutObject)),
        ("abort_browser_upload", Upload(Action::DeleteObject)),
    ]
};

/// One operation of the API.
#[derive(Debug)]
pub(crate) struct Operation {
    /// Name in the audit trail, the request log and the OpenAPI document.
    pub(crate) name: &'static str,
    /// GET includes HEAD.
    pub(crate) method: Method,
    /// Path pattern, see [`crate::request::path`].
    pub(crate) path: &'static str,
    pub(crate) access: Access,
    /// As what calls are recorded in the audit trail. All changes are. Reads are if the operator asks for it.
    pub(crate) recorded_as: Option<AuditKind>,
}

impl Operation {
    /// Returns whether a caller with this standing may call the operation. The policies of members are asked later.
    pub(crate) fn admits(&self, standing: &Standing) -> bool {
        match standing {
            Standing::Role(role) => self.access.admits(*role),
            Standing::Member(_) => self.members().is_some(),
        }
    }

    /// Returns the refusal of a caller that the operation does not admit.
    pub(crate) fn refusal(&self) -> AdminError {
        match self.access {
            Access::Roles(roles) => AdminError::WrongRole(roles),
            Access::Public | Access::Redirected | Access::Signed | Access::Scraper => AdminError::Forbidden,
        }
    }

    /// Returns what members need for the operation; `None` if it is closed to them.
    pub(crate) fn members(&self) -> Option<MemberAccess> {
        MEMBER_OPERATIONS.iter().find(|(name, _)| *name == self.name).map(|(_, access)| *access)
    }

    /// Returns whether calls are always recorded.
    pub(crate) fn is_recorded(&self) -> bool {
        self.recorded_as.is_some_and(|kind| kind != AuditKind::Read)
    }
}
