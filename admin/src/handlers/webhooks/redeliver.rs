//! The routes that deliver events again: one delivery, or those of a period.

use cairn_api::{QueuedDeliveries, RedeliverEvents, Redelivered};
use cairn_http1::parse_rfc3339_millis;
use cairn_model::Timestamp;
use cairn_webhooks::{DeliveryId, Redeliver};
use http::StatusCode;

use super::body::delivery_body;
use crate::call::Call;
use crate::error::AdminError;
use crate::reply::Reply;

/// `POST /api/v1/webhook-deliveries/{id}/redeliver`. Answers with the new delivery.
pub(crate) async fn delivery(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let id = DeliveryId::parse(&call.segment("id")?).ok_or(AdminError::DeliveryNotFound)?;
    let queued = call.webhooks()?.redeliver_delivery(id).await?;
    let detail = format!("webhook {}, event {}, delivery {}", queued.webhook_id, queued.event_id, queued.id);
    Ok(Reply::json(StatusCode::ACCEPTED, &delivery_body(queued))?.detail(detail))
}

/// `POST /api/v1/webhooks/{id}/redeliver`: the events of a period, all or those whose delivery failed.
pub(crate) async fn period(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let id = call.webhook_id()?;
    let RedeliverEvents { since, until, only } = call.json().await?;
    let since = parse_time("since", &since)?;
    let until = until.map(|until| parse_time("until", &until)).transpose()?;
    let only = match only {
        Redelivered::Failed => Redeliver::Failed,
        Redelivered::All => Redeliver::All,
    };
    let queued = call.webhooks()?.redeliver(id, since, until, only).await?;
    Ok(Reply::json(StatusCode::ACCEPTED, &QueuedDeliveries { queued })?
        .detail(format!("{queued} deliveries queued")))
}

fn parse_time(name: &str, text: &str) -> Result<Timestamp, AdminError> {
    let time = parse_rfc3339_millis(text).map(Timestamp);
    time.ok_or_else(|| AdminError::invalid(format!("{name} must be a time such as 2026-11-21T05:00:00.000Z")))
}
