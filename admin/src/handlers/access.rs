//! Permissions of accounts: whether one may do something, and why.
//!
//! `POST /api/v1/access/check` asks, and `GET /api/v1/service-accounts/{id}/policies` lists the statements in force.
//!
//! The verdict is that of the compiled rights, which decide about requests. The explanation reads the statements of the
//! same policies at the same moment. Nothing else of a request is looked at: not whether the bucket exists, nor locks,
//! nor quotas.

use cairn_api::{AccessVerdict, CheckAccess, CheckedAccount, IpAddress};
use cairn_engine::PublicAccess;
use cairn_identity::directory::{
    AccountAccess, AccountId, CredentialStatus, Directory, PolicyId, PolicyInfo,
};
use cairn_identity::policy::{
    Action, AppliedStatement, Decision, Explanation, Policy, Resource, narrowest_statement,
};
use cairn_model::{BucketName, ObjectKey, u64_of};
use futures_lite::future::yield_now;
use http::StatusCode;
use std::net::IpAddr;
use std::sync::Arc;

use crate::call::Call;
use crate::context::AdminContext;
use crate::error::AdminError;
use crate::limits::EXPLAINED_AT_ONCE;
use crate::reply::{PAGE_PARTS, Reply, paged_list};
use crate::request::names::{bucket_name, object_key};

use super::policies::{policy_body, statement_body};

/// The reason of a request that is allowed.
const ALLOWED: &str = "allowed";

/// Returns the answer for the root credential, which has no policies.
fn of_root(is_accepted: bool) -> AccessVerdict {
    AccessVerdict {
        allowed: is_accepted,
        only_if_absent: false,
        reason: if is_accepted { "root" } else { "root_disabled" }.into(),
        account: None,
        decided_by: None,
        also_applying: Vec::new(),
        also_applying_omitted: 0,
        would_allow: None,
    }
}

/// Returns the answer for anybody, whom only rules of public access allow something.
fn of_anybody(question: &Question, context: &AdminContext) -> Result<AccessVerdict, AdminError> {
    let bucket = context.open()?.engine.store().bucket(&question.bucket);
    let access = bucket.and_then(|bucket| bucket.public_access());
    let is_allowed = |access: &PublicAccess| match (question.action, &question.key) {
        (Action::GetObject, Some(key)) => access.may_read(key.as_str()),
        (Action::ListBucket, None) => access.may_list(""),
        _ => false,
    };
    let allowed = context.capabilities.public_access && access.as_deref().is_some_and(is_allowed);
    let reason = if allowed { "public" } else { "not_public" }.into();
    Ok(AccessVerdict { allowed, reason, ..of_root(false) })
}

/// A question about access: an action, and the bucket or object on which requests do it.
struct Question {
    action: Action,
    bucket: BucketName,
    key: Option<ObjectKey>,
    /// The address of the client, if the question names one.
    client: Option<IpAddr>,
}

impl Question {
    fn parse(request: &CheckAccess) -> Result<Self, AdminError> {
        let action = Action::parse(&request.action).ok_or_else(|| {
            let known = Action::ALL.map(Action::name).join(", ");
            let asked = &*request.action;
            AdminError::invalid(format!("action: {asked:?} is not an action; the actions are {known}"))
        })?;
        let bucket = bucket_name(&request.bucket)?;
        let address = |text: &IpAddress| {
            text.parse()
                .map_err(|_| AdminError::invalid(format!("source_ip: {:?} is not an IP address", &**text)))
        };
        let client = request.source_ip.as_ref().map(address).transpose()?;
        match (&request.key, action.is_on_buckets()) {
            (Some(_), true) => {
                Err(AdminError::invalid(format!("key: {action} is done to a bucket; leave out the key")))
            }
            (None, false) => {
                Err(AdminError::invalid(format!("key: {action} is done to an object; name its key")))
            }
            (None, true) => Ok(Self { action, bucket, key: None, client }),
            (Some(key), false) => Ok(Self { action, bucket, key: Some(object_key(key)?), client }),
        }
    }

    fn resource(&self) -> Resource<'_> {
        match &self.key {
            None => Resource::Bucket(self.bucket.as_str()),
            Some(key) => Resource::Object(self.bucket.as_str(), key.as_str()),
        }
    }
}

/// Finds the account of a request. A credential counts only if the request names one.
fn subject(
    directory: &Directory,
    request: &CheckAccess,
) -> Result<(AccountAccess, CredentialStatus), AdminError> {
    let (id, status) = match (&request.account_id, &request.access_key) {
        _ if request.anonymous.is_some() => {
            return Err(AdminError::invalid("anonymous: it must be true, without account_id and access_key"));
        }
        (Some(id), None) => {
            (AccountId::parse(id).ok_or(AdminError::AccountNotFound)?, CredentialStatus::Valid)
        }
        (None, Some(key)) => directory.credential_status(key).ok_or(AdminError::CredentialNotFound)?,
        _ => {
            return Err(AdminError::invalid(
                "either account_id or access_key is required, or anonymous: true",
            ));
        }
    };
    Ok((directory.account_access(id).ok_or(AdminError::AccountNotFound)?, status))
}

