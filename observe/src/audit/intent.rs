//! Audit intents: a durable record of a change before the change begins.
//!
//! A change and its event cannot be one transaction because they are in different LMDB environments. The trail therefore
//! records an intent first and the outcome afterwards. If the request or the process ends in between, the trail gets an
//! event that says so.

use super::id::{AuditId, AuditIds};
use super::kind::AuditKind;
use super::limits::BATCH_RECORDS_MAX;
use super::queue::{Command, Queue};
use super::record::{AuditRecord, AuditResult};
use super::store::{AuditStore, Entry, Retention};
use cairn_model::Timestamp;
use cairn_tables::StoreFailure;
use futures_channel::oneshot;
use std::sync::Arc;

/// Detail of the event when the request ended without an outcome.
const REQUEST_ENDED: &str =
    "the request ended before its outcome was known: the change may have been made, in part or whole";
/// Detail of the event when the process ended without recording an outcome.
const SERVICE_ENDED: &str =
    "the service ended before its outcome was recorded: the change may have been made, in part or whole";

/// A durable intent without an outcome yet. Dropping it records an event that the outcome is unknown.
pub struct Intent {
    queue: Arc<Queue>,
    id: AuditId,
    kind: AuditKind,
    /// `None` once completed.
    record: Option<Arc<AuditRecord>>,
}

impl Intent {
    pub(super) fn new(queue: Arc<Queue>, id: AuditId, kind: AuditKind, record: Arc<AuditRecord>) -> Self {
        Self { queue, id, kind, record: Some(record) }
    }

    /// Records the outcome later: an event, or `None` if nothing was changed. Never waits. If the process ends before it is
    /// durable, the event says that the outcome is unknown.
    pub fn complete_later(mut self, event: Option<AuditRecord>) {
        self.record = None;
        self.submit(event, None);
    }

    /// Records the outcome: an event, or `None` if nothing was changed.
    ///
    /// When the future resolves, the event is durable, or the disk is full and the event waits in memory for space. In
    /// the second case the intent is still durable.
    pub async fn complete(mut self, event: Option<AuditRecord>) {
        self.record = None;
        let (reply, answer) = oneshot::channel();
        self.submit(event, Some(reply));
        // There is no answer if the trail is closed: the next start completes the intent.
        let _ = answer.await;
    }

    fn submit(&self, event: Option<AuditRecord>, reply: Option<oneshot::Sender<()>>) {
        // Refused if the trail is closed: the next start completes the intent.
        let _ = self.queue.push(Command::Complete(self.id, self.kind, event.map(Box::new), reply));
    }
}

impl Drop for Intent {
    fn drop(&mut self) {
        if let Some(record) = self.record.take() {
            self.submit(Some(without_outcome(Arc::unwrap_or_clone(record), REQUEST_ENDED)), None);
        }
    }
}

fn without_outcome(mut record: AuditRecord, why: &str) -> AuditRecord {
    record.result = AuditResult::Failed;
    let separator = if record.detail.is_empty() { "" } else { "; " };
    record.detail = format!("{}{separator}{why}", record.detail);
    record
}

/// Completes the intents that the previous process left, when the trail is opened.
pub(super) fn complete_leftovers(
    store: &AuditStore,
    ids: &mut AuditIds,
    now: Timestamp,
    retention: &Retention,
) -> Result<(), StoreFailure> {
    loop {
        let left = store.intents(BATCH_RECORDS_MAX)?;
        if left.is_empty() {
            return Ok(());
        }
        tracing::warn!(target: "service::audit", changes = left.len(), "the outcome of changes was not recorded when the service last ended");
        let events: Vec<_> =
            left.into_iter().map(|(id, record)| (id, without_outcome(record, SERVICE_ENDED))).collect();
        // An intent does not say its kind. Those that a crash leaves are few.
        let completed = |(id, event)| Entry::Completed(id, AuditKind::Change, Some(event));
        let entries: Vec<_> = events.iter().map(|(id, event)| completed((*id, event))).collect();
        match store.append(ids, &entries, now, retention) {
            Ok(_) => {}
            // The intents stay in the store until there is space. A full disk must not prevent a start.
            Err(StoreFailure::Full) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}
