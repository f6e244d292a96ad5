//! Why a command did not do what it was told: the exit code, and the words for the refusals of a server, each with what
//! to do next.

use ureq::http::{Method, StatusCode};

use crate::client::TOKEN_VARIABLE;
use crate::output::plain;

/// What came of a command.
pub(crate) type Outcome = Result<(), Failure>;

/// Why it failed; the message is fit for the terminal.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Refused, not ready, or something was found that should not be.
    Failed(String),
    /// The arguments make no sense together.
    WrongUsage(String),
    /// No server answered, or not to the end.
    NoAnswer(String),
}

impl Failure {
    /// The exit codes; 0 is success.
    pub(crate) const WRONG_USAGE: u8 = 2;
    const FAILED: u8 = 1;
    const NO_ANSWER: u8 = 3;

    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Failed(_) => Self::FAILED,
            Self::WrongUsage(_) => Self::WRONG_USAGE,
            Self::NoAnswer(_) => Self::NO_ANSWER,
        }
    }

    pub(crate) fn message(&self) -> &str {
        match self {
            Self::Failed(message) | Self::WrongUsage(message) | Self::NoAnswer(message) => message,
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

/// A refusal in a server's own words.
pub(crate) struct Refusal<'r> {
    pub(crate) status: StatusCode,
    pub(crate) code: &'r str,
    pub(crate) message: &'r str,
    pub(crate) request_id: Option<&'r str>,
}

impl Refusal<'_> {
    /// For people: what was refused, and in a second line what to do about it.
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
            "FORBIDDEN" => return Some(format!("this needs a token of the role {}", roles(method, path))),
            "UNAUTHENTICATED" => {
                return Some(format!(
                    "{TOKEN_VARIABLE} holds no token that this server knows: it takes the server's own \
                     SERVICE_MANAGEMENT_SYSTEM_TOKEN, or one of `cairn token create` that has neither ended nor been deleted"
                ));
            }
            "INTERNAL_ERROR" => {
                let id = self.request_id.map_or_else(|| "-".to_owned(), plain);
                return Some(format!("the server's log has the reason, under the request id {id}"));
            }
            "NOT_FOUND" => "the server does not know this route: `cairn status` shows its version",
            "BUCKET_NOT_FOUND" => "`cairn bucket list` shows the buckets",
            "BUCKET_NOT_EMPTY" => {
                "remove what it holds with an S3 client, old versions, delete markers and unfinished uploads too"
            }
            "BUCKET_ALREADY_EXISTS" => "`cairn bucket show` shows it",
            "INVALID_BUCKET_STATE" => "object lock is for good, and needs versioning to stay enabled",
            "SERVICE_ACCOUNT_NOT_FOUND" => "`cairn service-account list` shows the accounts",
            "SERVICE_ACCOUNT_ALREADY_EXISTS" => "`cairn service-account show` shows it",
            "CREDENTIAL_NOT_FOUND" => "`cairn service-account show` shows the account's credentials",
            "POLICY_NOT_FOUND" => "`cairn policy list` shows the policies",
            "POLICY_IN_USE" => "`cairn policy show` shows who has it, `cairn policy detach` takes it away",
            "TOKEN_NOT_FOUND" => "`cairn token list` shows the tokens",
            "QUOTA_BELOW_USAGE" => "`cairn quota show` shows what the bucket holds",
            "OBJECT_NOT_FOUND" | "VERSION_NOT_FOUND" => {
                "an S3 client shows keys and versions; a key is taken as it is, without a leading slash"
            }
            "NOT_READY" => "`cairn status` shows what is not ready",
            "TOO_MANY_REQUESTS" => "wait a moment, then try again",
            "STORAGE_FULL" => "`cairn storage status` shows the space that is left",
            _ if self.status == StatusCode::METHOD_NOT_ALLOWED => {
                "the server knows this route for other things only: `cairn status` shows its version"
            }
            _ => return None,
        };
        Some(next.to_owned())
    }
}

/// The roles that a server lets in. What is overseen is for the system's administrators, and for auditors to look at.
fn roles(method: &Method, path: &str) -> &'static str {
    const TOKENS: &str = "/api/v1/management-tokens";
    const OVERSEEN: [&str; 3] = ["/api/v1/audit/", "/api/v1/service-accounts", "/api/v1/policies"];
    let is_overseen = OVERSEEN.iter().any(|overseen| path.starts_with(overseen));
    if is_overseen && method == Method::GET {
        "system_admin or auditor"
    } else if is_overseen || path.starts_with(TOKENS) {
        "system_admin"
    } else {
        "system_admin or storage_admin"
    }
}
