//! Description of one operation of the API: its method, path, permission and name.

use cairn_identity::Role;
use cairn_observe::AuditKind;
use http::Method;

/// The principals that may call an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    /// Everyone, without a credential (specification, "Unauthenticated").
    Public,
    /// Everyone, also where another site sends a browser: the provider of sign-ins.
    Redirected,
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
    /// Returns whether calls are always recorded.
    pub(crate) fn is_recorded(&self) -> bool {
        self.recorded_as.is_some_and(|kind| kind != AuditKind::Read)
    }
}
