//! Reports what an import leaves out.

use serde::Serialize;

use crate::failure::{Failure, Outcome};
use crate::terminal::plain;

/// Something that the source has and that is not taken over.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub(super) struct Loss {
    /// `account`, `policy`, `group`, `mapping`, `bucket`, or the name of a setting such as `lifecycle`.
    pub(super) kind: &'static str,
    /// Its name at the source.
    pub(super) name: String,
    /// The reason, and what takes its place.
    pub(super) reason: String,
}

impl Loss {
    pub(super) fn new(kind: &'static str, name: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { kind, name: name.into(), reason: reason.into() }
    }
}

/// Formats losses, a line each.
pub(super) fn losses_text(losses: &[Loss]) -> String {
    if losses.is_empty() {
        return String::new();
    }
    let line = |Loss { kind, name, reason }: &Loss| plain(&format!("  {kind} {name}: {reason}")) + "\n";
    "not taken over:\n".to_owned() + &losses.iter().map(line).collect::<String>()
}

/// Returns how a command ends: well if everything arrived.
pub(super) fn end(losses: &[Loss]) -> Outcome {
    if losses.is_empty() {
        return Ok(());
    }
    Err("not everything was taken over: see above".into())
}

/// Returns whether a refusal concerns the whole command, so that going on would repeat it for each item.
pub(super) fn is_about_all(failure: &Failure) -> bool {
    let is_of_server = |code: &&str| failure.message().starts_with(*code);
    !matches!(failure, Failure::Failed(_))
        || ["FORBIDDEN", "UNAUTHENTICATED", "NOT_READY", "STORAGE_FULL", "NOT_FOUND"].iter().any(is_of_server)
}
