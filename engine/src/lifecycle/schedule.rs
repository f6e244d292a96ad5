//! The schedule of the lifecycle worker: due indexes, runs, and saved state.

use super::run::Run;
use super::worker::{LifecycleOptions, Worker};
use crate::api::engine::Engine;
use crate::check::throttle::Throttle;
use crate::error::EngineError;
use crate::format::due_record::DueState;
use crate::limits::{
    INDEX_STEP_ENTRIES, INDEX_STEP_ENTRIES_BUSY, LIFECYCLE_FIRST_RUN, LIFECYCLE_LOOK_INTERVAL,
    TRUSTED_TIME_SAVE_INTERVAL,
};
use crate::slice::Slice;
use crate::slice::command::{Command, DueProgress, IndexDue};
use crate::types::bucket::Bucket;
use crate::types::lifecycle::RuleId;
use crate::types::lifecycle_status::RuleCounts;
use cairn_model::Timestamp;
use futures_channel::oneshot;
use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

impl Engine {
    /// Applies lifecycle rules periodically until `stopping` returns true. Runs on one executor of a store.
    pub async fn run_lifecycle(
        self: &Rc<Self>,
        options: LifecycleOptions,
        stopping: impl Fn() -> bool + 'static,
    ) {
        let worker = Worker::new(self.store(), options, Box::new(stopping));
        let forever = self.in_background(async move {
            worker.run().await;
            Ok(())
        });
        if let Err(error) = forever.await {
            tracing::error!(target: "service::engine", %error, "the lifecycle worker has stopped");
        }
    }

    /// Applies all lifecycle rules once, whatever the clock says. Returns what was done.
    ///
    /// # Errors
    /// The first error. The rules of other buckets were applied.
    pub async fn apply_lifecycle(
        self: &Rc<Self>,
        options: LifecycleOptions,
    ) -> Result<RuleCounts, EngineError> {
        let worker = Worker::new(self.store(), options, Box::new(|| false));
        self.in_background(async move {
            worker.store.resume_lifecycle();
            worker.keep_indexes().await?;
            let before = worker.store.lifecycle_status().counts;
            let ended = worker.run_once().await;
            let mut counts = worker.store.lifecycle_status().counts.counters();
            counts.iter_mut().zip(before.counters()).for_each(|(now, before)| *now -= before);
            ended.map(|()| RuleCounts::of_counters(counts))
        })
        .await
    }
}

impl Worker {
    async fn run(&self) {
        self.store.background.lifecycle.lock().worker.is_enabled = true;
        let mut next_run = Instant::now() + self.options.interval.min(LIFECYCLE_FIRST_RUN);
        self.announce(next_run);
        let mut next_save = Instant::now();
        while !(self.stopping)() {
            if let Some(now) = self.trusted_now()
                && Instant::now() >= next_save
            {
                next_save = Instant::now() + TRUSTED_TIME_SAVE_INTERVAL;
                self.save(Some(now)).await;
            }
            if let Err(error) = self.keep_indexes().await {
                self.note_error(&error);
            }
            if Instant::now() >= next_run {
                if let Err(error) = self.run_once().await {
                    self.note_error(&error);
                }
                // A run that took longer than the interval is followed by the next one at once.
                next_run = (next_run + self.options.interval).max(Instant::now());
                self.announce(next_run);
            }
            let rest = next_run.saturating_duration_since(Instant::now()).min(LIFECYCLE_LOOK_INTERVAL);
            glommio::timer::sleep(rest).await;
        }
        self.save(self.trusted_now()).await;
    }

    fn announce(&self, next_run: Instant) {
        let rest = next_run.saturating_duration_since(Instant::now());
        let rest = u64::try_from(rest.as_millis()).unwrap_or(u64::MAX);
        let at = Timestamp(self.store.clocks.system.now().0.saturating_add(rest));
        self.store.background.lifecycle.lock().worker.next_run_at = Some(at);
    }

    fn note_error(&self, error: &EngineError) {
        let worker = &mut self.store.background.lifecycle.lock().worker;
        let text = error.to_string();
        // Once, although the worker tries again every second.
        if *error != EngineError::ShuttingDown && worker.last_error.as_ref() != Some(&text) {
            tracing::error!(target: "service::engine", %error, "lifecycle rules could not be applied");
        }
        worker.last_error = Some(text);
    }

