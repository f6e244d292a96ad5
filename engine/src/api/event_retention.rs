//! Retention of storage events: removes those whose time is over, in small transactions.

use crate::api::engine::Engine;
use crate::error::EngineError;
use crate::limits::{EVENT_EXPIRY_INTERVAL, EVENTS_REMOVED_AT_ONCE};
use crate::slice::command::Command;
use crate::store::background::wait;
use crate::store::bucket_catalog::CatalogCommand;
use crate::types::event::{EventQuery, Tick};
use cairn_model::Timestamp;
use futures_channel::oneshot;
use std::rc::Rc;
use std::time::Duration;

impl Engine {
    /// Removes events that are older than `retention`, periodically, until `stopping` returns true. Runs on one executor of a
    /// store.
    pub async fn expire_events(self: &Rc<Self>, retention: Duration, stopping: impl Fn() -> bool + 'static) {
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

    /// Removes events that are older than `retention`, and returns their number.
    ///
    /// # Errors
    /// Those of a commit. Earlier removals stay in effect.
    pub async fn expire_events_now(
        &self,
        retention: Duration,
        stopping: &impl Fn() -> bool,
    ) -> Result<u64, EngineError> {
        let age = u64::try_from(retention.as_millis()).unwrap_or(u64::MAX);
        let before = Tick::first_at(Timestamp(self.store().clock.now().0.saturating_sub(age)));
        let (store, max) = (self.store(), EVENTS_REMOVED_AT_ONCE);
        // Without this, each look would be a commit of every slice.
        let oldest = store.events(&EventQuery { until: before, limit: 1, ..EventQuery::default() })?;
        if oldest.events.is_empty() && !oldest.is_truncated {
            return Ok(0);
        }
        let mut removed = 0;
        for source in store.slices.iter().map(Some).chain([None]) {
            while !stopping() {
                let (reply, answer) = oneshot::channel();
                match source {
                    Some(slice) => slice.queue.push(Command::RemoveEvents { before, max, reply })?,
                    None => store.send_to_catalog(CatalogCommand::RemoveEvents { before, max, reply })?,
                }
                let count = answer.await.map_err(|_| EngineError::ShuttingDown)??;
                removed += cairn_model::u64_of(count);
                if count < max {
                    break;
                }
            }
        }
        Ok(removed)
    }
}
