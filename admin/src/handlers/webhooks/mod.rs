//! The routes of webhooks: list, create, show, change, enable and disable, delete, rotate the secret, test.

mod body;
mod deliveries;
mod redeliver;

use std::sync::Arc;

use cairn_api::{
    BucketName, CreateWebhook, RotateSecret, RotatedSecret, SetStatus, Time, UpdateWebhook, WebhookList,
};
use cairn_engine::EventType;
use cairn_identity::Role;
use cairn_webhooks::{
    NewWebhook, OVERLAP_SECONDS_DEFAULT, OVERLAP_SECONDS_MAX, Webhook, WebhookChange, WebhookId, Webhooks,
};
use http::StatusCode;

use crate::call::Call;
use crate::error::AdminError;
use crate::handlers::accounts::status_detail;
use crate::handlers::events::parse_type;
use crate::reply::Reply;
use crate::request::names::bucket_name;
use body::{test_body, webhook_body};

pub(crate) use deliveries::list as list_deliveries;
pub(crate) use redeliver::{delivery as redeliver_delivery, period as redeliver_period};

impl Call<'_, '_> {
    /// Returns the webhooks.
    ///
    /// # Errors
    /// `NOT_READY` when no store is open.
    pub(crate) fn webhooks(&self) -> Result<&Arc<Webhooks>, AdminError> {
        Ok(&self.context.open()?.webhooks)
    }

    /// Returns the id of the webhook in the path.
    ///
    /// # Errors
    /// `WEBHOOK_NOT_FOUND` when the segment is not a valid id.
    fn webhook_id(&self) -> Result<WebhookId, AdminError> {
        WebhookId::parse(&self.segment("id")?).ok_or(AdminError::WebhookNotFound)
    }
}

/// `GET /api/v1/webhooks`.
pub(crate) async fn list(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let webhooks = call.webhooks()?.list();
    Reply::json(
        StatusCode::OK,
        &WebhookList {
            webhooks: webhooks
                .iter()
                .map(|webhook| readable_body(&call, webhook))
                .collect::<Result<_, _>>()?,
        },
    )
}

/// `GET /api/v1/webhooks/{id}`.
pub(crate) async fn get(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let webhook = call.webhooks()?.get(call.webhook_id()?).ok_or(AdminError::WebhookNotFound)?;
    Reply::json(StatusCode::OK, &readable_body(&call, &webhook)?)
}

/// Returns the body of a webhook for a caller of any role. Path and query of the target often contain a secret of the receiver.
/// So only those who may change the webhook see them.
fn readable_body(call: &Call<'_, '_>, webhook: &Webhook) -> Result<cairn_api::Webhook, AdminError> {
    let mut body = webhook_body(webhook);
    if call.caller()?.standing.role() != Some(Role::SystemAdmin) {
        body.target_url = webhook.masked_target().into();
    }
    Ok(body)
}

/// `POST /api/v1/webhooks`. Only this response contains the signing secret.
pub(crate) async fn create(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let request: CreateWebhook = call.json().await?;
    if !call.context.capabilities.events {
        return Err(AdminError::EventsDisabled);
    }
    let new = NewWebhook {
        target_url: request.target_url.into(),
        event_types: event_types(&request.event_types)?,
        bucket_filter: request.bucket_filter.map(checked_bucket).transpose()?,
        object_prefix_filter: request.object_prefix_filter.map(String::from),
        enabled: request.enabled,
    };
    let (webhook, secret) = call.webhooks()?.create(new).await?;
    let detail = format!("{}; the signing secret was shown", described(&webhook));
    let signing_secret = secret.expose().to_owned().into();
    let body = cairn_api::NewWebhook { subscription: webhook_body(&webhook), signing_secret };
    Ok(Reply::json(StatusCode::CREATED, &body)?.resource(webhook.id.to_string()).detail(detail))
}

/// Returns the audit detail of a webhook. The path and the query of its target may be confidential.
fn described(webhook: &Webhook) -> String {
    let types: Vec<_> = webhook.event_types.iter().map(|kind| kind.name()).collect();
    let mut detail = format!("{} to {}", types.join(", "), webhook.target_origin());
    if let Some(bucket) = &webhook.bucket_filter {
        detail.push_str(&format!(", bucket {bucket}"));
    }
    if let Some(prefix) = &webhook.object_prefix_filter {
        detail.push_str(&format!(", prefix {prefix}"));
    }
    detail
}

