//! Says in words why a request failed, and what to do.

use super::check::{Checked, Verdict};
use super::clients::Mode;
use super::connection::{Answer, NoAnswer};
use crate::s3::xml;

/// Longest text that is taken from an answer, in characters.
const TEXT_CHARACTERS_MAX: usize = 400;

/// A check that failed, before it has its name.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) message: String,
    pub(crate) why: Option<String>,
    pub(crate) fix: Option<String>,
    pub(crate) code: Option<String>,
    pub(crate) request_id: Option<String>,
    /// Whether further requests are pointless.
    pub(crate) is_end: bool,
}

impl Failed {
    /// The server does not do what it should.
    pub(crate) fn new(message: impl Into<String>, fix: &str) -> Box<Self> {
        let fix = Some(fix.to_owned());
        Box::new(Self {
            message: message.into(),
            why: None,
            fix,
            code: None,
            request_id: None,
            is_end: false,
        })
    }

    /// There was no answer. Nothing else is tried then.
    pub(crate) fn no_answer(what: &str, no_answer: NoAnswer) -> Box<Self> {
        let NoAnswer { why, fix } = no_answer;
        let message = format!("{what} failed");
        Box::new(Self { message, why: Some(why), fix, code: None, request_id: None, is_end: true })
    }

    /// The server refused a request.
    pub(crate) fn refused(what: &str, answer: &Answer, mode: Option<Mode>) -> Box<Self> {
        let code = answer.code();
        let request_id = answer.request_id().map(str::to_owned);
        let message = format!("{what} was refused with HTTP {}", answer.status);
        let said = xml::text(&answer.text(), "Message").map(|text| short(&text));
        let Some(code) = code.or_else(|| code_of_status(answer)) else {
            let why = Some("the answer is not that of an S3 server".to_owned());
            let fix = Some("Look for a proxy in between: what it answers is its own.".to_owned());
            return Box::new(Self { message, why, fix, code: None, request_id, is_end: false });
        };
        let fix = fix(&code, answer, mode);
        let why = said.or_else(|| why(&code));
        Box::new(Self { message, why, fix, code: Some(code), request_id, is_end: false })
    }

    /// Gives the check its name.
    pub(crate) fn named(self, name: &'static str) -> Checked {
        let Self { message, why, fix, code, request_id, .. } = self;
        Checked { name, verdict: Verdict::Failed, message, why, fix, code, request_id }
    }
}

fn short(text: &str) -> String {
    let mut kept: String = text.chars().take(TEXT_CHARACTERS_MAX).collect();
    if kept.len() < text.len() {
        kept.push('…');
    }
    kept
}

/// An answer to HEAD has no body, so the code is in the status only.
fn code_of_status(answer: &Answer) -> Option<String> {
    answer.request_id()?;
    let code = match answer.status {
        403 => "AccessDenied",
        404 => "NotFound",
        501 => "NotImplemented",
        _ => return None,
    };
    Some(code.to_owned())
}

fn why(code: &str) -> Option<String> {
    let why = match code {
        "AccessDenied" => "the policies of the account do not allow it",
        "NotFound" => "the bucket or the object does not exist",
        "NotImplemented" => "the server does not implement it",
        _ => return None,
    };
    Some(why.to_owned())
}

/// Returns what to do about an error code.
fn fix(code: &str, answer: &Answer, mode: Option<Mode>) -> Option<String> {
    let fix = match code {
        "InvalidAccessKeyId" => {
            "Check the access key. `cairn service-account show NAME` lists the keys of an account, and whether they are \
             enabled."
        }
        "SignatureDoesNotMatch" => {
            "Check the secret key. If it is right, a proxy changes the host, the path or the headers of requests: let it \
             pass them on as they are."
        }
        "RequestTimeTooSkewed" => "Set the clock of this computer, by NTP for example.",
        "AccessDenied" | "AccountProblem" if is_about_policies(answer) => {
            "Attach a policy that allows it: `cairn policy create` and `cairn policy attach`, or the console. \
             `cairn policy check` shows what an account may do."
        }
        "AccessDenied" => "The message says what the request needs.",
        "NotImplemented" if mode != Some(Mode::Extended) => {
            "Change the client's setting, or set s3.compatibility = \"extended\" on the server if that mode implements it."
        }
        "QuotaExceeded" => "Raise the bucket's quota (`cairn quota set`), or delete objects.",
        "InsufficientStorage" => "Delete objects, or enlarge the file system of the server.",
        "SlowDown" | "ServiceUnavailable" => "Try again later: the server is overloaded, starts or stops.",
        "InternalError" => "Look for the request id in the server's log.",
        "NoSuchBucket" | "NotFound" => "Check the name of the bucket: `cairn bucket list` shows all.",
        "AuthorizationHeaderMalformed" | "AuthorizationQueryParametersError" => {
            "Check access key and region: neither may contain spaces or slashes."
        }
        "InvalidBucketName" => "A bucket's name has 3 to 63 characters: a-z, 0-9, dots and dashes.",
        _ => return None,
    };
    Some(fix.to_owned())
}

fn is_about_policies(answer: &Answer) -> bool {
    let text = answer.text();
    text.is_empty() || text.contains("policy")
}
