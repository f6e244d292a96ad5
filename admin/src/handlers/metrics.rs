//! The routes of metrics: as text for Prometheus, and as JSON.

use cairn_observe::Family;
use http::StatusCode;
use serde::Serialize;

use crate::call::Call;
use crate::error::AdminError;
use crate::metrics::{self, JsonSample, TEXT_FORMAT};
use crate::reply::Reply;

async fn families(call: &Call<'_, '_>) -> Result<Vec<Family>, AdminError> {
    let (store, context) = (call.store()?, call.context);
    let (audit, webhooks) = (context.audit.as_deref(), context.webhooks.as_deref());
    let sharing = context.sharing.as_deref();
    Ok(metrics::families(store, &context.metrics, audit, webhooks, sharing).await)
}

/// `GET /metrics`.
pub(crate) async fn text(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let text = metrics::text(&families(&call).await?);
    Ok(Reply::bytes(StatusCode::OK, TEXT_FORMAT, text.into_bytes()))
}

#[derive(Serialize)]
struct AllMetrics {
    metrics: Vec<JsonSample>,
}

/// `GET /api/v1/system/metrics`.
pub(crate) async fn json(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    let metrics = metrics::json(families(&call).await?);
    Reply::json(StatusCode::OK, &AllMetrics { metrics })
}
