//! The routes of an account's credentials: create, create temporary ones, enable and disable, delete.

use cairn_identity::directory::{CredentialId, NewCredential};
use http::StatusCode;
use serde::{Deserialize, Serialize};

use super::accounts::{CredentialBody, StatusRequest, new_credential_detail};
use crate::call::Call;
use crate::error::AdminError;
use crate::reply::Reply;

/// JSON form of a new credential. Only the response to its creation contains the secret key.
#[derive(Serialize)]
struct NewCredentialBody<'c> {
    #[serde(flatten)]
    credential: CredentialBody,
    secret_key: &'c str,
}

#[derive(Serialize)]
struct Created<'c> {
    credential: NewCredentialBody<'c>,
}

fn created(made: &NewCredential) -> Result<Reply, AdminError> {
    let credential = CredentialBody::from(&made.info);
    let credential = NewCredentialBody { credential, secret_key: made.secret_key.expose() };
    Ok(Reply::json(StatusCode::CREATED, &Created { credential })?.detail(new_credential_detail(made)))
}

fn credential_id(call: &Call<'_, '_>) -> Result<CredentialId, AdminError> {
    CredentialId::parse(&call.segment("credential_id")?).ok_or(AdminError::CredentialNotFound)
}

/// `POST /api/v1/service-accounts/{id}/credentials`: an additional credential. Existing ones remain valid.
pub(crate) async fn rotate(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    let EmptyRequest {} = call.optional_json().await?;
    created(&call.directory()?.rotate(call.account_id("id")?).await?)
}

/// An empty body: no bytes, or an empty object.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct EmptyRequest {}

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
    let detail = format!("{}, for {expires_in_seconds} s", new_credential_detail(&made));
    Ok(created(&made)?.detail(detail))
}

/// `PUT /api/v1/service-accounts/{id}/credentials/{credential_id}/status`.
pub(crate) async fn set_status(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    let (account, id) = (call.account_id("id")?, credential_id(&call)?);
    let request: StatusRequest = call.json().await?;
    let (account, outcome) = call.directory()?.set_credential_enabled(account, id, request.enabled).await?;
    let credential = account.credentials.iter().find(|credential| credential.id == id);
    let body = CredentialBody::from(credential.ok_or(AdminError::CredentialNotFound)?);
    Ok(Reply::json(StatusCode::OK, &body)?.detail(request.detail()).with_outcome(outcome))
}

/// `DELETE /api/v1/service-accounts/{id}/credentials/{credential_id}`.
pub(crate) async fn delete(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    call.no_body().await?;
    call.directory()?.delete_credential(call.account_id("id")?, credential_id(&call)?).await?;
    Ok(Reply::no_content())
}
