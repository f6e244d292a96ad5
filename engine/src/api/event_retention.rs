//! Retention of storage events: removes the oldest, in small transactions.

use crate::api::engine::Engine;
use crate::error::EngineError;
use crate::limits::{EVENT_EXPIRY_INTERVAL, EVENTS_REMOVED_AT_ONCE};
use crate::slice::Slice;
use crate::slice::command::Command;
use crate::store::background::{FirstFailure, wait};
use crate::store::bucket_catalog::CatalogCommand;
use crate::types::event::{EventQuery, Tick};
use cairn_model::{u64_of, usize_of};
use futures_channel::oneshot;
use std::rc::Rc;
use std::time::Duration;

/// The retention of storage events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventRetention {
    /// Events become at most this old.
    pub age_max: Duration,
    /// Most events that are kept. Each slice keeps an equal share of them.
    pub records_max: u64,
}

impl Engine {
    /// Removes events that are no longer kept, periodically, until `stopping` returns true. Runs on one executor of a store.
    pub async fn expire_events(
        self: &Rc<Self>,
        retention: EventRetention,
        stopping: impl Fn() -> bool + 'static,
    ) {
        let engine = Rc::clone(self);
        let forever = self.in_background(async move {
            while !stopping() {
                if let Err(error) = engine.expire_events_now(retention, &stopping).await {
                    tracing::error!(target: "service::engine", %error, "old storage events could not be removed; the next attempt is in ten minutes");
                }
                wait(EVENT_EXPIRY_INTERVAL, &stopping).await;
            }
            Ok(())
        });
        if let Err(error) = forever.await {
            tracing::error!(target: "service::engine", %error, "the removal of old storage events has stopped");
        }
    }

    /// Removes events that are older than `retention` allows, and the oldest of those above its number. Returns how many.
    ///
    /// # Errors
    /// The first one of a slice. What was removed stays removed.
    pub async fn expire_events_now(
        &self,
        retention: EventRetention,
        stopping: &impl Fn() -> bool,
    ) -> Result<u64, EngineError> {
        let store = self.store();
        let before = Tick::first_at(store.age_limit(retention.age_max).oldest_kept());
        // Without this, each look would be a commit of every slice.
        let oldest = store.events(&EventQuery { until: before, limit: 1, ..EventQuery::default() });
        let has_old = oldest.map_or(true, |page| !page.events.is_empty() || page.is_truncated);
        let share = retention.records_max.div_ceil(u64_of(store.slices.len()));
        let (mut removed, mut failed) = (0, FirstFailure::default());
        // The catalog has the events of buckets.
        for source in store.slices.iter().map(|slice| Some(&**slice)).chain([None]) {
            let expire = async {
                let old = if has_old { u64::MAX } else { 0 };
                let old = self.remove_events(source, before, old, stopping).await?;
                let surplus = store.count_events(source)?.saturating_sub(share);
                Ok(old + self.remove_events(source, Tick(u64::MAX), surplus, stopping).await?)
            };
            // A slice that cannot be changed must not prevent the others.
            removed += failed.note(expire.await)?;
        }
        failed.or_done(removed)
    }

    /// Removes the oldest events of a slice, or with `None` of those of buckets: at most `count`, and only those before
    /// `before`. Returns how many.
    async fn remove_events(
        &self,
        source: Option<&Slice>,
        before: Tick,
        count: u64,
        stopping: &impl Fn() -> bool,
    ) -> Result<u64, EngineError> {
        let mut removed = 0;
        while removed < count && !stopping() {
            let max = usize_of(count - removed).min(EVENTS_REMOVED_AT_ONCE);
            let (reply, answer) = oneshot::channel();
            match source {
                Some(slice) => slice.commits.queue.push(Command::RemoveEvents { before, max, reply })?,
                None => {
                    self.store().control.send(CatalogCommand::RemoveEvents { before, max, reply })?;
                }
            }
            let step = answer.await.map_err(|_| EngineError::ShuttingDown)??;
            removed += u64_of(step);
            if step < max {
                break;
            }
        }
        Ok(removed)
    }
}
