//! Failures of commands: exit codes, and messages for errors of a server with advice on what to do next.

use serde_json::Value;
use ureq::http::StatusCode;

use crate::environment::TOKEN_VARIABLE;
use crate::terminal::plain;

/// The result of a command.
pub(crate) type Outcome = Result<(), Failure>;

/// The error of a command. The message is safe to print on a terminal.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It was refused, the server is not ready, or problems were found.
    Failed(String),
    /// The arguments contradict each other.
    WrongUsage(String),
    /// There was no response from a server, or an incomplete one.
    NoResponse(String),
    /// The user has ended it with a signal.
    Interrupted(String),
}

impl Failure {
    /// The exit codes; 0 is success.
    pub(crate) const WRONG_USAGE: u8 = 2;
    const FAILED: u8 = 1;
    const NO_RESPONSE: u8 = 3;
    /// 128 and the number of SIGINT, as shells have it.
    const INTERRUPTED: u8 = 130;

    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Failed(_) => Self::FAILED,
            Self::WrongUsage(_) => Self::WRONG_USAGE,
            Self::NoResponse(_) => Self::NO_RESPONSE,
            Self::Interrupted(_) => Self::INTERRUPTED,
        }
    }

    pub(crate) fn message(&self) -> &str {
        match self {
            Self::Failed(message)
            | Self::WrongUsage(message)
            | Self::NoResponse(message)
            | Self::Interrupted(message) => message,
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

/// An error response of a server, and what it answers.
pub(crate) struct Refusal<'r> {
    pub(crate) path: &'r str,
    /// The body of the request, if it is JSON.
    pub(crate) body: &'r Value,
    pub(crate) status: StatusCode,
    pub(crate) code: &'r str,
    pub(crate) message: &'r str,
    pub(crate) request_id: Option<&'r str>,
}

impl Refusal<'_> {
    /// Returns the message: the error, and in a second line what to do about it.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("{}: {}", plain(self.code), plain(self.message));
        if let Some(next) = self.next() {
            text.push_str("\n  ");
            text.push_str(&next);
        }
        text
    }

    fn next(&self) -> Option<String> {
        let next = match self.code {
            "FORBIDDEN" => "`cairn token create` makes a token with another role",
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
            "BUCKET_NOT_FOUND" => return Some(self.no_bucket()),
            "INVALID_REQUEST" => return options(self.message),
            "OBJECT_LOCKED" if self.message.contains("bypass_governance") => {
                "--bypass-governance allows it for a governance retention"
            }
            "BUCKET_NOT_EMPTY" => {
                "`cairn bucket empty` deletes its content, including old versions, delete markers and unfinished uploads; \
                 `cairn bucket delete --force` deletes the bucket too"
            }
            "BUCKET_ALREADY_EXISTS" => "`cairn bucket show` shows it",
            "OBJECT_ALREADY_EXISTS" => "without --if-absent it is overwritten",
            "OBJECT_LOCK_NOT_ENABLED" => {
                "`cairn bucket create --object-lock` makes a bucket with object lock"
            }
            "INVALID_BUCKET_STATE" if self.message.contains("object lock") => {
                "object lock is permanent and requires versioning to stay enabled"
            }
            "INVALID_BUCKET_STATE" if self.message.contains("never had versioning") => {
                "`cairn bucket protect` keeps what is overwritten and deleted from now on"
            }
            "INVALID_BUCKET_STATE" => "`cairn bucket show` shows the settings of the bucket",
            "SERVICE_ACCOUNT_NOT_FOUND" => "`cairn service-account list` shows the accounts",
            "SERVICE_ACCOUNT_ALREADY_EXISTS" => "`cairn service-account show` shows it",
            "ACCESS_KEY_EXISTS" => "`cairn service-account show` shows the access keys of an account",
            "CREDENTIAL_NOT_FOUND" => "`cairn service-account show` shows the account's credentials",
            "POLICY_NOT_FOUND" => "`cairn policy list` shows the policies",
            "POLICY_IN_USE" => {
                "`cairn policy show` shows the accounts that have it, `cairn policy detach` detaches it"
            }
            "TOKEN_NOT_FOUND" => "`cairn token list` shows the tokens",
            "WEBHOOK_NOT_FOUND" => "`cairn webhook list` shows the webhooks",
            "BACKUP_NOT_FOUND" => "`cairn backup status` shows the last backup",
            "DELIVERY_NOT_FOUND" => "`cairn webhook deliveries` shows the deliveries that are kept",
            "EVENTS_DISABLED" => {
                "set events.enabled (SERVICE_EVENTS_ENABLED) to true, and restart the server"
            }
            "QUOTA_BELOW_USAGE" => "`cairn quota show` shows the bucket's usage",
            "OBJECT_NOT_FOUND" | "VERSION_NOT_FOUND" => {
                "`cairn object ls --recursive <bucket>` shows keys, with `--versions` all versions"
            }
            "SHARE_NOT_FOUND" => "`cairn share list` shows the shares",
            "EMBED_NOT_FOUND" => "`cairn embed list` shows the embeds",
            "LIFECYCLE_RULE_NOT_FOUND" => "`cairn lifecycle list <bucket>` shows the rules of a bucket",
            // `--if-absent` is the only condition that a command sets.
            "PRECONDITION_FAILED" => "the object exists already; without --if-absent it is overwritten",
            "NOT_READY" => "`cairn status` shows what is not ready",
            "TOO_MANY_REQUESTS" if self.path == "/api/v1/storage/backup" => {
                "`cairn backup status` shows it, `cairn backup end` ends it"
            }
            "TOO_MANY_REQUESTS" => "wait a moment, then try again",
            "STORAGE_FULL" => "`cairn storage status` shows the free space",
            _ if self.status == StatusCode::METHOD_NOT_ALLOWED => {
                "the server does not support this method for the route; `cairn status` shows its version"
            }
            _ => return None,
        };
        Some(next.to_owned())
    }

    /// Names the buckets of a request, of which one does not exist.
    fn no_bucket(&self) -> String {
        const LIST: &str = "`cairn bucket list` shows the buckets";
        let of_path =
            self.path.strip_prefix("/api/v1/buckets/").and_then(|rest| rest.split(['/', '?']).next());
        let mut buckets: Vec<&str> =
            of_path.into_iter().chain(self.body["destination_bucket"].as_str()).collect();
        buckets.dedup();
        match buckets[..] {
            [] => LIST.to_owned(),
            [one] => format!("there is no bucket {}; {LIST}", plain(one)),
            _ => format!("there is no bucket {}; {LIST}", plain(&buckets.join(", or no bucket "))),
        }
    }
}

