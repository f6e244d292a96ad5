//! Cache of compiled rights, shared by all accounts with the same policies.
//!
//! Rights are as large as the policies that they come from. Without the cache, a thousand accounts with one large policy
//! would take a thousand times its memory, and a start would compile it a thousand times.

use super::state::State;
use crate::id::PolicyId;
use crate::policy::{Policy, Rights};
use std::collections::HashMap;
use std::sync::{Arc, Weak};

/// Number of cached entries below which unused ones are not searched for.
const SWEEP_ENTRIES_MIN: usize = 64;

/// The rights in use, by the sorted ids of their policies. An entry stays valid until one of its policies is replaced: then
/// [`RightsCache::forget`] removes it. No id is used twice.
#[derive(Default)]
pub(super) struct RightsCache {
    by_policies: HashMap<Box<[PolicyId]>, Weak<Rights>>,
    /// Number of entries in use at the last sweep.
    in_use: usize,
}

impl RightsCache {
    /// Compiles the policies of all accounts and sets the rights of each.
    pub(super) fn compile_all(state: &mut State) -> Self {
        let mut cache = Self::default();
        let compiled: Vec<_> =
            state.accounts.values().map(|account| cache.rights_of(state, &account.policies)).collect();
        for (account, rights) in state.accounts.values_mut().zip(compiled) {
            account.rights = rights;
        }
        cache
    }

    /// Returns the rights of these policies. Policies that do not exist are ignored.
    pub(super) fn rights_of<'p>(
        &mut self,
        state: &State,
        policies: impl IntoIterator<Item = &'p PolicyId>,
    ) -> Arc<Rights> {
        self.rights_with(state, policies, None)
    }

    /// Does the same as [`Self::rights_of`], with another document for one of the policies. Its entries must have been
    /// forgotten.
    pub(super) fn rights_with<'p>(
        &mut self,
        state: &State,
        policies: impl IntoIterator<Item = &'p PolicyId>,
        replaced: Option<(PolicyId, &Policy)>,
    ) -> Arc<Rights> {
        let mut ids: Vec<_> = policies.into_iter().copied().collect();
        ids.sort_unstable();
        if let Some(rights) = self.by_policies.get(&*ids).and_then(Weak::upgrade) {
            return rights;
        }
        self.remove_unused();
        let document = |id: &PolicyId| match replaced {
            Some((replaced, policy)) if replaced == *id => Some(policy),
            _ => state.policies.get(id).map(|found| &*found.policy),
        };
        let rights = Arc::new(Rights::compile(ids.iter().filter_map(document)));
        self.by_policies.insert(ids.into(), Arc::downgrade(&rights));
        rights
    }

    /// Removes the entries with a policy.
    pub(super) fn forget(&mut self, policy: PolicyId) {
        self.by_policies.retain(|policies, _| policies.binary_search(&policy).is_err());
    }

    /// Removes unused entries. Sweeps only after the number of entries has doubled, so that the cost per entry is constant.
    fn remove_unused(&mut self) {
        if self.by_policies.len() >= SWEEP_ENTRIES_MIN.max(2 * self.in_use) {
            self.by_policies.retain(|_, rights| rights.strong_count() > 0);
            self.in_use = self.by_policies.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{RightsCache, SWEEP_ENTRIES_MIN};
    use crate::directory::state::State;
    use crate::id::PolicyId;
    use std::sync::Arc;

    #[test]
    fn a_policy_set_is_compiled_once_and_dropped_when_unused() {
        let (mut cache, state) = (RightsCache::default(), State::default());
        let id = |number: usize| PolicyId([u8::try_from(number % 256).expect("below 256"); 16]);
        let kept = cache.rights_of(&state, &[id(1), id(2)]);
        assert!(Arc::ptr_eq(&kept, &cache.rights_of(&state, &[id(2), id(1)])));
        assert!(!Arc::ptr_eq(&kept, &cache.rights_of(&state, &[id(1)])));
        for number in 0..256 {
            drop(cache.rights_of(&state, &[id(number)]));
            assert!(cache.by_policies.len() <= SWEEP_ENTRIES_MIN);
        }
        assert!(Arc::ptr_eq(&kept, &cache.rights_of(&state, &[id(1), id(2)])));
    }
}
