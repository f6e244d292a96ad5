//! The environment of the webhooks and its tables.

use super::delivery_record::{Waiting, pending_prefix, time_key};
use super::webhook_record::RECORD_VERSION;
use crate::id::{DeliveryId, ID_BYTES, WebhookId};
use crate::schema::SCHEMA;
use cairn_lmdb::{Error, ReadTxn, Table, WriteTxn};
use cairn_model::Timestamp;
use cairn_tables::{StoreOpenError, TableStore};
use std::path::Path;

/// The only key of the table `position`.
pub(super) const POSITION_KEY: &[u8] = b"fanout";

/// The environment and its tables.
pub(crate) struct WebhookStore {
    pub(crate) tables: TableStore,
    pub(super) webhooks: Table,
    pub(super) health: Table,
    pub(super) removals: Table,
    pub(super) position: Table,
    pub(super) pending: Table,
    pub(super) waiting: Table,
    pub(super) deliveries: Table,
    pub(super) succeeded: Table,
    pub(super) unsuccessful: Table,
    pub(super) lost: Table,
}

impl WebhookStore {
    /// Opens the environment of a store, or creates it if the marker file requests it. Blocks.
    ///
    /// # Errors
    /// [`StoreOpenError`]; nothing was changed.
    pub(crate) fn open(folder: &Path, store: [u8; 16]) -> Result<Self, StoreOpenError> {
        let mut tables = TableStore::open(folder, store, &SCHEMA)?;
        Ok(Self {
            webhooks: tables.table("webhooks")?,
            health: tables.table("health")?,
            removals: tables.table("removals")?,
            position: tables.table("position")?,
            pending: tables.table("pending")?,
            waiting: tables.table("waiting")?,
            deliveries: tables.table("deliveries")?,
            succeeded: tables.table("succeeded")?,
            unsuccessful: tables.table("unsuccessful")?,
            lost: tables.table("lost")?,
            tables,
        })
    }

    /// Begins to read.
    pub(crate) fn read(&self) -> Result<ReadTxn<'_>, Error> {
        self.tables.environment().read()
    }

    /// Returns the oldest waiting delivery of a webhook, as of a transaction.
    pub(super) fn first_waiting(
        &self,
        txn: &WriteTxn<'_>,
        webhook: WebhookId,
    ) -> Result<Option<Waiting>, Error> {
        let start = time_key(webhook, Timestamp(0), DeliveryId([0; ID_BYTES]));
        let found = readable(txn.first_at_or_after(self.waiting, &start))?;
        Ok(found
            .and_then(|(key, record)| Waiting::from_waiting(key, &record))
            .filter(|found| found.webhook == webhook))
    }

    /// Reads the waiting deliveries of a webhook that have begun or not, in the order of their due times. `visit` returns
    /// whether it wants more.
    pub(crate) fn for_each_pending(
        &self,
        webhook: WebhookId,
        begun: bool,
        mut visit: impl FnMut(Waiting) -> bool,
    ) -> Result<(), Error> {
        let prefix = pending_prefix(webhook, begun);
        let txn = self.read()?;
        for item in txn.scan(self.pending, &prefix)? {
            let Some((key, record)) = readable(item.map(Some))? else { continue };
            if !key.starts_with(&prefix) {
                return Ok(());
            }
            let Some(waiting) = Waiting::from_pending(key, &record) else { continue };
            if !visit(waiting) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Writes a record of the current version.
    pub(super) fn put(txn: &mut WriteTxn<'_>, table: Table, key: &[u8], body: &[u8]) -> Result<(), Error> {
        txn.put(table, key, RECORD_VERSION, body, &[])
    }
}

/// Returns `None` for a damaged record. Damage to one delivery must not stop the others.
pub(super) fn readable<T>(read: Result<Option<T>, Error>) -> Result<Option<T>, Error> {
    match read {
        Err(error @ Error::Corrupt { .. }) => {
            tracing::error!(target: "service::webhooks", %error, "a record of a delivery failed its check: it is left out");
            Ok(None)
        }
        read => read,
    }
}
