//! Views for people who ask what an account may do.

use super::handle::{Directory, page};
use super::view::{AccountAccess, CredentialStatus, PolicyInfo};
use crate::id::{AccountId, PolicyId};
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
