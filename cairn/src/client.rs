//! The management plane as the command-line client sees it: one request, one answer, within limits of time and length,
//! and never the same change twice.

use std::str::FromStr;
use std::time::Duration;

use serde_json::Value;
use ureq::http::{self, Method, StatusCode, Uri};
use ureq::{Error, Timeout};

use crate::agent::{CA_VARIABLE, agent};
use crate::failure::{Failure, Outcome, Refusal};
use crate::output;
use crate::table::{self, Columns};

/// Where a server on this host listens.
const DEFAULT_ENDPOINT: &str = "http://127.0.0.1:7601";
/// Holds the token. It is taken from nowhere else: arguments are seen by every user of a host.
pub(crate) const TOKEN_VARIABLE: &str = "SERVICE_MANAGEMENT_TOKEN";
/// Where tokens come from.
const TOKEN_HELP: &str = "the server's SERVICE_MANAGEMENT_SYSTEM_TOKEN is one, `cairn token create` makes others, \
                          `cairn serve --dev` prints its own";
/// No answer within this time is no answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// As long as reading all of a large store may take.
const LONG_PATIENCE: Duration = Duration::from_secs(7 * 24 * 3600);
/// Longest answer read: a thousand findings with keys of 1 KiB, escaped; tens of thousands of accounts.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// The address of a management plane: `http://host:port` or `https://host:port`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Address(String);

impl Default for Address {
    fn default() -> Self {
        Self(DEFAULT_ENDPOINT.to_owned())
    }
}

impl FromStr for Address {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str = "expected an address such as http://127.0.0.1:7601";
        let base = text.trim_end_matches('/');
        let uri: Uri = base.parse().map_err(|_| FORM)?;
        let authority = uri.authority().ok_or(FORM)?;
        let host_and_port = authority.port_u16().map(|port| format!("{}:{port}", authority.host()));
        let is_whole = host_and_port.as_deref().unwrap_or(authority.host()) == authority.as_str();
        let is_known = matches!(uri.scheme_str(), Some("http" | "https"));
        if is_known && uri.path() == "/" && uri.query().is_none() && is_whole {
            Ok(Self(base.to_owned()))
        } else {
            Err(FORM)
        }
    }
}

/// What is asked of a server.
pub(crate) struct Request {
    method: Method,
    path: String,
    body: Option<String>,
    patience: Duration,
}

impl Request {
    fn new(method: Method, path: impl Into<String>) -> Self {
        Self { method, path: path.into(), body: None, patience: PATIENCE }
    }

    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    pub(crate) fn post(path: impl Into<String>) -> Self {
        Self::new(Method::POST, path)
    }

    pub(crate) fn put(path: impl Into<String>) -> Self {
        Self::new(Method::PUT, path)
    }

    pub(crate) fn delete(path: impl Into<String>) -> Self {
        Self::new(Method::DELETE, path)
    }

    /// With a body.
    pub(crate) fn json(self, body: &Value) -> Self {
        self.document(body.to_string())
    }

    /// With a body that is JSON already.
    pub(crate) fn document(mut self, text: String) -> Self {
        self.body = Some(text);
        self
    }

    /// The answer comes when much was read.
    pub(crate) fn patiently(mut self) -> Self {
        self.patience = LONG_PATIENCE;
        self
    }
}

/// An answer: its status, and its JSON if it is any.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: Option<Value>,
}

/// A server's management plane, and the way in which its answers are printed.
pub(crate) struct Client {
    base: String,
    token: Option<String>,
    /// Answers are printed as JSON, not for people.
    is_json: bool,
}

impl Client {
    /// Takes the token from the environment.
    pub(crate) fn new(address: &Address, is_json: bool) -> Self {
        let token = std::env::var(TOKEN_VARIABLE).ok();
        Self::with_token(address, is_json, token)
    }

    fn with_token(address: &Address, is_json: bool, token: Option<String>) -> Self {
        let token = token.filter(|token| !token.is_empty());
        Self { base: address.0.clone(), token, is_json }
    }

