//! The audit trail on disk: an LMDB environment in `<data-dir>/audit/`.
//!
//! ```text
//! table            key        value
//! events           id (16)    record.rs, version 1 or 2: changes through the management plane, and records of earlier programs
//! bucket_changes   id (16)    as events: changes of buckets through S3
//! object_changes   id (16)    as events: changes of objects
//! refusals         id (16)    as events: refused requests and faults
//! accesses         id (16)    as events: logins, and disclosures of secrets
//! reads            id (16)    as events: reads of objects and lists
//! intents          id (16)    record.rs, version 1 or 2: a change that was about to begin
//! audit            identity   16 bytes store id
//! ```
//! The kinds of events have tables of their own (`kind.rs`), each with its own number of records, so that none displaces
//! another. Together they are in the order of their ids.
//!
//! A change has an intent before it begins and an event when its outcome is known. One transaction replaces the intent by the
//! event. Intents that the previous process left become events when the trail is opened, so a crash between a change and its
//! event hides nothing.
//!
//! The folder is created with the store. `lmdb/src/store_identity.rs` defines when the trail is created and when a missing
//! trail is an error: deleting the trail must not be hidden by a restart.
//!
//! As in the slices, written space is kept after the last page of the data file, so that a record on a full disk is either
//! durable or refused, and never half-written.

use super::id::{AuditId, AuditIds};
use super::kind::AuditKind;
use super::limits::{EXTRA_REMOVALS_MAX, HEADROOM, MAP_BYTES, PAGE_RECORDS_READ_MAX, TXN_RECORDS_READ_MAX};
use super::query::{AuditPage, AuditQuery};
use super::record::{AuditEvent, AuditRecord};
use cairn_lmdb::{Error, ReadTxn, Record, ReverseScan, Table, WriteTxn};
use cairn_model::{AgeLimit, Timestamp};
use cairn_tables::{Space, StoreFailure, StoreOpenError, StoreSchema, TableStore};
use std::io;
use std::iter::Peekable;
use std::path::Path;

/// The audit trail.
pub(super) static SCHEMA: StoreSchema = StoreSchema {
    name: "the audit trail",
    fresh_start: "start a new trail",
    without_space: "what must be recorded is refused",
    after_failure: "nothing is recorded",
    identity_table: "audit",
    map_bytes: MAP_BYTES,
    tables_max: 9,
    // A damaged event is shown as damaged, and does not prevent a start.
    compared_bytes_max: 0,
    headroom: HEADROOM,
};

/// A key less than every id.
const BEFORE_ALL: &[u8] = &[0];
/// A key greater than every id, because UUIDs of version 7 do not have these bits.
const AFTER_ALL: &[u8] = &[0xFF; 16];

/// The retention of events.
#[derive(Clone)]
pub(crate) struct Retention {
    /// Older events are removed.
    pub(crate) age: AgeLimit,
    /// The oldest events of a kind are removed if the kind has more.
    pub(crate) records_max: u64,
}

/// The environment of the audit trail.
pub(crate) struct AuditStore {
    pub(super) tables: TableStore,
    /// One for each kind, in the order of [`AuditKind::ALL`].
    events: [Table; AuditKind::ALL.len()],
    intents: Table,
}

