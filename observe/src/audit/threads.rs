//! The writer thread and the reader thread of the audit trail.
//!
//! The writer takes everything in the queue as one batch and makes it durable with one commit. There is no timer: latency is
//! low when idle, and batches grow under load. After a device failure the writer stops until the next start, because the
//! contents of the device are then unknown. A full disk does not stop it: records are refused until there is space again.

use super::error::AuditError;
use super::id::{AuditId, AuditIds};
use super::limits::{BATCH_RECORDS_MAX, INCOMPLETE_MAX, RETENTION_CHECK_INTERVAL};
use super::query::{AuditPage, AuditQuery};
use super::queue::{Command, Queue, Taken};
use super::record::AuditRecord;
use super::store::{AuditStore, Entry, Retention};
use crate::metrics;
use cairn_model::{Clock, u64_of};
use futures_channel::oneshot;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, OnceLock};

/// State that both threads and the callers share.
pub(super) struct Shared {
    pub(super) store: AuditStore,
    pub(super) queue: Arc<Queue>,
    retention: Retention,
    clock: Arc<dyn Clock>,
    /// Why nothing is recorded any more. Set once, after a failure.
    pub(super) stopped: OnceLock<String>,
}

impl Shared {
    pub(super) fn new(store: AuditStore, retention: Retention, clock: Arc<dyn Clock>) -> Self {
        Self { store, queue: Arc::default(), retention, clock, stopped: OnceLock::new() }
    }
}

/// An intent and its outcome that could not be written yet.
type Incomplete = (AuditId, Option<Box<AuditRecord>>);

/// Returns what a command writes to the store.
fn entry_of(command: &Command) -> Option<Entry<'_>> {
    match command {
        Command::Append(record, _) | Command::Offer(record) => Some(Entry::Event(record)),
        Command::Intend(record, _) => Some(Entry::Intent(record)),
        Command::Complete(id, event, _) => Some(Entry::Completed(*id, event.as_deref())),
        Command::Barrier(_) => None,
    }
}

/// The writer thread.
pub(super) struct Writer {
    shared: Arc<Shared>,
    ids: AuditIds,
    /// Whether the disk was full at the last attempt. Only changes of this are logged, not every record.
    lacks_space: bool,
    /// Outcomes that found no space, for the next batch.
    incomplete: Vec<Incomplete>,
}

impl Writer {
    pub(super) fn new(shared: Arc<Shared>, ids: AuditIds) -> Self {
        Self { shared, ids, lacks_space: false, incomplete: Vec::new() }
    }

    /// Writes batches until the queue is closed and empty.
    pub(super) fn run(mut self) {
        loop {
            let batch = match self.shared.queue.take(RETENTION_CHECK_INTERVAL) {
                Taken::Closed => return,
                // An empty batch removes events that have become too old.
                Taken::Nothing => Vec::new(),
                Taken::Batch(batch) => batch,
            };
            self.record(batch);
            // Extended now, while no caller waits, so that the next batch finds written space.
            if self.shared.stopped.get().is_none() {
                let _ = self.shared.store.keep_headroom();
            }
        }
    }

    fn record(&mut self, batch: Vec<Command>) {
        let retried_count = self.incomplete.len().min(BATCH_RECORDS_MAX);
        let retried: Vec<Incomplete> = self.incomplete.drain(..retried_count).collect();
        let mut entries: Vec<Entry<'_>> =
            retried.iter().map(|(id, event)| Entry::Completed(*id, event.as_deref())).collect();
        entries.extend(batch.iter().filter_map(entry_of));
        let only_barriers = entries.is_empty() && !batch.is_empty();
        let written = if only_barriers { Ok(Vec::new()) } else { self.write(&entries) };
        if let Ok(ids) = &written {
            assert_eq!(ids.len(), entries.len(), "the store returns one id for each entry");
        }
        let count = u64_of(entries.iter().filter(|entry| entry.is_event()).count());
        match &written {
            Ok(_) => metrics::AUDIT_RECORDS.add(count),
            Err(_) => metrics::AUDIT_RECORDS_FAILED.add(count),
        }
        let mut ids = written.iter().flatten().skip(retried.len());
        if written.is_err() {
            self.keep(retried);
        }
        // A caller that has gone no longer listens to its reply.
        for command in batch {
            match command {
                Command::Append(_, reply) | Command::Intend(_, reply) => {
                    let outcome = match &written {
                        Ok(_) => Ok(*ids.next().expect("each record that was written has an id")),
                        Err(error) => Err(error.clone()),
                    };
                    let _ = reply.send(outcome);
                }
                Command::Offer(_) => drop(ids.next()),
                Command::Complete(id, event, reply) => {
                    let _ = ids.next();
                    if written.is_err() {
                        self.keep([(id, event)]);
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

    fn write(&mut self, entries: &[Entry<'_>]) -> Result<Vec<AuditId>, AuditError> {
        let Shared { store, retention, clock, stopped, .. } = &*self.shared;
        if let Some(reason) = stopped.get() {
            return Err(AuditError::Failed(reason.clone()));
        }
        let now = clock.now();
        let written =
            store.keep_headroom().and_then(|()| store.append(&mut self.ids, entries, now, *retention));
        let lacks_space = matches!(written, Err(cairn_lmdb::Error::Full));
        if std::mem::replace(&mut self.lacks_space, lacks_space) != lacks_space {
            if lacks_space {
                tracing::error!(target: "service::audit", "no space is left for the audit trail: what must be recorded is refused");
            } else if written.is_ok() {
                tracing::info!(target: "service::audit", "there is space for the audit trail again");
            }
        }
        written.map_err(|error| {
            // A lack of space, or a record that fails its check, leaves the trail as it was.
            if !matches!(error, cairn_lmdb::Error::Full | cairn_lmdb::Error::Corrupt { .. }) {
                tracing::error!(target: "service::audit", %error, "the audit trail failed: nothing is recorded until the service is started again");
                let _ = stopped.set(format!("nothing is recorded after a failure: {error}; restart the service"));
            }
            error.into()
        })
    }
}

/// A query and the channel for its page.
pub(super) type PageRequest = (AuditQuery, oneshot::Sender<Result<AuditPage, AuditError>>);

/// The reader thread: answers one query after the other until the log is closed.
pub(super) fn read_pages(shared: &Shared, requests: &Receiver<PageRequest>) {
    for (query, reply) in requests {
        // The caller may have gone while its query waited.
        if reply.is_canceled() {
            continue;
        }
        let page = shared.store.page(&query).map_err(|error| {
            tracing::error!(target: "service::audit", %error, "the audit trail could not be read");
            AuditError::from(error)
        });
        let _ = reply.send(page);
    }
}