/// Reads all statements of the account. The executor serves other requests in between.
pub(super) async fn explain<'q>(
    action: Action,
    resource: Resource<'q>,
    client: Option<IpAddr>,
    account: &AccountAccess,
) -> Result<Explanation<'q, usize>, AdminError> {
    let mut explanation = Explanation::new(action, resource, client);
    let mut patterns = 0;
    for (index, (_, policy)) in account.policies.iter().enumerate() {
        explanation.add(index, policy);
        patterns += policy.pattern_count();
        if patterns >= EXPLAINED_AT_ONCE {
            patterns = 0;
            yield_now().await;
        }
    }
    let decided = account.rights.decide(action, resource, client);
    if explanation.decision() == decided {
        return Ok(explanation);
    }
    tracing::error!(target: "service", account = %account.id, ?decided, "the explanation of a decision differs from it");
    Err(AdminError::Internal)
}

fn applied_body(
    applied: AppliedStatement<usize>,
    policies: &[(PolicyId, Arc<Policy>)],
) -> cairn_api::AppliedStatement {
    let (id, policy) = &policies[applied.policy];
    let statement = &policy.statements[applied.statement];
    cairn_api::AppliedStatement {
        policy_id: id.to_string().into(),
        policy_name: policy.name.clone().into(),
        statement: u64_of(applied.statement),
        effect: statement.effect.name().into(),
        actions: statement.actions.iter().map(|action| action.name().into()).collect(),
        resources: statement.resources.iter().map(|resource| resource.to_string().into()).collect(),
        matching_resource: statement.resources[applied.resource].to_string().into(),
        only_if_absent: statement.only_if_absent,
        source_ip: (!statement.source_ip.is_empty())
            .then(|| statement.source_ip.iter().map(|network| network.to_string().into()).collect()),
    }
}

/// `POST /api/v1/access/check`.
pub(crate) async fn check(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let request: CheckAccess = call.json().await?;
    let question = Question::parse(&request)?;
    let is_root = request.access_key.as_ref() == Some(&call.context.credentials.root_access_key);
    if is_root && request.account_id.is_none() {
        return Reply::json(StatusCode::OK, &of_root(call.context.capabilities.root_s3));
    }
    if request.anonymous == Some(true) && request.account_id.is_none() && request.access_key.is_none() {
        return Reply::json(StatusCode::OK, &of_anybody(&question, call.context)?);
    }
    let (account, credential) = subject(call.directory()?, &request)?;
    let explanation = explain(question.action, question.resource(), question.client, &account).await?;
    let decision = explanation.decision();
    let by_policies = match decision {
        Decision::Allowed | Decision::AllowedIfAbsent => ALLOWED,
        Decision::DeniedExplicitly => "denied",
        Decision::DeniedImplicitly => "no_statement",
    };
    let reason = match credential {
        _ if !account.enabled => "account_disabled",
        CredentialStatus::Disabled => "credential_disabled",
        CredentialStatus::Expired => "credential_expired",
        CredentialStatus::Valid => by_policies,
    };
    let mut statements = explanation.statements().map(|applied| applied_body(applied, &account.policies));
    let is_missing = decision == Decision::DeniedImplicitly;
    let body = AccessVerdict {
        allowed: reason == ALLOWED,
        only_if_absent: reason == ALLOWED && decision == Decision::AllowedIfAbsent,
        reason: reason.into(),
        decided_by: statements.next(),
        also_applying: statements.collect(),
        also_applying_omitted: u64_of(explanation.omitted()),
        would_allow: is_missing
            .then(|| statement_body(narrowest_statement(question.action, question.resource()))),
        account: Some(CheckedAccount {
            id: account.id.to_string().into(),
            name: account.name.to_string().into(),
            enabled: account.enabled,
        }),
    };
    Reply::json(StatusCode::OK, &body)
}

/// `GET /api/v1/service-accounts/{id}/policies`: all statements in force for an account, by policy.
pub(crate) async fn policies_of(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let directory = Arc::clone(call.directory()?);
    let id = call.account_id("id")?;
    directory.account(id).ok_or(AdminError::AccountNotFound)?;
    let page =
        move |last: Option<&PolicyInfo>| directory.policies_of(id, last.map(|last| last.id), PAGE_PARTS);
    Ok(paged_list("policies", page, policy_body))
}