/// Members of requests that messages of the server name, and the options that set them.
const OPTIONS: [(&str, &str); 15] = [
    ("abort_incomplete_multipart_upload", "--abort-uploads-days"),
    ("expires_at", "--expires"),
    ("expires_in_seconds", "--expires-in"),
    ("maximum_downloads", "--maximum-downloads"),
    ("allowed_origins", "--origin"),
    ("retain_until", "--until"),
    ("bypass_governance", "--bypass-governance"),
    ("expiration", "--expire-days"),
    ("noncurrent_version_expiration", "--noncurrent-days"),
    ("newer_noncurrent_versions", "--keep-noncurrent"),
    ("expired_delete_markers", "--remove-expired-markers"),
    ("maximum_entries", "--maximum-entries"),
    ("target_url", "--target-url"),
    ("bucket_filter", "--bucket"),
    ("object_prefix_filter", "--prefix"),
];

/// Returns the options for the members that a message names.
fn options(message: &str) -> Option<String> {
    let words = || message.split(|character: char| !character.is_ascii_alphanumeric() && character != '_');
    let named = OPTIONS.iter().filter(|(member, _)| words().any(|word| word == *member));
    let named: Vec<_> = named.map(|(member, option)| format!("{option} sets {member}")).collect();
    Some(named.join(", ")).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_named_for_the_members_of_a_message() {
        assert_eq!(
            options("set expiration, noncurrent_version_expiration or expired_delete_markers").as_deref(),
            Some(
                "--expire-days sets expiration, --noncurrent-days sets noncurrent_version_expiration, \
                 --remove-expired-markers sets expired_delete_markers"
            )
        );
        assert_eq!(options("retention.retain_until: must be").as_deref(), Some("--until sets retain_until"));
        assert_eq!(options("the body is not JSON"), None);
    }
}