/// One entry of a batch.
#[derive(Clone, Copy)]
pub(crate) enum Entry<'r> {
    /// Adds an event.
    Event(AuditKind, &'r AuditRecord),
    /// Adds an intent.
    Intent(&'r AuditRecord),
    /// Replaces the intent with this id by its outcome, if anything was changed.
    Completed(AuditId, AuditKind, Option<&'r AuditRecord>),
}

impl Entry<'_> {
    /// Returns whether the entry adds an event.
    pub(crate) const fn is_event(&self) -> bool {
        matches!(self, Self::Event(..) | Self::Completed(_, _, Some(_)))
    }
}

impl AuditStore {
    /// Opens the trail of the store with this id, or creates it if the marker file requests it. Blocks.
    pub(crate) fn open(folder: &Path, store: [u8; 16]) -> Result<Self, StoreOpenError> {
        let mut tables = TableStore::open(folder, store, &SCHEMA)?;
        let intents = tables.table("intents")?;
        let mut events = [intents; AuditKind::ALL.len()];
        for (table, kind) in events.iter_mut().zip(AuditKind::ALL) {
            *table = tables.table(kind.table_name())?;
        }
        Ok(Self { events, intents, tables })
    }

    /// Returns the id of the latest event when the trail is opened. Blocks.
    pub(crate) fn load(&self) -> Result<Option<AuditId>, StoreOpenError> {
        self.tables.load(|loading| Ok(self.last_id_in(&loading.txn)?))
    }

    /// Returns the id of the latest event.
    pub(crate) fn last_id(&self) -> Result<Option<AuditId>, Error> {
        self.last_id_in(&self.tables.environment().read()?)
    }

    fn last_id_in(&self, txn: &ReadTxn<'_>) -> Result<Option<AuditId>, Error> {
        let last = self.latest_before(txn, AFTER_ALL)?.next().transpose()?;
        Ok(last.and_then(|(key, _)| key.try_into().ok()).map(AuditId))
    }

    /// Returns at most `count_max` intents that have no outcome, oldest first.
    pub(crate) fn intents(&self, count_max: usize) -> Result<Vec<(AuditId, AuditRecord)>, Error> {
        let txn = self.tables.environment().read()?;
        let mut found = Vec::new();
        for item in txn.scan(self.intents, BEFORE_ALL)?.take(count_max) {
            let (key, record) = item?;
            let Ok(id) = key.try_into().map(AuditId) else { continue };
            let decoded = AuditRecord::decode(record.version, record.body);
            found.push((id, decoded.unwrap_or_else(AuditRecord::damaged)));
        }
        Ok(found)
    }

    /// Writes a batch and removes old events, in one durable transaction.
    ///
    /// Returns an id for each entry: that of the event or intent that was added. If an intent has no outcome, it is the
    /// intent's id.
    pub(crate) fn append(
        &self,
        ids: &mut AuditIds,
        entries: &[Entry<'_>],
        now: Timestamp,
        retention: &Retention,
    ) -> Result<Vec<AuditId>, StoreFailure> {
        self.tables.write(Space::Change, |txn| self.write(txn, ids, entries, now, retention))
    }

    fn write(
        &self,
        txn: &mut WriteTxn<'_>,
        ids: &mut AuditIds,
        entries: &[Entry<'_>],
        now: Timestamp,
        retention: &Retention,
    ) -> Result<Vec<AuditId>, Error> {
        let mut body = Vec::new();
        let mut made = Vec::with_capacity(entries.len());
        for entry in entries {
            if let Entry::Completed(intent, ..) = entry {
                txn.remove(self.intents, &intent.0)?;
            }
            let (table, record) = match *entry {
                Entry::Event(kind, record) | Entry::Completed(_, kind, Some(record)) => {
                    (self.events[kind as usize], record)
                }
                Entry::Intent(record) => (self.intents, record),
                Entry::Completed(intent, _, None) => {
                    made.push(intent);
                    continue;
                }
            };
            let mut random = [0; 8];
            getrandom::fill(&mut random).map_err(|error| Error::Io(io::Error::other(error)))?;
            let id = ids.next(now, random);
            let version = record.encode(&mut body);
            txn.insert(table, &id.0, version, &body, &[])?;
            made.push(id);
        }
        self.remove_old(txn, entries.len(), retention)?;
        Ok(made)
    }

    fn remove_old(&self, txn: &mut WriteTxn<'_>, added: usize, retention: &Retention) -> Result<(), Error> {
        let oldest_kept = retention.age.oldest_kept();
        let mut removals = added + EXTRA_REMOVALS_MAX;
        for table in self.events {
            let mut count = txn.count(table)?;
            while removals > 0 {
                let Some(oldest) = txn.first_key_at_or_after(table, BEFORE_ALL)? else { break };
                let id: [u8; 16] = oldest.try_into().unwrap_or_default();
                if count <= retention.records_max && AuditId(id).time() >= oldest_kept {
                    break;
                }
                let key = oldest.to_vec();
                txn.remove(table, &key)?;
                (count, removals) = (count.saturating_sub(1), removals - 1);
            }
        }
        Ok(())
    }

    /// Iterates over the events of all kinds before a key, latest first.
    fn latest_before<'t>(&self, txn: &'t ReadTxn<'_>, key: &[u8]) -> Result<Latest<'t>, Error> {
        let mut scans = Vec::with_capacity(self.events.len());
        for table in self.events {
            scans.push(txn.scan_reverse(table, key)?.peekable());
        }
        Ok(Latest { scans })
    }

    /// Reads a page of events, latest first. Blocks for as long as reading [`PAGE_RECORDS_READ_MAX`] records takes.
    pub(crate) fn page(&self, query: &AuditQuery) -> Result<AuditPage, Error> {
        let (start_key, mut end_key) = (query.start_key(), query.end_key());
        let mut page = AuditPage::default();
        let mut records_read = 0;
        loop {
            let txn = self.tables.environment().read()?;
            let mut last = None;
            for item in self.latest_before(&txn, &end_key)?.take(TXN_RECORDS_READ_MAX) {
                let (key, record) = item?;
                let Ok(key) = <[u8; 16]>::try_from(key) else { continue };
                if key < start_key {
                    return Ok(page);
                }
                if page.events.len() >= query.limit || records_read >= PAGE_RECORDS_READ_MAX {
                    page.next = Some(AuditId(last.unwrap_or(end_key)));
                    return Ok(page);
                }
                records_read += 1;
                last = Some(key);
                page.events.extend(matching_event(AuditId(key), record, query));
            }
            match last {
                Some(last) => end_key = last,
                None => return Ok(page),
            }
        }
    }
}

/// Iterates over the events of all kinds, latest first.
struct Latest<'t> {
    scans: Vec<Peekable<ReverseScan<'t>>>,
}

impl<'t> Iterator for Latest<'t> {
    type Item = <ReverseScan<'t> as Iterator>::Item;

    fn next(&mut self) -> Option<Self::Item> {
        let mut latest: Option<(usize, [u8; 16])> = None;
        for (number, scan) in self.scans.iter_mut().enumerate() {
            let key = match scan.peek() {
                None => continue,
                Some(Err(_)) => return scan.next(),
                // No event has another length.
                Some(Ok((key, _))) => <[u8; 16]>::try_from(*key).unwrap_or([0xFF; 16]),
            };
            if latest.is_none_or(|(_, other)| other < key) {
                latest = Some((number, key));
            }
        }
        latest.and_then(|(number, _)| self.scans[number].next())
    }
}

/// Returns the event of a record if it matches the query. A damaged record may match, so it is always shown as damaged and
/// leaves no invisible gap in the trail.
fn matching_event(id: AuditId, record: Result<Record<'_>, Error>, query: &AuditQuery) -> Option<AuditEvent> {
    let decoded = record.ok().and_then(|record| AuditRecord::decode(record.version, record.body));
    let Some(record) = decoded else {
        tracing::error!(target: "service::audit", %id, "an audit record failed its check");
        return Some(AuditEvent { id, record: AuditRecord::damaged() });
    };
    query.matches(&record).then_some(AuditEvent { id, record })
}
