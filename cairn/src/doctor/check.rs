//! One check of the doctor, and how results are shown.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::terminal::plain;

/// The verdict of a check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// It works.
    Ok,
    /// It does not work, or not for all clients, and need not.
    Note,
    /// It does not work.
    Failed,
    /// It was not tried.
    Skipped,
}

impl Verdict {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }
}

/// One check.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Checked {
    pub(crate) name: &'static str,
    pub(crate) verdict: Verdict,
    /// The observation.
    pub(crate) message: String,
    /// The reason.
    pub(crate) why: Option<String>,
    /// The remedy.
    pub(crate) fix: Option<String>,
    /// The S3 error code, if the server refused a request.
    pub(crate) code: Option<String>,
    /// The id of that request.
    pub(crate) request_id: Option<String>,
}

impl Checked {
    pub(crate) fn new(name: &'static str, verdict: Verdict, message: impl Into<String>) -> Self {
        Self { name, verdict, message: message.into(), why: None, fix: None, code: None, request_id: None }
    }

    pub(crate) fn ok(name: &'static str, message: impl Into<String>) -> Self {
        Self::new(name, Verdict::Ok, message)
    }

    pub(crate) fn failed(name: &'static str, message: impl Into<String>) -> Self {
        Self::new(name, Verdict::Failed, message)
    }

    /// Adds what to do.
    pub(crate) fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }
}

/// The number of checks with this verdict.
pub(crate) fn count(checks: &[Checked], verdict: Verdict) -> usize {
    checks.iter().filter(|checked| checked.verdict == verdict).count()
}

/// One line for each check. Below it is why it failed, what to do, and the error and request of the server.
pub(crate) fn lines(checks: &[Checked]) -> String {
    const VERDICT: usize = 9;
    let column = VERDICT + checks.iter().map(|checked| checked.name.len()).max().unwrap_or(0) + 2;
    let mut text = String::new();
    for checked in checks {
        let (verdict, name) = (checked.verdict.name(), checked.name);
        // Writing to a string does not fail.
        let _ = writeln!(text, "{verdict:VERDICT$}{name:0$}{1}", column - VERDICT, plain(&checked.message));
        let answer = match (&checked.code, &checked.request_id) {
            (Some(code), Some(id)) => Some(format!("{code}, request id {id}")),
            (Some(code), None) => Some(code.clone()),
            (None, Some(id)) => Some(format!("request id {id}")),
            (None, None) => None,
        };
        for (label, said) in [("why", &checked.why), ("fix", &checked.fix), ("answer", &answer)] {
            if let Some(said) = said {
                let _ = writeln!(text, "{:column$}{label}: {}", "", plain(said));
            }
        }
    }
    text
}

/// The checks as JSON.
pub(crate) fn as_json(checks: &[Checked]) -> Value {
    let one = |checked: &Checked| {
        json!({
            "name": checked.name,
            "verdict": checked.verdict.name(),
            "message": checked.message,
            "why": checked.why,
            "fix": checked.fix,
            "code": checked.code,
            "request_id": checked.request_id,
        })
    };
    Value::Array(checks.iter().map(one).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_check_has_a_line_and_what_helps_below() {
        let mut denied = Checked::failed("list", "no\u{1b}[2J").fix("Attach a policy.");
        denied.code = Some("AccessDenied".to_owned());
        denied.request_id = Some("1F".to_owned());
        let checks = [Checked::ok("connection", "works"), denied];
        let expected = "ok       connection  works\n\
                        failed   list        no[2J\n                     fix: Attach a policy.\n                     \
                        answer: AccessDenied, request id 1F\n";
        assert_eq!(lines(&checks), expected);
        assert_eq!(count(&checks, Verdict::Failed), 1);
        assert_eq!(as_json(&checks)[1]["request_id"], "1F");
    }
}
