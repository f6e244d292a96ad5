//! The directory on disk: an LMDB environment in `<data-dir>/identity/`.
//!
//! `record.rs` defines its tables. As in the slices, written space is kept after the last page of the data file, so that a
//! change on a full disk is either durable or refused. Everything is read once, at the start, and compared with the
//! environment's totals: a missing record might be one that denies something.

use super::error::DirectoryOpenError;
use super::limits::{HEADROOM, HEADROOM_LOW, HEADROOM_MIN, MAP_BYTES};
use super::record::{self, AccountRecord, RECORD_VERSION};
use super::seal::{SealingKey, SecretOwner};
use super::state::{AccountState, PolicyState, State};
use cairn_lmdb::{
    Environment, EnvironmentOpenError, EnvironmentOptions, Error, ReadTxn, Record, StoreIdentity, Table,
};
use cairn_model::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// The environment and its tables.
pub(super) struct DirectoryStore {
    pub(super) environment: Arc<Environment>,
    directory: Table,
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

/// Why the records could not be loaded.
enum LoadError {
    Lmdb(Error),
    /// A description of the damage.
    Damaged(String),
}

impl From<Error> for LoadError {
    fn from(error: Error) -> Self {
        Self::Lmdb(error)
    }
}

const IDENTITY_TABLE: &str = "directory";

impl DirectoryStore {
    /// Opens the environment of a store, or creates it if the marker file requests it. Blocks.
    pub(super) fn open(folder: &Path, store: [u8; 16]) -> Result<Self, DirectoryOpenError> {
        let options = EnvironmentOptions { map_bytes: MAP_BYTES, tables_max: 8 };
        let environment =
            Environment::open_for_store(folder, options, StoreIdentity { table: IDENTITY_TABLE, store })
                .map_err(|error| open_error(folder, error))?;
        Self::with_tables(environment).map_err(|error| open_error(folder, error.into()))
    }

    fn with_tables(environment: Environment) -> Result<Self, Error> {
        Ok(Self {
            directory: environment.table(IDENTITY_TABLE)?,
            accounts: environment.table("accounts")?,
            credentials: environment.table("credentials")?,
            last_used: environment.table("last_used")?,
            policies: environment.table("policies")?,
            bindings: environment.table("bindings")?,
            tokens: environment.table("tokens")?,
            environment: Arc::new(environment),
        })
    }

    /// Writes a change in one durable transaction.
    ///
    /// # Errors
    /// After [`Error::Full`] nothing was changed. After any other error it is unknown whether the change is on disk.
    pub(super) fn commit(&self, writes: &[Write]) -> Result<(), Error> {
        self.keep_headroom()?;
        let mut txn = self.environment.write()?;
        for write in writes {
            match write {
                Write::Put(table, key, body) => txn.put(*table, key, RECORD_VERSION, body, &[])?,
                Write::Remove(table, key) => drop(txn.remove(*table, key)?),
            }
        }
        txn.commit()
    }

    /// Restores the written space after the last page of the data file. Fails if there is less than a change may need.
    pub(super) fn keep_headroom(&self) -> Result<(), Error> {
        if self.environment.headroom() >= HEADROOM_LOW {
            return Ok(());
        }
        let extended = self.environment.extend(HEADROOM);
        if self.environment.headroom() >= HEADROOM_MIN { Ok(()) } else { extended }
    }

    /// Loads all records and checks that every secret can be opened. Does not compile policies.
    pub(super) fn load(&self, folder: &Path, key: &SealingKey) -> Result<State, DirectoryOpenError> {
        self.read(key).map_err(|error| match error {
            LoadError::Lmdb(error) => open_error(folder, error.into()),
            LoadError::Damaged(what) => DirectoryOpenError::Damaged { path: folder.to_owned(), what },
        })
    }

    fn read(&self, key: &SealingKey) -> Result<State, LoadError> {
        let txn = self.environment.read()?;
        let tables = [
            self.directory,
            self.accounts,
            self.credentials,
            self.last_used,
            self.policies,
            self.bindings,
            self.tokens,
        ];
        if txn.compute_totals(&tables)? != txn.totals()? {
            return Err(LoadError::Damaged(
                "records are missing: they do not match the stored totals".to_owned(),
            ));
        }
        let mut state = State::default();
        self.read_accounts(&txn, &mut state)?;
        self.read_credentials(&txn, &mut state, key)?;
        self.read_policies(&txn, &mut state)?;
        for_each_record(&txn, self.tokens, "tokens", |key, record| {
            let (id, token) = (record::token_of(key)?, record::decode_token(record)?);
            state.add_token(id, token).then_some(())
        })?;
        Ok(state)
    }

    fn read_accounts(&self, txn: &ReadTxn<'_>, state: &mut State) -> Result<(), LoadError> {
        for_each_record(txn, self.accounts, "accounts", |key, record| {
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
        txn: &ReadTxn<'_>,
        state: &mut State,
        sealing: &SealingKey,
    ) -> Result<(), LoadError> {
        for_each_record(txn, self.credentials, "credentials", |key, record| {
            let (account, id) = record::credential_of(key)?;
            let credential = record::decode_credential(record)?;
            let owner = SecretOwner { account, credential: id, access_key: &credential.access_key };
            sealing.open(owner, &credential.sealed_secret)?;
            state.add_credential(account, id, credential).then_some(())
        })?;
        for_each_record(txn, self.last_used, "last_used", |key, record| {
            let (account, id) = record::credential_of(key)?;
            let credential = state.accounts.get(&account)?.credentials.get(&id)?;
            credential.last_used.set(record::decode_time(record)?);
            Some(())
        })
    }

    fn read_policies(&self, txn: &ReadTxn<'_>, state: &mut State) -> Result<(), LoadError> {
        for_each_record(txn, self.policies, "policies", |key, record| {
            let (id, (policy, created_at)) = (record::policy_of(key)?, record::decode_policy(record)?);
            state.add_policy(id, PolicyState::new(Arc::new(policy), created_at));
            Some(())
        })?;
        for_each_record(txn, self.bindings, "bindings", |key, record| {
            record::decode_time(record)?;
            let (account, policy) = record::binding_of(key)?;
            state.bind(account, policy).then_some(())
        })
    }
}

/// Calls `load` for every record of a table. `load` returns `None` if the record is invalid.
fn for_each_record(
    txn: &ReadTxn<'_>,
    table: Table,
    name: &str,
    mut load: impl FnMut(&[u8], &Record<'_>) -> Option<()>,
) -> Result<(), LoadError> {
    for item in txn.scan(table, &[])? {
        let (key, record) = item?;
        if load(key, &record).is_none() {
            let key = hex::encode(key);
            return Err(LoadError::Damaged(format!(
                "record {key} of table {name} has an unknown form or contradicts other records"
            )));
        }
    }
    Ok(())
}

fn open_error(folder: &Path, error: EnvironmentOpenError) -> DirectoryOpenError {
    let path = folder.to_owned();
    match error {
        EnvironmentOpenError::Lmdb(Error::Io(error)) => DirectoryOpenError::Io { path, error },
        other => DirectoryOpenError::Damaged { path, what: other.to_string() },
    }
}
