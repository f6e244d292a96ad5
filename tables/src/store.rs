//! [`TableStore`]: the LMDB environment of a small store.
//!
//! # Writes
//! Every write goes through [`TableStore::write`], which decides what an error means:
//!
//! | error | this change | later changes |
//! |---|---|---|
//! | no space | refused | made as soon as there is space; both edges are logged once, the second when the headroom is back |
//! | a damaged record | refused | made, because the transaction was dropped |
//! | any other | refused | refused until the next start, because the contents of the device are unknown |

use crate::error::{StoreFailure, StoreOpenError};
use crate::schema::{Headroom, StoreSchema};
use cairn_lmdb::{Environment, EnvironmentOptions, Error, ReadTxn, Record, StoreIdentity, Table, WriteTxn};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// The use of disk space by a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Space {
    /// It adds records.
    Addition,
    /// It changes records.
    Change,
    /// It removes records.
    Removal,
}

impl Headroom {
    const fn needed(&self, space: Space) -> u64 {
        match space {
            Space::Addition => self.additions,
            Space::Change => self.changes,
            Space::Removal => self.removals,
        }
    }
}

/// The lack of space, as the log knows it.
///
/// On a full disk additions fail while removals succeed. So one success does not say that there is space again: the headroom
/// must be back as well.
#[derive(Default, Debug)]
struct SpaceEdges {
    is_lacking: AtomicBool,
}

impl SpaceEdges {
    /// A change found no space. Returns whether that is new.
    fn is_newly_lacking(&self) -> bool {
        !self.is_lacking.swap(true, Ordering::Relaxed)
    }

    /// A change succeeded. Returns whether there was no space before and now is.
    fn is_back(&self, has_headroom: impl FnOnce() -> bool) -> bool {
        self.is_lacking.load(Ordering::Relaxed)
            && has_headroom()
            && self.is_lacking.swap(false, Ordering::Relaxed)
    }
}

/// The environment of a small store. Only the store's writer thread may write.
pub struct TableStore {
    environment: Arc<Environment>,
    schema: &'static StoreSchema,
    folder: PathBuf,
    /// The tables that were opened, the identity table first.
    tables: Vec<Table>,
    space: SpaceEdges,
    /// The reason why nothing is written any more. Set once, after a failure.
    stopped: OnceLock<String>,
}

impl TableStore {
    /// Opens the environment of the object store with this id, or creates it if the marker file requests it. Blocks.
    ///
    /// # Errors
    /// [`StoreOpenError`]; nothing was changed.
    pub fn open(
        folder: &Path,
        store: [u8; 16],
        schema: &'static StoreSchema,
    ) -> Result<Self, StoreOpenError> {
        schema.headroom.assert_order();
        let options = EnvironmentOptions { map_bytes: schema.map_bytes, tables_max: schema.tables_max };
        let identity = StoreIdentity { table: schema.identity_table, store };
        let environment = Environment::open_for_store(folder, options, identity)
            .map_err(|error| StoreOpenError::of(schema, folder, error))?;
        let mut opened = Self {
            environment: Arc::new(environment),
            schema,
            folder: folder.to_owned(),
            tables: Vec::new(),
            space: SpaceEdges::default(),
            stopped: OnceLock::new(),
        };
        opened.table(schema.identity_table)?;
        Ok(opened)
    }

    /// Opens a table, or creates it if it does not exist. Blocks.
    ///
    /// # Errors
    /// [`StoreOpenError`]; nothing was changed.
    pub fn table(&mut self, name: &str) -> Result<Table, StoreOpenError> {
        let table = self.environment.table(name).map_err(|error| self.open_error(error))?;
        self.tables.push(table);
        Ok(table)
    }

    /// Opens a table that a later format version has added. If it does not exist, it is empty to all who read it, until
    /// [`Self::create`]. Blocks.
    ///
    /// # Errors
    /// [`StoreOpenError`]; nothing was changed.
    pub fn later_table(&mut self, name: &str) -> Result<Table, StoreOpenError> {
        let table = self.environment.table_if_present(name).map_err(|error| self.open_error(error))?;
        self.tables.push(table);
        Ok(table)
    }