/// Parses event types, each of which may be named once.
pub(crate) fn event_types(names: &[cairn_api::EventType]) -> Result<Vec<EventType>, AdminError> {
    let mut types = Vec::new();
    for name in names {
        let kind = parse_type(name)?;
        if types.contains(&kind) {
            return Err(AdminError::invalid(format!("event_types contains {name} twice")));
        }
        types.push(kind);
    }
    if types.is_empty() {
        return Err(AdminError::invalid("event_types must name at least one type"));
    }
    Ok(types)
}

/// Checks the name of a bucket, which need not exist.
fn checked_bucket(name: BucketName) -> Result<String, AdminError> {
    bucket_name(&name).map(|_| name.into())
}

/// `PATCH /api/v1/webhooks/{id}`: changes the members that are given. A filter that is null is removed.
pub(crate) async fn update(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let id = call.webhook_id()?;
    let request: UpdateWebhook = call.json().await?;
    let change = WebhookChange {
        target_url: request.target_url.map(String::from),
        event_types: request.event_types.as_deref().map(event_types).transpose()?,
        bucket_filter: request.bucket_filter.map(|name| name.map(checked_bucket).transpose()).transpose()?,
        object_prefix_filter: request.object_prefix_filter.map(|prefix| prefix.map(String::from)),
    };
    let webhooks = call.webhooks()?;
    let before = webhooks.get(id).ok_or(AdminError::WebhookNotFound)?;
    if change == WebhookChange::default() {
        return Ok(Reply::json(StatusCode::OK, &webhook_body(&before))?.without_change());
    }
    let webhook = webhooks.patch(id, change).await?;
    Ok(Reply::json(StatusCode::OK, &webhook_body(&webhook))?.detail(described(&webhook)))
}

/// `PUT /api/v1/webhooks/{id}/status`. Disabling drops the pending deliveries.
pub(crate) async fn set_status(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let id = call.webhook_id()?;
    let SetStatus { enabled } = call.json().await?;
    let webhooks = call.webhooks()?;
    let before = webhooks.get(id).ok_or(AdminError::WebhookNotFound)?;
    if before.enabled == enabled {
        return Ok(Reply::json(StatusCode::OK, &webhook_body(&before))?.without_change());
    }
    let webhook = webhooks.set_enabled(id, enabled).await?;
    Ok(Reply::json(StatusCode::OK, &webhook_body(&webhook))?.detail(status_detail(enabled)))
}

/// `POST /api/v1/webhooks/{id}/resume`: sends what waits because the target was away.
pub(crate) async fn resume(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let id = call.webhook_id()?;
    let webhooks = call.webhooks()?;
    let pending = webhooks.get(id).ok_or(AdminError::WebhookNotFound)?.health.pending;
    let webhook = webhooks.resume(id)?;
    Ok(Reply::json(StatusCode::OK, &webhook_body(&webhook))?.detail(format!("{pending} deliveries waited")))
}

/// `DELETE /api/v1/webhooks/{id}`: with its secret and pending deliveries.
pub(crate) async fn delete(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let webhook = call.webhooks()?.delete(call.webhook_id()?).await?;
    Ok(Reply::no_content().detail(described(&webhook)))
}

/// `POST /api/v1/webhooks/{id}/rotate-secret`. Only this response contains the new secret.
pub(crate) async fn rotate_secret(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let id = call.webhook_id()?;
    let request: RotateSecret = call.optional_json().await?;
    let overlap = request.overlap_seconds.unwrap_or(OVERLAP_SECONDS_DEFAULT);
    if overlap > OVERLAP_SECONDS_MAX {
        let message = format!("overlap_seconds must be an integer from 0 to {OVERLAP_SECONDS_MAX}");
        return Err(AdminError::invalid(message));
    }
    let (secret, previous_expires_at) = call.webhooks()?.rotate_secret(id, overlap).await?;
    let previous_expires_at = Time::from(previous_expires_at);
    let detail =
        format!("a new signing secret was shown; the previous one is valid until {previous_expires_at}");
    let body = RotatedSecret { signing_secret: secret.expose().to_owned().into(), previous_expires_at };
    Ok(Reply::json(StatusCode::CREATED, &body)?.detail(detail))
}

/// `POST /api/v1/webhooks/{id}/test`: sends one event outside the queue.
pub(crate) async fn test(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let (id, webhooks) = (call.webhook_id()?, Arc::clone(call.webhooks()?));
    let probe = call.until_disconnect(async move { Ok(webhooks.test(id).await?) }).await?;
    let body = test_body(probe);
    let detail = if body.delivered { "delivered" } else { "not delivered" };
    Ok(Reply::json(StatusCode::OK, &body)?.detail(detail))
}
