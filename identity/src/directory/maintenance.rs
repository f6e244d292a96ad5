//! Periodic maintenance: writes last uses to disk and deletes expired entries.
//!
//! The directory's thread runs it about once a minute and before it ends. Access never depends on it, because every request
//! compares expiry with the clock. A crash loses the last uses of the last minute. Expired entries are deleted one day after
//! they were first seen expired, so a clock jump that is corrected within a day deletes nothing.

use super::changes::Changes;
use super::error::DirectoryError;
use super::limits::{
    EXPIRED_KEPT_MILLIS, EXPIRED_PER_ACCOUNT_MAX, EXPIRED_TOKENS_MAX, MAINTENANCE_CHANGES_MAX,
};
use super::record;
use super::state::{AccountState, CredentialState, is_expired};
use super::store::Write;
use crate::id::{AccountId, CredentialId, TokenId};
use cairn_model::Timestamp;
use std::collections::HashMap;

type CredentialKey = (AccountId, CredentialId);

/// The state of the maintenance between its runs.
pub(super) struct Maintenance {
    /// The last uses on disk.
    written_uses: HashMap<CredentialKey, Timestamp>,
    /// The times when expired entries were first seen expired.
    expired_since: HashMap<Entry, Timestamp>,
}

impl Maintenance {
    /// Starts from the last uses that were loaded from disk.
    pub(super) fn new(changes: &Changes) -> Self {
        Self { written_uses: last_uses(changes).collect(), expired_since: HashMap::new() }
    }

    /// Writes last uses and deletes expired entries. Failures are logged where they occur; the next run tries again.
    pub(super) fn run(&mut self, changes: &mut Changes) {
        changes.shared.follow_clock();
        let _ = self.write_uses(changes);
        let _ = self.remove_expired(changes);
    }

    fn write_uses(&mut self, changes: &mut Changes) -> Result<(), DirectoryError> {
        let is_new = |(key, used): &(CredentialKey, Timestamp)| self.written_uses.get(key) != Some(used);
        let new_uses: Vec<_> = last_uses(changes).filter(is_new).collect();
        for chunk in new_uses.chunks(MAINTENANCE_CHANGES_MAX) {
            let table = changes.shared.store.last_used;
            let put = |((account, id), used): &(CredentialKey, Timestamp)| {
                Write::put(table, &record::credential_key(*account, *id), record::encode_time(*used))
            };
            let writes: Vec<_> = chunk.iter().map(put).collect();
            changes.commit(&writes)?;
            self.written_uses.extend(chunk.iter().copied());
        }
        // Forget deleted credentials.
        let state = changes.shared.state();
        let exists = |(account, id): &CredentialKey| {
            state.accounts.get(account).is_some_and(|account| account.credentials.contains_key(id))
        };
        self.written_uses.retain(|key, _| exists(key));
        Ok(())
    }

    /// Deletes entries that have been expired for a day, and the oldest of a group that has too many.
    fn remove_expired(&mut self, changes: &mut Changes) -> Result<(), DirectoryError> {
        let now = changes.shared.clock.now();
        let groups = expired_groups(changes, now);
        // Forgets deleted entries, and entries that a corrected clock has made valid again.
        let before = std::mem::take(&mut self.expired_since);
        let since = |entry: &Entry| before.get(entry).map_or(now, |since| now.min(*since));
        let entries = || groups.iter().flat_map(|group| &group.entries);
        self.expired_since = entries().map(|entry| (*entry, since(entry))).collect();
        let (mut credentials, mut tokens) = (Vec::new(), Vec::new());
        for ExpiredGroup { entries, kept_max } in &groups {
            let surplus = entries.len().saturating_sub(*kept_max);
            for (index, entry) in entries.iter().enumerate() {
                let kept_millis = now.0.saturating_sub(since(entry).0);
                match entry {
                    _ if index >= surplus && kept_millis < EXPIRED_KEPT_MILLIS => {}
                    Entry::Credential(account, id) => credentials.push((*account, *id)),
                    Entry::Token(id) => tokens.push(*id),
                }
            }
        }
        for chunk in credentials.chunks(MAINTENANCE_CHANGES_MAX) {
            changes.remove_credentials(chunk)?;
        }
        for chunk in tokens.chunks(MAINTENANCE_CHANGES_MAX) {
            changes.remove_tokens(chunk)?;
        }
        Ok(())
    }
}

/// Returns the last use of every credential that has been used.
fn last_uses(changes: &Changes) -> impl Iterator<Item = (CredentialKey, Timestamp)> + use<> {
    let state = changes.shared.state();
    let uses_of_account = state.accounts.iter().flat_map(|(account, owner)| {
        let last_use = |(id, credential): (&CredentialId, &CredentialState)| {
            Some(((*account, *id), credential.last_used.get()?))
        };
        owner.credentials.iter().filter_map(last_use)
    });
    uses_of_account.collect::<Vec<_>>().into_iter()
}

/// A credential or token that can expire.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Entry {
    Credential(AccountId, CredentialId),
    Token(TokenId),
}

/// The expired credentials of one account, or all expired tokens.
struct ExpiredGroup {
    /// Those that expired first come first.
    entries: Vec<Entry>,
    /// The number of them that are kept.
    kept_max: usize,
}

/// Returns the expired credentials of each account and the expired tokens.
fn expired_groups(changes: &Changes, now: Timestamp) -> Vec<ExpiredGroup> {
    let group = |mut entries: Vec<(Option<Timestamp>, Entry)>, kept_max| {
        entries.retain(|(expires_at, _)| is_expired(*expires_at, now));
        entries.sort_by_key(|(expires_at, _)| *expires_at);
        ExpiredGroup { entries: entries.into_iter().map(|(_, entry)| entry).collect(), kept_max }
    };
    let state = changes.shared.state();
    let group_of_account = |(account, owner): (&AccountId, &AccountState)| {
        let entry = |(id, credential): (&CredentialId, &CredentialState)| {
            (credential.expires_at, Entry::Credential(*account, *id))
        };
        group(owner.credentials.iter().map(entry).collect(), EXPIRED_PER_ACCOUNT_MAX)
    };
    let tokens = state.tokens.iter().map(|(id, token)| (token.expires_at, Entry::Token(*id)));
    let tokens = group(tokens.collect(), EXPIRED_TOKENS_MAX);
    let groups = state.accounts.iter().map(group_of_account).chain([tokens]);
    groups.filter(|group| !group.entries.is_empty()).collect()
}

#[cfg(test)]
mod tests;
