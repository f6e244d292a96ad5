//! An environment that belongs to one store: it holds the store's id, and is made only where a marker says that it is still to
//! be made.
//!
//! The folder comes with the store, and in it the empty file `unmade`. That file is removed once the environment names its
//! store. From then on a data file that is missing is damage and no new environment: who deletes it must not be able to hide
//! that by a restart.

use crate::environment::{Environment, EnvironmentOptions};
use crate::{Error, Table};
use std::fmt;
use std::fs::File;
use std::io;
use std::path::Path;

/// Name of the marker.
pub const UNMADE_MARKER: &str = "unmade";
const IDENTITY_KEY: &[u8] = b"identity";
const IDENTITY_VERSION: u8 = 1;

/// Whose an environment is.
#[derive(Clone, Copy, Debug)]
pub struct Owner<'a> {
    /// The table that holds the store's id, under the key `identity`.
    pub table: &'a str,
    /// The store's id.
    pub store: [u8; 16],
}

/// Why the environment of a store did not open. Nothing was changed.
#[derive(Debug)]
pub enum OwnedError {
    /// There is no data file, or an empty one, and nothing says that it is still to be made.
    Missing,
    /// It names no store.
    NamesNoStore,
    /// It names another store.
    OtherStore,
    /// What LMDB or the system answers.
    Lmdb(Error),
}

impl fmt::Display for OwnedError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => out.write_str("its data file is missing or empty"),
            Self::NamesNoStore => out.write_str("it is empty: it names no store"),
            Self::OtherStore => out.write_str("it belongs to another store"),
            Self::Lmdb(error) => error.fmt(out),
        }
    }
}

impl std::error::Error for OwnedError {}

impl From<Error> for OwnedError {
    fn from(error: Error) -> Self {
        Self::Lmdb(error)
    }
}

impl From<io::Error> for OwnedError {
    fn from(error: io::Error) -> Self {
        Self::Lmdb(Error::Io(error))
    }
}

impl Environment {
    /// Opens the environment of a store, or makes it where the marker says so. Blocks.
    ///
    /// # Errors
    /// [`OwnedError`]; nothing was changed.
    pub fn open_owned(
        folder: &Path,
        options: EnvironmentOptions,
        owner: Owner<'_>,
    ) -> Result<Self, OwnedError> {
        let marker = folder.join(UNMADE_MARKER);
        let is_unmade = marker.exists();
        let data = std::fs::metadata(folder.join("data.mdb")).map_or(0, |data| data.len());
        if data == 0 && !is_unmade {
            return Err(OwnedError::Missing);
        }
        let open = || {
            let environment = Self::open(folder, options)?;
            let table = environment.table(owner.table)?;
            Ok((environment, table))
        };
        let (environment, table) = match open() {
            // A crash while it was made: the marker says that nothing was ever recorded in it.
            Err(Error::Truncated { .. } | Error::Lmdb(_)) if is_unmade => {
                remove_if_there(&folder.join("data.mdb"))?;
                open()?
            }
            opened => opened?,
        };
        match environment.read_owner(table)? {
            Some(found) if found == owner.store => {}
            None if is_unmade => environment.write_owner(table, owner.store)?,
            None => return Err(OwnedError::NamesNoStore),
            Some(_) => return Err(OwnedError::OtherStore),
        }
        if is_unmade {
            let sync = || File::open(folder).and_then(|folder| folder.sync_all());
            sync().and_then(|()| remove_if_there(&marker)).and_then(|()| sync())?;
        }
        Ok(environment)
    }

    fn read_owner(&self, table: Table) -> Result<Option<[u8; 16]>, Error> {
        let txn = self.read()?;
        let record = txn.get(table, IDENTITY_KEY)?;
        // One of another length is no store's.
        Ok(record.map(|record| record.body.try_into().unwrap_or_default()))
    }

    fn write_owner(&self, table: Table, store: [u8; 16]) -> Result<(), Error> {
        let mut txn = self.write()?;
        txn.put(table, IDENTITY_KEY, IDENTITY_VERSION, &store, &[])?;
        txn.commit()
    }
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
