//! Errors of a whole run ([`LoadError`]) and of one request ([`Failure`]).
//!
//! A failed request never ends a run. It is counted under its [`Failure::label`].

use std::fmt;
use std::io;

/// Errors that prevent or end a run.
#[derive(Debug)]
pub enum LoadError {
    /// An invalid option or combination of options; the text says what is expected.
    Usage(String),
    /// An I/O error.
    Io {
        /// The operation that was in progress.
        doing: String,
        /// The system's error.
        source: io::Error,
    },
    /// The server refused a request that the run depends on.
    Refused {
        /// The operation that was in progress.
        doing: String,
        /// The failure of the request.
        failure: Failure,
    },
    /// An invalid results file.
    Results(String),
}

impl fmt::Display for LoadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(text) | Self::Results(text) => out.write_str(text),
            Self::Io { doing, source } => write!(out, "{doing}: {source}"),
            Self::Refused { doing, failure } => write!(out, "{doing}: {failure}"),
        }
    }
}

impl std::error::Error for LoadError {}

/// For `map_err`: adds what was being done to an I/O error.
pub(crate) fn while_doing(doing: impl Into<String>) -> impl FnOnce(io::Error) -> LoadError {
    let doing = doing.into();
    move |source| LoadError::Io { doing, source }
}

/// The error of one request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The connection could not be opened.
    Connect(io::ErrorKind),
    /// The connection broke while the request was sent or the response read.
    Io(io::ErrorKind),
    /// The server closed the connection before the response was complete.
    Closed,
    /// The response is not HTTP/1.1, or not what HTTP allows here.
    Protocol(&'static str),
    /// A status that does not mean success, with the S3 code if the body has one.
    Status(u16, Option<String>),
    /// A successful response with the wrong bytes, length or keys.
    Verification(String),
}

impl Failure {
    /// Returns the name under which it is counted: an S3 code, an HTTP status, or the kind of failure.
    #[must_use]
    pub fn label(&self) -> String {
        match self {
            Self::Connect(kind) => format!("connect: {kind}"),
            // Linux reports an expired SO_RCVTIMEO as EAGAIN.
            Self::Io(io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => "timeout".to_owned(),
            Self::Io(kind) => format!("i/o: {kind}"),
            Self::Closed => "connection closed early".to_owned(),
            Self::Protocol(what) => format!("protocol: {what}"),
            Self::Status(_, Some(code)) => code.clone(),
            Self::Status(status, None) => format!("HTTP {status}"),
            Self::Verification(_) => "verification".to_owned(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Verification(detail) => write!(out, "verification: {detail}"),
            Self::Status(status, Some(code)) => write!(out, "{code} (HTTP {status})"),
            _ => out.write_str(&self.label()),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(error.kind())
    }
}
