//! Runs test deliveries and redeliveries on short-lived threads.

use super::context::Context;
use super::event_bytes::EventBytes;
use super::redelivery::{self, Redeliver};
use crate::client::Probe;
use crate::error::WebhookError;
use crate::id::{DeliveryId, WebhookId};
use crate::limits::TASKS_MAX;
use crate::store::Waiting;
use cairn_engine::StorageEvent;
use cairn_model::Timestamp;
use cairn_tables::StoreFailure;
use futures_channel::oneshot;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Context {
    /// Runs a blocking task on a new thread. At most [`TASKS_MAX`] run at a time.
    async fn task<T: Send + 'static>(
        self: &Arc<Self>,
        task: impl FnOnce(&Arc<Self>) -> Result<T, WebhookError> + Send + 'static,
    ) -> Result<T, WebhookError> {
        if self.is_closing() {
            return Err(StoreFailure::Closing.into());
        }
        if self.tasks.fetch_add(1, Ordering::AcqRel) >= TASKS_MAX {
            self.tasks.fetch_sub(1, Ordering::AcqRel);
            return Err(StoreFailure::Overloaded.into());
        }
        let (reply, answer) = oneshot::channel();
        let context = Arc::clone(self);
        let run = move || {
            let done = catch_unwind(AssertUnwindSafe(|| task(&context)));
            context.tasks.fetch_sub(1, Ordering::AcqRel);
            let failed = || Err(WebhookError::failed("a task panicked"));
            // The caller may have gone.
            let _ = reply.send(done.unwrap_or_else(|_| failed()));
        };
        if let Err(error) = std::thread::Builder::new().name("webhook-task".to_owned()).spawn(run) {
            self.tasks.fetch_sub(1, Ordering::AcqRel);
            return Err(error.into());
        }
        answer.await.map_err(|_| StoreFailure::Closing)?
    }

    /// Sends an event that only tests a webhook, outside the queue.
    pub(crate) async fn test(
        self: &Arc<Self>,
        webhook: WebhookId,
        event: StorageEvent,
    ) -> Result<Probe, WebhookError> {
        self.task(move |context| {
            let found = context.shared().webhook(webhook).ok_or(WebhookError::WebhookNotFound)?;
            let event = EventBytes::of_test(&event);
            Ok(context.client.probe(&event.request(&found.record, context.shared().clock.now())))
        })
        .await
    }

    /// Delivers one event again.
    pub(crate) async fn redeliver_one(self: &Arc<Self>, id: DeliveryId) -> Result<Waiting, WebhookError> {
        self.task(move |context| redelivery::redeliver_one(context, id)).await
    }

    /// Delivers many events to a webhook again.
    pub(crate) async fn redeliver(
        self: &Arc<Self>,
        webhook: WebhookId,
        since: Timestamp,
        until: Option<Timestamp>,
        which: Redeliver,
    ) -> Result<u64, WebhookError> {
        self.task(move |context| redelivery::redeliver(context, webhook, since, until, which)).await
    }

    /// Sends what was held back because the target was away.
    pub(crate) fn resume(self: &Arc<Self>, webhook: WebhookId) {
        redelivery::resume(self, webhook);
    }
}
