//! The rules of evaluation as one reads them, statement by statement: what the compiled form is compared with.

use super::{Action, Decision, Effect, Policy, Resource};

/// Walks over every statement of every policy, and compares texts.
pub(crate) fn decide(policies: &[Policy], action: Action, resource: Resource<'_>) -> Decision {
    let asked = match resource {
        Resource::Bucket(bucket) => format!("bucket:{bucket}"),
        Resource::Object(bucket, key) => format!("bucket:{bucket}/{key}"),
    };
    let names = |pattern: &str| match pattern.strip_suffix('*') {
        Some(prefix) => asked.starts_with(prefix),
        None => asked == pattern,
    };
    let mut decision = Decision::DeniedImplicitly;
    for statement in policies.iter().flat_map(|policy| &policy.statements) {
        let fits = statement.actions.contains(&action)
            && statement.resources.iter().any(|pattern| names(&pattern.to_string()));
        match statement.effect {
            Effect::Deny if fits => return Decision::DeniedExplicitly,
            Effect::Allow if fits => decision = Decision::Allowed,
            Effect::Allow | Effect::Deny => {}
        }
    }
    decision
}

/// Whether any statement allows anything on the bucket or in it.
#[cfg(test)]
pub(crate) fn allows_something_on(policies: &[Policy], bucket: &str) -> bool {
    policies.iter().flat_map(|policy| &policy.statements).any(|statement| {
        let names = |text: String| {
            text == format!("bucket:{bucket}") || text.starts_with(&format!("bucket:{bucket}/"))
        };
        statement.effect == Effect::Allow
            && statement.resources.iter().any(|pattern| names(pattern.to_string()))
    })
}
