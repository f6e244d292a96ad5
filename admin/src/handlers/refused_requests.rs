//! The routes of refused S3 requests: the last ones, and one by its id.

use std::cell::RefCell;
use std::net::IpAddr;
use std::sync::Arc;

use cairn_http1::iso8601_millis;
use cairn_model::{client_network, u64_of, usize_of};
use cairn_observe::{REFUSED_REQUESTS_MAX, RefusedRequest};
use http::StatusCode;
use serde::Serialize;

use crate::call::Call;
use crate::context::SettingValues;
use crate::error::AdminError;
use crate::limits::{LIST_YIELD_ENTRIES, REFUSED_REQUESTS_DEFAULT};
use crate::reply::{Reply, paged_list};

use super::refusal_rules::{DecidedByBody, PoliciesBody, SettingBody, explain_right};

/// JSON form of a refused request. Unknown values are null.
#[derive(Serialize)]
struct RefusedBody<'r> {
    time: String,
    request_id: &'r str,
    client: String,
    user_agent: Option<&'r str>,
    principal: Option<&'r str>,
    access_key: Option<&'r str>,
    method: &'r str,
    operation: Option<&'r str>,
    bucket: Option<&'r str>,
    key: Option<&'r str>,
    status: u16,
    code: &'static str,
    message: &'r str,
    refused_by: &'static str,
    right: Option<RightBody>,
    decided_by: DecidedByBody<'r>,
    setting: Option<SettingBody<'r>>,
    advice: Option<&'r str>,
}

/// The right that the account does not have.
#[derive(Serialize)]
struct RightBody {
    action: &'static str,
    resource: String,
    denied_explicitly: bool,
}

impl<'r> RefusedBody<'r> {
    /// Returns the JSON form. `policies` is what was found about the right, if it was looked for.
    fn new(request: &'r RefusedRequest, settings: &'r SettingValues, policies: Option<PoliciesBody>) -> Self {
        let known = |text: &'r str| Some(text).filter(|text| !text.is_empty());
        Self {
            time: iso8601_millis(request.time.0),
            request_id: &request.request_id,
            client: request.client.to_string(),
            user_agent: known(&request.user_agent),
            principal: request.principal.as_deref(),
            access_key: request.access_key.as_deref(),
            method: &request.method,
            operation: known(request.operation),
            bucket: known(&request.bucket),
            key: known(&request.key),
            status: request.status,
            code: request.code,
            message: &request.message,
            refused_by: request.refused_by.name(),
            right: request.right.as_ref().map(|right| RightBody {
                action: right.action,
                resource: right.resource(),
                denied_explicitly: right.is_denied_explicitly,
            }),
            decided_by: DecidedByBody::new(request, policies),
            setting: request.setting.map(|setting| SettingBody::new(setting, settings)),
            advice: request.advice.as_deref(),
        }
    }
}

/// A request that is serialized as its [`RefusedBody`].
struct Shown(Arc<RefusedRequest>, SettingValues);

impl Serialize for Shown {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RefusedBody::new(&self.0, &self.1, None).serialize(serializer)
    }
}

/// `GET /api/v1/refused-requests`: the latest first.
pub(crate) async fn list(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let query = call.parameters(&["client", "code", "bucket", "principal", "limit"])?;
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
        Shown(Arc::clone(request), Arc::clone(&settings))
    }))
}

/// `GET /api/v1/refused-requests/{request_id}`: with the statement that decides.
pub(crate) async fn get(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    let id = call.segment("request_id")?;
    let found = call.context.refused.find(&id).ok_or(AdminError::RefusedRequestNotFound)?;
    let policies = match &found.right {
        Some(right) => explain_right(call.directory()?, right).await?,
        None => None,
    };
    Reply::json(StatusCode::OK, &RefusedBody::new(&found, &call.context.setting_values, policies))
}
