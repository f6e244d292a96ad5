//! The directory on disk: `<data-dir>/identity/`, an LMDB environment of its own. `record.rs` draws its tables.
//!
//! As in the slices, written space is kept behind the last page of the data file, so that a change on a full disk is either
//! durable or refused. Everything is read once, at the start, and compared with the environment's totals: a record that has
//! vanished might be the one that denies something.

use super::error::DirectoryOpenError;
use super::limits::{HEADROOM, HEADROOM_LOW, HEADROOM_MIN, MAP_BYTES};
use super::record::{self, AccountRecord, RECORD_VERSION};
use super::seal::{SealingKey, SecretOwner};
use super::state::{AccountState, PolicyState, State};
use cairn_lmdb::{Environment, EnvironmentOptions, Error, OwnedError, Owner, ReadTxn, Record, Table};
use cairn_model::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// The environment and its tables.
pub(super) struct DirectoryStore {
    environment: Environment,
    directory: Table,
    pub(super) accounts: Table,
    pub(super) credentials: Table,
    pub(super) last_used: Table,
    pub(super) policies: Table,
    pub(super) bindings: Table,
    pub(super) tokens: Table,
}

/// One record that a change writes or removes.
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

/// Why the records could not be read.
enum LoadError {
    Lmdb(Error),
    /// A sentence about the record that makes no sense.
    Damaged(String),
}

impl From<Error> for LoadError {
    fn from(error: Error) -> Self {
        Self::Lmdb(error)
    }
}

const OWNER_TABLE: &str = "directory";

impl DirectoryStore {
    /// Opens the environment of a store, or makes it where the marker says so. Blocks.
    pub(super) fn open(folder: &Path, store: [u8; 16]) -> Result<Self, DirectoryOpenError> {
        let options = EnvironmentOptions { map_bytes: MAP_BYTES, tables_max: 8 };
        let environment = Environment::open_owned(folder, options, Owner { table: OWNER_TABLE, store })
            .map_err(|error| open_error(folder, error))?;
        Self::with_tables(environment).map_err(|error| open_error(folder, error.into()))
    }

    fn with_tables(environment: Environment) -> Result<Self, Error> {
        Ok(Self {
            directory: environment.table(OWNER_TABLE)?,
            accounts: environment.table("accounts")?,
            credentials: environment.table("credentials")?,
            last_used: environment.table("last_used")?,
            policies: environment.table("policies")?,
            bindings: environment.table("bindings")?,
            tokens: environment.table("tokens")?,
            environment,
        })
    }

    /// Makes a change durable as a whole.
    ///
    /// # Errors
    /// [`Error::Full`]: nothing was changed. Others: whether the device holds the change is unknown.
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

    /// Restores the written space behind the data file's last page. `Err`: there is less than a change may need.
    pub(super) fn keep_headroom(&self) -> Result<(), Error> {
        if self.environment.headroom() >= HEADROOM_LOW {
            return Ok(());
        }
        let extended = self.environment.extend(HEADROOM);
        if self.environment.headroom() >= HEADROOM_MIN { Ok(()) } else { extended }
    }

    /// Reads everything but compiles nothing, and tries every secret.
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
        if txn.count(&tables)? != txn.totals(&self.environment)? {
            return Err(LoadError::Damaged(
                "records have vanished: they do not add up to the totals".to_owned(),
            ));
        }
        let mut state = State::default();
        self.read_accounts(&txn, &mut state)?;
        self.read_credentials(&txn, &mut state, key)?;
        self.read_policies(&txn, &mut state)?;
        each(&txn, self.tokens, "tokens", |key, record| {
            let (id, token) = (record::token_of(key)?, record::decode_token(record)?);
            state.add_token(id, token).then_some(())
        })?;
        Ok(state)
    }

    fn read_accounts(&self, txn: &ReadTxn<'_>, state: &mut State) -> Result<(), LoadError> {
        each(txn, self.accounts, "accounts", |key, record| {
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
        each(txn, self.credentials, "credentials", |key, record| {
            let (account, id) = record::credential_of(key)?;
            let credential = record::decode_credential(record)?;
            let owner = SecretOwner { account, credential: id, access_key: &credential.access_key };
            sealing.open(owner, &credential.sealed_secret)?;
            state.add_credential(account, id, credential).then_some(())
        })?;
        each(txn, self.last_used, "last_used", |key, record| {
            let (account, id) = record::credential_of(key)?;
            let credential = state.accounts.get(&account)?.credentials.get(&id)?;
            credential.last_used.set(record::decode_time(record)?);
            Some(())
        })
    }

    fn read_policies(&self, txn: &ReadTxn<'_>, state: &mut State) -> Result<(), LoadError> {
        each(txn, self.policies, "policies", |key, record| {
            let (id, (policy, created_at)) = (record::policy_of(key)?, record::decode_policy(record)?);
            state.add_policy(id, PolicyState::new(Arc::new(policy), created_at));
            Some(())
        })?;
        each(txn, self.bindings, "bindings", |key, record| {
            record::decode_time(record)?;
            let (account, policy) = record::binding_of(key)?;
            state.bind(account, policy).then_some(())
        })
    }
}

/// Hands every record of a table to `take`; `None` from it means that the record makes no sense.
fn each(
    txn: &ReadTxn<'_>,
    table: Table,
    name: &str,
    mut take: impl FnMut(&[u8], &Record<'_>) -> Option<()>,
) -> Result<(), LoadError> {
    for item in txn.scan(table, &[])? {
        let (key, record) = item?;
        if take(key, &record).is_none() {
            let key = hex::encode(key);
            return Err(LoadError::Damaged(format!(
                "record {key} of table {name} is of no known form, or does not fit the others"
            )));
        }
    }
    Ok(())
}

fn open_error(folder: &Path, error: OwnedError) -> DirectoryOpenError {
    let path = folder.to_owned();
    match error {
        OwnedError::Lmdb(Error::Io(error)) => DirectoryOpenError::Io { path, error },
        other => DirectoryOpenError::Damaged { path, what: other.to_string() },
    }
}
