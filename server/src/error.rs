//! Errors that prevent a start or end the service. Each text says what to do.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use cairn_engine::OpenError;
use cairn_net::{ExecutorFailure, StartError};
use cairn_observe::LogStartError;
use cairn_tables::StoreOpenError;

use crate::certificates::CertificateError;
use crate::host::data_folder::write_hint;
use crate::host::port::PortError;
use crate::load::LoadError;

/// Errors of `serve`.
#[derive(Debug)]
pub enum ServeError {
    /// The configuration is invalid.
    Load(LoadError),
    /// The log could not be started.
    Log(LogStartError),
    /// The host cannot run the executors.
    Host(StartError),
    /// The memory is insufficient.
    Memory(String),
    /// A limit of the process is too low.
    Limit(String),
    /// The data folder holds no store, and none may be created.
    NoStore(PathBuf),
    /// The store could not be opened.
    Store(OpenError),
    /// One of the small stores could not be opened.
    Tables(StoreOpenError),
    /// The files of the console could not be read from the folder of `--console-dir`.
    ConsoleFiles {
        /// The folder.
        folder: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// A certificate cannot be used.
    Certificate(CertificateError),
    /// Listeners could not be opened. At least one.
    Ports(Vec<PortError>),
    /// Signal handling could not be set up.
    Signals(io::Error),
    /// A background thread could not be started.
    Threads(io::Error),
    /// An executor could not be started.
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
            Self::Memory(reason) | Self::Limit(reason) => out.write_str(reason),
            Self::NoStore(data_dir) => out.write_str(&no_store(data_dir)),
            Self::Store(error @ OpenError::Io { error: cause, .. }) => {
                write!(out, "{error}{}", write_hint(cause))
            }
            Self::Store(error) => error.fmt(out),
            Self::Tables(error) => {
                error.fmt(out)?;
                error.io_error().map_or(Ok(()), |cause| out.write_str(&write_hint(cause)))
            }
            Self::ConsoleFiles { folder, error } => {
                write!(out, "--console-dir: {} cannot be read: {error}", folder.display())
            }
            Self::Certificate(error) => write!(out, "server.tls: {error}"),
            Self::Ports(errors) => {
                let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
                out.write_str(&texts.join("\n"))
            }
            Self::Signals(error) => write!(out, "signal handling could not be set up: {error}"),
            Self::Threads(error) => {
                write!(out, "a thread could not be started: {error}{}", write_hint(error))
            }
            Self::Executor(reason) => write!(out, "an executor could not be started: {reason}"),
            Self::Died(failure) => {
                write!(out, "{failure}; the service stops, and recovers at the next start")
            }
        }
    }
}

/// Says that the data folder holds no store although `storage.create_store` is false, and what to do.
pub(crate) fn no_store(data_dir: &Path) -> String {
    format!(
        "{folder} holds no store, and storage.create_store is false; nothing was created. If the store is on a disk of its own, \
         mount it (`findmnt --target {folder}` shows what is mounted); for a new store, set storage.create_store to true",
        folder = data_dir.display()
    )
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

impl From<StoreOpenError> for ServeError {
    fn from(error: StoreOpenError) -> Self {
        Self::Tables(error)
    }
}

impl From<ExecutorFailure> for ServeError {
    fn from(failure: ExecutorFailure) -> Self {
        Self::Died(failure)
    }
}
