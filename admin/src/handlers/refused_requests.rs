//! The routes of refused S3 requests: the last ones, and one by its id.

use std::cell::RefCell;
use std::net::IpAddr;
use std::sync::Arc;

use cairn_api::MissingRight;
use cairn_model::{client_network, u64_of, usize_of};
use cairn_observe::{REFUSED_REQUESTS_MAX, RefusedRequest};
use http::StatusCode;

use crate::call::Call;
use crate::context::SettingValues;
use crate::error::AdminError;
use crate::limits::{LIST_YIELD_ENTRIES, REFUSED_REQUESTS_DEFAULT};
use crate::reply::{Reply, paged_list};

use super::audited_refusal;
use super::refusal_rules::{deciding_rule, explain_right, setting_body};

/// Returns the JSON form of a refused request. Unknown values are null.
fn refused_body(request: &RefusedRequest, settings: &SettingValues) -> cairn_api::RefusedRequest {
    let known = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    cairn_api::RefusedRequest {
        time: request.time.into(),
        request_id: request.request_id.clone(),
        client: request.client.to_string().into(),
        user_agent: known(&request.user_agent),
        principal: request.principal.as_deref().map(str::to_owned),
        access_key: request.access_key.clone(),
        method: Some(request.method.clone()),
        operation: known(request.operation),
        bucket: known(&request.bucket),
        key: known(&request.key),
        status: Some(request.status),
        code: request.code.to_owned(),
        message: Some(request.message.clone()),
        refused_by: request.refused_by.name().into(),
        right: request.right.as_ref().map(|right| MissingRight {
            action: right.action.to_owned(),
            resource: right.resource(),
            denied_explicitly: right.is_denied_explicitly,
        }),
        decided_by: deciding_rule(request),
        setting: request.setting.map(|setting| setting_body(setting, settings)),
        advice: request.advice.clone(),
    }
}

/// `GET /api/v1/refused-requests`: the latest first.
pub(crate) async fn list(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let query = &call.parameters;
    let limit = query.number("limit", 1..=u64_of(REFUSED_REQUESTS_MAX))?;
    let client: Option<IpAddr> = query
        .text("client")
        .map(|address| address.parse().map_err(|_| AdminError::invalid("client must be an IP address")))
        .transpose()?;
    let is = |wanted: Option<&str>, found: &str| wanted.is_none_or(|wanted| wanted == found);
    let mut found = call.context.refused.list(|request| {
        client.is_none_or(|client| client_network(client) == client_network(request.client))
            && is(query.text("code"), request.code)
            && is(query.text("bucket"), &request.bucket)
            && is(query.text("principal"), request.principal.as_deref().unwrap_or_default())
    });
    found.truncate(limit.map_or(REFUSED_REQUESTS_DEFAULT, usize_of));
    let rest = RefCell::new(found.into_iter());
    let page = move |_: Option<&Arc<RefusedRequest>>| {
        rest.borrow_mut().by_ref().take(LIST_YIELD_ENTRIES).collect::<Vec<_>>()
    };
    let settings = Arc::clone(&call.context.setting_values);
    Ok(paged_list("refused_requests", page, move |request: &Arc<RefusedRequest>| {
        refused_body(request, &settings)
    }))
}

/// `GET /api/v1/refused-requests/{request_id}`: with the statement that decides. What is no longer in memory may be in the
/// audit trail.
pub(crate) async fn get(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let id = call.segment("request_id")?;
    let Some(found) = call.context.refused.find(&id) else {
        return Reply::json(StatusCode::OK, &audited_refusal::find(&call, &id).await?);
    };
    let mut body = refused_body(&found, &call.context.setting_values);
    if let Some(right) = &found.right {
        body.decided_by = explain_right(call.directory()?, right, found.client, body.decided_by).await?;
    }
    Reply::json(StatusCode::OK, &body)
}
