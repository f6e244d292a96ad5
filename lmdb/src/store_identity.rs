//! Opens an environment that belongs to one store, or creates it.
//!
//! The store is created with the environment's folder and, in it, the empty file `unmade`. That file is removed once
//! the environment contains the store's id. From then on a missing data file is damage, and no new environment is
//! created: otherwise a restart would hide that the file was deleted.

use crate::environment::{Environment, EnvironmentOptions};
use crate::error::Error;
use crate::folder::flush_folder;
use crate::table::Table;
use std::fmt;
use std::io;
use std::path::Path;

/// Name of the marker file.
pub const UNMADE_MARKER: &str = "unmade";
const IDENTITY_KEY: &[u8] = b"identity";
const IDENTITY_VERSION: u8 = 1;

/// The store that an environment belongs to.
#[derive(Clone, Copy, Debug)]
pub struct StoreIdentity<'a> {
    /// The table that holds the store's id, under the key `identity`.
    pub table: &'a str,
    /// The store's id.
    pub store: [u8; 16],
}

/// The error of a store's environment that could not be opened. Nothing was changed.
#[derive(Debug)]
pub enum EnvironmentOpenError {
    /// The data file is missing or empty, and there is no marker that allows creating it.
    Missing,
    /// It contains no store id.
    NoStoreId,
    /// It contains the id of another store.
    ForeignStore,
    /// An error of LMDB or the operating system.
    Lmdb(Error),
}

impl fmt::Display for EnvironmentOpenError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => out.write_str("its data file is missing or empty"),
            Self::NoStoreId => out.write_str("it is empty: it contains no store id"),
            Self::ForeignStore => out.write_str("it belongs to another store"),
            Self::Lmdb(error) => error.fmt(out),
        }
    }
}

impl std::error::Error for EnvironmentOpenError {}

impl From<Error> for EnvironmentOpenError {
    fn from(error: Error) -> Self {
        Self::Lmdb(error)
    }
}

impl From<io::Error> for EnvironmentOpenError {
    fn from(error: io::Error) -> Self {
        Self::Lmdb(Error::Io(error))
    }
}

impl Environment {
    /// Opens the environment of a store, or creates it where the marker exists. Blocks.
    ///
    /// # Errors
    /// [`EnvironmentOpenError`]; nothing was changed.
    pub fn open_for_store(
        folder: &Path,
        options: EnvironmentOptions,
        owner: StoreIdentity<'_>,
    ) -> Result<Self, EnvironmentOpenError> {
        let marker = folder.join(UNMADE_MARKER);
        let is_unmade = marker.exists();
        let data = std::fs::metadata(folder.join("data.mdb")).map_or(0, |data| data.len());
        if data == 0 && !is_unmade {
            return Err(EnvironmentOpenError::Missing);
        }
        let open = || {
            let environment = Self::open(folder, options)?;
            let table = environment.table(owner.table)?;
            Ok((environment, table))
        };
        let (environment, table) = match open() {
            // A crash while it was created. The marker shows that nothing was ever stored in it.
            Err(Error::Truncated { .. } | Error::Lmdb(_)) if is_unmade => {
                remove_if_present(&folder.join("data.mdb"))?;
                open()?
            }
            opened => opened?,
        };
        match environment.read_owner(table)? {
            Some(found) if found == owner.store => {}
            None if is_unmade => environment.write_owner(table, owner.store)?,
            None => return Err(EnvironmentOpenError::NoStoreId),
            Some(_) => return Err(EnvironmentOpenError::ForeignStore),
        }
        if is_unmade {
            flush_folder(folder)?;
            remove_if_present(&marker)?;
            flush_folder(folder)?;
        }
        Ok(environment)
    }

    fn read_owner(&self, table: Table) -> Result<Option<[u8; 16]>, Error> {
        let txn = self.read()?;
        let record = txn.get(table, IDENTITY_KEY)?;
        // A body of another length belongs to no store; no store has the id 0.
        Ok(record.map(|record| record.body.try_into().unwrap_or_default()))
    }

    fn write_owner(&self, table: Table, store: [u8; 16]) -> Result<(), Error> {
        let mut txn = self.write()?;
        txn.put(table, IDENTITY_KEY, IDENTITY_VERSION, &store, &[])?;
        txn.commit()
    }
}

fn remove_if_present(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
