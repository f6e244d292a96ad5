//! One operation of the API: method, path, permission, parameters, bodies, answers. Dispatch, audit and the OpenAPI
//! document follow from it.

mod access;
mod description;

use cairn_identity::Standing;
use cairn_observe::AuditKind;
use http::Method;

use crate::error::AdminError;
pub(crate) use access::{Access, MemberAccess};
pub(crate) use description::{
    Content, ErrorCode, Occurrence, QueryParameter, RequestBody, Success, family, optional, repeated,
    required,
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
    /// The requirement for members; `None` if the operation is closed to them.
    pub(crate) members: Option<MemberAccess>,
    /// As what calls are recorded in the audit trail. All changes are. Reads are if the operator asks for it.
    pub(crate) recorded_as: Option<AuditKind>,
    /// The accepted query parameters; `None` if any query is accepted.
    pub(crate) query: Option<&'static [QueryParameter]>,
    /// The body of the request. Without one, a change refuses a body.
    pub(crate) request: Option<RequestBody>,
    /// A sentence for the OpenAPI document. The routes of the console alone are not in it.
    pub(crate) summary: &'static str,
    /// Successful answers, for the OpenAPI document.
    pub(crate) successes: &'static [Success],
    /// Errors, besides those that all operations have, for the OpenAPI document.
    pub(crate) errors: &'static [ErrorCode],
}

impl Operation {
    /// Returns whether a caller with this standing may call the operation. The policies of members are asked later.
    pub(crate) fn admits(&self, standing: &Standing) -> bool {
        match standing {
            Standing::Role(role) => self.access.admits(*role),
            Standing::Member(_) => self.members.is_some(),
        }
    }

    /// Returns the refusal of a caller that the operation does not admit.
    pub(crate) fn refusal(&self) -> AdminError {
        match self.access {
            Access::Roles(roles) => AdminError::WrongRole(roles),
            Access::Public | Access::Redirected | Access::Signed | Access::Scraper => AdminError::Forbidden,
        }
    }

    /// Returns whether calls are always recorded.
    pub(crate) fn is_recorded(&self) -> bool {
        self.recorded_as.is_some_and(|kind| kind != AuditKind::Read)
    }
}
