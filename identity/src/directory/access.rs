//! Explanations of what accounts may do, and the rights of people.

use super::handle::{Directory, page};
use super::named_rights::UnusablePolicies;
use super::view::{AccountAccess, CredentialStatus, PolicyInfo};
use crate::id::{AccountId, PolicyId};
use crate::policy::Rights;
use std::ops::Bound;
use std::sync::Arc;

impl Directory {
    /// Returns the rights of an account and the policies that they come from, as they are at one moment.
    #[must_use]
    pub fn account_access(&self, id: AccountId) -> Option<AccountAccess> {
        let state = self.shared.state();
        let account = state.accounts.get(&id)?;
        let policy = |id: &PolicyId| Some((*id, Arc::clone(&state.policies.get(id)?.policy)));
        Some(AccountAccess {
            id,
            name: Arc::clone(&account.name),
            enabled: account.enabled,
            rights: Arc::clone(&account.rights),
            policies: account.policies.iter().filter_map(policy).collect(),
        })
    }

    /// Returns the account of an access key, and whether the credential may be used. The state of the account is apart.
    #[must_use]
    pub fn credential_status(&self, access_key: &str) -> Option<(AccountId, CredentialStatus)> {
        let expiry_time = self.shared.expiry_time(self.shared.clock.now());
        let state = self.shared.state();
        let (account, _, _, credential) = state.find_access_key(access_key)?;
        let has_expired =
            credential.marked_expired || self.shared.has_expired(credential.expires_at, expiry_time);
        let status = match (credential.enabled, has_expired) {
            (false, _) => CredentialStatus::Disabled,
            (true, true) => CredentialStatus::Expired,
            (true, false) => CredentialStatus::Valid,
        };
        Some((account, status))
    }

    /// Returns the rights of the policies with these names, as they are now.
    ///
    /// # Errors
    /// [`UnusablePolicies`]. Then there are no rights.
    pub fn rights_of_named(&self, names: &[String]) -> Result<Arc<Rights>, UnusablePolicies> {
        let mut found = Vec::with_capacity(names.len());
        {
            let state = self.shared.state();
            for name in names {
                let mut named = state.policies_named(name);
                match (named.next(), named.next()) {
                    (Some((id, policy)), None) => found.push((id, Arc::clone(&policy.policy))),
                    (Some(_), Some(_)) => return Err(UnusablePolicies::Ambiguous(name.clone())),
                    (None, _) => return Err(UnusablePolicies::Missing(name.clone())),
                }
            }
        }
        found.sort_unstable_by_key(|(id, _)| *id);
        found.dedup_by_key(|(id, _)| *id);
        self.named_rights.rights_of(found)
    }

    /// Returns whether an account exists and is enabled.
    pub(super) fn is_enabled(&self, account: AccountId) -> bool {
        self.shared.state().accounts.get(&account).is_some_and(|account| account.enabled)
    }

    /// Returns a page of the policies of an account as [`Self::policies`] does; none if the account does not exist.
    #[must_use]
    pub fn policies_of(
        &self,
        account: AccountId,
        after: Option<PolicyId>,
        parts_max: usize,
    ) -> Vec<PolicyInfo> {
        let state = self.shared.state();
        let Some(account) = state.accounts.get(&account) else { return Vec::new() };
        let after = after.map_or(Bound::Unbounded, Bound::Excluded);
        let following = account.policies.range((after, Bound::Unbounded));
        let following = following.filter_map(|id| state.policies.get_key_value(id));
        let page = page(parts_max, following, |found| found.resources + found.attached_to.len());
        page.filter_map(|id| state.policy_view(id)).collect()
    }
}
