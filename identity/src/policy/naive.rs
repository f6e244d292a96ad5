//! Naive policy evaluation, statement by statement: the reference for the compiled rights.

use super::{Action, Decision, Effect, Policy, Resource};

/// Evaluates every statement of every policy by comparing texts.
pub(crate) fn decide(policies: &[Policy], action: Action, resource: Resource<'_>) -> Decision {
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
            && statement.resources.iter().any(|pattern| matches(&pattern.to_string()));
        match statement.effect {
            Effect::Deny if applies => return Decision::DeniedExplicitly,
            Effect::Allow if applies => decision = Decision::Allowed,
            Effect::Allow | Effect::Deny => {}
        }
    }
    decision
}

/// Returns whether any statement allows anything on the bucket or in it.
#[cfg(test)]
pub(crate) fn allows_something_on(policies: &[Policy], bucket: &str) -> bool {
    policies.iter().flat_map(|policy| &policy.statements).any(|statement| {
        let matches = |text: String| {
            text == format!("bucket:{bucket}") || text.starts_with(&format!("bucket:{bucket}/"))
        };
        statement.effect == Effect::Allow
            && statement.resources.iter().any(|pattern| matches(pattern.to_string()))
    })
}
