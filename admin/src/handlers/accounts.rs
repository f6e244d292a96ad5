//! The routes of service accounts: list, create, get, enable and disable, delete.

use cairn_api::{
    AttachedPolicy, CreateServiceAccount, Credential, FirstCredential, NewServiceAccount, SecretKey,
    ServiceAccount, SetStatus, Time,
};
use cairn_http1::parse_rfc3339_millis;
use cairn_identity::directory::{Account, AccountId, CredentialInfo, GivenCredential, NewCredential};
use cairn_model::Timestamp;
use http::StatusCode;
use std::sync::Arc;

use crate::call::Call;
use crate::error::AdminError;
use crate::reply::{PAGE_PARTS, Reply, paged_list};

/// Returns the body of a credential, without its secret key.
pub(super) fn credential_body(info: &CredentialInfo) -> Credential {
    Credential {
        id: info.id.to_string().into(),
        access_key: info.access_key.to_string().into(),
        enabled: info.enabled,
        temporary: info.expires_at.is_some(),
        created_at: info.created_at.into(),
        expires_at: info.expires_at.map(Time::from),
        last_used_at: info.last_used_at.map(Time::from),
    }
}

fn account_body(account: &Account) -> ServiceAccount {
    let attached = account.policies.iter();
    ServiceAccount {
        id: account.id.to_string().into(),
        name: account.name.to_string().into(),
        description: account.description.clone().into(),
        enabled: account.enabled,
        created_at: account.created_at.into(),
        credentials: account.credentials.iter().map(credential_body).collect(),
        policies: attached
            .map(|policy| AttachedPolicy {
                id: policy.id.to_string().into(),
                name: policy.name.clone().into(),
            })
            .collect(),
    }
}

impl Call<'_, '_> {
    /// Returns the account id in the path segment `{name}`.
    ///
    /// # Errors
    /// `SERVICE_ACCOUNT_NOT_FOUND` when the segment is not a valid id.
    pub(crate) fn account_id(&self, name: &str) -> Result<AccountId, AdminError> {
        AccountId::parse(&self.segment(name)?).ok_or(AdminError::AccountNotFound)
    }
}

/// `GET /api/v1/service-accounts`.
pub(crate) async fn list(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let directory = Arc::clone(call.directory()?);
    let page = move |last: Option<&Account>| directory.accounts(last.map(|last| last.id), PAGE_PARTS);
    Ok(paged_list("service_accounts", page, account_body))
}

/// Validates keys that the client gives.
///
/// # Errors
/// `INVALID_REQUEST`.
pub(crate) fn keys(given: cairn_api::GivenCredential) -> Result<GivenCredential, AdminError> {
    let expires_at = given.expires_at.map(|time| {
        let parsed = parse_rfc3339_millis(&time).map(Timestamp);
        parsed.ok_or_else(|| AdminError::invalid("credential.expires_at: must be a time (RFC 3339)"))
    });
    Ok(GivenCredential::new(given.access_key.into(), given.secret_key.into())?
        .expiring(expires_at.transpose()?))
}

/// A credential that was just made, as its response and its audit record show it.
pub(super) struct Made {
    pub(super) info: CredentialInfo,
    /// A secret that the client has given is not sent back.
    pub(super) secret_key: Option<SecretKey>,
}

impl Made {
    pub(super) fn with_generated_keys(made: NewCredential) -> Self {
        Self { secret_key: Some(made.secret_key.expose().to_owned().into()), info: made.info }
    }

    pub(super) fn with_given_keys(info: CredentialInfo) -> Self {
        Self { info, secret_key: None }
    }

    /// Returns the audit detail of the credential, without its secret key.
    pub(super) fn detail(&self) -> String {
        let given = if self.secret_key.is_none() { "given " } else { "" };
        format!("credential {}, {given}access key {}", self.info.id, self.info.access_key)
    }
}

/// `POST /api/v1/service-accounts`. Only this response contains the secret key, if the server generated it.
pub(crate) async fn create(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let CreateServiceAccount { name, description, credential } = call.json().await?;
    let (name, description, directory) = (name.into(), description.into(), call.directory()?);
    let (account, made) = if let Some(given) = credential {
        let (account, info) = directory.create_account_with_keys(name, description, keys(given)?).await?;
        (account, Made::with_given_keys(info))
    } else {
        let (account, made) = directory.create_account(name, description).await?;
        (account, Made::with_generated_keys(made))
    };
    let (id, detail) = (account.id.to_string(), format!("named {}; {}", account.name, made.detail()));
    let credential = FirstCredential {
        id: made.info.id.to_string().into(),
        access_key: made.info.access_key.to_string().into(),
        secret_key: made.secret_key,
    };
    let body = NewServiceAccount { service_account: account_body(&account), credential };
    Ok(Reply::json(StatusCode::CREATED, &body)?.resource(id).detail(detail))
}

/// `GET /api/v1/service-accounts/{id}`.
pub(crate) async fn get(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let account = call.directory()?.account(call.account_id("id")?).ok_or(AdminError::AccountNotFound)?;
    Reply::json(StatusCode::OK, &account_body(&account))
}

/// `DELETE /api/v1/service-accounts/{id}`: permanently, with its credentials and policy bindings.
pub(crate) async fn delete(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let account = call.directory()?.delete_account(call.account_id("id")?).await?;
    Ok(Reply::no_content().detail(format!("named {}", account.name)))
}

/// Returns the audit detail of a change of the status.
pub(crate) const fn status_detail(enabled: bool) -> &'static str {
    if enabled { "enabled" } else { "disabled" }
}

/// `PUT /api/v1/service-accounts/{id}/status`.
pub(crate) async fn set_status(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let id = call.account_id("id")?;
    let SetStatus { enabled } = call.json().await?;
    let (account, outcome) = call.directory()?.set_account_enabled(id, enabled).await?;
    Ok(Reply::json(StatusCode::OK, &account_body(&account))?
        .detail(status_detail(enabled))
        .with_outcome(outcome))
}
