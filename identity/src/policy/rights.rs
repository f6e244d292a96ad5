//! Compiled rights: all policies of an account in a form that is fast to evaluate.
//!
//! For each bucket they hold what is allowed and denied on the bucket itself, on exact keys (a hash table) and on prefixes
//! of keys (sorted sets, one for each effect and action). An evaluation takes one or two hash lookups and at most two
//! binary searches, however many policies there are.

use super::action::{Action, ActionSet};
use super::document::{Effect, Policy, Statement};
use super::prefixes::PrefixSet;
use super::resource::{Resource, ResourcePattern};
use std::collections::HashMap;

/// The result of an evaluation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// A statement allows it and no statement denies it.
    Allowed,
    /// A statement denies it.
    DeniedExplicitly,
    /// No statement allows it.
    DeniedImplicitly,
}

impl Decision {
    /// Returns whether the action is allowed.
    #[must_use]
    pub fn is_allowed(self) -> bool {
        self == Self::Allowed
    }
}

/// The actions that are allowed and denied on one bucket or key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Grants {
    allow: ActionSet,
    deny: ActionSet,
}

impl Grants {
    fn add(&mut self, effect: Effect, actions: &[Action]) {
        let set = match effect {
            Effect::Allow => &mut self.allow,
            Effect::Deny => &mut self.deny,
        };
        for &action in actions {
            set.insert(action);
        }
    }
}

type ByAction<T> = [T; Action::ALL.len()];

#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct BucketRights {
    bucket: Grants,
    keys: HashMap<Box<str>, Grants>,
    allowed_prefixes: ByAction<PrefixSet>,
    denied_prefixes: ByAction<PrefixSet>,
    /// Whether a statement allows anything on the bucket or on objects in it.
    allows_something: bool,
}

/// What an account may do. The default allows nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Rights {
    buckets: HashMap<Box<str>, BucketRights>,
}

impl Rights {
    /// Compiles these policies. Takes time in proportion to their size.
    #[must_use]
    pub fn compile<'p>(policies: impl IntoIterator<Item = &'p Policy>) -> Self {
        let mut buckets = HashMap::<Box<str>, BucketRightsBuilder>::new();
        for statement in policies.into_iter().flat_map(|policy| &policy.statements) {
            for pattern in &statement.resources {
                let name = pattern.bucket().as_str();
                // `entry` alone would copy the name every time.
                let builder = match buckets.get_mut(name) {
                    Some(found) => found,
                    None => buckets.entry(name.into()).or_default(),
                };
                builder.add(statement, pattern);
            }
        }
        Self { buckets: buckets.into_iter().map(|(name, builder)| (name, builder.finish())).collect() }
    }

    /// Decides whether `action` may be done on `resource`.
    #[must_use]
    pub fn decide(&self, action: Action, resource: Resource<'_>) -> Decision {
        let (Resource::Bucket(bucket) | Resource::Object(bucket, _)) = resource;
        let Some(rights) = self.buckets.get(bucket) else { return Decision::DeniedImplicitly };
        let (allowed, denied) = match resource {
            Resource::Bucket(_) => {
                (rights.bucket.allow.contains(action), rights.bucket.deny.contains(action))
            }
            Resource::Object(_, key) => {
                let exact = rights.keys.get(key).copied().unwrap_or_default();
                let index = action.index();
                (
                    exact.allow.contains(action) || rights.allowed_prefixes[index].has_prefix_of(key),
                    exact.deny.contains(action) || rights.denied_prefixes[index].has_prefix_of(key),
                )
            }
        };
        match (denied, allowed) {
            (true, _) => Decision::DeniedExplicitly,
            (false, true) => Decision::Allowed,
            (false, false) => Decision::DeniedImplicitly,
        }
    }

    /// Returns whether a statement allows anything on the bucket or on objects in it. The list of buckets shows these
    /// buckets.
    #[must_use]
    pub fn allows_something_on(&self, bucket: &str) -> bool {
        self.buckets.get(bucket).is_some_and(|rights| rights.allows_something)
    }
}

/// Collects the rights on one bucket while statements are added.
#[derive(Default)]
struct BucketRightsBuilder {
    rights: BucketRights,
    allowed_prefixes: ByAction<Vec<Box<str>>>,
    denied_prefixes: ByAction<Vec<Box<str>>>,
}

impl BucketRightsBuilder {
    fn add(&mut self, statement: &Statement, pattern: &ResourcePattern) {
        let Statement { effect, actions, .. } = statement;
        self.rights.allows_something |= *effect == Effect::Allow;
        match pattern {
            ResourcePattern::Bucket(_) => self.rights.bucket.add(*effect, actions),
            ResourcePattern::Object(_, key) => {
                self.rights.keys.entry(key.as_str().into()).or_default().add(*effect, actions);
            }
            ResourcePattern::Objects(_, prefix) => {
                let by_action = match effect {
                    Effect::Allow => &mut self.allowed_prefixes,
                    Effect::Deny => &mut self.denied_prefixes,
                };
                for action in actions {
                    by_action[action.index()].push(prefix.clone());
                }
            }
        }
    }

    fn finish(self) -> BucketRights {
        BucketRights {
            allowed_prefixes: self.allowed_prefixes.map(PrefixSet::new),
            denied_prefixes: self.denied_prefixes.map(PrefixSet::new),
            ..self.rights
        }
    }
}
