//! What all policies of an account amount to, in a form that answers a question in the same time however many there are.
//!
//! By bucket: what is allowed and denied on the bucket itself, on exact keys (a hash table), and on keys with a prefix
//! (sorted sets, one for each effect and action). So a question takes one or two hash lookups and at most two binary
//! searches.

use super::action::{Action, ActionSet};
use super::document::{Effect, Policy, Statement};
use super::prefixes::PrefixSet;
use super::resource::{Resource, ResourcePattern};
use std::collections::HashMap;

/// The answer to a question.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// Some statement allows it and none denies it.
    Allowed,
    /// A statement denies it.
    DeniedExplicitly,
    /// No statement allows it.
    DeniedImplicitly,
}

impl Decision {
    /// Whether it may be done.
    #[must_use]
    pub fn is_allowed(self) -> bool {
        self == Self::Allowed
    }
}

/// Actions that are allowed, and actions that are denied, on the same thing.
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
    /// Some statement allows something on the bucket or on objects in it.
    allows_something: bool,
}

/// What an account may do. Empty: nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Rights {
    buckets: HashMap<Box<str>, BucketRights>,
}

impl Rights {
    /// What these policies amount to together. Takes time in proportion to what they say.
    #[must_use]
    pub fn compile<'p>(policies: impl IntoIterator<Item = &'p Policy>) -> Self {
        let mut buckets = HashMap::<Box<str>, Building>::new();
        for statement in policies.into_iter().flat_map(|policy| &policy.statements) {
            for pattern in &statement.resources {
                let name = pattern.bucket().as_str();
                // Not `entry`, which would copy the name each time.
                let building = match buckets.get_mut(name) {
                    Some(found) => found,
                    None => buckets.entry(name.into()).or_default(),
                };
                building.add(statement, pattern);
            }
        }
        Self { buckets: buckets.into_iter().map(|(name, building)| (name, building.finish())).collect() }
    }

    /// Whether `action` may be done on `resource`.
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
                    exact.allow.contains(action) || rights.allowed_prefixes[index].begins(key),
                    exact.deny.contains(action) || rights.denied_prefixes[index].begins(key),
                )
            }
        };
        match (denied, allowed) {
            (true, _) => Decision::DeniedExplicitly,
            (false, true) => Decision::Allowed,
            (false, false) => Decision::DeniedImplicitly,
        }
    }

    /// Whether some statement allows something on the bucket or on objects in it: such buckets are shown in the list of
    /// buckets.
    #[must_use]
    pub fn allows_something_on(&self, bucket: &str) -> bool {
        self.buckets.get(bucket).is_some_and(|rights| rights.allows_something)
    }
}

/// The rights on one bucket while statements are added.
#[derive(Default)]
struct Building {
    rights: BucketRights,
    allowed_prefixes: ByAction<Vec<Box<str>>>,
    denied_prefixes: ByAction<Vec<Box<str>>>,
}

impl Building {
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
