//! The routes of policies: list, create, get, replace, delete, attach to accounts and detach.

use cairn_api::{BoundPolicy, PolicyDocument, Statement};
use cairn_identity::directory::{PolicyId, PolicyInfo, PolicyReplacement};
use cairn_identity::policy::{Policy, PolicyDraft, StatementDraft, explain_aws_document};
use http::StatusCode;
use std::sync::Arc;

use crate::call::Call;
use crate::error::AdminError;
use crate::reply::{PAGE_PARTS, Reply, paged_list};
use crate::request::body::parse_json;

/// Returns the body of a policy.
pub(super) fn policy_body(info: &PolicyInfo) -> cairn_api::Policy {
    let PolicyDraft { name, description, statements } = info.policy.to_draft();
    cairn_api::Policy {
        id: info.id.to_string().into(),
        name: name.into(),
        description: description.into(),
        statements: statements.into_iter().map(statement_body).collect(),
        created_at: info.created_at.into(),
    }
}

/// Returns the body of a statement.
pub(crate) fn statement_body(draft: StatementDraft) -> Statement {
    Statement {
        effect: draft.effect.into(),
        actions: draft.actions.into_iter().map(Into::into).collect(),
        resources: draft.resources.into_iter().map(Into::into).collect(),
        only_if_absent: draft.only_if_absent,
        source_ip: draft.source_ip.map(|networks| networks.into_iter().map(Into::into).collect()),
    }
}

fn bound_policy(info: &PolicyInfo) -> BoundPolicy {
    let attached_to = info.attached_to.iter().map(|account| account.to_string().into()).collect();
    BoundPolicy { policy: policy_body(info), attached_to }
}

/// Returns a document as the directory reads it.
pub(crate) fn draft(request: PolicyDocument) -> PolicyDraft {
    let statement = |statement: Statement| StatementDraft {
        effect: statement.effect.into(),
        actions: statement.actions.into_iter().map(Into::into).collect(),
        resources: statement.resources.into_iter().map(Into::into).collect(),
        only_if_absent: statement.only_if_absent,
        source_ip: statement.source_ip.map(|networks| networks.into_iter().map(Into::into).collect()),
    };
    PolicyDraft {
        name: request.name.into(),
        description: request.description.into(),
        statements: request.statements.into_iter().map(statement).collect(),
    }
}

fn policy_id(call: &Call<'_, '_>) -> Result<PolicyId, AdminError> {
    PolicyId::parse(&call.segment("policy_id")?).ok_or(AdminError::PolicyNotFound)
}

/// `GET /api/v1/policies`.
pub(crate) async fn list(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let directory = Arc::clone(call.directory()?);
    let page = move |last: Option<&PolicyInfo>| directory.policies(last.map(|last| last.id), PAGE_PARTS);
    Ok(paged_list("policies", page, bound_policy))
}

/// Reads the document of a policy.
async fn document(call: &mut Call<'_, '_>) -> Result<Policy, AdminError> {
    let json = call.body_bytes().await?;
    let request: PolicyDocument =
        parse_json(&json).map_err(|error| explain_aws_document(&json).map_or(error, AdminError::invalid))?;
    Policy::from_draft(&draft(request)).map_err(|error| AdminError::invalid(error.to_string()))
}

/// `POST /api/v1/policies`.
pub(crate) async fn create(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let policy = document(&mut call).await?;
    let made = call.directory()?.create_policy(policy).await?;
    let reply = Reply::json(StatusCode::CREATED, &policy_body(&made))?;
    Ok(reply.resource(made.id.to_string()).detail(format!("named {}", made.policy.name)))
}

/// `GET /api/v1/policies/{policy_id}`.
pub(crate) async fn get(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let policy = call.directory()?.policy(policy_id(&call)?).ok_or(AdminError::PolicyNotFound)?;
    Reply::json(StatusCode::OK, &bound_policy(&policy))
}

/// `PUT /api/v1/policies/{policy_id}`: replaces the document completely. In force for the next request.
pub(crate) async fn replace(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let policy = document(&mut call).await?;
    let (replacement, outcome) = call.directory()?.replace_policy(policy_id(&call)?, policy).await?;
    let reply = Reply::json(StatusCode::OK, &bound_policy(&replacement.now))?;
    Ok(reply.detail(changes(&replacement)).with_outcome(outcome))
}

/// Describes what a replacement changed, for its audit record: the name, and the statements that went and came.
fn changes(replacement: &PolicyReplacement) -> String {
    let (before, now) = (&replacement.before, &replacement.now.policy);
    let mut text = format!("named {}", now.name);
    if before.name != now.name {
        text += &format!(", before {}", before.name);
    }
    if before.description != now.description {
        text += "; description changed";
    }
    for (what, from, to) in [("removed", before, now), ("added", now, before)] {
        let gone = from.statements.iter().filter(|statement| !to.statements.contains(statement));
        for statement in gone {
            text += &format!("; {what}: {statement}");
        }
    }
    text
}

/// `DELETE /api/v1/policies/{policy_id}`: only when it is attached to no account.
pub(crate) async fn delete(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let policy = call.directory()?.delete_policy(policy_id(&call)?).await?;
    Ok(Reply::no_content().detail(format!("named {}", policy.policy.name)))
}

/// `PUT /api/v1/policies/{policy_id}/bindings/{account_id}`: attaches. Idempotent.
pub(crate) async fn attach(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let outcome = call.directory()?.attach(policy_id(&call)?, call.account_id("account_id")?).await?;
    Ok(Reply::no_content().with_outcome(outcome))
}

/// `DELETE /api/v1/policies/{policy_id}/bindings/{account_id}`: detaches. Idempotent.
pub(crate) async fn detach(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let outcome = call.directory()?.detach(policy_id(&call)?, call.account_id("account_id")?).await?;
    Ok(Reply::no_content().with_outcome(outcome))
}
