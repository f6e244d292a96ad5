//! The trail on disk: `<data-dir>/audit/`, an LMDB environment of its own.
//!
//! ```text
//! table     key               value, version 1
//! events    id (16)           record.rs
//! audit     identity          16 bytes store id
//! ```
//! The folder comes with the store; `lmdb/src/owned.rs` says when the trail is made and when a missing one is damage: who
//! deletes the trail must not be able to hide it by a restart.
//!
//! As in the slices, written space is kept behind the last page of the data file, so that a record on a full disk is
//! either durable or refused, and nothing is half-written.

use super::error::AuditOpenError;
use super::id::{AuditId, AuditIds};
use super::limits::{
    HEADROOM, HEADROOM_LOW, HEADROOM_MIN, MAP_BYTES, PAGE_EXAMINED_MAX, READ_RECORDS_MAX, REMOVALS_BEYOND_MAX,
};
use super::query::{AuditPage, AuditQuery};
use super::record::{AuditEvent, AuditRecord, AuditResult, EVENT_VERSION};
use cairn_lmdb::{Environment, EnvironmentOptions, Error, OwnedError, Owner, Record, Table, WriteTxn};
use cairn_model::Timestamp;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Less than every id.
const BEFORE_ALL: &[u8] = &[0];
/// Greater than every id, for a version 7 has no such bits.
const BEHIND_ALL: &[u8] = &[0xFF; 16];

/// What is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retention {
    /// Events older than this are removed.
    pub(crate) age_max: Duration,
    /// Beyond so many, the oldest are removed.
    pub(crate) records_max: u64,
}

/// See the file's first lines.
pub(crate) struct TrailStore {
    environment: Environment,
    events: Table,
}

impl TrailStore {
    /// Opens the trail of the store with this id, or makes it where the marker says so. Blocks.
    pub(crate) fn open(folder: &Path, store: [u8; 16]) -> Result<Self, AuditOpenError> {
        let options = EnvironmentOptions { map_bytes: MAP_BYTES, tables_max: 4 };
        let environment = Environment::open_owned(folder, options, Owner { table: "audit", store })
            .map_err(|error| open_error(folder, error))?;
        let failed = |error: Error| open_error(folder, error.into());
        let events = environment.table("events").map_err(failed)?;
        let trail = Self { environment, events };
        trail.last_id().map_err(failed)?;
        Ok(trail)
    }

    /// The latest event's id.
    pub(crate) fn last_id(&self) -> Result<Option<AuditId>, Error> {
        let txn = self.environment.read()?;
        let Some(last) = txn.scan_back(self.events, BEHIND_ALL)?.next() else { return Ok(None) };
        Ok(last?.0.try_into().ok().map(AuditId))
    }

    /// Restores the written space behind the data file's last page. `Err`: there is less than a batch may need.
    pub(crate) fn keep_headroom(&self) -> Result<(), Error> {
        let before = self.environment.headroom();
        if before >= HEADROOM_LOW {
            return Ok(());
        }
        let extended = self.environment.extend(HEADROOM);
        if self.environment.headroom() >= HEADROOM_MIN { Ok(()) } else { extended }
    }

    /// Writes a batch and removes what is too old or too much; durable when it returns. Gives the ids of the batch and the
    /// number of events there are.
    pub(crate) fn append(
        &self,
        ids: &mut AuditIds,
        records: &[&AuditRecord],
        now: Timestamp,
        retention: Retention,
    ) -> Result<Vec<AuditId>, Error> {
        let mut txn = self.environment.write()?;
        let mut body = Vec::new();
        let mut made = Vec::with_capacity(records.len());
        for record in records {
            let mut random = [0; 8];
            getrandom::fill(&mut random).map_err(|error| Error::Io(io::Error::other(error)))?;
            let id = ids.next(now, random);
            record.encode(&mut body);
            txn.insert(self.events, &id.0, EVENT_VERSION, &body, &[])?;
            made.push(id);
        }
        self.remove_old(&mut txn, records.len(), now, retention)?;
        txn.commit()?;
        Ok(made)
    }

    fn remove_old(
        &self,
        txn: &mut WriteTxn<'_>,
        added: usize,
        now: Timestamp,
        retention: Retention,
    ) -> Result<(), Error> {
        let age_max = u64::try_from(retention.age_max.as_millis()).unwrap_or(u64::MAX);
        let oldest_kept = Timestamp(now.0.saturating_sub(age_max));
        for _ in 0..added + REMOVALS_BEYOND_MAX {
            let too_many = txn.totals().records.saturating_sub(1) > retention.records_max;
            let Some(oldest) = txn.first_key_at_or_after(self.events, BEFORE_ALL)? else { return Ok(()) };
            let id: [u8; 16] = oldest.try_into().unwrap_or_default();
            if !too_many && AuditId(id).time() >= oldest_kept {
                return Ok(());
            }
            let key = oldest.to_vec();
            txn.remove(self.events, &key)?;
        }
        Ok(())
    }

    /// One page of events, the latest first. Blocks for as long as looking at [`PAGE_EXAMINED_MAX`] records takes.
    pub(crate) fn page(&self, query: &AuditQuery) -> Result<AuditPage, Error> {
        let (from, mut before) = (query.from(), query.before());
        let mut page = AuditPage::default();
        let mut examined = 0;
        loop {
            let txn = self.environment.read()?;
            let mut last = None;
            for item in txn.scan_back(self.events, &before)?.take(READ_RECORDS_MAX) {
                let (key, record) = item?;
                let Ok(key) = <[u8; 16]>::try_from(key) else { continue };
                if key < from {
                    return Ok(page);
                }
                if page.events.len() >= query.limit || examined >= PAGE_EXAMINED_MAX {
                    page.next = Some(AuditId(last.unwrap_or(before)));
                    return Ok(page);
                }
                examined += 1;
                last = Some(key);
                page.events.extend(event_that_fits(AuditId(key), record, query));
            }
            match last {
                Some(last) => before = last,
                None => return Ok(page),
            }
        }
    }
}

/// The event of a record, if the query asks for it. A damaged record might be any: it is shown as what it is, so that the
/// trail has no gap that nobody sees.
fn event_that_fits(id: AuditId, record: Result<Record<'_>, Error>, query: &AuditQuery) -> Option<AuditEvent> {
    let decoded = record.ok().and_then(|record| AuditRecord::decode(record.version, record.body));
    let Some(record) = decoded else {
        tracing::error!(target: "service::audit", %id, "an audit record failed its check");
        let mut record = AuditRecord::new(AuditRecord::SERVICE, "audit.damaged", AuditResult::Failed);
        record.detail = "this record failed its check and is not shown".to_owned();
        return Some(AuditEvent { id, record });
    };
    query.fits(&record).then_some(AuditEvent { id, record })
}

fn open_error(folder: &Path, error: OwnedError) -> AuditOpenError {
    let path: PathBuf = folder.to_owned();
    match error {
        OwnedError::Lmdb(Error::Io(error)) => AuditOpenError::Io { path, error },
        other => AuditOpenError::Damaged { path, what: format!("the audit trail: {other}") },
    }
}
