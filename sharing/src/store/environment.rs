//! The environment of the links and its tables.

use super::record::RECORD_VERSION;
use crate::error::SharingOpenError;
use crate::limits::{HEADROOM, HEADROOM_LOW, HEADROOM_MIN, HEADROOM_NEW_MIN, MAP_BYTES};
use crate::types::link::LinkKind;
use cairn_lmdb::{
    Environment, EnvironmentOpenError, EnvironmentOptions, Error, StoreIdentity, Table, WriteTxn,
};
use std::path::Path;
use std::sync::Arc;

const IDENTITY_TABLE: &str = "store";

/// The tables of one kind of links.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinkTables {
    pub(super) links: Table,
    pub(super) usage: Table,
    pub(super) by_object: Table,
    pub(super) by_bucket: Table,
}

/// The environment and its tables.
pub(crate) struct LinkStore {
    pub(super) environment: Arc<Environment>,
    pub(super) tokens: Table,
    identity: Table,
    shares: LinkTables,
    embeds: LinkTables,
}

impl LinkStore {
    /// Opens the environment of a store, or creates it if the marker file requests it. Blocks.
    pub(super) fn open(folder: &Path, store: [u8; 16]) -> Result<Self, SharingOpenError> {
        let options = EnvironmentOptions { map_bytes: MAP_BYTES, tables_max: 16 };
        let environment =
            Environment::open_for_store(folder, options, StoreIdentity { table: IDENTITY_TABLE, store })
                .map_err(|error| open_error(folder, error))?;
        Self::with_tables(environment).map_err(|error| open_error(folder, error.into()))
    }

    fn with_tables(environment: Environment) -> Result<Self, Error> {
        let tables = |kind: LinkKind| {
            let table = |name: &str| environment.table(&format!("{}_{name}", kind.name()));
            Ok::<_, Error>(LinkTables {
                links: table("links")?,
                usage: table("usage")?,
                by_object: table("by_object")?,
                by_bucket: table("by_bucket")?,
            })
        };
        Ok(Self {
            identity: environment.table(IDENTITY_TABLE)?,
            tokens: environment.table("tokens")?,
            shares: tables(LinkKind::Share)?,
            embeds: tables(LinkKind::Embed)?,
            environment: Arc::new(environment),
        })
    }

    /// Returns the tables of a kind.
    pub(super) const fn of(&self, kind: LinkKind) -> LinkTables {
        match kind {
            LinkKind::Share => self.shares,
            LinkKind::Embed => self.embeds,
        }
    }

    /// Returns every table, for the totals of the environment.
    pub(super) fn all_tables(&self) -> Vec<Table> {
        let of_kind = |tables: LinkTables| [tables.links, tables.usage, tables.by_object, tables.by_bucket];
        let links = LinkKind::ALL.into_iter().flat_map(|kind| of_kind(self.of(kind)));
        [self.identity, self.tokens].into_iter().chain(links).collect()
    }

    /// Restores the written space after the last page of the data file. Fails if there is less than a change may need.
    pub(super) fn keep_headroom(&self) -> Result<(), Error> {
        if self.environment.headroom() >= HEADROOM_LOW {
            return Ok(());
        }
        let extended = self.environment.extend(HEADROOM);
        if self.environment.headroom() >= HEADROOM_MIN { Ok(()) } else { extended }
    }

    /// As [`Self::keep_headroom`]. Fails also if there is only what revocations and deletions may need.
    pub(super) fn keep_headroom_for_new(&self) -> Result<(), Error> {
        self.keep_headroom()?;
        if self.environment.headroom() >= HEADROOM_NEW_MIN { Ok(()) } else { Err(Error::Full) }
    }

    /// Writes a record of the current version.
    pub(super) fn put(txn: &mut WriteTxn<'_>, table: Table, key: &[u8], body: &[u8]) -> Result<(), Error> {
        txn.put(table, key, RECORD_VERSION, body, &[])
    }
}

pub(super) fn open_error(folder: &Path, error: EnvironmentOpenError) -> SharingOpenError {
    let path = folder.to_owned();
    match error {
        EnvironmentOpenError::Lmdb(Error::Io(error)) => SharingOpenError::Io { path, error },
        other => SharingOpenError::Damaged { path, what: other.to_string() },
    }
}
