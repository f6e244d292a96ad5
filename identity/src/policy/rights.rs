//! Compiled rights: all policies of an account in a form that is fast to evaluate.
//!
//! For each bucket they hold what is allowed and denied on the bucket itself, on exact keys (a hash table) and on prefixes
//! of keys (sorted sets, one for each effect and action). Patterns that end inside a bucket's name are sorted sets of
//! prefixes of names. An evaluation takes one or two hash lookups and at most four binary searches, however many policies
//! there are.
//!
//! Statements with a restriction (`only_if_absent`, `source_ip`) are compiled apart, once for each different restriction.
//! Accounts without such statements do not pay for them.

use super::action::{Action, ActionSet};
use super::document::{Effect, Policy, Statement};
use super::prefixes::PrefixSet;
use super::resource::{Resource, ResourcePattern};
use cairn_model::IpNetwork;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;

/// The result of an evaluation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// A statement allows it and no statement denies it.
    Allowed,
    /// Of `s3:PutObject`: only statements with `only_if_absent` allow it, and no statement denies it. The object may be
    /// written if its key has no current object.
    AllowedIfAbsent,
    /// A statement denies it.
    DeniedExplicitly,
    /// No statement allows it.
    DeniedImplicitly,
}

impl Decision {
    /// Returns whether the action is allowed without a restriction.
    #[must_use]
    pub fn is_allowed(self) -> bool {
        self == Self::Allowed
    }

    /// Returns how far a request is allowed. `creates_object`: it writes an object or a part of one, so that a right to write
    /// absent objects is enough.
    ///
    /// # Errors
    /// The decision, if it does not allow the request.
    pub fn permission(self, creates_object: bool) -> Result<Permission, Self> {
        match self {
            Self::Allowed => Ok(Permission::Full),
            Self::AllowedIfAbsent if creates_object => Ok(Permission::IfAbsent),
            denied => Err(denied),
        }
    }
}

/// The permission of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Permission {
    /// Without a restriction.
    Full,
    /// It may write an object only if its key has no current object. The commit decides.
    IfAbsent,
}

impl Permission {
    /// Returns whether a write must fail if its key has a current object.
    #[must_use]
    pub fn must_be_absent(self) -> bool {
        self == Self::IfAbsent
    }
}

