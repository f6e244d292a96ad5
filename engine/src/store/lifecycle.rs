//! Lifecycle rules as the worker and all requests see them: settings, status, pause.

use crate::error::EngineError;
use crate::store::Store;
use crate::store::bucket_catalog::CatalogCommand;
use crate::types::bucket::Bucket;
use crate::types::lifecycle::{DayLength, RuleId};
use crate::types::lifecycle_status::{LifecycleStatus, RuleStatus, SavedLifecycle};
use crate::types::tags::Tags;
use cairn_model::{AgeLimit, Timestamp};
use futures_channel::oneshot;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

impl Store {
    /// Sets the length of a day in lifecycle rules. Called once, before requests are served.
    pub fn set_lifecycle_day(&self, day: DayLength) {
        self.background.lifecycle.day_seconds.store(day.0, Ordering::Relaxed);
    }

    /// Returns the state of the lifecycle worker.
    #[must_use]
    pub fn lifecycle_status(&self) -> LifecycleStatus {
        self.background.lifecycle.lock().worker.clone()
    }

    /// Returns for how many seconds the oldest version that is due has been due.
    #[must_use]
    pub fn lifecycle_overdue_seconds(&self) -> u64 {
        self.lifecycle_status().oldest_overdue_seconds(self.clocks.system.now())
    }

    /// Returns the state of a rule.
    #[must_use]
    pub fn lifecycle_rule_status(&self, rule: RuleId) -> RuleStatus {
        self.background.lifecycle.lock().rules.get(&rule).cloned().unwrap_or_default()
    }

    /// Lets the worker continue after a jump of the clock. The clock is trusted from now on.
    pub fn resume_lifecycle(&self) {
        let mut state = self.background.lifecycle.lock();
        state.worker.paused = None;
        self.clocks.guarded.trust();
    }

    /// Returns a limit for removals by age. After a jump of the clock ahead by more than a day, ages are those that data should
    /// have, until the clock is back or [`Self::resume_lifecycle`] is called.
    #[must_use]
    pub fn age_limit(&self, age_max: Duration) -> AgeLimit {
        AgeLimit { age_max, clock: Arc::clone(&self.clocks.guarded) as _ }
    }

    /// Returns the bucket that has a rule.
    #[must_use]
    pub fn bucket_of_rule(&self, rule: RuleId) -> Option<Arc<Bucket>> {
        let has = |bucket: &Arc<Bucket>| {
            bucket.settings().lifecycle.as_ref().is_some_and(|rules| rules.get(rule).is_some())
        };
        self.buckets().into_iter().find(has)
    }

    /// Returns when a current object expires, and the id in S3 of the rule. `None` if no rule is about it.
    #[must_use]
    pub fn expiration_of(
        &self,
        bucket: &Bucket,
        key: &str,
        tags: &Tags,
        last_modified: Timestamp,
    ) -> Option<(Timestamp, String)> {
        let settings = bucket.settings();
        let rules = settings.lifecycle.as_ref()?;
        let expires =
            rules.expiration_of(key.as_bytes(), tags, last_modified, self.background.lifecycle.day());
        expires.map(|(due, rule)| (due, rule.id_in_s3()))
    }

    /// Returns when an upload that was begun at `initiated` is aborted, and the id in S3 of the rule. `None` if no rule is
    /// about it.
    #[must_use]
    pub fn abort_of(&self, bucket: &Bucket, key: &str, initiated: Timestamp) -> Option<(Timestamp, String)> {
        let settings = bucket.settings();
        let rules = settings.lifecycle.as_ref()?;
        let aborted = rules.abort_of(key.as_bytes(), initiated, self.background.lifecycle.day());
        aborted.map(|(due, rule)| (due, rule.id_in_s3()))
    }

    /// Saves what has changed since the last time, and the time if it is trusted. Durable when this returns.
    pub(crate) async fn save_lifecycle(&self, trusted_time: Option<Timestamp>) -> Result<(), EngineError> {
        let counts: Vec<_> = {
            let mut state = self.background.lifecycle.lock();
            let unsaved = std::mem::take(&mut state.unsaved);
            let of = |rule: RuleId| state.rules.get(&rule).map(|status| (rule, status.counts));
            unsaved.into_iter().filter_map(of).collect()
        };
        if counts.is_empty() && trusted_time.is_none() {
            return Ok(());
        }
        let rules: Vec<_> = counts.iter().map(|(rule, _)| *rule).collect();
        let (reply, answer) = oneshot::channel();
        let saved = SavedLifecycle { trusted_time, counts };
        let saved = match self.control.send(CatalogCommand::SaveLifecycle(saved, reply)) {
            Ok(()) => answer.await.unwrap_or(Err(EngineError::ShuttingDown)),
            Err(refused) => Err(refused),
        };
        if saved.is_err() {
            // The next run saves them.
            self.background.lifecycle.lock().unsaved.extend(rules);
        }
        saved
    }
}
