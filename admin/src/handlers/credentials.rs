//! The routes of an account's credentials: create, create temporary ones, enable and disable, delete.

use cairn_api::{CreateTemporaryCredential, CredentialWithSecret, Nothing, SetStatus};
use cairn_identity::directory::{CredentialId, NewCredential};
use http::StatusCode;

use super::accounts::{credential_body, new_credential_detail, status_detail};
use crate::call::Call;
use crate::error::AdminError;
use crate::reply::Reply;

/// Only the response to the creation of a credential contains its secret key.
fn created(made: &NewCredential) -> Result<Reply, AdminError> {
    let secret_key = made.secret_key.expose().to_owned().into();
    let credential = CredentialWithSecret { credential: credential_body(&made.info), secret_key };
    let body = cairn_api::NewCredential { credential };
    Ok(Reply::json(StatusCode::CREATED, &body)?.detail(new_credential_detail(made)))
}

fn credential_id(call: &Call<'_, '_>) -> Result<CredentialId, AdminError> {
    CredentialId::parse(&call.segment("credential_id")?).ok_or(AdminError::CredentialNotFound)
}

/// `POST /api/v1/service-accounts/{id}/credentials`: an additional credential. Existing ones remain valid.
pub(crate) async fn rotate(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    let Nothing {} = call.optional_json().await?;
    created(&call.directory()?.rotate(call.account_id("id")?).await?)
}

/// `POST /api/v1/service-accounts/{id}/temporary-credentials`.
pub(crate) async fn create_temporary(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    let id = call.account_id("id")?;
    let CreateTemporaryCredential { expires_in_seconds } = call.json().await?;
    let made = call.directory()?.create_temporary(id, expires_in_seconds).await?;
    let detail = format!("{}, for {expires_in_seconds} s", new_credential_detail(&made));
    Ok(created(&made)?.detail(detail))
}

/// `PUT /api/v1/service-accounts/{id}/credentials/{credential_id}/status`.
pub(crate) async fn set_status(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    let (account, id) = (call.account_id("id")?, credential_id(&call)?);
    let SetStatus { enabled } = call.json().await?;
    let (account, outcome) = call.directory()?.set_credential_enabled(account, id, enabled).await?;
    let credential = account.credentials.iter().find(|credential| credential.id == id);
    let body = credential_body(credential.ok_or(AdminError::CredentialNotFound)?);
    Ok(Reply::json(StatusCode::OK, &body)?.detail(status_detail(enabled)).with_outcome(outcome))
}

/// `DELETE /api/v1/service-accounts/{id}/credentials/{credential_id}`.
pub(crate) async fn delete(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    call.no_body().await?;
    call.directory()?.delete_credential(call.account_id("id")?, credential_id(&call)?).await?;
    Ok(Reply::no_content())
}
