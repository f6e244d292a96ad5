//! The writer thread of the audit trail.
//!
//! It takes everything in the queue as one batch and makes it durable with one commit. There is no timer: latency is
//! low when idle, and batches grow under load.

use super::accesses::Accesses;
use super::id::{AuditId, AuditIds};
use super::kind::AuditKind;
use super::limits::{BATCH_RECORDS_MAX, INCOMPLETE_MAX, RETENTION_CHECK_INTERVAL};
use super::query::{AuditPage, AuditQuery};
use super::queue::{Command, Queue, Taken};
use super::record::AuditRecord;
use super::store::{AuditStore, Entry, Retention};
use crate::metrics;
use cairn_model::{Clock, u64_of};
use cairn_sync::{Mutex, MutexGuard};
use cairn_tables::StoreFailure;
use std::sync::Arc;
use std::time::Instant;

/// State that the threads and the callers share.
pub(super) struct Shared {
    pub(super) store: AuditStore,
    pub(super) queue: Arc<Queue>,
    accesses: Mutex<Accesses>,
    retention: Retention,
    clock: Arc<dyn Clock>,
}

impl Shared {
    pub(super) fn new(store: AuditStore, retention: Retention, clock: Arc<dyn Clock>) -> Self {
        Self { store, queue: Arc::default(), accesses: Mutex::default(), retention, clock }
    }

    /// Returns the table of accesses.
    pub(super) fn accesses(&self) -> MutexGuard<'_, Accesses> {
        self.accesses.lock()
    }

    /// Reads a page of events. Blocks.
    pub(super) fn page(&self, query: &AuditQuery) -> Result<AuditPage, StoreFailure> {
        self.store.page(query).map_err(|error| {
            tracing::error!(target: "service::audit", %error, "the audit trail could not be read");
            error.into()
        })
    }
}

/// An intent and its outcome that could not be written yet.
type Incomplete = (AuditId, AuditKind, Option<Box<AuditRecord>>);

/// Returns what a command writes to the store.
fn entry_of(command: &Command) -> Option<Entry<'_>> {
    match command {
        Command::Append(kind, record, _) => Some(Entry::Event(*kind, record)),
        Command::Offer(record) => Some(Entry::Event(AuditKind::Refusal, record)),
        Command::Intend(record, _) => Some(Entry::Intent(record)),
        Command::Complete(id, kind, event, _) => Some(Entry::Completed(*id, *kind, event.as_deref())),
        Command::Barrier(_) => None,
    }
}

/// Counts the events of a batch in the metrics.
fn count_written(entries: &[Entry<'_>], is_written: bool) {
    let count = u64_of(entries.iter().filter(|entry| entry.is_event()).count());
    let counter = if is_written { &metrics::AUDIT_RECORDS } else { &metrics::AUDIT_RECORDS_FAILED };
    counter.add(count);
}

/// The writer thread.
pub(super) struct Writer {
    shared: Arc<Shared>,
    ids: AuditIds,
    /// Outcomes that found no space, for the next batch.
    incomplete: Vec<Incomplete>,
}

impl Writer {
    pub(super) fn new(shared: Arc<Shared>, ids: AuditIds) -> Self {
        Self { shared, ids, incomplete: Vec::new() }
    }

    /// Writes batches until the queue is closed and empty.
    pub(super) fn run(mut self) {
        loop {
            let due_in = self.shared.accesses().due_in(Instant::now()).unwrap_or(RETENTION_CHECK_INTERVAL);
            let batch = match self.shared.queue.take(RETENTION_CHECK_INTERVAL.min(due_in)) {
                Taken::Closed => {
                    let counted = self.shared.accesses().take_all();
                    return self.record_accesses(&counted);
                }
                // An empty batch removes events that have become too old.
                Taken::Nothing => Vec::new(),
                Taken::Batch(batch) => batch,
            };
            self.record(batch);
            let due = self.shared.accesses().take_due(Instant::now());
            self.record_accesses(&due);
            // Extended now, while no caller waits, so that the next batch finds written space.
            self.shared.store.tables.restore_headroom();
        }
    }

    /// Writes the records of accesses that were counted.
    fn record_accesses(&mut self, records: &[AuditRecord]) {
        for batch in records.chunks(BATCH_RECORDS_MAX) {
            let entries: Vec<_> =
                batch.iter().map(|record| Entry::Event(AuditKind::Access, record)).collect();
            let written = self.write(&entries);
            count_written(&entries, written.is_ok());
        }
    }

    fn record(&mut self, batch: Vec<Command>) {
        let retried_count = self.incomplete.len().min(BATCH_RECORDS_MAX);
        let retried: Vec<Incomplete> = self.incomplete.drain(..retried_count).collect();
        let mut entries: Vec<Entry<'_>> =
            retried.iter().map(|(id, kind, event)| Entry::Completed(*id, *kind, event.as_deref())).collect();
        entries.extend(batch.iter().filter_map(entry_of));
        let only_barriers = entries.is_empty() && !batch.is_empty();
        let written = if only_barriers { Ok(Vec::new()) } else { self.write(&entries) };
        if let Ok(ids) = &written {
            assert_eq!(ids.len(), entries.len(), "the store returns one id for each entry");
        }
        count_written(&entries, written.is_ok());
        let mut ids = written.iter().flatten().skip(retried.len());
        if written.is_err() {
            self.keep(retried);
        }
        // A caller that has gone no longer listens to its reply.
        for command in batch {
            match command {
                Command::Append(_, _, reply) | Command::Intend(_, reply) => {
                    let outcome = match &written {
                        Ok(_) => Ok(*ids.next().expect("each record that was written has an id")),
                        Err(error) => Err(error.clone()),
                    };
                    let _ = reply.send(outcome);
                }
                Command::Offer(_) => drop(ids.next()),
                Command::Complete(id, kind, event, reply) => {
                    let _ = ids.next();
                    if written.is_err() {
                        self.keep([(id, kind, event)]);
                    }
                    let _ = reply.map(|reply| reply.send(()));
                }
                Command::Barrier(reply) => drop(reply.send(())),
            }
        }
    }

    /// Keeps outcomes that could not be written for the next batch. The intents are durable: if an outcome is dropped here, or
    /// lost with the process, the next start completes its intent.
    fn keep(&mut self, incomplete: impl IntoIterator<Item = Incomplete>) {
        let room = INCOMPLETE_MAX.saturating_sub(self.incomplete.len());
        self.incomplete.extend(incomplete.into_iter().take(room));
    }

    fn write(&mut self, entries: &[Entry<'_>]) -> Result<Vec<AuditId>, StoreFailure> {
        let Shared { store, retention, clock, .. } = &*self.shared;
        store.append(&mut self.ids, entries, clock.now(), retention)
    }
}
