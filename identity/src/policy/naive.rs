//! Naive policy evaluation, statement by statement: the reference for the compiled rights.

use super::{Action, Decision, Effect, Policy, Resource, Statement};
use std::net::IpAddr;

/// Evaluates every statement of every policy by comparing texts.
pub(crate) fn decide(
    policies: &[Policy],
    action: Action,
    resource: Resource<'_>,
    client: Option<IpAddr>,
) -> Decision {
    let requested = match resource {
        Resource::Bucket(bucket) => format!("bucket:{bucket}"),
        Resource::Object(bucket, key) => format!("bucket:{bucket}/{key}"),
    };
    let matches = |pattern: &str| match pattern.strip_suffix('*') {
        Some(prefix) => requested.starts_with(prefix),
        None => requested == pattern,
    };
    let mut decision = Decision::DeniedImplicitly;
    for statement in policies.iter().flat_map(|policy| &policy.statements) {
        let applies = statement.actions.contains(&action)
            && is_for(statement, client)
            && statement.resources.iter().any(|pattern| matches(&pattern.to_string()));
        match statement.effect {
            Effect::Deny if applies => return Decision::DeniedExplicitly,
            Effect::Allow if applies && statement.only_if_absent && action == Action::PutObject => {
                if decision == Decision::DeniedImplicitly {
                    decision = Decision::AllowedIfAbsent;
                }
            }
            Effect::Allow if applies => decision = Decision::Allowed,
            Effect::Allow | Effect::Deny => {}
        }
    }
    decision
}

/// Returns whether the statement is for a client at this address.
fn is_for(statement: &Statement, client: Option<IpAddr>) -> bool {
    match client {
        Some(client) => {
            statement.source_ip.is_empty()
                || statement.source_ip.iter().any(|network| network.contains(client))
        }
        None => statement.source_ip.is_empty() || statement.effect == Effect::Deny,
    }
}

/// Returns whether any statement allows anything on the bucket or in it.
#[cfg(test)]
pub(crate) fn allows_something_on(policies: &[Policy], bucket: &str, client: Option<IpAddr>) -> bool {
    policies.iter().flat_map(|policy| &policy.statements).any(|statement| {
        let matches = |text: String| match text.strip_prefix("bucket:").expect("a pattern").split_once('/') {
            Some((name, _)) => name == bucket,
            None => {
                Some(bucket) == text.strip_prefix("bucket:")
                    || text
                        .strip_prefix("bucket:")
                        .and_then(|text| text.strip_suffix('*'))
                        .is_some_and(|prefix| bucket.starts_with(prefix))
            }
        };
        statement.effect == Effect::Allow
            && is_for(statement, client)
            && statement.resources.iter().any(|pattern| matches(pattern.to_string()))
    })
}
