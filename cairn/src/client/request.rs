//! A request to a management plane and its response.

use std::time::Duration;

use cairn_http1::encode_strict;
use serde::Serialize;
use serde_json::Value;
use ureq::http::{Method, StatusCode};

/// Time limit of a request.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Time limit of a request during which the server sends a request itself.
const PATIENT_TIMEOUT: Duration = Duration::from_secs(320);
/// Time limit of a request that may read all of a large store.
const LONG_TIMEOUT: Duration = Duration::from_secs(7 * 24 * 3600);

/// Parameters of a request: names and values.
pub(crate) type Query = Vec<(&'static str, String)>;

/// Returns the parameters that have a value.
pub(crate) fn query<T: Into<String>>(
    parameters: impl IntoIterator<Item = (&'static str, Option<T>)>,
) -> Query {
    let given = |(name, value): (_, Option<T>)| value.map(|value| (name, value.into()));
    parameters.into_iter().filter_map(given).collect()
}

/// Returns a route with parameters.
pub(crate) fn with_query<'q>(
    path: &str,
    parameters: impl IntoIterator<Item = &'q (&'static str, String)>,
) -> String {
    let written = parameters.into_iter().map(|(name, value)| format!("{name}={}", encode_strict(value)));
    let written = written.collect::<Vec<_>>().join("&");
    if written.is_empty() { path.to_owned() } else { format!("{path}?{written}") }
}

/// Returns a member of a request that changes something: absent if it stays, and null if its value is removed.
pub(crate) fn changed<T>(value: Option<T>, is_removed: bool) -> Option<Option<T>> {
    (value.is_some() || is_removed).then_some(value)
}

/// A request to a management plane.
pub(crate) struct Request {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) body: Option<String>,
    pub(super) timeout: Duration,
}

impl Request {
    fn new(method: Method, path: impl Into<String>) -> Self {
        Self { method, path: path.into(), body: None, timeout: TIMEOUT }
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

    pub(crate) fn patch(path: impl Into<String>) -> Self {
        Self::new(Method::PATCH, path)
    }

    pub(crate) fn delete(path: impl Into<String>) -> Self {
        Self::new(Method::DELETE, path)
    }

    /// Sets a JSON body.
    pub(crate) fn json<T: Serialize>(self, body: &T) -> Self {
        let text = serde_json::to_string(body);
        self.document(text.unwrap_or_else(|error| unreachable!("bodies are JSON objects: {error}")))
    }

    /// Sets a body that is already JSON text.
    pub(crate) fn document(mut self, text: String) -> Self {
        self.body = Some(text);
        self
    }

    /// Sets the time limit of a request during which the server sends a request itself, for at most 300 seconds.
    pub(crate) fn patient(mut self) -> Self {
        self.timeout = PATIENT_TIMEOUT;
        self
    }

    /// Sets the long time limit, for a request that may read all of a store.
    pub(crate) fn long_running(mut self) -> Self {
        self.timeout = LONG_TIMEOUT;
        self
    }
}

/// A response: its status, and its body if it is JSON.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: StatusCode,
    pub(crate) body: Option<Value>,
}

impl Response {
    /// Returns a member of the error in the body: `code`, `message` or `request_id`.
    pub(crate) fn error(&self, name: &str) -> Option<&str> {
        self.body.as_ref()?["error"][name].as_str()
    }
}