    async fn save(&self, trusted_time: Option<Timestamp>) {
        if let Err(error) = self.store.save_lifecycle(trusted_time).await {
            tracing::warn!(target: "service::engine", %error, "what lifecycle rules have done could not be saved");
        }
    }

    /// Applies the rules of all buckets. An error or a panic in one bucket does not prevent the others.
    pub(super) async fn run_once(&self) -> Result<(), EngineError> {
        let Some(started) = self.trusted_now() else { return Ok(()) };
        {
            let worker = &mut self.store.background.lifecycle.lock().worker;
            (worker.last_run_started_at, worker.last_run_finished_at) = (Some(started), None);
        }
        let mut run = Run::new(self);
        let mut first_error = None;
        for bucket in self.store.buckets() {
            if bucket.settings().lifecycle.is_none() || (self.stopping)() {
                continue;
            }
            if let Err(error) = run.bucket_guarded(&bucket, started).await {
                if error == EngineError::ShuttingDown {
                    return Err(error);
                }
                let bucket = bucket.name.as_str();
                tracing::error!(target: "service::engine", bucket, %error, "the lifecycle rules of a bucket could not be applied");
                first_error.get_or_insert(error);
            }
        }
        let oldest = run.oldest_due();
        let rules: HashSet<RuleId> = self
            .store
            .buckets()
            .iter()
            .filter_map(|bucket| bucket.settings().lifecycle.clone())
            .flat_map(|rules| rules.iter().map(|rule| rule.id).collect::<Vec<_>>())
            .collect();
        {
            let state = &mut *self.store.background.lifecycle.lock();
            state.rules.retain(|rule, _| rules.contains(rule));
            let worker = &mut state.worker;
            worker.last_run_finished_at = Some(self.store.clocks.system.now());
            worker.oldest_due_at = oldest;
            worker.last_error = first_error.as_ref().map(ToString::to_string);
        }
        self.save(self.trusted_now()).await;
        first_error.map_or(Ok(()), Err)
    }

    /// Builds the indexes that rules need, and removes those that no rule needs any more.
    pub(super) async fn keep_indexes(&self) -> Result<(), EngineError> {
        let with_rules: BTreeMap<u64, Arc<Bucket>> = self
            .store
            .buckets()
            .into_iter()
            .filter(|bucket| bucket.settings().lifecycle.is_some())
            .map(|bucket| (bucket.id, bucket))
            .collect();
        let mut steps = Vec::new();
        for slice in &self.store.slices {
            let states = slice.due_states.get();
            let missing = with_rules.iter().filter(|(id, _)| states.get(id) != Some(&DueState::Complete));
            steps.extend(missing.map(|(id, bucket)| (slice, *id, Some(Arc::clone(bucket)))));
            let surplus = states.keys().filter(|id| !with_rules.contains_key(id));
            steps.extend(surplus.map(|id| (slice, *id, None)));
        }
        let throttle = Throttle::new(&self.store.background.activities, None);
        let mut first_error = None;
        for (done, (slice, id, bucket)) in steps.iter().enumerate() {
            self.store.background.lifecycle.lock().worker.indexes_in_progress =
                u64::try_from(steps.len() - done).unwrap_or(u64::MAX);
            if let Err(error) = self.keep_index(slice, *id, bucket.as_ref(), &throttle).await {
                first_error.get_or_insert(error);
            }
        }
        self.store.background.lifecycle.lock().worker.indexes_in_progress = u64::from(first_error.is_some());
        first_error.map_or(Ok(()), Err)
    }

    /// Builds or removes the index of one bucket in one slice.
    async fn keep_index(
        &self,
        slice: &Slice,
        id: u64,
        bucket: Option<&Arc<Bucket>>,
        throttle: &Throttle,
    ) -> Result<(), EngineError> {
        while !(self.stopping)() {
            let begun = Instant::now();
            let entries_max =
                if throttle.is_store_busy() { INDEX_STEP_ENTRIES_BUSY } else { INDEX_STEP_ENTRIES };
            // A bucket that lost its rules in the meantime is noticed by the committer.
            let bucket = bucket.map(Arc::clone);
            let (reply, answer) = oneshot::channel();
            slice.commits.queue.push(Command::IndexDue(IndexDue { id, bucket, entries_max }, reply))?;
            if answer.await.map_err(|_| EngineError::ShuttingDown)?? == DueProgress::Finished {
                return Ok(());
            }
            throttle.rest(begun, 0).await;
        }
        Ok(())
    }
}
