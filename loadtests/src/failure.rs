//! What can go wrong: with a run as a whole ([`LoadError`]), or with one request of it ([`Failure`]).
//!
//! A failed request never ends a run; it is counted under its [`Failure::label`].

use std::fmt;
use std::io;

/// Why a run could not begin or go on.
#[derive(Debug)]
pub enum LoadError {
    /// An option, or options that do not go together; the text says what to write instead.
    Usage(String),
    /// The system refused something.
    Io {
        /// What was being done.
        doing: String,
        /// What the system said.
        source: io::Error,
    },
    /// The server refused a request that the run cannot do without.
    Refused {
        /// What was being done.
        doing: String,
        /// What came back.
        failure: Failure,
    },
    /// A results file that is not one.
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

/// For `map_err`: an I/O error together with what was being done.
pub(crate) fn while_doing(doing: impl Into<String>) -> impl FnOnce(io::Error) -> LoadError {
    let doing = doing.into();
    move |source| LoadError::Io { doing, source }
}

/// Why one request failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Failure {
    /// No connection.
    Connect(io::ErrorKind),
    /// The connection broke while the request was sent or the response read.
    Io(io::ErrorKind),
    /// The server closed the connection before the response was whole.
    Closed,
    /// The response is not HTTP/1.1, or not what HTTP allows here.
    Protocol(&'static str),
    /// A status other than the one that means success, with the S3 code if the body had one.
    Status(u16, Option<String>),
    /// Success, with the wrong bytes, length or keys.
    Verification(String),
}

impl Failure {
    /// The name under which it is counted: an S3 code, an HTTP status, or the kind of breakage.
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
