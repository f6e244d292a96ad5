//! Description of one operation of the API: its method, path, permission and name.

use cairn_identity::Role;
use http::Method;

/// The principals that may call an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    /// Everyone, without a credential (specification, "Unauthenticated").
    Public,
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
    /// Whether calls are recorded in the audit trail. All changes are.
    pub(crate) is_recorded: bool,
    /// Whether calls read objects or list them: they are recorded if the operator asks for the records of all reads.
    pub(crate) is_data_read: bool,
}
