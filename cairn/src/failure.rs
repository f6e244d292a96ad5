//! Failures of commands: exit codes, and messages for errors of a server with advice on what to do next.

use ureq::http::{Method, StatusCode};

use crate::environment::TOKEN_VARIABLE;
use crate::terminal::plain;

/// The result of a command.
pub(crate) type Outcome = Result<(), Failure>;

/// Why a command failed. The message is safe to print on a terminal.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It was refused, the server is not ready, or problems were found.
    Failed(String),
    /// The arguments contradict each other.
    WrongUsage(String),
    /// There was no response from a server, or an incomplete one.
    NoResponse(String),
}

impl Failure {
    /// The exit codes; 0 is success.
    pub(crate) const WRONG_USAGE: u8 = 2;
    const FAILED: u8 = 1;
    const NO_RESPONSE: u8 = 3;

    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Failed(_) => Self::FAILED,
            Self::WrongUsage(_) => Self::WRONG_USAGE,
            Self::NoResponse(_) => Self::NO_RESPONSE,
        }
    }

    pub(crate) fn message(&self) -> &str {
        match self {
            Self::Failed(message) | Self::WrongUsage(message) | Self::NoResponse(message) => message,
        }
    }
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self::Failed(message)
    }
}

impl From<&str> for Failure {
    fn from(message: &str) -> Self {
        Self::Failed(message.to_owned())
    }
}

/// An error response of a server.
pub(crate) struct Refusal<'r> {
    pub(crate) status: StatusCode,
    pub(crate) code: &'r str,
    pub(crate) message: &'r str,
    pub(crate) request_id: Option<&'r str>,
}

impl Refusal<'_> {
    /// Returns the message: the error, and in a second line what to do about it.
    pub(crate) fn text(&self, method: &Method, path: &str) -> String {
        let mut text = format!("{}: {}", plain(self.code), plain(self.message));
        if let Some(next) = self.next(method, path) {
            text.push_str("\n  ");
            text.push_str(&next);
        }
        text
    }

    fn next(&self, method: &Method, path: &str) -> Option<String> {
        let next = match self.code {
            "FORBIDDEN" => {
                return Some(format!("this requires a token with the role {}", roles(method, path)));
            }
            "UNAUTHENTICATED" => {
                return Some(format!(
                    "{TOKEN_VARIABLE} does not contain a valid token of this server: use the server's \
                     SERVICE_MANAGEMENT_SYSTEM_TOKEN, or a token from `cairn token create` that has not expired or been deleted"
                ));
            }
            "INTERNAL_ERROR" => {
                let id = self.request_id.map_or_else(|| "-".to_owned(), plain);
                return Some(format!("see the server's log for the reason (request id {id})"));
            }
            "NOT_FOUND" => "the server does not have this route; `cairn status` shows its version",
            "BUCKET_NOT_FOUND" => "`cairn bucket list` shows the buckets",
            "BUCKET_NOT_EMPTY" => {
                "`cairn bucket empty` deletes its content, including old versions, delete markers and unfinished uploads; \
                 `cairn bucket delete --force` deletes the bucket too"
            }
            "BUCKET_ALREADY_EXISTS" => "`cairn bucket show` shows it",
            "OBJECT_LOCK_NOT_ENABLED" => {
                "`cairn bucket create --object-lock` makes a bucket with object lock"
            }
            "INVALID_BUCKET_STATE" => "object lock is permanent and requires versioning to stay enabled",
            "SERVICE_ACCOUNT_NOT_FOUND" => "`cairn service-account list` shows the accounts",
            "SERVICE_ACCOUNT_ALREADY_EXISTS" => "`cairn service-account show` shows it",
            "CREDENTIAL_NOT_FOUND" => "`cairn service-account show` shows the account's credentials",
            "POLICY_NOT_FOUND" => "`cairn policy list` shows the policies",
            "POLICY_IN_USE" => {
                "`cairn policy show` shows the accounts that have it, `cairn policy detach` detaches it"
            }
            "TOKEN_NOT_FOUND" => "`cairn token list` shows the tokens",
            "WEBHOOK_NOT_FOUND" => "`cairn webhook list` shows the webhooks",
            "DELIVERY_NOT_FOUND" => "`cairn webhook deliveries` shows the deliveries that are kept",
            "EVENTS_DISABLED" => {
                "set events.enabled (SERVICE_EVENTS_ENABLED) to true, and restart the server"
            }
            "QUOTA_BELOW_USAGE" => "`cairn quota show` shows the bucket's usage",
            "OBJECT_NOT_FOUND" | "VERSION_NOT_FOUND" => {
                "an S3 client shows keys and versions; keys are used literally, without a leading slash"
            }
            "NOT_READY" => "`cairn status` shows what is not ready",
            "TOO_MANY_REQUESTS" => "wait a moment, then try again",
            "STORAGE_FULL" => "`cairn storage status` shows the free space",
            _ if self.status == StatusCode::METHOD_NOT_ALLOWED => {
                "the server does not support this method for the route; `cairn status` shows its version"
            }
            _ => return None,
        };
        Some(next.to_owned())
    }
}

/// Returns the roles that the server allows. System administrators manage accounts, policies, tokens and webhooks. Auditors may
/// read accounts, policies and the audit trail.
fn roles(method: &Method, path: &str) -> &'static str {
    const TOKENS: &str = "/api/v1/management-tokens";
    const AUDITED: [&str; 3] = ["/api/v1/audit/", "/api/v1/service-accounts", "/api/v1/policies"];
    const WEBHOOKS: &str = "/api/v1/webhook";
    let is_audited = AUDITED.iter().any(|audited| path.starts_with(audited));
    if is_audited && method == Method::GET {
        "system_admin or auditor"
    } else if is_audited || path.starts_with(TOKENS) || path.starts_with(WEBHOOKS) {
        "system_admin"
    } else {
        "system_admin or storage_admin"
    }
}
