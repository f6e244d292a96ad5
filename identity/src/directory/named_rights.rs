//! Rights of policies that are named: those of people, who have no account.
//!
//! The policies are looked up at each request, so a change is in force for the next one. Compiled rights are kept for as long
//! as their policies are the same.
//!
//! A name gives its policy only if exactly one policy has it. Otherwise there are no rights at all, because the policy that is
//! missing may be one that denies something. The policies of an account cannot be deleted, so accounts do not need this.

use super::limits::{NAMED_RESOURCES_CACHED_MAX, NAMED_RESOURCES_MAX, SOURCE_LISTS_PER_ACCOUNT_MAX};
use crate::id::PolicyId;
use crate::policy::{Policy, Rights, source_list_count};
use cairn_sync::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// The reason why named policies give no rights.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum UnusablePolicies {
    /// No policy has this name.
    Missing(String),
    /// Several policies have this name.
    Ambiguous(String),
    /// Together they have too many resources, or too many lists of addresses.
    TooLarge,
}

impl fmt::Display for UnusablePolicies {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(name) => write!(out, "there is no policy named {name:?}"),
            Self::Ambiguous(name) => write!(out, "several policies are named {name:?}"),
            Self::TooLarge => write!(
                out,
                "the policies have more than {NAMED_RESOURCES_MAX} resources or {SOURCE_LISTS_PER_ACCOUNT_MAX} lists of addresses"
            ),
        }
    }
}

impl std::error::Error for UnusablePolicies {}

pub(super) type Found = Vec<(PolicyId, Arc<Policy>)>;

/// Compiled rights, by the sorted ids of their policies.
#[derive(Default)]
pub(super) struct NamedRights(Mutex<Cached>);

#[derive(Default)]
struct Cached {
    entries: HashMap<Box<[PolicyId]>, (Found, Arc<Rights>)>,
    /// Resources in all entries.
    resources: usize,
}

impl NamedRights {
    /// Returns the rights of these policies, sorted by id. Compiles them if one is not the same as before.
    ///
    /// # Errors
    /// `TooLarge`.
    pub(super) fn rights_of(&self, found: Found) -> Result<Arc<Rights>, UnusablePolicies> {
        let ids: Box<[_]> = found.iter().map(|(id, _)| *id).collect();
        let is_same = |(cached, _): &(Found, _)| {
            cached.iter().zip(&found).all(|((_, cached), (_, policy))| Arc::ptr_eq(cached, policy))
        };
        if let Some((_, rights)) = self.0.lock().entries.get(&ids).filter(|entry| is_same(entry)) {
            return Ok(Arc::clone(rights));
        }
        let policies = || found.iter().map(|(_, policy)| &**policy);
        let resources = resources_of(&found);
        if resources > NAMED_RESOURCES_MAX || source_list_count(policies()) > SOURCE_LISTS_PER_ACCOUNT_MAX {
            return Err(UnusablePolicies::TooLarge);
        }
        // Without the lock: others wait for it on executors.
        let rights = Arc::new(Rights::compile(policies()));
        let mut cached = self.0.lock();
        if cached.resources + resources > NAMED_RESOURCES_CACHED_MAX {
            *cached = Cached::default();
        }
        cached.resources += resources;
        if let Some((replaced, _)) = cached.entries.insert(ids, (found, Arc::clone(&rights))) {
            cached.resources -= resources_of(&replaced);
        }
        Ok(rights)
    }
}

fn resources_of(found: &Found) -> usize {
    // An entry takes memory also if its policies name nothing.
    1 + found.iter().map(|(_, policy)| policy.pattern_count()).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::{Found, NamedRights, UnusablePolicies};
    use crate::directory::limits::{NAMED_RESOURCES_CACHED_MAX, NAMED_RESOURCES_MAX};
    use crate::id::PolicyId;
    use crate::policy::{Action, Policy, PolicyDraft, Resource, STATEMENT_RESOURCES_MAX, StatementDraft};
    use std::sync::Arc;

    fn policy(prefix: &str, resources: usize) -> Arc<Policy> {
        let resources: Vec<_> =
            (0..resources).map(|number| format!("bucket:photos/{prefix}{number}")).collect();
        let statement = |resources: &[String]| StatementDraft {
            effect: "allow".to_owned(),
            actions: vec!["s3:GetObject".to_owned()],
            resources: resources.to_vec(),
            only_if_absent: false,
            source_ip: None,
        };
        let statements = resources.chunks(STATEMENT_RESOURCES_MAX).map(statement).collect();
        let draft = PolicyDraft { name: "p".to_owned(), description: String::new(), statements };
        Arc::new(Policy::from_draft(&draft).expect("a policy"))
    }

    fn found(first: u8, policies: &[&Arc<Policy>]) -> Found {
        (first..).zip(policies).map(|(id, policy)| (PolicyId([id; 16]), Arc::clone(policy))).collect()
    }

    #[test]
    fn rights_are_compiled_again_when_a_policy_is_another() {
        let cache = NamedRights::default();
        let (old, new) = (policy("old", 1), policy("new", 1));
        let first = cache.rights_of(found(1, &[&old])).expect("rights");
        assert!(Arc::ptr_eq(&first, &cache.rights_of(found(1, &[&old])).expect("rights")));
        let second = cache.rights_of(found(1, &[&new])).expect("rights");
        let may = |key| second.decide(Action::GetObject, Resource::Object("photos", key), None).is_allowed();
        assert!(may("new0") && !may("old0"));
    }

    #[test]
    fn neither_the_policies_nor_the_cache_are_too_large() {
        let cache = NamedRights::default();
        let whole = policy("a", NAMED_RESOURCES_MAX - 1);
        let one = policy("b", 1);
        assert_eq!(cache.rights_of(found(1, &[&whole, &one])).err(), Some(UnusablePolicies::TooLarge));
        for id in 0..60 {
            cache.rights_of(found(id, &[&whole])).expect("it fits");
            cache.rights_of(found(id, &[&whole])).expect("it is cached");
            let cached = cache.0.lock();
            assert!(cached.resources <= NAMED_RESOURCES_CACHED_MAX && cached.entries.len() <= 10);
        }
    }
}