/// Returns whether a statement with these networks applies to a client. Where the client's address is not known, a
/// restricted denial applies and a restricted allowance does not.
pub(super) fn applies_to(networks: &[IpNetwork], effect: Effect, client: Option<IpAddr>) -> bool {
    networks.is_empty()
        || match client {
            Some(address) => networks.iter().any(|network| network.contains(address)),
            None => effect == Effect::Deny,
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

/// Prefixes of keys, or of names of buckets, for which each action is allowed or denied.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct PrefixRights {
    allowed: ByAction<PrefixSet>,
    denied: ByAction<PrefixSet>,
}

impl PrefixRights {
    fn decide(&self, action: Action, text: &str) -> Outcome {
        let index = action.index();
        Outcome {
            allowed: self.allowed[index].has_prefix_of(text),
            denied: self.denied[index].has_prefix_of(text),
        }
    }

    fn allows_something_on(&self, text: &str) -> bool {
        self.allowed.iter().any(|prefixes| prefixes.has_prefix_of(text))
    }
}

#[derive(Default)]
struct PrefixRightsBuilder {
    allowed: ByAction<Vec<Box<str>>>,
    denied: ByAction<Vec<Box<str>>>,
}

impl PrefixRightsBuilder {
    fn add(&mut self, effect: Effect, actions: &[Action], prefix: &str) {
        let by_action = match effect {
            Effect::Allow => &mut self.allowed,
            Effect::Deny => &mut self.denied,
        };
        for action in actions {
            by_action[action.index()].push(prefix.into());
        }
    }

    fn finish(self) -> PrefixRights {
        PrefixRights { allowed: self.allowed.map(PrefixSet::new), denied: self.denied.map(PrefixSet::new) }
    }
}

/// The outcome of statements for an action: whether some allow it, and whether some deny it.
#[derive(Clone, Copy, Default)]
struct Outcome {
    allowed: bool,
    denied: bool,
}

impl Outcome {
    fn or(self, other: Self) -> Self {
        Self { allowed: self.allowed | other.allowed, denied: self.denied | other.denied }
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct BucketRights {
    bucket: Grants,
    keys: HashMap<Box<str>, Grants>,
    prefixes: PrefixRights,
    /// Whether a statement allows anything on the bucket or on objects in it.
    allows_something: bool,
}

impl BucketRights {
    fn decide(&self, action: Action, key: Option<&str>) -> Outcome {
        let of = |grants: Grants| Outcome {
            allowed: grants.allow.contains(action),
            denied: grants.deny.contains(action),
        };
        match key {
            None => of(self.bucket),
            Some(key) => {
                of(self.keys.get(key).copied().unwrap_or_default()).or(self.prefixes.decide(action, key))
            }
        }
    }
}

/// Statements that have the same restriction.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct RuleSet {
    buckets: HashMap<Box<str>, BucketRights>,
    /// Patterns that end inside the name of a bucket.
    names: PrefixRights,
}

impl RuleSet {
    fn decide(&self, action: Action, resource: Resource<'_>) -> Outcome {
        let (bucket, key) = match resource {
            Resource::Bucket(bucket) => (bucket, None),
            Resource::Object(bucket, key) => (bucket, Some(key)),
        };
        let of_bucket = self.buckets.get(bucket).map(|rights| rights.decide(action, key));
        of_bucket.unwrap_or_default().or(self.names.decide(action, bucket))
    }

    fn allows_something_on(&self, bucket: &str) -> bool {
        self.buckets.get(bucket).is_some_and(|rights| rights.allows_something)
            || self.names.allows_something_on(bucket)
    }
}

/// The restriction of a statement to some requests. The default makes it apply to all.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
struct Restriction {
    only_if_absent: bool,
    source_ip: Vec<IpNetwork>,
}

impl Restriction {
    fn new(statement: &Statement, only_if_absent: bool) -> Self {
        let mut source_ip = statement.source_ip.clone();
        source_ip.sort_unstable();
        source_ip.dedup();
        Self { only_if_absent, source_ip }
    }
}

/// Returns the number of different `source_ip` lists in these policies.
#[must_use]
pub fn source_list_count<'p>(policies: impl Iterator<Item = &'p Policy>) -> usize {
    let statements = policies.flat_map(|policy| &policy.statements);
    let restricted = statements.filter(|statement| !statement.source_ip.is_empty());
    restricted.map(|statement| Restriction::new(statement, false)).collect::<BTreeSet<_>>().len()
}

/// The rights of an account. The default allows nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Rights {
    unrestricted: RuleSet,
    restricted: Vec<(Restriction, RuleSet)>,
}

