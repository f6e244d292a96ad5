//! What sets of policies amount to, compiled once for all accounts that have the same ones.
//!
//! Rights are as large as the policies that they come from. Each account with rights of its own, a thousand accounts with one
//! large policy took a thousand times its memory, and the start compiled it a thousand times.

use super::id::PolicyId;
use super::state::State;
use crate::policy::Rights;
use std::collections::HashMap;
use std::sync::{Arc, Weak};

/// Sets that are remembered before those that nobody has any more are looked for the first time.
const SETS_MIN: usize = 64;

/// The rights that accounts have, by the ids of their policies, in order. A policy never changes, and no id is given twice.
#[derive(Default)]
pub(super) struct SharedRights {
    by_policies: HashMap<Box<[PolicyId]>, Weak<Rights>>,
    /// So many sets were in use when it was last looked.
    in_use: usize,
}

impl SharedRights {
    /// What these policies of the directory amount to; those that are not there count for nothing.
    pub(super) fn of<'p>(
        &mut self,
        state: &State,
        policies: impl IntoIterator<Item = &'p PolicyId>,
    ) -> Arc<Rights> {
        let mut ids: Vec<_> = policies.into_iter().copied().collect();
        ids.sort_unstable();
        if let Some(rights) = self.by_policies.get(&*ids).and_then(Weak::upgrade) {
            return rights;
        }
        self.forget_unused();
        let found = ids.iter().filter_map(|id| state.policies.get(id));
        let rights = Arc::new(Rights::compile(found.map(|found| &*found.policy)));
        self.by_policies.insert(ids.into(), Arc::downgrade(&rights));
        rights
    }

    /// Looks only when there may be as many again as were in use, so that it costs each set little.
    fn forget_unused(&mut self) {
        if self.by_policies.len() >= SETS_MIN.max(2 * self.in_use) {
            self.by_policies.retain(|_, rights| rights.strong_count() > 0);
            self.in_use = self.by_policies.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{SETS_MIN, SharedRights};
    use crate::directory::id::PolicyId;
    use crate::directory::state::State;
    use std::sync::Arc;

    #[test]
    fn a_set_is_compiled_once_in_whatever_order_and_forgotten_with_its_last_account() {
        let (mut shared, state) = (SharedRights::default(), State::default());
        let id = |number: usize| PolicyId([u8::try_from(number % 256).unwrap_or_default(); 16]);
        let kept = shared.of(&state, &[id(1), id(2)]);
        assert!(Arc::ptr_eq(&kept, &shared.of(&state, &[id(2), id(1)])));
        assert!(!Arc::ptr_eq(&kept, &shared.of(&state, &[id(1)])));
        for number in 0..256 {
            drop(shared.of(&state, &[id(number)]));
            assert!(shared.by_policies.len() <= SETS_MIN);
        }
        assert!(Arc::ptr_eq(&kept, &shared.of(&state, &[id(1), id(2)])));
    }
}
