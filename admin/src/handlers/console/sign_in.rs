//! `/sign-in`: people sign in through an OpenID provider.
//!
//! The page begins a sign-in and goes to the provider, which sends the browser to `/sign-in/callback`. From there it always
//! goes to the page, never to an address that a request names. What went wrong is kept for the page, which asks for it.

use cairn_http1::query_pairs;
use cairn_model::{Clock, SystemClock};
use cairn_net::ResponseBody;
use cairn_openid::{LOGOUT_TOKEN_BYTES_MAX, ProviderAnswer, SignInError};
use http::StatusCode;
use serde::Serialize;
use zeroize::Zeroizing;

use super::session::set_cookies;
use crate::access::{Caller, PersonSignIns, SessionSource};
use crate::call::Call;
use crate::error::AdminError;
use crate::reply::Reply;

/// The page after a sign-in.
const PAGE: &str = "/";
/// The page after a sign-in that is not known, so that nothing is kept about it.
const PAGE_OF_UNKNOWN: &str = "/?sign-in=unknown";

impl Call<'_, '_> {
    /// Returns the sign-ins of people.
    ///
    /// # Errors
    /// `NOT_FOUND` if the configuration names no provider.
    fn sign_ins(&self) -> Result<&PersonSignIns, AdminError> {
        self.context.sign_ins.as_ref().ok_or(AdminError::NotFound)
    }
}

#[derive(Serialize)]
struct Failure {
    code: &'static str,
    message: String,
}

#[derive(Serialize)]
struct SignInBody<'s> {
    name: &'s str,
    /// The only origin at which the page can begin a sign-in.
    console_url: &'s str,
    /// The reason why the last sign-in of this browser has failed. It is said once.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<Failure>,
}

/// `GET /sign-in`: how people sign in; 204 if only with tokens.
pub(crate) async fn sign_in(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let Some(people) = &call.context.sign_ins else { return Ok(Reply::no_content()) };
    let settings = people.sign_ins.settings();
    let failure = people.secrets(call.head).find_map(|secret| people.sign_ins.failure(secret));
    let is_told = failure.is_some();
    let body = SignInBody {
        name: &settings.name,
        console_url: &settings.console_url,
        failure: failure.map(|error| Failure { code: error.code(), message: error.to_string() }),
    };
    let reply = Reply::json(StatusCode::OK, &body)?;
    Ok(if is_told { set_cookies(reply, people.remove_ended(call.head)) } else { reply })
}

#[derive(Serialize)]
struct MemberBody<'s> {
    /// A value of the claim.
    value: &'s str,
    /// The name of a policy that people with this value have.
    policy: &'s str,
}

#[derive(Serialize)]
struct MembersBody<'s> {
    members: Vec<MemberBody<'s>>,
}

/// `GET /members`: the values of the claim that give policies, as the configuration lists them.
pub(crate) async fn members(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let settings = call.context.sign_ins.as_ref().map(|people| people.sign_ins.settings());
    let listed = settings.map_or(&[][..], |settings| &settings.roles.members);
    let members = listed.iter().map(|(value, policy)| MemberBody { value, policy }).collect();
    Reply::json(StatusCode::OK, &MembersBody { members })
}

#[derive(Serialize)]
struct BegunBody {
    url: String,
}

/// `POST /sign-in`: begins a sign-in of this browser. The page goes to the URL in the answer.
pub(crate) async fn begin_sign_in(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let people = call.sign_ins()?;
    if !people.is_at_its_host(call.head) {
        let url = &people.sign_ins.settings().console_url;
        return Err(AdminError::invalid(format!("people sign in at {url} only: open the console there")));
    }
    // When the provider sends the browser back, its strict cookie may be missing.
    let earlier = call.sessions()?.id_of(call.head);
    let begin = async { Ok(people.sign_ins.begin(call.audit.client, earlier).await) };
    let begun = call.until_disconnect(begin).await?.map_err(|error| match error {
        SignInError::Busy => {
            AdminError::TooManyRequests("too many people are signing in; try again later".into())
        }
        error => AdminError::SignInUnavailable(error.to_string()),
    })?;
    let cookie = people.add(&begun, call.head);
    Ok(Reply::json(StatusCode::OK, &BegunBody { url: begun.url })?.header("set-cookie", cookie))
}

