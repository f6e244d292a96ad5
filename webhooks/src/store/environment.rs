//! The environment of the webhooks and its tables.

use super::delivery_record::{Waiting, pending_prefix, time_key};
use super::webhook_record::RECORD_VERSION;
use crate::error::WebhookOpenError;
use crate::id::{DeliveryId, ID_BYTES, WebhookId};
use crate::limits::{HEADROOM, HEADROOM_LOW, HEADROOM_MIN, HEADROOM_REMOVAL_MIN, MAP_BYTES};
use cairn_lmdb::{
    Environment, EnvironmentOpenError, EnvironmentOptions, Error, StoreIdentity, Table, WriteTxn,
};
use cairn_model::Timestamp;
use std::path::Path;
use std::sync::Arc;

const IDENTITY_TABLE: &str = "store";
/// The only key of the table `position`.
pub(super) const POSITION_KEY: &[u8] = b"fanout";

/// The environment and its tables.
pub(crate) struct WebhookStore {
    pub(crate) environment: Arc<Environment>,
    pub(super) webhooks: Table,
    pub(super) health: Table,
    pub(super) removals: Table,
    pub(super) position: Table,
    pub(super) pending: Table,
    pub(super) waiting: Table,
    pub(super) deliveries: Table,
    pub(super) succeeded: Table,
    pub(super) unsuccessful: Table,
}

impl WebhookStore {
    /// Opens the environment of a store, or creates it if the marker file requests it. Blocks.
    ///
    /// # Errors
    /// [`WebhookOpenError`]; nothing was changed.
    pub(crate) fn open(folder: &Path, store: [u8; 16]) -> Result<Self, WebhookOpenError> {
        let options = EnvironmentOptions { map_bytes: MAP_BYTES, tables_max: 16 };
        let environment =
            Environment::open_for_store(folder, options, StoreIdentity { table: IDENTITY_TABLE, store })
                .map_err(|error| open_error(folder, error))?;
        Self::with_tables(environment).map_err(|error| open_error(folder, error.into()))
    }

    fn with_tables(environment: Environment) -> Result<Self, Error> {
        Ok(Self {
            webhooks: environment.table("webhooks")?,
            health: environment.table("health")?,
            removals: environment.table("removals")?,
            position: environment.table("position")?,
            pending: environment.table("pending")?,
            waiting: environment.table("waiting")?,
            deliveries: environment.table("deliveries")?,
            succeeded: environment.table("succeeded")?,
            unsuccessful: environment.table("unsuccessful")?,
            environment: Arc::new(environment),
        })
    }

    /// Restores the written space after the last page of the data file. Fails if there is less than a batch may need.
    pub(super) fn keep_headroom(&self) -> Result<(), Error> {
        if self.environment.headroom() >= HEADROOM_LOW {
            return Ok(());
        }
        let extended = self.environment.extend(HEADROOM);
        if self.environment.headroom() >= HEADROOM_MIN { Ok(()) } else { extended }
    }

    /// As [`Self::keep_headroom`], for a transaction that removes: it may use what is kept for others.
    pub(super) fn keep_headroom_for_removal(&self) -> Result<(), Error> {
        let kept = self.keep_headroom();
        if self.environment.headroom() >= HEADROOM_REMOVAL_MIN { Ok(()) } else { kept }
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
        let txn = self.environment.read()?;
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

pub(super) fn open_error(folder: &Path, error: EnvironmentOpenError) -> WebhookOpenError {
    let path = folder.to_owned();
    match error {
        EnvironmentOpenError::Lmdb(Error::Io(error)) => WebhookOpenError::Io { path, error },
        other => WebhookOpenError::Damaged { path, what: other.to_string() },
    }
}
