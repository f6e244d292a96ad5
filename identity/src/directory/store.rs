//! The directory on disk: an LMDB environment in `<data-dir>/identity/`.
//!
//! `record.rs` defines its tables. As in the slices, written space is kept after the last page of the data file, so that a
//! change on a full disk is either durable or refused. Everything is read once, at the start, and compared with the
//! environment's totals: a missing record might be one that denies something.

use super::limits::{HEADROOM, MAP_BYTES};
use super::record::{self, AccountRecord, RECORD_VERSION};
use super::seal::{SecretKey, SecretOwner};
use super::state::{AccountState, PolicyState, State};
use cairn_lmdb::Table;
use cairn_model::Timestamp;
use cairn_tables::{LoadError, Loading, Space, StoreFailure, StoreOpenError, StoreSchema, TableStore};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// The directory of accounts.
pub(super) static SCHEMA: StoreSchema = StoreSchema {
    name: "the directory of accounts",
    fresh_start: "start without accounts, policies and tokens",
    without_space: "changes are refused",
    after_failure: "nothing is changed",
    identity_table: "directory",
    map_bytes: MAP_BYTES,
    tables_max: 8,
    // A missing record might be one that denies something.
    compared_bytes_max: u64::MAX,
    headroom: HEADROOM,
};

/// The environment and its tables.
pub(super) struct DirectoryStore {
    pub(super) tables: TableStore,
    pub(super) accounts: Table,
    pub(super) credentials: Table,
    pub(super) last_used: Table,
    pub(super) policies: Table,
    pub(super) bindings: Table,
    pub(super) tokens: Table,
}

/// A record that a change writes or deletes.
pub(super) enum Write {
    Put(Table, Vec<u8>, Vec<u8>),
    Remove(Table, Vec<u8>),
}

impl Write {
    pub(super) fn put(table: Table, key: &[u8], body: impl Into<Vec<u8>>) -> Self {
        Self::Put(table, key.to_vec(), body.into())
    }

    pub(super) fn remove(table: Table, key: &[u8]) -> Self {
        Self::Remove(table, key.to_vec())
    }
}

impl DirectoryStore {
    /// Opens the environment of a store, or creates it if the marker file requests it. Blocks.
    pub(super) fn open(folder: &Path, store: [u8; 16]) -> Result<Self, StoreOpenError> {
        let mut tables = TableStore::open(folder, store, &SCHEMA)?;
        Ok(Self {
            accounts: tables.table("accounts")?,
            credentials: tables.table("credentials")?,
            last_used: tables.table("last_used")?,
            policies: tables.table("policies")?,
            bindings: tables.table("bindings")?,
            tokens: tables.table("tokens")?,
            tables,
        })
    }

    /// Writes a change in one durable transaction.
    pub(super) fn commit(&self, writes: &[Write]) -> Result<(), StoreFailure> {
        self.tables.write(Space::Change, |txn| {
            for write in writes {
                match write {
                    Write::Put(table, key, body) => txn.put(*table, key, RECORD_VERSION, body, &[])?,
                    Write::Remove(table, key) => drop(txn.remove(*table, key)?),
                }
            }
            Ok(())
        })
    }

    /// Loads all records and checks that every secret can be opened. Does not compile policies.
    pub(super) fn load(&self, key: &SecretKey) -> Result<State, StoreOpenError> {
        self.tables.load(|loading| {
            let mut state = State::default();
            self.read_accounts(loading, &mut state)?;
            self.read_credentials(loading, &mut state, key)?;
            self.read_policies(loading, &mut state)?;
            loading.for_each_record(self.tokens, "tokens", |key, record| {
                let (id, token) = (record::token_of(key)?, record::decode_token(record)?);
                state.add_token(id, token).then_some(())
            })?;
            Ok(state)
        })
    }

    fn read_accounts(&self, loading: &Loading<'_>, state: &mut State) -> Result<(), LoadError> {
        loading.for_each_record(self.accounts, "accounts", |key, record| {
            let (id, read) = (record::account_of(key)?, AccountRecord::decode(record)?);
            let account = AccountState {
                name: read.name.into(),
                description: read.description,
                enabled: read.enabled,
                created_at: Timestamp(read.created_at),
                credentials: BTreeMap::new(),
                policies: BTreeSet::new(),
                rights: Arc::default(),
            };
            state.add_account(id, account).then_some(())
        })
    }

    fn read_credentials(
        &self,
        loading: &Loading<'_>,
        state: &mut State,
        sealing: &SecretKey,
    ) -> Result<(), LoadError> {
        loading.for_each_record(self.credentials, "credentials", |key, record| {
            let (account, id) = record::credential_of(key)?;
            let credential = record::decode_credential(record)?;
            let owner = SecretOwner { account, credential: id, access_key: &credential.access_key };
            sealing.open(owner, &credential.sealed_secret)?;
            state.add_credential(account, id, credential).then_some(())
        })?;
        loading.for_each_record(self.last_used, "last_used", |key, record| {
            let (account, id) = record::credential_of(key)?;
            let credential = state.accounts.get(&account)?.credentials.get(&id)?;
            credential.last_used.set(record::decode_time(record)?);
            Some(())
        })
    }

    fn read_policies(&self, loading: &Loading<'_>, state: &mut State) -> Result<(), LoadError> {
        loading.for_each_record(self.policies, "policies", |key, record| {
            let (id, (policy, created_at)) = (record::policy_of(key)?, record::decode_policy(record)?);
            state.add_policy(id, PolicyState::new(Arc::new(policy), created_at));
            Some(())
        })?;
        loading.for_each_record(self.bindings, "bindings", |key, record| {
            record::decode_time(record)?;
            let (account, policy) = record::binding_of(key)?;
            state.bind(account, policy).then_some(())
        })
    }
}
