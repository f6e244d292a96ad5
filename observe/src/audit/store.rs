//! The trail on disk: `<data-dir>/audit/`, an LMDB environment of its own.
//!
//! ```text
//! table     key               value, version 1
//! events    id (16)           record.rs
//! intents   id (16)           record.rs: what was about to be done when it was written
//! audit     identity          16 bytes store id
//! ```
//! A change has an intent before it is begun and an event once its outcome is known; the event takes the intent's place in
//! one transaction. Intents that the last process left become events when the trail is opened: a crash between a change and
//! its event hides nothing.
//!
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
use super::record::{AuditEvent, AuditRecord, EVENT_VERSION};
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
    intents: Table,
}

/// One thing to be written.
#[derive(Clone, Copy)]
pub(crate) enum Entry<'r> {
    /// An event.
    Event(&'r AuditRecord),
    /// What is about to be done.
    Intent(&'r AuditRecord),
    /// The intent of this id is over, and this event is what came of it, if anything did.
    Settled(AuditId, Option<&'r AuditRecord>),
}

impl Entry<'_> {
    /// Whether it makes an event.
    pub(crate) const fn is_event(&self) -> bool {
        matches!(self, Self::Event(_) | Self::Settled(_, Some(_)))
    }
}

impl TrailStore {
    /// Opens the trail of the store with this id, or makes it where the marker says so. Blocks.
    pub(crate) fn open(folder: &Path, store: [u8; 16]) -> Result<Self, AuditOpenError> {
        let options = EnvironmentOptions { map_bytes: MAP_BYTES, tables_max: 4 };
        let environment = Environment::open_owned(folder, options, Owner { table: "audit", store })
            .map_err(|error| open_error(folder, error))?;
        let failed = |error: Error| open_error(folder, error.into());
        let events = environment.table("events").map_err(failed)?;
        let intents = environment.table("intents").map_err(failed)?;
        let trail = Self { environment, events, intents };
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

    /// The intents that were never settled, the oldest first, at most so many.
    pub(crate) fn intents(&self, most: usize) -> Result<Vec<(AuditId, AuditRecord)>, Error> {
        let txn = self.environment.read()?;
        let mut found = Vec::new();
        for item in txn.scan(self.intents, BEFORE_ALL)?.take(most) {
            let (key, record) = item?;
            let Ok(id) = key.try_into().map(AuditId) else { continue };
            let decoded = AuditRecord::decode(record.version, record.body);
            found.push((id, decoded.unwrap_or_else(AuditRecord::damaged)));
        }
        Ok(found)
    }

    /// Writes a batch and removes what is too old or too much; durable when it returns. Gives an id for each entry: of the
    /// event, of the intent, or, where nothing came of an intent, its own.
    pub(crate) fn append(
        &self,
        ids: &mut AuditIds,
        entries: &[Entry<'_>],
        now: Timestamp,
        retention: Retention,
    ) -> Result<Vec<AuditId>, Error> {
        let mut txn = self.environment.write()?;
        let mut body = Vec::new();
        let mut made = Vec::with_capacity(entries.len());
        for entry in entries {
            if let Entry::Settled(intent, _) = entry {
                txn.remove(self.intents, &intent.0)?;
            }
            let (table, record) = match *entry {
                Entry::Event(record) | Entry::Settled(_, Some(record)) => (self.events, record),
                Entry::Intent(record) => (self.intents, record),
                Entry::Settled(intent, None) => {
                    made.push(intent);
                    continue;
                }
            };
            let mut random = [0; 8];
            getrandom::fill(&mut random).map_err(|error| Error::Io(io::Error::other(error)))?;
            let id = ids.next(now, random);
            record.encode(&mut body);
            txn.insert(table, &id.0, EVENT_VERSION, &body, &[])?;
            made.push(id);
        }
        self.remove_old(&mut txn, entries.len(), now, retention)?;
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
        return Some(AuditEvent { id, record: AuditRecord::damaged() });
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
