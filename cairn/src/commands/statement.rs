//! Describes statements of policies.

use std::fmt::Write as _;

use cairn_api::{AppliedStatement, Statement};

use crate::output::table::joined;
use crate::terminal::plain;

/// Describes a statement in a line.
pub(super) fn statement_text(statement: &Statement) -> String {
    let Statement { effect, actions, resources, only_if_absent, source_ip } = statement;
    let mut text = format!("{} {} on {}", plain(effect), joined(actions, ", "), joined(resources, ", "));
    if *only_if_absent {
        text.push_str(" only if absent");
    }
    if let Some(networks) = source_ip {
        // Writing to a string cannot fail.
        let _ = write!(text, " from {}", joined(networks, ", "));
    }
    text
}

/// Describes a statement that applies to a request, with its policy.
pub(super) fn applied_text(applied: &AppliedStatement) -> String {
    let described = Statement {
        effect: applied.effect.clone(),
        actions: applied.actions.clone(),
        resources: applied.resources.clone(),
        only_if_absent: applied.only_if_absent,
        source_ip: applied.source_ip.clone(),
    };
    let AppliedStatement { policy_name, statement, .. } = applied;
    format!("policy {}, statement {}: {}", plain(policy_name), statement + 1, statement_text(&described))
}