    /// Whether there is a token to show.
    pub(crate) fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// The answer to a question that everybody may ask, whatever its status; no token is sent.
    pub(crate) fn ask_publicly(&self, request: &Request) -> Result<Answer, Failure> {
        self.exchange(request, None)
    }

    /// What was asked for, under the token: a JSON object, or null where the server has nothing to say.
    pub(crate) fn call(&self, request: &Request) -> Result<Value, Failure> {
        let token = self.token.as_deref().ok_or_else(|| {
            format!("{TOKEN_VARIABLE} is not set: it must hold a management token\n  {TOKEN_HELP}")
        })?;
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!("{TOKEN_VARIABLE} holds characters that no token has\n  {TOKEN_HELP}").into());
        }
        let answer = self.exchange(request, Some(token))?;
        match answer.status {
            StatusCode::NO_CONTENT => Ok(Value::Null),
            StatusCode::OK | StatusCode::CREATED => match answer.body {
                Some(body) if body.is_object() => Ok(body),
                _ => Err(self.stranger(&answer)),
            },
            _ => Err(self.refusal(request, &answer)),
        }
    }

    /// Calls, and prints the list that the answer holds under a name.
    pub(crate) fn list(&self, path: &str, name: &str, columns: Columns) -> Outcome {
        let body = self.call(&Request::get(path))?;
        let rows = rows(&body, name)?;
        self.print(&body, || table::table(columns, rows))
    }

    /// Calls, and prints the record that is the answer.
    pub(crate) fn show(&self, request: &Request, columns: Columns) -> Outcome {
        let body = self.call(request)?;
        self.print(&body, || table::record(columns, &body))
    }

    /// Calls, and says that it was done.
    pub(crate) fn change(&self, request: &Request, done: &str) -> Outcome {
        let body = self.call(request)?;
        self.print(&body, || format!("{}\n", output::plain(done)))
    }

    /// Prints an answer, as JSON or in words. Where the server had nothing to say there is no JSON.
    pub(crate) fn print(&self, body: &Value, text: impl FnOnce() -> String) -> Outcome {
        match (self.is_json, body) {
            (true, Value::Null) => Ok(()),
            (true, body) => output::print(&output::json(body)),
            (false, _) => output::print(&text()),
        }
    }

    /// As [`Self::print`], of an answer with a secret that is shown once; `lost` says what to do when it could not be shown.
    pub(crate) fn print_secret(&self, body: &Value, text: impl FnOnce() -> String, lost: &str) -> Outcome {
        let text = if self.is_json { output::json(body) } else { text() };
        output::print_secret(&text, lost)
    }

    fn exchange(&self, request: &Request, token: Option<&str>) -> Result<Answer, Failure> {
        let mut builder = http::Request::builder()
            .method(request.method.clone())
            .uri(format!("{}{}", self.base, request.path))
            .header("accept", "application/json");
        if let Some(token) = token {
            builder = builder.header("authorization", format!("Bearer {token}"));
        }
        let sent = match (&request.method, &request.body) {
            (&Method::GET | &Method::DELETE, None) => builder.body(()).map(|sent| self.run(request, sent)),
            // Without a length, the body of these would be sent in chunks.
            (_, None) => builder.body("").map(|sent| self.run(request, sent)),
            (_, Some(body)) => {
                let sent = builder.header("content-type", "application/json").body(body.as_str());
                sent.map(|sent| self.run(request, sent))
            }
        };
        sent.map_err(|error| Failure::WrongUsage(format!("this cannot be asked: {error}")))?
    }

    fn run(&self, request: &Request, sent: http::Request<impl ureq::AsSendBody>) -> Result<Answer, Failure> {
        let agent = agent()?;
        let sent = agent.configure_request(sent).timeout_global(Some(request.patience)).build();
        let mut response = agent.run(sent).map_err(|error| self.no_answer(request, &error))?;
        let status = response.status();
        let read = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec();
        let bytes = read.map_err(|error| self.no_answer(request, &error))?;
        Ok(Answer { status, body: serde_json::from_slice(&bytes).ok() })
    }

    fn no_answer(&self, request: &Request, error: &Error) -> Failure {
        let error_text = match error {
            Error::Timeout(Timeout::Global) => {
                format!("nothing came within {} s", request.patience.as_secs())
            }
            other => output::plain(&other.to_string()),
        };
        let mut text = if is_about_trust(error) {
            let remedy = if has_unknown_issuer(error) {
                format!(
                    "\n  {CA_VARIABLE} names a file (PEM) of the authority that signed it, if that is one of your own"
                )
            } else {
                String::new()
            };
            format!("{} does not show that it is who it should be: {error_text}{remedy}", self.base)
        } else if never_left(error) {
            format!(
                "{} cannot be reached: {error_text}\n  \
                 is the server running, and is this where its management plane listens (SERVICE_API_BIND)? \
                 --endpoint names another address",
                self.base
            )
        } else {
            format!("{} gave no whole answer: {error_text}", self.base)
        };
        if request.method != Method::GET && !never_left(error) {
            text.push_str("\n  whether it was done is not known: look before you try again");
        }
        Failure::NoAnswer(text)
    }

    fn refusal(&self, request: &Request, answer: &Answer) -> Failure {
        let text = |name: &str| answer.body.as_ref()?["error"][name].as_str();
        let (Some(code), Some(message)) = (text("code"), text("message")) else {
            return self.stranger(answer);
        };
        let refusal = Refusal { status: answer.status, code, message, request_id: text("request_id") };
        Failure::Failed(refusal.text(&request.method, &request.path))
    }

    /// For an answer that no management plane gives.
    pub(crate) fn stranger(&self, answer: &Answer) -> Failure {
        let (base, status) = (&self.base, answer.status);
        let own_words =
            answer.body.as_ref().and_then(|body| body["error"]["message"].as_str()).map(output::plain);
        let what = match &own_words {
            Some(message) => message.as_ref(),
            None if answer.body.is_some() => "an unknown answer",
            None => "no JSON",
        };
        Failure::Failed(format!(
            "{base} is not the management plane of a server: {what}, HTTP {}\n  \
             --endpoint must name the port of the management plane, 7601 unless SERVICE_API_BIND says otherwise",
            status.as_u16()
        ))
    }
}

