//! Authentication and audit records of requests.

mod audit_context;
mod authentication;
mod session_cookies;
mod session_source;
mod sessions;
mod sign_in;
mod throttling;

pub(crate) use audit_context::{AuditContext, ReadAudit};
pub use authentication::ManagementCredentials;
pub(crate) use authentication::{AuthenticationKind, Caller, has_basic_credential, is_cross_site};
pub(crate) use session_source::SessionSource;
pub(crate) use sessions::{ListedSession, NO_SESSION, SessionId, is_of_console, is_wanted_read};
pub use sessions::{SessionOptions, Sessions};
pub use sign_in::PersonSignIns;
pub(crate) use sign_in::is_navigation;
pub(crate) use throttling::{check_root_attempts, delay_failure};
