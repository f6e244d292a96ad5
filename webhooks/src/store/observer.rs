//! Callback from the writer: committed outcomes and changed webhooks.

use crate::id::{DeliveryId, WebhookId};
use cairn_model::Timestamp;

/// A committed outcome.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Recorded {
    pub(crate) webhook: WebhookId,
    pub(crate) id: DeliveryId,
    /// The time when its next attempt is due, if there is one.
    pub(crate) next: Option<Timestamp>,
}

/// Is told what the writer has committed. Its methods are called on the writer's thread and must not wait for it.
pub(crate) trait Observer: Send + Sync {
    /// Outcomes of attempts were recorded.
    fn recorded(&self, outcomes: &[Recorded]);
    /// A webhook was created, changed or deleted, or its waiting deliveries were dropped.
    fn changed(&self, webhook: WebhookId);
    /// The device failed. Nothing is recorded any more, and nothing must be delivered before the next start.
    fn failed(&self);
}
