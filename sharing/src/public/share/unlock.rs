//! `POST /s/{token}/unlock`: checks the password of a share.
//!
//! Programs send JSON and get a token. The form of the page gets a cookie and returns to the page. The token never is part
//! of a URL.

use super::cookie;
use super::path::SharePage;
use super::visit::Visit;
use super::{refusals, reply};
use crate::password::unlock_token::Unlock;
use crate::public::refusal::Refusal;
use crate::public::reply::Reply;
use cairn_api::{UnlockShare, UnlockedShare};
use cairn_engine::Engine;
use cairn_http1::{RequestHead, StatusCode, query_pairs};
use cairn_net::{BodyError, RequestBody};
use cairn_observe::{AuditResult, Source};
use cairn_transfer::{SmallBody, SmallBodyError, read_small_body};
use zeroize::Zeroizing;

/// Longest body: an encoded password of the greatest length, and some names.
const BODY_BYTES_MAX: usize = 4096;
/// The type of the bodies of forms.
const FORM: &str = "application/x-www-form-urlencoded";

/// Returns whether the body of a request is a form.
pub(crate) fn is_form(head: &RequestHead) -> bool {
    let essence = head.header_str("content-type").and_then(|value| value.split(';').next());
    essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case(FORM))
}

/// Answers an unlock of a usable share.
pub(crate) async fn unlock(visit: &Visit<'_>, body: &mut RequestBody<'_>) -> Result<Reply, Refusal> {
    let head = &visit.request.head;
    // Other sites could otherwise use up the attempts of their visitors. Browsers send this header over TLS and to the same
    // computer. Elsewhere nothing tells them apart: the page has no referrer, so the origin of its own form is `null`, too.
    if head.header_str("sec-fetch-site").is_some_and(|site| !matches!(site, "same-origin" | "none")) {
        return Err(refusals::cross_site());
    }
    let is_form = is_form(head);
    let bytes = read_body(&visit.public.engine, body).await?;
    let password = if is_form { form_password(&bytes)? } else { json_password(&bytes)? };
    let (share, client) = (visit.share, visit.request.client);
    let Unlock { token, expires_at } = match visit.public.links.unlock(share, password, client).await {
        Ok(unlock) => unlock,
        Err(error) => {
            let refusal = refusals::of_unlock(error);
            if refusal.reason.is_some() {
                let detail = refusal.code.to_owned();
                let id = share.link.id.to_string();
                visit.audit(Source::Client(client), AuditResult::Denied, id, detail);
            }
            return Err(refusal);
        }
    };
    let base_url = visit.public.links.policy().share_base_url.as_deref();
    let (prefix, is_secure) = cookie::place(base_url, head.header_str("host"), visit.request.is_secure);
    let path = format!("{prefix}/s/{}", visit.token.expose());
    let set_cookie = cookie::set(share.link.id, &token, &path, is_secure);
    let mut reply = if is_form {
        reply::see_other(&visit.relative_url(SharePage::Descriptor))
    } else {
        let (unlock_token, expires_at) = (token.to_string(), expires_at.into());
        reply::json(&UnlockedShare { unlocked: true, unlock_token, expires_at })?
    };
    reply.head.header("set-cookie", set_cookie);
    Ok(reply)
}

async fn read_body(engine: &Engine, body: &mut RequestBody<'_>) -> Result<SmallBody, Refusal> {
    body.accept_chunked();
    read_small_body(engine, body, BODY_BYTES_MAX, |_| {}).await.map_err(|error| match error {
        SmallBodyError::TooLarge => {
            refusals::invalid(StatusCode::PAYLOAD_TOO_LARGE, "the body of an unlock has at most 4096 bytes")
        }
        SmallBodyError::Body(BodyError::TimedOut) | SmallBodyError::TooSlow => {
            refusals::invalid(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time")
        }
        SmallBodyError::Body(BodyError::Stopping) => refusals::not_ready("the service is shutting down"),
        SmallBodyError::Body(_) => {
            refusals::invalid(StatusCode::BAD_REQUEST, "the body is incomplete or malformed")
        }
    })
}

/// Reads the password of a JSON body. The error does not repeat the body, which may contain a password.
fn json_password(body: &[u8]) -> Result<Zeroizing<String>, Refusal> {
    // serde would also accept an array of the values.
    let is_object = body.trim_ascii_start().starts_with(b"{");
    let read = serde_json::from_slice::<UnlockShare>(body).ok().filter(|_| is_object);
    read.map(|body| Zeroizing::new(body.password)).ok_or_else(|| {
        refusals::invalid(
            StatusCode::BAD_REQUEST,
            "the body must be a JSON object with the member password, which is a string, and no other member",
        )
    })
}

/// Reads the password of a form.
fn form_password(body: &[u8]) -> Result<Zeroizing<String>, Refusal> {
    let invalid = refusals::invalid(
        StatusCode::BAD_REQUEST,
        "the form must have the field password, and no other field",
    );
    let text = std::str::from_utf8(body).map_err(|_| invalid.clone())?;
    let mut password = None;
    for pair in query_pairs(text) {
        let (name, value) = pair.map_err(|_| invalid.clone())?;
        if name != "password" || password.is_some() {
            return Err(invalid);
        }
        password = Some(Zeroizing::new(value.into_owned()));
    }
    password.ok_or(invalid)
}

#[cfg(test)]
mod tests {
    use super::{form_password, json_password};

    #[test]
    fn a_password_is_the_only_member() {
        let json = |text: &str| json_password(text.as_bytes()).ok().map(|password| password.to_string());
        assert_eq!(json(r#" {"password": "a\u00e9b"}"#), Some("aéb".to_owned()));
        for wrong in [
            "",
            "{}",
            r#"["a"]"#,
            r#""a""#,
            r#"{"password": 1}"#,
            r#"{"password": null}"#,
            r#"{"password": "a", "b": 1}"#,
            r#"{"password": "a", "password": "a"}"#,
            r#"{"password": "a"} x"#,
        ] {
            assert_eq!(json(wrong), None, "{wrong}");
        }
        let form = |text: &str| form_password(text.as_bytes()).ok().map(|password| password.to_string());
        assert_eq!(form("password=a+b%26%C3%A9"), Some("a b&é".to_owned()));
        assert_eq!(form("password="), Some(String::new()));
        for wrong in ["", "a=b", "password=a&password=b", "password=a&b=c", "password=%f", "password=%ff"] {
            assert_eq!(form(wrong), None, "{wrong}");
        }
    }
}
