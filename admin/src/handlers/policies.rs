//! The routes of policies: list, create, get, delete, attach to accounts and detach.

use cairn_http1::iso8601_millis;
use cairn_identity::directory::{PolicyId, PolicyInfo};
use cairn_identity::policy::{Policy, PolicyDraft, explain_aws_document};
use http::StatusCode;
use serde::Serialize;
use std::sync::Arc;

use crate::call::Call;
use crate::error::AdminError;
use crate::reply::{PAGE_PARTS, Reply, paged_list};
use crate::request::body::parse_json;

/// JSON form of a policy.
#[derive(Serialize)]
pub(crate) struct PolicyBody {
    id: String,
    #[serde(flatten)]
    document: PolicyDraft,
    created_at: String,
}

/// JSON form of a policy with the accounts that it is attached to.
#[derive(Serialize)]
struct BoundPolicyBody {
    #[serde(flatten)]
    policy: PolicyBody,
    attached_to: Vec<String>,
}

impl From<&PolicyInfo> for PolicyBody {
    fn from(info: &PolicyInfo) -> Self {
        Self {
            id: info.id.to_string(),
            document: info.policy.to_draft(),
            created_at: iso8601_millis(info.created_at.0),
        }
    }
}

impl From<&PolicyInfo> for BoundPolicyBody {
    fn from(info: &PolicyInfo) -> Self {
        Self { policy: info.into(), attached_to: info.attached_to.iter().map(ToString::to_string).collect() }
    }
}

fn policy_id(call: &Call<'_, '_>) -> Result<PolicyId, AdminError> {
    PolicyId::parse(&call.segment("policy_id")?).ok_or(AdminError::PolicyNotFound)
}

/// `GET /api/v1/policies`.
pub(crate) async fn list(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    let directory = Arc::clone(call.directory()?);
    let page = move |last: Option<&PolicyInfo>| directory.policies(last.map(|last| last.id), PAGE_PARTS);
    Ok(paged_list("policies", page, |policy| BoundPolicyBody::from(policy)))
}

/// `POST /api/v1/policies`.
pub(crate) async fn create(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    let json = call.body_bytes().await?;
    let draft: PolicyDraft =
        parse_json(&json).map_err(|error| explain_aws_document(&json).map_or(error, AdminError::invalid))?;
    let policy = Policy::from_draft(&draft).map_err(|error| AdminError::invalid(error.to_string()))?;
    let made = call.directory()?.create_policy(policy).await?;
    let reply = Reply::json(StatusCode::CREATED, &PolicyBody::from(&made))?;
    Ok(reply.resource(made.id.to_string()).detail(format!("named {}", made.policy.name)))
}

/// `GET /api/v1/policies/{policy_id}`.
pub(crate) async fn get(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    let policy = call.directory()?.policy(policy_id(&call)?).ok_or(AdminError::PolicyNotFound)?;
    Reply::json(StatusCode::OK, &BoundPolicyBody::from(&policy))
}

/// `DELETE /api/v1/policies/{policy_id}`: only when it is attached to no account.
pub(crate) async fn delete(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    call.no_body().await?;
    let policy = call.directory()?.delete_policy(policy_id(&call)?).await?;
    Ok(Reply::no_content().detail(format!("named {}", policy.policy.name)))
}

/// `PUT /api/v1/policies/{policy_id}/bindings/{account_id}`: attaches. Idempotent.
pub(crate) async fn attach(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    call.no_body().await?;
    let outcome = call.directory()?.attach(policy_id(&call)?, call.account_id("account_id")?).await?;
    Ok(Reply::no_content().with_outcome(outcome))
}

/// `DELETE /api/v1/policies/{policy_id}/bindings/{account_id}`: detaches. Idempotent.
pub(crate) async fn detach(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    call.no_body().await?;
    let outcome = call.directory()?.detach(policy_id(&call)?, call.account_id("account_id")?).await?;
    Ok(Reply::no_content().with_outcome(outcome))
}
