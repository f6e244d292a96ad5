//! Describes statements of policies.

use cairn_api::{Action, AppliedStatement, Effect, PolicyResource, Statement};

use crate::output::table::joined;
use crate::terminal::plain;

/// Describes a statement in a line.
pub(super) fn statement_text(Statement { effect, actions, resources }: &Statement) -> String {
    described(effect, actions, resources)
}

/// Describes a statement that applies to a request, with its policy.
pub(super) fn applied_text(applied: &AppliedStatement) -> String {
    let AppliedStatement { policy_name, statement, effect, actions, resources, .. } = applied;
    let described = described(effect, actions, resources);
    format!("policy {}, statement {}: {described}", plain(policy_name), statement + 1)
}

fn described(effect: &Effect, actions: &[Action], resources: &[PolicyResource]) -> String {
    format!("{} {} on {}", plain(effect), joined(actions, ", "), joined(resources, ", "))
}
