//! Who calls: authentication, and the audit records of a request.

mod audit_context;
mod authentication;

pub(crate) use audit_context::{AuditContext, ReadAudit};
pub use authentication::ManagementCredentials;
pub(crate) use authentication::{AuthenticationKind, Caller, has_basic_credential, is_cross_site};
