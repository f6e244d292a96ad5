//! The tables of the links.

use super::record::RECORD_VERSION;
use crate::schema::SCHEMA;
use crate::types::link::LinkKind;
use cairn_lmdb::{Error, ReadTxn, Table, WriteTxn};
use cairn_tables::{LoadError, StoreOpenError, TableStore};
use std::path::Path;

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
    pub(super) tables: TableStore,
    pub(super) tokens: Table,
    shares: LinkTables,
    embeds: LinkTables,
}

impl LinkStore {
    /// Opens the environment of a store, or creates it if the marker file requests it. Blocks.
    pub(super) fn open(folder: &Path, store: [u8; 16]) -> Result<Self, StoreOpenError> {
        let mut tables = TableStore::open(folder, store, &SCHEMA)?;
        let mut of_kind = |kind: LinkKind| {
            let mut table = |name: &str| tables.table(&format!("{}_{name}", kind.name()));
            Ok::<_, StoreOpenError>(LinkTables {
                links: table("links")?,
                usage: table("usage")?,
                by_object: table("by_object")?,
                by_bucket: table("by_bucket")?,
            })
        };
        let (shares, embeds) = (of_kind(LinkKind::Share)?, of_kind(LinkKind::Embed)?);
        Ok(Self { tokens: tables.table("tokens")?, tables, shares, embeds })
    }

    /// Returns the tables of a kind.
    pub(super) const fn of(&self, kind: LinkKind) -> LinkTables {
        match kind {
            LinkKind::Share => self.shares,
            LinkKind::Embed => self.embeds,
        }
    }

    /// Begins to read.
    pub(super) fn read(&self) -> Result<ReadTxn<'_>, Error> {
        self.tables.environment().read()
    }

    /// Counts the links of each kind. Blocks.
    pub(super) fn load(&self) -> Result<[u64; LinkKind::ALL.len()], StoreOpenError> {
        self.tables.load(|loading| {
            let count = |kind: LinkKind| {
                let mut keys = loading.txn.keys(self.of(kind).links, &[])?;
                keys.try_fold(0, |count, key| Ok::<_, LoadError>(key.map(|_| count + 1)?))
            };
            let [shares, embeds] = LinkKind::ALL.map(count);
            Ok([shares?, embeds?])
        })
    }

    /// Writes a record other than that of a link.
    pub(super) fn put(txn: &mut WriteTxn<'_>, table: Table, key: &[u8], body: &[u8]) -> Result<(), Error> {
        txn.put(table, key, RECORD_VERSION, body, &[])
    }
}
