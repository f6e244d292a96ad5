//! Explains a decision: which statements apply to a request, and what would allow it.
//!
//! Requests are decided by the compiled [`Rights`](super::Rights), which do not know their statements any more. An
//! explanation reads every statement of the same policies. A property test checks that both decide alike.

use super::action::Action;
use super::document::{Effect, Policy, StatementDraft};
use super::resource::{Resource, WILDCARD};
use super::rights::{Decision, applies_to};
use std::net::IpAddr;

/// Most statements of each effect that an explanation names.
pub const EXPLAINED_STATEMENTS_MAX: usize = 50;

/// A statement that applies to a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AppliedStatement<P> {
    /// The policy, as the caller names it.
    pub policy: P,
    /// The index of the statement in its policy.
    pub statement: usize,
    /// The index of its first resource that matches.
    pub resource: usize,
}

/// The statements of one effect that apply.
#[derive(Debug)]
struct Applied<P> {
    first: Vec<AppliedStatement<P>>,
    count: usize,
}

impl<P> Applied<P> {
    const fn none() -> Self {
        Self { first: Vec::new(), count: 0 }
    }
}

/// The explanation of one decision, policy by policy.
#[derive(Debug)]
pub struct Explanation<'r, P> {
    action: Action,
    resource: Resource<'r>,
    client: Option<IpAddr>,
    denying: Applied<P>,
    allowing: Applied<P>,
    /// Statements that allow only keys without a current object to be written.
    allowing_if_absent: Applied<P>,
}

impl<'r, P: Copy> Explanation<'r, P> {
    /// Begins the explanation of whether `action` may be done on `resource` by a client at this address. Where the address
    /// is not known, denials with a `source_ip` apply and allowances do not.
    #[must_use]
    pub const fn new(action: Action, resource: Resource<'r>, client: Option<IpAddr>) -> Self {
        Self {
            action,
            resource,
            client,
            denying: Applied::none(),
            allowing: Applied::none(),
            allowing_if_absent: Applied::none(),
        }
    }

    /// Adds a policy of the account. The time it takes is proportional to [`Policy::pattern_count`].
    pub fn add(&mut self, name: P, policy: &Policy) {
        for (index, statement) in policy.statements.iter().enumerate() {
            if !statement.actions.contains(&self.action)
                || !applies_to(&statement.source_ip, statement.effect, self.client)
            {
                continue;
            }
            let Some(resource) =
                statement.resources.iter().position(|pattern| pattern.matches(self.resource))
            else {
                continue;
            };
            let applied = match statement.effect {
                Effect::Deny => &mut self.denying,
                Effect::Allow if statement.only_if_absent && self.action == Action::PutObject => {
                    &mut self.allowing_if_absent
                }
                Effect::Allow => &mut self.allowing,
            };
            applied.count += 1;
            if applied.first.len() < EXPLAINED_STATEMENTS_MAX {
                applied.first.push(AppliedStatement { policy: name, statement: index, resource });
            }
        }
    }

    /// Returns the decision of the policies that were added.
    #[must_use]
    pub const fn decision(&self) -> Decision {
        match (self.denying.count, self.allowing.count, self.allowing_if_absent.count) {
            (0, 0, 0) => Decision::DeniedImplicitly,
            (0, 0, _) => Decision::AllowedIfAbsent,
            (0, _, _) => Decision::Allowed,
            _ => Decision::DeniedExplicitly,
        }
    }

    /// Returns the statements that apply, those that deny first, and those with `only_if_absent` last. The first one decides.
    pub fn statements(&self) -> impl Iterator<Item = AppliedStatement<P>> {
        self.kinds().into_iter().flat_map(|applied| &applied.first).copied()
    }

    const fn kinds(&self) -> [&Applied<P>; 3] {
        [&self.denying, &self.allowing, &self.allowing_if_absent]
    }

    /// Returns how many applying statements [`Self::statements`] leaves out.
    #[must_use]
    pub fn omitted(&self) -> usize {
        self.kinds().into_iter().map(|applied| applied.count - applied.first.len()).sum()
    }
}

