//! What the directory's thread does by itself, about once a minute and at the end: uses are written down, and what has expired
//! is removed.
//!
//! Neither matters for who may do what: expiry is judged by the clock with every request. A crash loses the uses of the last
//! minute.

use super::changes::Changes;
use super::error::DirectoryError;
use super::id::{AccountId, CredentialId, TokenId};
use super::limits::UPKEEP_CHANGES_MAX;
use super::record;
use super::state::is_expired;
use super::store::Write;
use cairn_model::Timestamp;
use std::collections::HashMap;

type Key = (AccountId, CredentialId);

/// The uses that the records hold, of the credentials that were used since the start.
pub(super) struct Upkeep {
    written: HashMap<Key, Timestamp>,
}

impl Upkeep {
    /// Begins with what the records hold.
    pub(super) fn new(changes: &Changes) -> Self {
        Self { written: uses(changes).collect::<Vec<_>>().into_iter().collect() }
    }

    /// Writes down the uses, and removes what has expired. A failure is logged where it happens, and what was not done is
    /// done next time.
    pub(super) fn run(&mut self, changes: &mut Changes) {
        let _ = self.write_uses(changes);
        let _ = remove_expired(changes);
    }

    fn write_uses(&mut self, changes: &mut Changes) -> Result<(), DirectoryError> {
        let new: Vec<_> = uses(changes).filter(|(key, used)| self.written.get(key) != Some(used)).collect();
        for some in new.chunks(UPKEEP_CHANGES_MAX) {
            let table = changes.shared.store.last_used;
            let put = |((account, id), used): &(Key, Timestamp)| {
                Write::put(table, &record::credential_key(*account, *id), record::encode_time(*used))
            };
            let writes: Vec<_> = some.iter().map(put).collect();
            changes.commit(&writes)?;
            self.written.extend(some.iter().copied());
        }
        // Those of credentials that are gone.
        let state = changes.shared.state();
        let is_there = |(account, id): &Key| {
            state.accounts.get(account).is_some_and(|account| account.credentials.contains_key(id))
        };
        self.written.retain(|key, _| is_there(key));
        Ok(())
    }
}

/// The last use of every credential that was ever used.
fn uses(changes: &Changes) -> impl Iterator<Item = (Key, Timestamp)> + use<> {
    let state = changes.shared.state();
    let of_account = state.accounts.iter().flat_map(|(account, owner)| {
        let used = |(id, credential): (&CredentialId, &super::state::CredentialState)| {
            Some(((*account, *id), credential.last_used.get()?))
        };
        owner.credentials.iter().filter_map(used)
    });
    of_account.collect::<Vec<_>>().into_iter()
}

fn remove_expired(changes: &mut Changes) -> Result<(), DirectoryError> {
    let now = changes.shared.clock.now();
    let (credentials, tokens): (Vec<Key>, Vec<TokenId>) = {
        let state = changes.shared.state();
        let credentials = state.accounts.iter().flat_map(|(account, owner)| {
            let expired = owner.credentials.iter().filter(|(_, found)| is_expired(found.expires_at, now));
            expired.map(|(id, _)| (*account, *id))
        });
        let tokens = state.tokens.iter().filter(|(_, token)| is_expired(token.expires_at, now));
        (credentials.collect(), tokens.map(|(id, _)| *id).collect())
    };
    for some in credentials.chunks(UPKEEP_CHANGES_MAX) {
        changes.remove_credentials(some)?;
    }
    for some in tokens.chunks(UPKEEP_CHANGES_MAX) {
        changes.remove_tokens(some)?;
    }
    Ok(())
}
