//! Permissions of accounts: whether one may do something, and why.
//!
//! `POST /api/v1/access/check` asks, and `GET /api/v1/service-accounts/{id}/policies` lists the statements in force.
//!
//! The verdict is that of the compiled rights, which decide about requests. The explanation reads the statements of the
//! same policies at the same moment. Nothing else of a request is looked at: not whether the bucket exists, nor locks,
//! nor quotas.

use cairn_identity::directory::{
    AccountAccess, AccountId, CredentialStatus, Directory, PolicyId, PolicyInfo,
};
use cairn_identity::policy::{
    Action, AppliedStatement, Decision, Explanation, Policy, Resource, StatementDraft, narrowest_statement,
};
use cairn_model::{BucketName, ObjectKey};
use futures_lite::future::yield_now;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

use crate::call::Call;
use crate::error::AdminError;
use crate::limits::EXPLAINED_AT_ONCE;
use crate::reply::{PAGE_PARTS, Reply, paged_list};
use crate::request::json::present;
use crate::request::names::{bucket_name, object_key};

use super::policies::PolicyBody;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckRequest {
    #[serde(default, deserialize_with = "present")]
    account_id: Option<String>,
    #[serde(default, deserialize_with = "present")]
    access_key: Option<String>,
    action: String,
    bucket: String,
    #[serde(default, deserialize_with = "present")]
    key: Option<String>,
}

/// What decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Reason {
    /// A statement allows it, and none denies it.
    Allowed,
    /// A statement denies it.
    Denied,
    /// No statement is about it.
    NoStatement,
    /// The root credential may do everything.
    Root,
    /// The configuration does not accept the root credential for S3.
    RootDisabled,
    /// The account is disabled.
    AccountDisabled,
    /// The credential is disabled.
    CredentialDisabled,
    /// The credential has expired.
    CredentialExpired,
}

#[derive(Serialize)]
struct AccountRef {
    id: String,
    name: String,
    enabled: bool,
}

/// A statement that applies, with the resource that matches.
#[derive(Serialize)]
struct AppliedBody {
    policy_id: String,
    policy_name: String,
    /// The index of the statement in its policy.
    statement: usize,
    effect: &'static str,
    actions: Vec<&'static str>,
    resources: Vec<String>,
    matching_resource: String,
}

#[derive(Serialize)]
struct CheckBody {
    allowed: bool,
    reason: Reason,
    account: Option<AccountRef>,
    /// The statement that decides, also if the account or the credential may not be used.
    decided_by: Option<AppliedBody>,
    /// The other statements that apply, those that deny first.
    also_applying: Vec<AppliedBody>,
    also_applying_omitted: usize,
    /// A statement that would allow it; null if one denies it or none is missing.
    would_allow: Option<StatementDraft>,
}

impl CheckBody {
    /// The answer for the root credential, which has no policies.
    const fn of_root(is_accepted: bool) -> Self {
        Self {
            allowed: is_accepted,
            reason: if is_accepted { Reason::Root } else { Reason::RootDisabled },
            account: None,
            decided_by: None,
            also_applying: Vec::new(),
            also_applying_omitted: 0,
            would_allow: None,
        }
    }
}

/// What is asked about: an action, and the bucket or object on which requests do it.
struct Question {
    action: Action,
    bucket: BucketName,
    key: Option<ObjectKey>,
}