/// Returns a statement that allows the request and little else. Nothing else, unless the key has a `*`: a policy can only
/// name the keys that begin with what is before it.
#[must_use]
pub fn narrowest_statement(action: Action, resource: Resource<'_>) -> StatementDraft {
    let resource = match resource {
        Resource::Bucket(bucket) => format!("bucket:{bucket}"),
        Resource::Object(bucket, key) => match key.split_once(WILDCARD) {
            Some((prefix, _)) => format!("bucket:{bucket}/{prefix}{WILDCARD}"),
            None => format!("bucket:{bucket}/{key}"),
        },
    };
    StatementDraft {
        effect: Effect::Allow.name().to_owned(),
        actions: vec![action.name().to_owned()],
        resources: vec![resource],
        only_if_absent: false,
        source_ip: None,
    }
}

#[cfg(test)]
mod tests {
    use super::{EXPLAINED_STATEMENTS_MAX, Explanation, narrowest_statement};
    use crate::policy::{Action, Decision, Policy, PolicyDraft, Resource, StatementDraft};

    fn statement(effect: &str, resources: &[&str]) -> StatementDraft {
        StatementDraft {
            effect: effect.to_owned(),
            actions: vec!["s3:GetObject".to_owned()],
            resources: resources.iter().map(|text| (*text).to_owned()).collect(),
            only_if_absent: false,
            source_ip: None,
        }
    }

    fn policy(statements: Vec<StatementDraft>) -> Policy {
        let draft = PolicyDraft { name: "p".to_owned(), description: String::new(), statements };
        Policy::from_draft(&draft).expect("a policy")
    }

    #[test]
    fn a_denial_comes_before_what_it_overrides() {
        let readers = policy(vec![statement("allow", &["bucket:photos", "bucket:photos/*"])]);
        let secrets = policy(vec![
            statement("allow", &["bucket:photos/a"]),
            statement("deny", &["bucket:other/*", "bucket:photos/secret/*"]),
        ]);
        let mut explained =
            Explanation::new(Action::GetObject, Resource::Object("photos", "secret/plan"), None);
        explained.add("readers", &readers);
        explained.add("secrets", &secrets);
        let found: Vec<_> =
            explained.statements().map(|one| (one.policy, one.statement, one.resource)).collect();
        assert_eq!(found, [("secrets", 1, 1), ("readers", 0, 1)]);
        assert_eq!((explained.decision(), explained.omitted()), (Decision::DeniedExplicitly, 0));
    }

    /// A pattern with a `*` inside would be invalid, and one at the end would mean another key.
    #[test]
    fn a_key_with_a_star_is_suggested_as_a_prefix() {
        for (key, resource) in [
            ("a/b", "bucket:photos/a/b"),
            ("a*b*", "bucket:photos/a*"),
            ("*", "bucket:photos/*"),
            ("a*", "bucket:photos/a*"),
        ] {
            let resources = narrowest_statement(Action::GetObject, Resource::Object("photos", key)).resources;
            assert_eq!(resources, [resource]);
            let allowing = policy(vec![statement("allow", &[&resources[0]])]);
            let mut explained = Explanation::new(Action::GetObject, Resource::Object("photos", key), None);
            explained.add((), &allowing);
            assert!(explained.decision().is_allowed(), "{key}");
        }
    }

    #[test]
    fn a_long_explanation_is_shortened_and_says_so() {
        let all = policy(vec![statement("allow", &["bucket:photos/*"]); 100]);
        let mut explained = Explanation::new(Action::GetObject, Resource::Object("photos", "a"), None);
        explained.add((), &all);
        assert_eq!(explained.statements().count(), EXPLAINED_STATEMENTS_MAX);
        assert_eq!(explained.omitted(), 100 - EXPLAINED_STATEMENTS_MAX);
        assert_eq!(explained.decision(), Decision::Allowed);
    }
}
