//! The routes of management tokens: list, create, delete.

use cairn_api::{CreateManagementToken, NewManagementToken, Time};
use cairn_identity::Role;
use cairn_identity::directory::{ManagementToken, TokenId};
use http::StatusCode;
use std::sync::Arc;

use crate::call::Call;
use crate::error::AdminError;
use crate::reply::{PAGE_PARTS, Reply, paged_list};

fn token_body(token: &ManagementToken) -> cairn_api::ManagementToken {
    cairn_api::ManagementToken {
        id: token.id.to_string().into(),
        name: token.name.to_string().into(),
        role: token.role.name().into(),
        created_at: token.created_at.into(),
        expires_at: token.expires_at.map(Time::from),
    }
}

/// `GET /api/v1/management-tokens`.
pub(crate) async fn list(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let directory = Arc::clone(call.directory()?);
    let page = move |last: Option<&ManagementToken>| directory.tokens(last.map(|last| last.id), PAGE_PARTS);
    Ok(paged_list("management_tokens", page, token_body))
}

/// `POST /api/v1/management-tokens`. Only this response contains the token.
pub(crate) async fn create(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let CreateManagementToken { name, role, expires_in_seconds } = call.json().await?;
    let role = Role::parse(&role).ok_or_else(|| {
        AdminError::invalid(format!("role must be one of {}", Role::ALL.map(Role::name).join(", ")))
    })?;
    let made = call.directory()?.create_token(name.into(), role, expires_in_seconds).await?;
    let (id, detail) = (made.info.id.to_string(), format!("named {}, role {role}", made.info.name));
    let token = made.token.expose().to_owned().into();
    let body = NewManagementToken { management_token: token_body(&made.info), token };
    Ok(Reply::json(StatusCode::CREATED, &body)?.resource(id).detail(detail))
}

/// `DELETE /api/v1/management-tokens/{id}`.
pub(crate) async fn delete(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let id = TokenId::parse(&call.segment("id")?).ok_or(AdminError::TokenNotFound)?;
    let token = call.directory()?.delete_token(id).await?;
    Ok(Reply::no_content().detail(format!("named {}", token.name)))
}
