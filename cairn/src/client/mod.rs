//! The HTTP client of the management plane. Time and length of a response are limited, and no request is sent twice.

mod address;
mod agent;
mod content;
pub(crate) mod events;
pub(crate) mod pages;
mod received;
mod request;
mod resolver;
pub(crate) mod resource;
mod transport_error;

use std::sync::OnceLock;

use cairn_http1::{iso8601_millis, parse_http_date};
use serde::de::DeserializeOwned;
use serde_json::Value;
use ureq::http::{self, Method, StatusCode};
use ureq::{Agent, Error, Timeout};

use crate::environment::{CA_VARIABLE, ENDPOINT_VARIABLE, TOKEN_VARIABLE};
use crate::failure::{Failure, Outcome, Refusal};
use crate::moment::now_millis;
use crate::output;
use crate::output::table::{Column, record, table};
use crate::terminal;
use agent::CONNECTIONS_MAX;

pub(crate) use address::Address;
pub(crate) use agent::{agent, agent_trusting, agent_with};
pub(crate) use received::{receive, receive_to_stdout};
pub(crate) use request::{Query, Request, Response, changed, query, with_query};
pub(crate) use transport_error::{TrustFailure, error_text, has_no_address, trust_failure, was_not_sent};

/// Advice on how to get a token.
const TOKEN_HELP: &str = "use the server's SERVICE_MANAGEMENT_SYSTEM_TOKEN, a token from `cairn token create`, or the token that \
                          `cairn serve --dev` prints";
/// The beginning of the console's answer to a request without a session (admin/src/access/sessions.rs).
const CONSOLE_ANSWER: &str = "there is no session";
/// Maximum length of a response: a thousand findings with escaped keys of 1 KiB, or tens of thousands of accounts.
const RESPONSE_BYTES_MAX: u64 = 64 << 20;

/// A server's management plane, and the format in which its responses are printed.
pub(crate) struct Client {
    base: String,
    token: Option<String>,
    /// Whether responses are printed as JSON.
    is_json: bool,
    agent: OnceLock<Agent>,
    /// Number of idle connections that are kept.
    connections: usize,
}

impl Client {
    /// Creates a client with the token from the environment, and the address of `--endpoint` or of the environment.
    pub(crate) fn new(endpoint: Option<&Address>, is_json: bool) -> Result<Self, Failure> {
        let token = std::env::var(TOKEN_VARIABLE).ok().filter(|token| !token.is_empty());
        let base = Address::chosen(endpoint)?.0;
        Ok(Self { base, token, is_json, agent: OnceLock::new(), connections: CONNECTIONS_MAX })
    }

    /// Keeps this many idle connections, for a command that sends so many requests at a time.
    pub(crate) fn with_connections(self, connections: usize) -> Self {
        Self { connections, ..self }
    }

    /// Returns whether a token is set.
    pub(crate) fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// Sends a request without a token. Returns the response, whatever its status.
    pub(crate) fn call_public(&self, request: &Request) -> Result<Response, Failure> {
        self.exchange(request, None)
    }

    /// Sends a request with the token. Returns the JSON object of the response, or null if it has no content.
    pub(crate) fn call(&self, request: &Request) -> Result<Value, Failure> {
        let response = self.exchange(request, Some(self.token()?))?;
        self.success(request, response)
    }

    /// Sends a request with the token. Returns the response, whatever its status.
    pub(crate) fn call_raw(&self, request: &Request) -> Result<Response, Failure> {
        self.exchange(request, Some(self.token()?))
    }

