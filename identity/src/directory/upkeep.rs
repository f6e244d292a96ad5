//! What the directory's thread does by itself, about once a minute and at the end: uses are written down, and what expired a day
//! ago is removed.
//!
//! Neither matters for who may do what: expiry is judged by the clock with every request. A crash loses the uses of the last
//! minute. A day by the clock after an upkeep found it expired, so that a clock that jumped ahead, however far, and is put right within the
//! day has removed nothing.

use super::changes::Changes;
use super::error::DirectoryError;
use super::id::{AccountId, CredentialId, TokenId};
use super::limits::{EXPIRED_KEPT_MILLIS, EXPIRED_PER_ACCOUNT_MAX, EXPIRED_TOKENS_MAX, UPKEEP_CHANGES_MAX};
use super::record;
use super::state::{AccountState, CredentialState, is_expired};
use super::store::Write;
use cairn_model::Timestamp;
use std::collections::HashMap;

type Key = (AccountId, CredentialId);

/// The uses that the records hold, of the credentials that were used since the start.
pub(super) struct Upkeep {
    written: HashMap<Key, Timestamp>,
    /// When what has expired was first found so.
    expired_since: HashMap<Mortal, Timestamp>,
}

impl Upkeep {
    /// Begins with what the records hold.
    pub(super) fn new(changes: &Changes) -> Self {
        Self { written: uses(changes).collect(), expired_since: HashMap::new() }
    }

    /// Writes down the uses, and removes what has expired. A failure is logged where it happens, and what was not done is
    /// done next time.
    pub(super) fn run(&mut self, changes: &mut Changes) {
        changes.shared.follow_clock();
        let _ = self.write_uses(changes);
        let _ = self.remove_expired(changes);
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
        let used = |(id, credential): (&CredentialId, &CredentialState)| {
            Some(((*account, *id), credential.last_used.get()?))
        };
        owner.credentials.iter().filter_map(used)
    });
    of_account.collect::<Vec<_>>().into_iter()
}

impl Upkeep {
    /// Removes what has expired a day ago, and the oldest of what has if there is too much of it.
    fn remove_expired(&mut self, changes: &mut Changes) -> Result<(), DirectoryError> {
        let now = changes.shared.clock.now();
        let expired = expired(changes, now);
        // Forgets what is gone, and what a clock that was put right has made alive again.
        let before = std::mem::take(&mut self.expired_since);
        let since = |what: &Mortal| before.get(what).map_or(now, |since| now.min(*since));
        let found = || expired.iter().flat_map(|group| &group.found);
        self.expired_since = found().map(|what| (*what, since(what))).collect();
        let mut gone = (Vec::new(), Vec::new());
        for Group { found, kept_max } in &expired {
            let surplus = found.len().saturating_sub(*kept_max);
            for (number, what) in found.iter().enumerate() {
                let kept = now.0.saturating_sub(since(what).0);
                match what {
                    _ if number >= surplus && kept < EXPIRED_KEPT_MILLIS => {}
                    Mortal::Credential(account, id) => gone.0.push((*account, *id)),
                    Mortal::Token(id) => gone.1.push(*id),
                }
            }
        }
        for some in gone.0.chunks(UPKEEP_CHANGES_MAX) {
            changes.remove_credentials(some)?;
        }
        for some in gone.1.chunks(UPKEEP_CHANGES_MAX) {
            changes.remove_tokens(some)?;
        }
        Ok(())
    }
}

/// Something that can expire.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Mortal {
    Credential(AccountId, CredentialId),
    Token(TokenId),
}

/// What of one kind has expired, the longest dead first, and how many of it are kept.
struct Group {
    found: Vec<Mortal>,
    kept_max: usize,
}

/// The credentials of each account that have expired, and the tokens.
fn expired(changes: &Changes, now: Timestamp) -> Vec<Group> {
    let group = |mut found: Vec<(Option<Timestamp>, Mortal)>, kept_max| {
        found.retain(|(expires_at, _)| is_expired(*expires_at, now));
        found.sort_by_key(|(expires_at, _)| *expires_at);
        Group { found: found.into_iter().map(|(_, what)| what).collect(), kept_max }
    };
    let state = changes.shared.state();
    let of_account = |(account, owner): (&AccountId, &AccountState)| {
        let mortal = |(id, credential): (&CredentialId, &CredentialState)| {
            (credential.expires_at, Mortal::Credential(*account, *id))
        };
        group(owner.credentials.iter().map(mortal).collect(), EXPIRED_PER_ACCOUNT_MAX)
    };
    let tokens = state.tokens.iter().map(|(id, token)| (token.expires_at, Mortal::Token(*id)));
    let tokens = group(tokens.collect(), EXPIRED_TOKENS_MAX);
    let groups = state.accounts.iter().map(of_account).chain([tokens]);
    groups.filter(|group| !group.found.is_empty()).collect()
}

#[cfg(test)]
mod tests;
