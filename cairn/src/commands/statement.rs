//! Describes statements of policies.

use serde_json::Value;

use crate::output::table::joined;
use crate::terminal::word;

/// Describes a statement in a line.
pub(super) fn statement_text(statement: &Value) -> String {
    let (actions, resources) = (joined(&statement["actions"], ", "), joined(&statement["resources"], ", "));
    format!("{} {actions} on {resources}", word(&statement["effect"]))
}
