//! `/session`: log in with a token or the root credential, show the session, log out.
//!
//! `/sessions`: all sessions that the caller may see and end.

use cairn_http1::iso8601_millis;
use cairn_identity::FailedCredential;
use cairn_model::{Clock, SystemClock, Timestamp};
use http::StatusCode;
use serde::{Deserialize, Serialize};

use crate::access::{
    AuditContext, Caller, ListedSession, NO_SESSION, SessionId, SessionSource, Sessions, check_root_attempts,
    delay_failure,
};
use crate::call::Call;
use crate::error::AdminError;
use crate::limits::LOGIN_BYTES_MAX;
use crate::reply::Reply;

impl Call<'_, '_> {
    /// Returns the sessions of the console.
    ///
    /// # Errors
    /// `NOT_FOUND` on another listener. Its routes do not lead here.
    pub(super) fn sessions(&self) -> Result<&Sessions, AdminError> {
        self.context.sessions.as_ref().ok_or(AdminError::NotFound)
    }

    /// Records that a session of this caller begins or ends.
    ///
    /// # Errors
    /// As [`AuditContext::record_session`].
    pub(super) async fn record_session(&self, caller: &Caller) -> Result<(), AdminError> {
        let Some(log) = self.context.audit() else { return Ok(()) };
        AuditContext { caller: Some(caller), ..*self.audit }.record_session(log).await
    }
}

/// A token, or the root credential.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LoginRequest {
    #[serde(default)]
    token: Option<String>,
    #[serde(default)]
    access_key: Option<String>,
    #[serde(default)]
    secret_key: Option<String>,
}

#[derive(Serialize)]
struct SessionBody<'s> {
    role: &'static str,
    principal: &'s str,
    expires_at: String,
    /// The URL at which a person ends the session at the provider, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    sign_out_url: Option<String>,
}

fn described(call: &Call<'_, '_>, caller: &Caller, expires_at: Timestamp) -> Result<Reply, AdminError> {
    let expires_at = iso8601_millis(expires_at.0);
    let provider = call.context.sign_ins.as_ref().filter(|_| caller.subject.is_some());
    let sign_out_url = provider.and_then(|provider| provider.sign_ins.sign_out_url());
    let body =
        SessionBody { role: caller.standing.name(), principal: &caller.principal, expires_at, sign_out_url };
    Reply::json(StatusCode::OK, &body)
}

/// `POST /session`: begins a session. The cookie in the response is the only way to use it.
pub(crate) async fn begin(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let request: LoginRequest = call.short_json(LOGIN_BYTES_MAX).await?;
    let (credentials, directory) = (&call.context.credentials, call.context.directory());
    let (found, failed) = match (&request.token, &request.access_key, &request.secret_key) {
        (Some(token), None, None) => {
            // People paste it with a line break.
            (credentials.authenticate_token(token.trim(), directory), FailedCredential::Other)
        }
        (None, Some(access_key), Some(secret_key)) => {
            if let Err(refused) = check_root_attempts(&call.context.throttle, call.audit.client) {
                if let Some(log) = call.context.audit() {
                    call.audit.record_denial(log, refused.code());
                }
                return Err(refused);
            }
            (credentials.authenticate_root(access_key, secret_key), FailedCredential::Root)
        }
        _ => return Err(AdminError::invalid("send either token, or access_key and secret_key")),
    };
    let Some(caller) = found else {
        if let Some(log) = call.context.audit() {
            call.audit.record_refusal(log, true);
        }
        delay_failure(&call.context.throttle, call.audit.client, failed).await?;
        return Err(AdminError::NoSession("the token or the root credential is wrong"));
    };
    call.record_session(&caller).await?;
    let token_expires_at = caller.token.and_then(|token| directory?.token_expiry(token));
    let source = SessionSource::of(call.audit.client, call.head);
    let begun =
        call.sessions()?.begin(caller.clone(), call.head, source, token_expires_at, SystemClock.now())?;
    Ok(described(&call, &caller, begun.expires_at)?.header("set-cookie", begun.cookie))
}

/// `GET /session`: the session of the request. Without a cookie there is none, which is no error.
pub(crate) async fn current(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let sessions = call.sessions()?;
    if !sessions.has_cookie(call.head) {
        return Ok(Reply::no_content());
    }
    let found = sessions.find(call.head, call.context.directory());
    let session = found.ok_or(AdminError::NoSession(NO_SESSION))?;
    described(&call, &session.caller, session.expires_at)
}

/// `DELETE /session`: ends the session of the request, if it has one.
pub(crate) async fn end(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let sessions = call.sessions()?;
    let found = sessions.find(call.head, call.context.directory());
    let reply = set_cookies(Reply::no_content(), sessions.end(call.head));
    if let Some(found) = found {
        // The session has ended already, and the browser must learn it.
        let _ = call.record_session(&found.caller).await;
    }
    Ok(reply)
}

/// Adds `Set-Cookie` headers.
pub(super) fn set_cookies(reply: Reply, cookies: Vec<String>) -> Reply {
    cookies.into_iter().fold(reply, |reply, cookie| reply.header("set-cookie", cookie))
}

/// JSON form of a session in a list.
#[derive(Serialize)]
struct ListedBody<'s> {
    id: String,
    principal: &'s str,
    role: &'static str,
    created_at: String,
    last_used_at: String,
    expires_at: String,
    source_ip: String,
    user_agent: Option<&'s str>,
    is_current: bool,
}

impl<'s> From<&'s ListedSession> for ListedBody<'s> {
    fn from(session: &'s ListedSession) -> Self {
        Self {
            id: session.id.to_string(),
            principal: &session.caller.principal,
            role: session.caller.standing.name(),
            created_at: iso8601_millis(session.created_at.0),
            last_used_at: iso8601_millis(session.last_used_at.0),
            expires_at: iso8601_millis(session.expires_at.0),
            source_ip: session.address.to_string(),
            user_agent: Some(session.user_agent.as_str()).filter(|text| !text.is_empty()),
            is_current: session.is_current,
        }
    }
}

#[derive(Serialize)]
struct ListBody<'s> {
    sessions: Vec<ListedBody<'s>>,
}

/// `GET /sessions`: the sessions of the caller's credential; all for a system administrator.
pub(crate) async fn list(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let listed = call.sessions()?.list(call.caller()?, call.head, call.context.directory());
    Reply::json(StatusCode::OK, &ListBody { sessions: listed.iter().map(ListedBody::from).collect() })
}

/// `DELETE /sessions`: ends all sessions of the caller's credential or person, also this one.
pub(crate) async fn end_own(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let sessions = call.sessions()?;
    let ended = sessions.end_all_of(call.caller()?);
    let reply = Reply::no_content().detail(format!("{ended} sessions"));
    Ok(set_cookies(reply, sessions.end(call.head)))
}

/// `DELETE /sessions/{id}`: ends a session that the caller may see.
pub(crate) async fn end_by_id(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let id = SessionId::parse(&call.segment("id")?);
    let sessions = call.sessions()?;
    let ended = id.and_then(|id| sessions.end_by_id(call.caller().ok()?, call.head, id));
    let ended = ended.ok_or(AdminError::SessionNotFound)?;
    let detail = format!("of {}, begun from {}", ended.caller.principal, ended.address);
    let reply = Reply::no_content().detail(detail);
    // The session is gone, so the browser drops its cookie.
    Ok(if ended.is_current { set_cookies(reply, sessions.end(call.head)) } else { reply })
}
