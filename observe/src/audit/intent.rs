//! What is about to be done, in the trail before it is begun.
//!
//! A change and its event cannot be one transaction: they stand in different environments. So the trail is told first, and
//! then of the outcome. Whatever ends in between, the request or the process, leaves an event that says so.

use super::id::{AuditId, AuditIds};
use super::limits::BATCH_RECORDS_MAX;
use super::log::AuditLog;
use super::record::{AuditRecord, AuditResult};
use super::store::{Entry, Retention, TrailStore};
use cairn_lmdb::Error;
use cairn_model::Timestamp;
use futures_channel::oneshot;
use std::sync::Arc;

/// What the event of a request says that ended without an outcome.
const REQUEST_ENDED: &str =
    "the request ended before its outcome was known: the change may have been made, in part or whole";
/// What the event of a process says that ended without one.
const SERVICE_ENDED: &str =
    "the service ended before its outcome was recorded: the change may have been made, in part or whole";

/// A durable intent that has not been settled. Dropped, it leaves an event that the outcome is not known.
pub struct Intent {
    log: Arc<AuditLog>,
    id: AuditId,
    /// `None`: settled.
    record: Option<AuditRecord>,
}

impl Intent {
    pub(super) fn new(log: Arc<AuditLog>, id: AuditId, record: AuditRecord) -> Self {
        Self { log, id, record: Some(record) }
    }

    /// Records what came of it: an event, or nothing when nothing was changed. When the future resolves the event is durable,
    /// or the disk is full and the event waits for space beside the intent, which is durable.
    pub async fn settle(mut self, event: Option<AuditRecord>) {
        self.record = None;
        let (reply, answer) = oneshot::channel();
        self.log.settle(self.id, event, Some(reply));
        // Not answered when the trail is closed: the next start settles it.
        let _ = answer.await;
    }
}

impl Drop for Intent {
    fn drop(&mut self) {
        if let Some(record) = self.record.take() {
            self.log.settle(self.id, Some(without_outcome(record, REQUEST_ENDED)), None);
        }
    }
}

fn without_outcome(mut record: AuditRecord, why: &str) -> AuditRecord {
    record.result = AuditResult::Failed;
    let separator = if record.detail.is_empty() { "" } else { "; " };
    record.detail = format!("{}{separator}{why}", record.detail);
    record
}

/// Settles what the last process left. For when the trail is opened.
pub(super) fn settle_left(
    trail: &TrailStore,
    ids: &mut AuditIds,
    now: Timestamp,
    retention: Retention,
) -> Result<(), Error> {
    loop {
        let left = trail.intents(BATCH_RECORDS_MAX)?;
        if left.is_empty() {
            return Ok(());
        }
        tracing::warn!(target: "service::audit", changes = left.len(), "the outcome of changes was not recorded when the service last ended");
        let events: Vec<_> =
            left.into_iter().map(|(id, record)| (id, without_outcome(record, SERVICE_ENDED))).collect();
        let entries: Vec<_> = events.iter().map(|(id, event)| Entry::Settled(*id, Some(event))).collect();
        match trail.keep_headroom().and_then(|()| trail.append(ids, &entries, now, retention)) {
            Ok(_) => {}
            // They stay where they are until there is space; a full disk keeps no start from happening.
            Err(Error::Full) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}
