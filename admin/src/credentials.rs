//! The routes of an account's credentials: further ones, temporary ones, enable and disable, delete.

use cairn_identity::directory::{CredentialId, NewCredential};
use http::StatusCode;
use serde::{Deserialize, Serialize};

use crate::accounts::{CredentialBody, StatusRequest, made_detail};
use crate::call::Call;
use crate::error::AdminError;
use crate::reply::Reply;

/// A new credential: the one answer that has the secret key.
#[derive(Serialize)]
struct NewCredentialBody<'c> {
    #[serde(flatten)]
    shown: CredentialBody,
    secret_key: &'c str,
}

#[derive(Serialize)]
struct Created<'c> {
    credential: NewCredentialBody<'c>,
}

fn created(made: &NewCredential) -> Result<Reply, AdminError> {
    let shown = CredentialBody::from(&made.info);
    let credential = NewCredentialBody { shown, secret_key: made.secret_key.expose() };
    Ok(Reply::json(StatusCode::CREATED, &Created { credential })?.detail(made_detail(made)))
}

fn credential_id(call: &Call<'_, '_>) -> Result<CredentialId, AdminError> {
    CredentialId::parse(&call.segment("credential_id")?).ok_or(AdminError::CredentialNotFound)
}

/// `POST /api/v1/service-accounts/{id}/credentials`: one beside those that are there, which go on working.
pub(crate) async fn rotate(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    let Nothing {} = call.optional_json().await?;
    created(&call.directory()?.rotate(call.account_id("id")?).await?)
}

/// A body that has nothing to say: none, or an empty object.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TemporaryRequest {
    expires_in_seconds: u64,
}

/// `POST /api/v1/service-accounts/{id}/temporary-credentials`.
pub(crate) async fn create_temporary(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    let id = call.account_id("id")?;
    let TemporaryRequest { expires_in_seconds } = call.json().await?;
    let made = call.directory()?.create_temporary(id, expires_in_seconds).await?;
    let detail = format!("{}, for {expires_in_seconds} s", made_detail(&made));
    Ok(created(&made)?.detail(detail))
}

/// `PUT /api/v1/service-accounts/{id}/credentials/{credential_id}/status`.
pub(crate) async fn set_status(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    let (account, id) = (call.account_id("id")?, credential_id(&call)?);
    let request: StatusRequest = call.json().await?;
    let (account, outcome) = call.directory()?.set_credential_enabled(account, id, request.enabled).await?;
    let shown = account.credentials.iter().find(|credential| credential.id == id);
    let shown = CredentialBody::from(shown.ok_or(AdminError::CredentialNotFound)?);
    Ok(Reply::json(StatusCode::OK, &shown)?.detail(request.detail()).of(outcome))
}

/// `DELETE /api/v1/service-accounts/{id}/credentials/{credential_id}`.
pub(crate) async fn delete(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    call.no_body().await?;
    call.directory()?.delete_credential(call.account_id("id")?, credential_id(&call)?).await?;
    Ok(Reply::no_content())
}
