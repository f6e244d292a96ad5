//! The routes of an account's credentials: create, create temporary ones, enable and disable, delete.

use cairn_api::{
    CreateCredential, CreateTemporaryCredential, CredentialWithSecret, NewCredential, SetStatus,
};
use cairn_identity::directory::CredentialId;
use http::StatusCode;

use super::accounts::{Made, credential_body, keys, status_detail};
use crate::call::Call;
use crate::error::AdminError;
use crate::reply::Reply;

/// Only the response to the creation of a credential contains its secret key, if the server generated it.
fn created(made: Made) -> Result<Reply, AdminError> {
    let detail = made.detail();
    let credential = credential_body(&made.info);
    let body = NewCredential { credential: CredentialWithSecret { credential, secret_key: made.secret_key } };
    Ok(Reply::json(StatusCode::CREATED, &body)?.detail(detail))
}

fn credential_id(call: &Call<'_, '_>) -> Result<CredentialId, AdminError> {
    CredentialId::parse(&call.segment("credential_id")?).ok_or(AdminError::CredentialNotFound)
}

/// `POST /api/v1/service-accounts/{id}/credentials`: an additional credential. Existing ones remain valid.
pub(crate) async fn rotate(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let CreateCredential { credential } = call.optional_json().await?;
    let (directory, account) = (call.directory()?, call.account_id("id")?);
    created(match credential {
        Some(given) => Made::with_given_keys(directory.add_keys(account, keys(given)?).await?),
        None => Made::with_generated_keys(directory.rotate(account).await?),
    })
}

/// `POST /api/v1/service-accounts/{id}/temporary-credentials`.
pub(crate) async fn create_temporary(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let id = call.account_id("id")?;
    let CreateTemporaryCredential { expires_in_seconds } = call.json().await?;
    let made = Made::with_generated_keys(call.directory()?.create_temporary(id, expires_in_seconds).await?);
    let detail = format!("{}, for {expires_in_seconds} s", made.detail());
    Ok(created(made)?.detail(detail))
}

/// `PUT /api/v1/service-accounts/{id}/credentials/{credential_id}/status`.
pub(crate) async fn set_status(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let (account, id) = (call.account_id("id")?, credential_id(&call)?);
    let SetStatus { enabled } = call.json().await?;
    let (account, outcome) = call.directory()?.set_credential_enabled(account, id, enabled).await?;
    let credential = account.credentials.iter().find(|credential| credential.id == id);
    let body = credential_body(credential.ok_or(AdminError::CredentialNotFound)?);
    Ok(Reply::json(StatusCode::OK, &body)?.detail(status_detail(enabled)).with_outcome(outcome))
}

/// `DELETE /api/v1/service-accounts/{id}/credentials/{credential_id}`.
pub(crate) async fn delete(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.directory()?.delete_credential(call.account_id("id")?, credential_id(&call)?).await?;
    Ok(Reply::no_content())
}