/// `GET /sign-in/callback`: the provider has sent the browser back. Begins a session if it has identified a person with a role.
pub(crate) async fn finish_sign_in(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let people = call.sign_ins()?;
    let answer = parsed(call.head.query().unwrap_or_default())?;
    let finish = async { Ok(people.sign_ins.finish(people.secrets(call.head), answer).await) };
    let finished = match call.until_disconnect(finish).await? {
        Ok(finished) => finished,
        Err(error) => return Ok(failed(&call, &error)),
    };
    if let Err(error) = people.sign_ins.check_logouts(&finished) {
        return Ok(failed(&call, &error));
    }
    let caller = Caller::of_person(&finished.person);
    call.record_session(&caller).await?;
    let source = SessionSource::of(call.audit.client, call.head).at_provider(finished.person.session.clone());
    let sessions = call.sessions()?;
    let begun = sessions.begin(caller.clone(), call.head, source, None, SystemClock.now())?;
    // Once more: a logout that came meanwhile has found no session.
    if let Err(error) = people.sign_ins.check_logouts(&finished) {
        sessions.end_by_id(&caller, call.head, begun.id);
        return Ok(failed(&call, &error));
    }
    if let Some(earlier) = finished.earlier() {
        sessions.end_earlier(earlier);
    }
    Ok(set_cookies(redirect(PAGE).header("set-cookie", begun.cookie), people.remove_ended(call.head)))
}

/// Records why a sign-in has failed, and leads to the page, which asks for it.
fn failed(call: &Call<'_, '_>, error: &SignInError) -> Reply {
    if let Some(log) = call.context.audit() {
        let subject = error.subject().map(|id| format!("; subject {id}")).unwrap_or_default();
        call.audit.record_denial(log, &format!("{}: {error}{subject}", error.code()));
    }
    redirect(if *error == SignInError::Unknown { PAGE_OF_UNKNOWN } else { PAGE })
}

/// `POST /sign-in/logout`: the provider has ended sessions of people (OpenID Connect Back-Channel Logout 1.0). The sessions
/// here end that came from them.
pub(crate) async fn end_of_provider(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let people = call.sign_ins()?.clone();
    let token = logout_token(&call.body_of(LOGOUT_TOKEN_BYTES_MAX).await?)?;
    let verify = async { Ok(people.sign_ins.verify_logout(call.audit.client, token).await) };
    let verified = call.until_disconnect(verify).await?;
    // From here on nothing waits, so that a token that was used has also ended what it names.
    let logout = match verified.and_then(|logout| people.sign_ins.use_up(&logout).map(|()| logout)) {
        Ok(logout) => logout,
        Err(error) => {
            let code = error.code();
            let refused = match error {
                SignInError::Busy => AdminError::TooManyRequests(
                    "too many logouts are being processed; try again later".into(),
                ),
                SignInError::Unavailable(why) => AdminError::SignInUnavailable(why),
                error => AdminError::invalid(error.to_string()),
            };
            // The others are recorded as failures of the server.
            if let (true, Some(log)) = (refused.status().is_client_error(), call.context.audit()) {
                call.audit.record_denial(log, &format!("{code}: {}", refused.message()));
            }
            return Err(refused);
        }
    };
    let ended = call.sessions()?.end_of_provider(&logout);
    let of = |kind: &str, id: Option<&String>| id.map(|id| format!(", {kind} {id}")).unwrap_or_default();
    let (subject, session) = (of("subject", logout.subject.as_ref()), of("session", logout.session.as_ref()));
    let sessions = if ended == 1 { "session" } else { "sessions" };
    Ok(Reply::json(StatusCode::OK, &NoMembers {})?
        .detail(format!("{ended} {sessions} ended by the provider{subject}{session}")))
}

/// A body without members.
#[derive(Serialize)]
struct NoMembers {}

/// Returns the only parameter of a form.
fn logout_token(form: &[u8]) -> Result<String, AdminError> {
    let invalid = || AdminError::invalid("send a form with the parameter logout_token, once");
    let form = std::str::from_utf8(form).map_err(|_| invalid())?;
    let mut found = None;
    for pair in query_pairs(form) {
        let (name, value) = pair.map_err(|_| invalid())?;
        // Others are ignored, as the specification says.
        if name == "logout_token" && found.replace(value.into_owned()).is_some() {
            return Err(invalid());
        }
    }
    found.ok_or_else(invalid)
}

/// Returns the parameters of the provider's answer. Others are ignored, as OpenID Connect says.
fn parsed(query: &str) -> Result<ProviderAnswer, AdminError> {
    let (mut state, mut answer) = (None, ProviderAnswer::default());
    for pair in query_pairs(query) {
        let (name, value) =
            pair.map_err(|error| AdminError::invalid(format!("the query is invalid: {error}")))?;
        let value = value.into_owned();
        let is_repeated = match &*name {
            "state" => state.replace(value).is_some(),
            "code" => answer.code.replace(Zeroizing::new(value)).is_some(),
            "iss" => answer.issuer.replace(value).is_some(),
            "error" => answer.error.replace(value).is_some(),
            "error_description" => answer.error_description.replace(value).is_some(),
            _ => false,
        };
        if is_repeated {
            // RFC 6749, section 3.1.
            return Err(AdminError::invalid(format!("the parameter {name} is there twice")));
        }
    }
    Ok(ProviderAnswer { state: state.unwrap_or_default(), ..answer })
}

fn redirect(location: &'static str) -> Reply {
    let mut reply = Reply::no_content().header("location", location);
    (reply.status, reply.body) = (StatusCode::SEE_OTHER, ResponseBody::Full(Vec::new()));
    reply
}
