//! Describes statements of policies.

use serde_json::Value;

use crate::terminal::word;

/// Returns the texts of a list, separated by commas.
fn listed(texts: &Value) -> String {
    texts.as_array().into_iter().flatten().map(word).collect::<Vec<_>>().join(", ")
}

/// Describes a statement in a line.
pub(super) fn statement_text(statement: &Value) -> String {
    let (actions, resources) = (listed(&statement["actions"]), listed(&statement["resources"]));
    format!("{} {actions} on {resources}", word(&statement["effect"]))
}
