//! The routes of service accounts: list, create, get, enable and disable, delete.

use cairn_http1::iso8601_millis;
use cairn_identity::directory::{Account, AccountId, CredentialInfo, NewCredential};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

use crate::call::Call;
use crate::error::AdminError;
use crate::reply::{PAGE_PARTS, Reply, paged_list};

/// JSON form of a credential, without its secret key.
#[derive(Serialize)]
pub(crate) struct CredentialBody {
    id: String,
    access_key: String,
    enabled: bool,
    temporary: bool,
    created_at: String,
    expires_at: Option<String>,
    last_used_at: Option<String>,
}

impl From<&CredentialInfo> for CredentialBody {
    fn from(info: &CredentialInfo) -> Self {
        Self {
            id: info.id.to_string(),
            access_key: info.access_key.to_string(),
            enabled: info.enabled,
            temporary: info.expires_at.is_some(),
            created_at: iso8601_millis(info.created_at.0),
            expires_at: info.expires_at.map(|time| iso8601_millis(time.0)),
            last_used_at: info.last_used_at.map(|time| iso8601_millis(time.0)),
        }
    }
}

#[derive(Serialize)]
struct AttachedPolicyBody {
    id: String,
    name: String,
}

/// JSON form of an account.
#[derive(Serialize)]
struct AccountBody {
    id: String,
    name: String,
    description: String,
    enabled: bool,
    created_at: String,
    credentials: Vec<CredentialBody>,
    policies: Vec<AttachedPolicyBody>,
}

impl From<&Account> for AccountBody {
    fn from(account: &Account) -> Self {
        let attached = account.policies.iter();
        Self {
            id: account.id.to_string(),
            name: account.name.to_string(),
            description: account.description.clone(),
            enabled: account.enabled,
            created_at: iso8601_millis(account.created_at.0),
            credentials: account.credentials.iter().map(CredentialBody::from).collect(),
            policies: attached
                .map(|policy| AttachedPolicyBody { id: policy.id.to_string(), name: policy.name.clone() })
                .collect(),
        }
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
    call.no_parameters()?;
    let directory = Arc::clone(call.directory()?);
    let page = move |last: Option<&Account>| directory.accounts(last.map(|last| last.id), PAGE_PARTS);
    Ok(paged_list("service_accounts", page, |account| AccountBody::from(account)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CreateRequest {
    name: String,
    #[serde(default)]
    description: String,
}

/// The first credential of a new account, with its secret key.
#[derive(Serialize)]
struct FirstCredential<'c> {
    id: String,
    access_key: &'c str,
    secret_key: &'c str,
}

#[derive(Serialize)]
struct Created<'c> {
    service_account: AccountBody,
    credential: FirstCredential<'c>,
}

/// `POST /api/v1/service-accounts`. Only this response contains the secret key.
pub(crate) async fn create(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    let CreateRequest { name, description } = call.json().await?;
    let (account, made) = call.directory()?.create_account(name, description).await?;
    let (id, detail) =
        (account.id.to_string(), format!("named {}; {}", account.name, new_credential_detail(&made)));
    let credential = FirstCredential {
        id: made.info.id.to_string(),
        access_key: &made.info.access_key,
        secret_key: made.secret_key.expose(),
    };
    let body = Created { service_account: (&account).into(), credential };
    Ok(Reply::json(StatusCode::CREATED, &body)?.resource(id).detail(detail))
}

/// Returns the audit detail of a new credential, without its secret key.
pub(crate) fn new_credential_detail(made: &NewCredential) -> String {
    format!("credential {}, access key {}", made.info.id, made.info.access_key)
}

/// `GET /api/v1/service-accounts/{id}`.
pub(crate) async fn get(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    let account = call.directory()?.account(call.account_id("id")?).ok_or(AdminError::AccountNotFound)?;
    Reply::json(StatusCode::OK, &AccountBody::from(&account))
}

/// `DELETE /api/v1/service-accounts/{id}`: permanently, with its credentials and policy bindings.
pub(crate) async fn delete(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    call.no_body().await?;
    let account = call.directory()?.delete_account(call.account_id("id")?).await?;
    Ok(Reply::no_content().detail(format!("named {}", account.name)))
}

/// A request that enables or disables an account or a credential.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StatusRequest {
    pub(crate) enabled: bool,
}

impl StatusRequest {
    /// Returns the audit detail.
    pub(crate) const fn detail(&self) -> &'static str {
        if self.enabled { "enabled" } else { "disabled" }
    }
}

/// `PUT /api/v1/service-accounts/{id}/status`.
pub(crate) async fn set_status(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    let id = call.account_id("id")?;
    let request: StatusRequest = call.json().await?;
    let (account, outcome) = call.directory()?.set_account_enabled(id, request.enabled).await?;
    Ok(Reply::json(StatusCode::OK, &AccountBody::from(&account))?
        .detail(request.detail())
        .with_outcome(outcome))
}