/// What the TLS library found wrong, if that ended the attempt.
fn tls_error(error: &Error) -> Option<&rustls::Error> {
    match error {
        Error::Rustls(error) => Some(error),
        Error::Io(error) => error.get_ref()?.downcast_ref(),
        _ => None,
    }
}

/// Whether the server's certificate was not accepted.
fn is_about_trust(error: &Error) -> bool {
    matches!(tls_error(error), Some(rustls::Error::InvalidCertificate(_)))
}

/// Whether nobody that is trusted vouches for the server's certificate.
fn has_unknown_issuer(error: &Error) -> bool {
    matches!(
        tls_error(error),
        Some(rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer))
    )
}

/// Whether an error came before anything was sent.
fn never_left(error: &Error) -> bool {
    use std::io::ErrorKind::{ConnectionRefused, HostUnreachable, NetworkUnreachable};
    if is_about_trust(error) {
        return true;
    }
    match error {
        Error::HostNotFound | Error::ConnectionFailed | Error::BadUri(_) => true,
        Error::Timeout(Timeout::Connect | Timeout::Resolve) => true,
        Error::Io(error) => matches!(error.kind(), ConnectionRefused | HostUnreachable | NetworkUnreachable),
        _ => false,
    }
}

/// The list that an answer holds under a name.
pub(crate) fn rows<'b>(body: &'b Value, name: &str) -> Result<&'b [Value], Failure> {
    let rows = body[name].as_array().filter(|rows| rows.iter().all(Value::is_object));
    rows.map(Vec::as_slice).ok_or_else(|| format!("the answer holds no list of {name}").into())
}