impl Question {
    fn parse(request: &CheckRequest) -> Result<Self, AdminError> {
        let action = Action::parse(&request.action).ok_or_else(|| {
            let known = Action::ALL.map(Action::name).join(", ");
            AdminError::invalid(format!(
                "action: {:?} is not an action; the actions are {known}",
                request.action
            ))
        })?;
        let bucket = bucket_name(&request.bucket)?;
        match (&request.key, action.is_on_buckets()) {
            (Some(_), true) => {
                Err(AdminError::invalid(format!("key: {action} is done to a bucket; leave out the key")))
            }
            (None, false) => {
                Err(AdminError::invalid(format!("key: {action} is done to an object; name its key")))
            }
            (None, true) => Ok(Self { action, bucket, key: None }),
            (Some(key), false) => Ok(Self { action, bucket, key: Some(object_key(key)?) }),
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
    request: &CheckRequest,
) -> Result<(AccountAccess, CredentialStatus), AdminError> {
    let (id, status) = match (&request.account_id, &request.access_key) {
        (Some(id), None) => {
            (AccountId::parse(id).ok_or(AdminError::AccountNotFound)?, CredentialStatus::Valid)
        }
        (None, Some(key)) => directory.credential_status(key).ok_or(AdminError::CredentialNotFound)?,
        _ => return Err(AdminError::invalid("either account_id or access_key is required")),
    };
    Ok((directory.account_access(id).ok_or(AdminError::AccountNotFound)?, status))
}

/// Reads all statements of the account. The executor serves other requests in between.
pub(super) async fn explain<'q>(
    action: Action,
    resource: Resource<'q>,
    account: &AccountAccess,
) -> Result<Explanation<'q, usize>, AdminError> {
    let mut explanation = Explanation::new(action, resource);
    let mut patterns = 0;
    for (index, (_, policy)) in account.policies.iter().enumerate() {
        explanation.add(index, policy);
        patterns += policy.pattern_count();
        if patterns >= EXPLAINED_AT_ONCE {
            patterns = 0;
            yield_now().await;
        }
    }
    let decided = account.rights.decide(action, resource);
    if explanation.decision() == decided {
        return Ok(explanation);
    }
    tracing::error!(target: "service", account = %account.id, ?decided, "the explanation of a decision differs from it");
    Err(AdminError::Internal)
}

fn applied_body(applied: AppliedStatement<usize>, policies: &[(PolicyId, Arc<Policy>)]) -> AppliedBody {
    let (id, policy) = &policies[applied.policy];
    let statement = &policy.statements[applied.statement];
    AppliedBody {
        policy_id: id.to_string(),
        policy_name: policy.name.clone(),
        statement: applied.statement,
        effect: statement.effect.name(),
        actions: statement.actions.iter().map(|action| action.name()).collect(),
        resources: statement.resources.iter().map(ToString::to_string).collect(),
        matching_resource: statement.resources[applied.resource].to_string(),
    }
}

/// `POST /api/v1/access/check`.
pub(crate) async fn check(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    let request: CheckRequest = call.json().await?;
    let question = Question::parse(&request)?;
    let is_root = request.access_key.as_ref() == Some(&call.context.credentials.root_access_key);
    if is_root && request.account_id.is_none() {
        return Reply::json(StatusCode::OK, &CheckBody::of_root(call.context.capabilities.root_s3));
    }
    let (account, credential) = subject(call.directory()?, &request)?;
    let explanation = explain(question.action, question.resource(), &account).await?;
    let decision = explanation.decision();
    let by_policies = match decision {
        Decision::Allowed => Reason::Allowed,
        Decision::DeniedExplicitly => Reason::Denied,
        Decision::DeniedImplicitly => Reason::NoStatement,
    };
    let reason = match credential {
        _ if !account.enabled => Reason::AccountDisabled,
        CredentialStatus::Disabled => Reason::CredentialDisabled,
        CredentialStatus::Expired => Reason::CredentialExpired,
        CredentialStatus::Valid => by_policies,
    };
    let mut statements = explanation.statements().map(|applied| applied_body(applied, &account.policies));
    let is_missing = decision == Decision::DeniedImplicitly;
    let body = CheckBody {
        allowed: reason == Reason::Allowed,
        reason,
        decided_by: statements.next(),
        also_applying: statements.collect(),
        also_applying_omitted: explanation.omitted(),
        would_allow: is_missing.then(|| narrowest_statement(question.action, question.resource())),
        account: Some(AccountRef {
            id: account.id.to_string(),
            name: account.name.to_string(),
            enabled: account.enabled,
        }),
    };
    Reply::json(StatusCode::OK, &body)
}

/// `GET /api/v1/service-accounts/{id}/policies`: all statements in force for an account, by policy.
pub(crate) async fn policies_of(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    let directory = Arc::clone(call.directory()?);
    let id = call.account_id("id")?;
    directory.account(id).ok_or(AdminError::AccountNotFound)?;
    let page =
        move |last: Option<&PolicyInfo>| directory.policies_of(id, last.map(|last| last.id), PAGE_PARTS);
    Ok(paged_list("policies", page, |policy| PolicyBody::from(policy)))
}
