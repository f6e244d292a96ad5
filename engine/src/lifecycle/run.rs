//! One run: applies the rules of one bucket after the other.

use super::due_page::{DueQuery, read_due_page};
use super::upcoming::next_due;
use super::worker::Worker;
use crate::check::throttle::Throttle;
use crate::error::EngineError;
use crate::limits::{EXPIRE_COMMAND_VERSIONS, EXPIRE_COMMAND_VERSIONS_BUSY};
use crate::slice::Slice;
use crate::slice::command::{Command, DueVersion, ExpireDue, ExpireOutcome};
use crate::store::background::FirstFailure;
use crate::types::bucket::Bucket;
use crate::types::event::Origin;
use crate::types::lifecycle::VersionRole;
use cairn_model::Timestamp;
use futures_channel::oneshot;
use futures_lite::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

/// The principal of removals in events.
const PRINCIPAL: &str = "lifecycle";

/// Non-current versions come first, so that a run does what a preview of the same moment says: a marker over a current object
/// makes one more version non-current. Lone markers come last, because a removal can leave one. Uploads depend on nothing.
const ORDER: [VersionRole; 4] =
    [VersionRole::UnfinishedUpload, VersionRole::Noncurrent, VersionRole::Current, VersionRole::LoneMarker];

/// The state of a run.
pub(super) struct Run<'w> {
    worker: &'w Worker,
    throttle: Throttle,
    /// Due time of the oldest version that could not be removed, or that is due next.
    oldest_due: Option<Timestamp>,
}

impl<'w> Run<'w> {
    pub(super) fn new(worker: &'w Worker) -> Self {
        let throttle = Throttle::new(&worker.store.background.activities, None);
        Self { worker, throttle, oldest_due: None }
    }

    pub(super) const fn oldest_due(&self) -> Option<Timestamp> {
        self.oldest_due
    }

    fn note_due(&mut self, due: Option<Timestamp>) {
        self.oldest_due = [self.oldest_due, due].into_iter().flatten().min();
    }

    /// Applies the rules of a bucket, and records the outcome in their status. A panic is an error.
    pub(super) async fn bucket_guarded(
        &mut self,
        bucket: &Arc<Bucket>,
        started: Timestamp,
    ) -> Result<(), EngineError> {
        let ended = AssertUnwindSafe(self.bucket(bucket)).catch_unwind().await;
        let ended = ended.unwrap_or_else(|_| Err(EngineError::Io("lifecycle failed by a panic".to_owned())));
        let Some(rules) = bucket.settings().lifecycle.clone() else { return ended };
        let upcoming = next_due(&self.worker.store, bucket, &rules, started).unwrap_or_default();
        let store = &self.worker.store;
        {
            let mut state = store.background.lifecycle.lock();
            for (rule, next_due_at) in rules.iter().zip(upcoming.iter().copied()) {
                let status = state.rules.entry(rule.id).or_default();
                status.last_run_started_at = Some(started);
                status.last_run_finished_at = Some(store.clocks.system.now());
                status.next_due_at = next_due_at;
                status.last_error = ended.as_ref().err().map(ToString::to_string);
            }
        }
        self.note_due(upcoming.into_iter().flatten().min());
        ended
    }

    async fn bucket(&mut self, bucket: &Arc<Bucket>) -> Result<(), EngineError> {
        let worker = self.worker;
        let mut failed = FirstFailure::default();
        for slice in &worker.store.slices {
            for role in ORDER {
                // A slice that cannot be read must not prevent the others.
                failed.note(self.role(bucket, slice, role).await)?;
            }
        }
        failed.or_done(())
    }

    /// Removes the versions of a bucket in a slice that are due in one role.
    async fn role(
        &mut self,
        bucket: &Arc<Bucket>,
        slice: &Slice,
        role: VersionRole,
    ) -> Result<(), EngineError> {
        let (store, day) = (&self.worker.store, self.worker.store.background.lifecycle.day());
        let (mut after, mut failed) = (None, None);
        while !(self.worker.stopping)() {
            let begun = Instant::now();
            let Some(now) = self.worker.trusted_now() else { break };
            let Some(rules) = bucket.settings().lifecycle.clone() else { break };
            let query = DueQuery { bucket, rules: &rules, role, day, now };
            let page = read_due_page(slice, &query, after.as_deref(), self.worker.options.batch_size)?;
            store.background.lifecycle.add_counts(&page.skipped);
            after = page.next;
            let mut candidates = page.candidates;
            if candidates.is_empty() {
                self.throttle.rest(begun, 0).await;
            }
            while !candidates.is_empty() {
                let sent = self.expire(bucket, slice, &mut candidates, now).await?;
                if let Some(error) = sent {
                    self.note_due(Some(now));
                    failed = Some(error);
                }
            }
            if after.is_none() {
                break;
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Sends the first candidates to the committer, and takes those that it has decided off the list. Returns why some could
    /// not be removed, if so.
    async fn expire(
        &mut self,
        bucket: &Arc<Bucket>,
        slice: &Slice,
        candidates: &mut Vec<DueVersion>,
        now: Timestamp,
    ) -> Result<Option<EngineError>, EngineError> {
        let begun = Instant::now();
        let most = if self.throttle.is_store_busy() {
            EXPIRE_COMMAND_VERSIONS_BUSY
        } else {
            EXPIRE_COMMAND_VERSIONS
        };
        let store = &self.worker.store;
        let command = ExpireDue {
            bucket: Arc::clone(bucket),
            now,
            day: store.background.lifecycle.day(),
            origin: Origin { principal: PRINCIPAL.into(), ..Origin::default() },
            candidates: candidates.iter().take(most).cloned().collect(),
        };
        let (reply, answer) = oneshot::channel();
        slice.commits.queue.push(Command::Expire(Box::new(command), reply))?;
        let ExpireOutcome { decided, counts, failure } =
            answer.await.map_err(|_| EngineError::ShuttingDown)??;
        // At least one is decided by each command.
        candidates.drain(..decided.clamp(1, candidates.len()));
        store.background.lifecycle.add_counts(&counts);
        self.throttle.rest(begun, 0).await;
        Ok(failure)
    }
}
