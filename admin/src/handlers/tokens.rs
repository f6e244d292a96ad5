//! The routes of management tokens: list, create, delete.

use cairn_http1::iso8601_millis;
use cairn_identity::Role;
use cairn_identity::directory::{ManagementToken, TokenId};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

use crate::call::Call;
use crate::error::AdminError;
use crate::reply::{PAGE_PARTS, Reply, paged_list};

/// JSON form of a management token, without the token itself.
#[derive(Serialize)]
struct TokenBody {
    id: String,
    name: String,
    role: &'static str,
    created_at: String,
    expires_at: Option<String>,
}

impl From<&ManagementToken> for TokenBody {
    fn from(token: &ManagementToken) -> Self {
        Self {
            id: token.id.to_string(),
            name: token.name.to_string(),
            role: token.role.name(),
            created_at: iso8601_millis(token.created_at.0),
            expires_at: token.expires_at.map(|time| iso8601_millis(time.0)),
        }
    }
}

/// `GET /api/v1/management-tokens`.
pub(crate) async fn list(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    let directory = Arc::clone(call.directory()?);
    let page = move |last: Option<&ManagementToken>| directory.tokens(last.map(|last| last.id), PAGE_PARTS);
    Ok(paged_list("management_tokens", page, |token| TokenBody::from(token)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CreateRequest {
    name: String,
    role: String,
    #[serde(default)]
    expires_in_seconds: Option<u64>,
}

#[derive(Serialize)]
struct Created<'t> {
    management_token: TokenBody,
    token: &'t str,
}

/// `POST /api/v1/management-tokens`. Only this response contains the token.
pub(crate) async fn create(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    let CreateRequest { name, role, expires_in_seconds } = call.json().await?;
    let role = Role::parse(&role).ok_or_else(|| {
        AdminError::invalid(format!("role must be one of {}", Role::ALL.map(Role::name).join(", ")))
    })?;
    let made = call.directory()?.create_token(name, role, expires_in_seconds).await?;
    let (id, detail) = (made.info.id.to_string(), format!("named {}, role {role}", made.info.name));
    let body = Created { management_token: (&made.info).into(), token: made.token.expose() };
    Ok(Reply::json(StatusCode::CREATED, &body)?.resource(id).detail(detail))
}

/// `DELETE /api/v1/management-tokens/{id}`.
pub(crate) async fn delete(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    call.no_body().await?;
    let id = TokenId::parse(&call.segment("id")?).ok_or(AdminError::TokenNotFound)?;
    let token = call.directory()?.delete_token(id).await?;
    Ok(Reply::no_content().detail(format!("named {}", token.name)))
}