impl Rights {
    /// Compiles these policies. Takes time in proportion to their size.
    #[must_use]
    pub fn compile<'p>(policies: impl IntoIterator<Item = &'p Policy>) -> Self {
        let mut unrestricted = RuleSetBuilder::default();
        let mut restricted = BTreeMap::<Restriction, RuleSetBuilder>::new();
        for statement in policies.into_iter().flat_map(|policy| &policy.statements) {
            let Statement { actions, only_if_absent, .. } = statement;
            // The restriction of writes does not restrict the other actions of the statement.
            let is_limited = |action: &Action| *only_if_absent && *action == Action::PutObject;
            let (limited, plain): (Vec<_>, Vec<_>) = actions.iter().copied().partition(is_limited);
            for (actions, only_if_absent) in [(limited, true), (plain, false)] {
                if actions.is_empty() {
                    continue;
                }
                let restriction = Restriction::new(statement, only_if_absent);
                let builder = if restriction == Restriction::default() {
                    &mut unrestricted
                } else {
                    restricted.entry(restriction).or_default()
                };
                builder.add(statement, &actions);
            }
        }
        let restricted = restricted.into_iter().map(|(restriction, rules)| (restriction, rules.finish()));
        Self { unrestricted: unrestricted.finish(), restricted: restricted.collect() }
    }

    /// Decides whether `action` may be done on `resource` by a client at this address. Where the address is not known,
    /// restricted denials apply and restricted allowances do not.
    #[must_use]
    pub fn decide(&self, action: Action, resource: Resource<'_>, client: Option<IpAddr>) -> Decision {
        let mut outcome = self.unrestricted.decide(action, resource);
        let mut allowed_if_absent = false;
        for (restriction, rules) in &self.restricted {
            // Most rules say nothing about the resource, so they are asked before the networks are compared.
            let Outcome { allowed, denied } = rules.decide(action, resource);
            let applies = |effect| applies_to(&restriction.source_ip, effect, client);
            outcome.denied |= denied && applies(Effect::Deny);
            if allowed && applies(Effect::Allow) {
                *if restriction.only_if_absent { &mut allowed_if_absent } else { &mut outcome.allowed } =
                    true;
            }
        }
        match outcome {
            Outcome { denied: true, .. } => Decision::DeniedExplicitly,
            Outcome { allowed: true, .. } => Decision::Allowed,
            _ if allowed_if_absent => Decision::AllowedIfAbsent,
            _ => Decision::DeniedImplicitly,
        }
    }

    /// Returns whether a statement allows a client at this address anything on the bucket or on objects in it. The list of
    /// buckets shows these buckets.
    #[must_use]
    pub fn allows_something_on(&self, bucket: &str, client: Option<IpAddr>) -> bool {
        self.unrestricted.allows_something_on(bucket)
            || self.restricted.iter().any(|(restriction, rules)| {
                rules.allows_something_on(bucket) && applies_to(&restriction.source_ip, Effect::Allow, client)
            })
    }
}

/// Collects rules while statements are added.
#[derive(Default)]
struct RuleSetBuilder {
    buckets: HashMap<Box<str>, BucketRightsBuilder>,
    names: PrefixRightsBuilder,
}

impl RuleSetBuilder {
    fn add(&mut self, statement: &Statement, actions: &[Action]) {
        let effect = statement.effect;
        for pattern in &statement.resources {
            let bucket = match pattern {
                ResourcePattern::Buckets(prefix) => {
                    self.names.add(effect, actions, prefix);
                    continue;
                }
                ResourcePattern::Bucket(bucket)
                | ResourcePattern::Object(bucket, _)
                | ResourcePattern::Objects(bucket, _) => bucket.as_str(),
            };
            // `entry` alone would copy the name every time.
            let builder = match self.buckets.get_mut(bucket) {
                Some(found) => found,
                None => self.buckets.entry(bucket.into()).or_default(),
            };
            builder.add(effect, actions, pattern);
        }
    }

    fn finish(self) -> RuleSet {
        let buckets = self.buckets.into_iter().map(|(name, builder)| (name, builder.finish())).collect();
        RuleSet { buckets, names: self.names.finish() }
    }
}

/// Collects the rights on one bucket while statements are added.
#[derive(Default)]
struct BucketRightsBuilder {
    rights: BucketRights,
    prefixes: PrefixRightsBuilder,
}

impl BucketRightsBuilder {
    fn add(&mut self, effect: Effect, actions: &[Action], pattern: &ResourcePattern) {
        self.rights.allows_something |= effect == Effect::Allow;
        match pattern {
            ResourcePattern::Bucket(_) => self.rights.bucket.add(effect, actions),
            ResourcePattern::Object(_, key) => {
                self.rights.keys.entry(key.as_str().into()).or_default().add(effect, actions);
            }
            ResourcePattern::Objects(_, prefix) => self.prefixes.add(effect, actions, prefix),
            ResourcePattern::Buckets(_) => unreachable!("a pattern of names is not about one bucket"),
        }
    }

    fn finish(self) -> BucketRights {
        BucketRights { prefixes: self.prefixes.finish(), ..self.rights }
    }
}