    /// Creates the table of [`Self::later_table`], if it does not exist: before each change that writes to it, which panics
    /// otherwise. Whoever asks for the change has made sure that the format version of the store has the table. Blocks. For the
    /// writer thread only.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn create(&self, table: Table) -> Result<(), StoreFailure> {
        self.attempt(Space::Addition, || self.environment.create_table(table))
    }

    /// Reads the store at its opening. Compares the records of all tables with the totals first, so that no record is
    /// missing, unless the store is larger than the schema allows for that. Blocks for as long as reading all records takes.
    ///
    /// # Errors
    /// [`StoreOpenError`]; nothing was changed.
    pub fn load<T>(
        &self,
        load: impl FnOnce(&Loading<'_>) -> Result<T, LoadError>,
    ) -> Result<T, StoreOpenError> {
        let read = || {
            let is_compared = self.environment.used() <= self.schema.compared_bytes_max;
            if is_compared {
                // LMDB's map would bring single pages into memory, each after a wait for the device.
                self.environment.read_into_page_cache(|| true).map_err(Error::Io)?;
            }
            let loading = Loading { txn: self.environment.read()? };
            if is_compared && loading.txn.compute_totals(&self.tables)? != loading.txn.totals()? {
                return Err(LoadError::damaged("records are missing: they do not match the stored totals"));
            }
            load(&loading)
        };
        read().map_err(|error| match error {
            LoadError::Lmdb(error) => self.open_error(error),
            LoadError::Damaged(what) => StoreOpenError::damaged(self.schema, &self.folder, what),
        })
    }

    fn open_error(&self, error: Error) -> StoreOpenError {
        StoreOpenError::of(self.schema, &self.folder, error.into())
    }

    /// Returns the environment, for reads and compactions.
    #[must_use]
    pub const fn environment(&self) -> &Arc<Environment> {
        &self.environment
    }

    /// Writes one durable transaction. Blocks. For the writer thread only.
    ///
    /// # Errors
    /// [`StoreFailure`]; nothing was changed, except that after a failure of the device the contents of the store are unknown
    /// until the next start.
    pub fn write<T>(
        &self,
        space: Space,
        write: impl FnOnce(&mut WriteTxn<'_>) -> Result<T, Error>,
    ) -> Result<T, StoreFailure> {
        self.attempt(space, || {
            let mut txn = self.environment.write()?;
            let written = write(&mut txn)?;
            txn.commit()?;
            Ok(written)
        })
    }

    /// As [`Self::write`], for a body that begins and commits its own transaction.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn attempt<T>(
        &self,
        space: Space,
        body: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, StoreFailure> {
        self.check()?;
        self.judge(self.keep_headroom(space).and_then(|()| body()))
    }

    /// Restores the headroom while nobody waits, so that the next change finds written space. Blocks. For the writer thread
    /// only.
    pub fn restore_headroom(&self) {
        if self.check().is_ok() {
            // A lack of space is reported by the change that needs it.
            let _ = self.keep_headroom(Space::Removal);
        }
    }

    fn keep_headroom(&self, space: Space) -> Result<(), Error> {
        let headroom = &self.schema.headroom;
        if self.environment.headroom() >= headroom.low {
            return Ok(());
        }
        let extended = self.environment.extend(headroom.target);
        if self.environment.headroom() >= headroom.needed(space) {
            Ok(())
        } else {
            extended.and(Err(Error::Full))
        }
    }

    /// Returns whether anything can be written.
    ///
    /// # Errors
    /// [`StoreFailure::Failed`] with the reason.
    pub fn check(&self) -> Result<(), StoreFailure> {
        self.health().map_err(StoreFailure::Failed)
    }

    /// Returns whether anything can be written. A full disk is not a failure.
    ///
    /// # Errors
    /// The reason, for people.
    pub fn health(&self) -> Result<(), String> {
        self.stopped.get().map_or(Ok(()), |reason| Err(reason.clone()))
    }

    /// Logs a lack of space and a failure, and stops the store after one that leaves the contents of the device unknown.
    pub(crate) fn judge<T>(&self, written: Result<T, Error>) -> Result<T, StoreFailure> {
        let StoreSchema { name, without_space, after_failure, .. } = self.schema;
        match written {
            Ok(written) => {
                if self.space.is_back(|| self.environment.headroom() >= self.schema.headroom.low) {
                    tracing::info!(target: "service::tables", "there is space for {name} again");
                }
                Ok(written)
            }
            Err(Error::Full) => {
                if self.space.is_newly_lacking() {
                    tracing::error!(target: "service::tables", "no space is left for {name}: {without_space} until there is");
                }
                Err(StoreFailure::Full)
            }
            Err(error @ Error::Corrupt { .. }) => {
                tracing::error!(target: "service::tables", %error, "a record of {name} failed its check: the change is refused");
                Err(error.into())
            }
            Err(error) => {
                tracing::error!(target: "service::tables", %error, "{name} failed: {after_failure} until the service is started again");
                let _ = self
                    .stopped
                    .set(format!("{after_failure} after a failure: {error}; restart the service"));
                Err(error.into())
            }
        }
    }
}

/// The error of a store that could not be loaded.
#[derive(Debug)]
pub enum LoadError {
    /// An error of LMDB or the operating system.
    Lmdb(Error),
    /// A description of the damage.
    Damaged(String),
}

impl LoadError {
    /// Returns the error of a store that is damaged.
    pub fn damaged(what: impl Into<String>) -> Self {
        Self::Damaged(what.into())
    }
}

impl From<Error> for LoadError {
    fn from(error: Error) -> Self {
        Self::Lmdb(error)
    }
}

/// A store that is being loaded.
pub struct Loading<'s> {
    /// The state that is loaded.
    pub txn: ReadTxn<'s>,
}

