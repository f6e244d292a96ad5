//! Why the service did not start, or ended before its time. Each text says what to do.

use std::fmt;
use std::io;

use cairn_engine::OpenError;
use cairn_identity::directory::DirectoryOpenError;
use cairn_net::{ExecutorFailure, StartError};
use cairn_observe::{AuditOpenError, LogStartError};

use crate::certificates::CertificateError;
use crate::load::LoadError;

/// Why `serve` ended with an error.
#[derive(Debug)]
pub enum ServeError {
    /// The configuration.
    Load(LoadError),
    /// The log.
    Log(LogStartError),
    /// The host cannot run the executors.
    Host(StartError),
    /// The memory is too little.
    Memory(String),
    /// The store did not open.
    Store(OpenError),
    /// The audit trail did not open.
    Audit(AuditOpenError),
    /// The directory of accounts did not open.
    Directory(DirectoryOpenError),
    /// A certificate.
    Certificate(CertificateError),
    /// A listener.
    Listen {
        /// The variable that sets its address.
        variable: String,
        /// What the system said; it names the address.
        error: io::Error,
    },
    /// The handling of SIGTERM and SIGINT.
    Signals(io::Error),
    /// The threads that look after the service.
    Threads(io::Error),
    /// An executor could not get ready to serve.
    Executor(String),
    /// An executor died.
    Died(ExecutorFailure),
}

impl fmt::Display for ServeError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Load(error) => error.fmt(out),
            Self::Log(error) => error.fmt(out),
            Self::Host(error) => error.fmt(out),
            Self::Memory(reason) => out.write_str(reason),
            Self::Store(error) => error.fmt(out),
            Self::Audit(error) => error.fmt(out),
            Self::Directory(error) => error.fmt(out),
            Self::Certificate(error) => error.fmt(out),
            Self::Listen { variable, error } => write!(out, "{variable}: {error}"),
            Self::Signals(error) => write!(out, "SIGTERM and SIGINT cannot be handled: {error}"),
            Self::Threads(error) => write!(out, "no thread could be started: {error}"),
            Self::Executor(reason) => write!(out, "an executor could not get ready: {reason}"),
            Self::Died(failure) => write!(out, "{failure}; the service ends, and the next start recovers"),
        }
    }
}

impl std::error::Error for ServeError {}

impl From<LoadError> for ServeError {
    fn from(error: LoadError) -> Self {
        Self::Load(error)
    }
}

impl From<LogStartError> for ServeError {
    fn from(error: LogStartError) -> Self {
        Self::Log(error)
    }
}

impl From<StartError> for ServeError {
    fn from(error: StartError) -> Self {
        Self::Host(error)
    }
}

impl From<OpenError> for ServeError {
    fn from(error: OpenError) -> Self {
        Self::Store(error)
    }
}

impl From<AuditOpenError> for ServeError {
    fn from(error: AuditOpenError) -> Self {
        Self::Audit(error)
    }
}

impl From<DirectoryOpenError> for ServeError {
    fn from(error: DirectoryOpenError) -> Self {
        Self::Directory(error)
    }
}

impl From<ExecutorFailure> for ServeError {
    fn from(failure: ExecutorFailure) -> Self {
        Self::Died(failure)
    }
}