    /// Returns the token.
    fn token(&self) -> Result<&str, Failure> {
        let token = self.token.as_deref().ok_or_else(|| {
            format!("{TOKEN_VARIABLE} is not set; it must contain a management token\n  {TOKEN_HELP}")
        })?;
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!(
                "{TOKEN_VARIABLE} contains characters that are invalid in a token\n  {TOKEN_HELP}"
            )
            .into());
        }
        Ok(token)
    }

    /// Returns the JSON object of a successful response, or null if it has no content.
    fn success(&self, request: &Request, response: Response) -> Result<Value, Failure> {
        match response.status {
            StatusCode::NO_CONTENT => Ok(Value::Null),
            StatusCode::OK | StatusCode::CREATED | StatusCode::ACCEPTED => match response.body {
                Some(body) if body.is_object() => Ok(body),
                _ => Err(self.unexpected_response(&response)),
            },
            _ => Err(self.refusal(request, &response)),
        }
    }

    /// Sends a request and prints the list in the named member of the response.
    pub(crate) fn list<T: DeserializeOwned>(
        &self,
        path: impl Into<String>,
        name: &str,
        columns: &[Column<T>],
    ) -> Outcome {
        let body = self.call(&Request::get(path))?;
        self.print_list(&body, name, columns)
    }

    /// Prints a response, or the list in its named member as a table.
    pub(crate) fn print_list<T: DeserializeOwned>(
        &self,
        body: &Value,
        name: &str,
        columns: &[Column<T>],
    ) -> Outcome {
        rows(body, name)?;
        if self.is_json {
            print_json(body)
        } else {
            output::print(&table(columns, &read::<Vec<T>>(&body[name])?))
        }
    }

    /// Sends a request and prints the response as a record.
    pub(crate) fn show<T: DeserializeOwned>(&self, request: &Request, columns: &[Column<T>]) -> Outcome {
        self.print_as(&self.call(request)?, |one| record(columns, one))
    }

    /// Like [`Self::print`], for the text of what the response contains. It is read only for the text, so that members that
    /// this program does not know stay in JSON.
    pub(crate) fn print_as<T: DeserializeOwned>(
        &self,
        body: &Value,
        text: impl FnOnce(&T) -> String,
    ) -> Outcome {
        if self.is_json { print_json(body) } else { output::print(&text(&read(body)?)) }
    }

    /// Sends a request and prints `done`.
    pub(crate) fn change(&self, request: &Request, done: &str) -> Outcome {
        let body = self.call(request)?;
        self.print(&body, || format!("{}\n", terminal::plain(done)))
    }

    /// Prints a response as JSON or as text. A response without content is not printed as JSON.
    pub(crate) fn print(&self, body: &Value, text: impl FnOnce() -> String) -> Outcome {
        if self.is_json { print_json(body) } else { output::print(&text()) }
    }

    /// Like [`Self::print`], for a response with a secret that is shown only once. `lost` says what to do if it could not be
    /// printed.
    pub(crate) fn print_secret(&self, body: &Value, text: impl FnOnce() -> String, lost: &str) -> Outcome {
        let text = if self.is_json { terminal::json(body) } else { text() };
        output::print_secret(&text, lost)
    }

    fn exchange(&self, request: &Request, token: Option<&str>) -> Result<Response, Failure> {
        let builder = self.head(request, token);
        let sent = match (&request.method, &request.body) {
            (&Method::GET | &Method::DELETE, None) => builder.body(()).map(|sent| self.run(request, sent)),
            // With an empty body, Content-Length is sent instead of chunked encoding.
            (_, None) => builder.body("").map(|sent| self.run(request, sent)),
            (_, Some(body)) => {
                let sent = builder.header("content-type", "application/json").body(body.as_str());
                sent.map(|sent| self.run(request, sent))
            }
        };
        sent.map_err(|error| Failure::WrongUsage(format!("the request is invalid: {error}")))?
    }

    /// Returns the head of a request.
    fn head(&self, request: &Request, token: Option<&str>) -> http::request::Builder {
        let builder = http::Request::builder()
            .method(request.method.clone())
            .uri(format!("{}{}", self.base, request.path))
            .header("accept", "application/json");
        match token {
            Some(token) => builder.header("authorization", format!("Bearer {token}")),
            None => builder,
        }
    }

    fn run(
        &self,
        request: &Request,
        sent: http::Request<impl ureq::AsSendBody>,
    ) -> Result<Response, Failure> {
        let mut response = self.send(request, sent)?;
        let status = response.status();
        let read = response.body_mut().with_config().limit(RESPONSE_BYTES_MAX).read_to_vec();
        let bytes = read.map_err(|error| self.no_response(request, &error))?;
        Ok(Response { status, body: serde_json::from_slice(&bytes).ok() })
    }

    /// Returns the server's time from its Date header (RFC 3339), rounded down to seconds. If this host's clock shows the same
    /// second, its milliseconds are taken.
    pub(crate) fn server_now(&self) -> Result<String, Failure> {
        let own = now_millis();
        let request = Request::get("/health");
        let sent = self.head(&request, None).body(());
        let sent = sent.map_err(|error| Failure::WrongUsage(format!("the request is invalid: {error}")))?;
        let response = self.send(&request, sent)?;
        let date = response.headers().get("date").and_then(|date| parse_http_date(date.as_bytes()));
        let Some(seconds) = date.and_then(|seconds| u64::try_from(seconds).ok()) else {
            return Ok(iso8601_millis(own));
        };
        Ok(iso8601_millis(own.clamp(seconds * 1000, seconds * 1000 + 999)))
    }

    /// Returns the HTTP client, which all requests of a command share.
    fn agent(&self) -> Result<&Agent, Failure> {
        if let Some(agent) = self.agent.get() {
            return Ok(agent);
        }
        let made = agent_with(CA_VARIABLE, self.connections)?;
        Ok(self.agent.get_or_init(|| made))
    }

    fn no_response(&self, request: &Request, error: &Error) -> Failure {
        let error_text = match error {
            Error::Timeout(Timeout::Global) => {
                format!("no response within {} s", request.timeout.as_secs())
            }
            other => error_text(other),
        };
        let mut text = if let Some(failure) = trust_failure(error) {
            let mut text = failure.text(error, &self.base, CA_VARIABLE);
            if failure == TrustFailure::WithoutTls {
                text += &format!(" (--endpoint or {ENDPOINT_VARIABLE})");
            }
            text
        } else if was_not_sent(error) {
            format!(
                "{} cannot be reached: {error_text}\n  \
                 is the server running, and is this the address of its management plane (SERVICE_API_BIND)? \
                 --endpoint or {ENDPOINT_VARIABLE} sets another address",
                self.base
            )
        } else {
            format!("{} sent no complete response: {error_text}", self.base)
        };
        if request.method != Method::GET && !was_not_sent(error) {
            text.push_str("\n  it is unknown whether the change was made: check before you try again");
        }
        Failure::NoResponse(text)
    }

    /// Returns the failure for a response that is an error.
    pub(crate) fn refusal(&self, request: &Request, response: &Response) -> Failure {
        let (Some(code), Some(message)) = (response.error("code"), response.error("message")) else {
            return self.unexpected_response(response);
        };
        if message.starts_with(CONSOLE_ANSWER) {
            return Failure::Failed(format!(
                "{} is the console: use the management plane (port 7601 unless SERVICE_API_BIND sets another)\n  \
                 --endpoint or {ENDPOINT_VARIABLE} sets its address",
                self.base
            ));
        }
        let refusal = Refusal {
            path: &request.path,
            body: &request
                .body
                .as_deref()
                .and_then(|body| serde_json::from_str(body).ok())
                .unwrap_or_default(),
            status: response.status,
            code,
            message,
            request_id: response.error("request_id"),
        };
        Failure::Failed(refusal.text())
    }

    /// Returns the failure for a response that no management plane sends.
    pub(crate) fn unexpected_response(&self, response: &Response) -> Failure {
        let (base, status) = (&self.base, response.status);
        let message = response.error("message").map(terminal::plain);
        if response.status == StatusCode::BAD_REQUEST
            && self.base.starts_with("http:")
            && message.as_deref().is_some_and(|message| message.contains("requires TLS"))
        {
            let secure = self.base.replacen("http", "https", 1);
            return Failure::Failed(format!(
                "{base} uses TLS: use {secure} (--endpoint or {ENDPOINT_VARIABLE})"
            ));
        }
        let what = match &message {
            Some(message) => message.as_ref(),
            None if response.body.is_some() => "an unknown response",
            None => "a response that is not JSON",
        };
        Failure::Failed(format!(
            "{base} is not the management plane of a server: {what}, HTTP {}\n  \
             --endpoint must be the address of the management plane (port 7601 unless SERVICE_API_BIND sets another)",
            status.as_u16()
        ))
    }
}

/// Prints a response as JSON, if it has content.
fn print_json(body: &Value) -> Outcome {
    if body.is_null() { Ok(()) } else { output::print(&terminal::json(body)) }
}

/// Reads a response, or a part of it.
pub(crate) fn read<T: DeserializeOwned>(body: &Value) -> Result<T, Failure> {
    cairn_api::read_response(body).map_err(|error| {
        terminal::plain(&format!("the response is not that of this version of the API: {error}")).into()
    })
}

/// Returns the list in the named member of a response.
pub(crate) fn rows<'b>(body: &'b Value, name: &str) -> Result<&'b [Value], Failure> {
    let rows = body[name].as_array().filter(|rows| rows.iter().all(Value::is_object));
    rows.map(Vec::as_slice).ok_or_else(|| format!("the response contains no list of {name}").into())
}