impl Loading<'_> {
    /// Calls `load` for every record of a table. `load` returns `None` if the record is invalid.
    ///
    /// # Errors
    /// [`LoadError`]
    pub fn for_each_record(
        &self,
        table: Table,
        name: &str,
        mut load: impl FnMut(&[u8], &Record<'_>) -> Option<()>,
    ) -> Result<(), LoadError> {
        for item in self.txn.scan(table, &[])? {
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{SCHEMA, unmade_store};

    const STORE: [u8; 16] = [7; 16];

    fn open(folder: &Path) -> Result<(TableStore, Table), StoreOpenError> {
        let mut store = TableStore::open(folder, STORE, &SCHEMA)?;
        let table = store.table("things")?;
        Ok((store, table))
    }

    fn put(store: &TableStore, table: Table, key: &[u8]) -> Result<(), StoreFailure> {
        store.write(Space::Change, |txn| txn.put(table, key, 1, b"a body", &[]))
    }

    fn corrupt() -> Error {
        Error::Corrupt { key: "00".to_owned(), what: "a test" }
    }

    #[test]
    fn a_damaged_record_refuses_its_change_only() {
        let folder = unmade_store();
        let (store, table) = open(folder.path()).expect("opens");
        let refused = store.write(Space::Change, |txn| {
            txn.put(table, b"half", 1, b"done", &[])?;
            Err::<(), _>(corrupt())
        });
        assert!(matches!(refused, Err(StoreFailure::Failed(_))));
        assert_eq!(store.health(), Ok(()));
        put(&store, table, b"next").expect("later changes are made");
        let txn = store.environment().read().expect("reads");
        assert!(txn.get(table, b"half").expect("reads").is_none(), "the refused change left nothing");
    }

    /// Additions failed and removals succeeded in turn, and each turn was two lines in the log.
    #[test]
    fn a_success_without_headroom_is_not_the_end_of_a_full_disk() {
        let space = SpaceEdges::default();
        assert!(!space.is_back(|| true), "nothing was lacking");
        assert!(space.is_newly_lacking());
        for _ in 0..3 {
            assert!(!space.is_back(|| false));
            assert!(!space.is_newly_lacking());
        }
        assert!(space.is_back(|| true));
        assert!(!space.is_back(|| true), "each edge is told once");
        assert!(space.is_newly_lacking());
    }

    #[test]
    fn a_full_disk_stops_nothing() {
        let folder = unmade_store();
        let (store, table) = open(folder.path()).expect("opens");
        let refused = store.write(Space::Change, |_| Err::<(), _>(Error::Full));
        assert_eq!(refused, Err(StoreFailure::Full));
        assert!(
            store.space.is_lacking.load(Ordering::Relaxed),
            "the log has one line for all refused changes"
        );
        put(&store, table, b"a").expect("there is space");
        assert!(
            !store.space.is_lacking.load(Ordering::Relaxed),
            "the log has a line when there is space again"
        );
    }

    #[test]
    fn a_failed_device_stops_changes_until_the_next_start() {
        let folder = unmade_store();
        let (store, table) = open(folder.path()).expect("opens");
        put(&store, table, b"a").expect("written");
        let failed = store.write(Space::Change, |_| Err::<(), _>(Error::Io(std::io::Error::other("a test"))));
        assert!(failed.is_err());
        let reason = store.health().expect_err("stopped");
        assert!(
            reason.starts_with("nothing is changed after a failure")
                && reason.ends_with("restart the service"),
            "{reason}"
        );
        assert_eq!(put(&store, table, b"b"), Err(StoreFailure::Failed(reason)));
        drop(store);
        let (store, table) = open(folder.path()).expect("opens");
        put(&store, table, b"b").expect("written after a restart");
    }

    #[test]
    fn a_missing_record_is_found_at_the_opening() {
        let folder = unmade_store();
        let (store, table) = open(folder.path()).expect("opens");
        put(&store, table, b"a").expect("written");
        assert!(store.load(|_| Ok(())).is_ok());
        drop(store);
        // A store that does not open the table cannot see its record.
        let store = TableStore::open(folder.path(), STORE, &SCHEMA).expect("opens");
        let error = store.load(|_| Ok(())).expect_err("a record is missing").to_string();
        assert!(error.contains("records are missing") && error.contains("To start without tests"), "{error}");
    }

    /// A program of the version before refuses to compact a store with a table that it does not know.
    #[test]
    fn a_later_table_exists_from_its_first_change_on() {
        let folder = unmade_store();
        let open_later = || {
            let (mut store, _) = open(folder.path()).expect("opens");
            let later = store.later_table("later").expect("opens");
            store.load(|_| Ok(())).expect("what is absent is empty");
            (store, later)
        };
        drop(open_later());
        let (store, later) = open_later();
        assert_eq!(store.environment().read().expect("reads").count(later).expect("counts"), 0);
        for key in [b"a", b"b"] {
            store.create(later).expect("creates it once");
            put(&store, later, key).expect("written");
        }
        drop(store);
        let (store, later) = open_later();
        assert_eq!(store.environment().read().expect("reads").count(later).expect("counts"), 2);
    }

    #[test]
    fn a_record_of_an_unknown_form_is_named() {
        let folder = unmade_store();
        let (store, table) = open(folder.path()).expect("opens");
        put(&store, table, b"\x01\x02").expect("written");
        let loaded = store.load(|loading| loading.for_each_record(table, "things", |_, _| None));
        let error = loaded.expect_err("damaged").to_string();
        assert!(error.contains("record 0102 of table things has an unknown form"), "{error}");
    }

    #[test]
    fn removals_may_use_what_is_kept_for_others() {
        let headroom = &SCHEMA.headroom;
        let needed = [Space::Addition, Space::Change, Space::Removal].map(|space| headroom.needed(space));
        assert_eq!(needed, [headroom.additions, headroom.changes, headroom.removals]);
    }
}
