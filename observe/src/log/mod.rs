//! The log of the process: starting, flushing, and its configuration.

use std::fmt;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use tracing::Level;
use tracing_subscriber::layer::SubscriberExt;

mod active;
mod event_layer;
mod filter;
pub(crate) mod format;
mod panic_hook;
mod sink;

pub(crate) use active::{Logging, active};
pub use active::{RequestLog, flush_logs};
pub use filter::{DEFAULT_LOG_FILTER, InvalidLogFilter, LogFilter};
pub use format::LogFormat;
pub use panic_hook::install_panic_hook;

use active::ACTIVE;
use event_layer::EventLayer;
use sink::Sink;

/// The target of request lines, so that a filter can select them.
pub(crate) const REQUEST_TARGET: &str = "service::request";
/// The level of request lines.
const REQUEST_LEVEL: Level = Level::INFO;

/// The time for which the process waits for the last lines to be written before it ends.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// The configuration of the log.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// The filter that lines must pass.
    pub filter: LogFilter,
    /// The format of the lines.
    pub format: LogFormat,
    /// The requests that have a line, if the filter enables request lines.
    pub request_log: RequestLog,
    /// Whether the lines of requests name bucket and key.
    pub paths: bool,
}

/// The error of logging that did not start.
#[derive(Debug)]
pub enum LogStartError {
    /// It was started before. A process has one log.
    AlreadyStarted,
    /// The writer thread could not be started.
    Thread(std::io::Error),
}

impl fmt::Display for LogStartError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AlreadyStarted => out.write_str("logging has already been started"),
            Self::Thread(error) => {
                write!(out, "the log writer thread could not be started: {error}")
            }
        }
    }
}

impl std::error::Error for LogStartError {}

/// Writes the remaining lines of the log when dropped.
#[derive(Debug)]
#[must_use = "the log's last lines are written when this is dropped"]
pub struct LogGuard(());

impl Drop for LogGuard {
    fn drop(&mut self) {
        flush_logs(FLUSH_TIMEOUT);
    }
}

/// Starts the log of the process. A thread writes the events and request lines that pass the filter to `output`, so that no
/// caller waits for the output.
///
/// # Errors
/// If the log was started before, or its thread cannot be started.
pub fn start_logging(
    options: &LogOptions,
    output: impl Write + Send + 'static,
) -> Result<LogGuard, LogStartError> {
    let LogOptions { ref filter, format, request_log, paths } = *options;
    let sink = Sink::start(output, format).map_err(LogStartError::Thread)?;
    let is_enabled = filter.enables(REQUEST_TARGET, REQUEST_LEVEL);
    let request_log = if is_enabled { request_log } else { RequestLog::Off };
    let logging = Logging { sink: Arc::clone(&sink), format, request_log, paths };
    ACTIVE.set(logging).map_err(|_| LogStartError::AlreadyStarted)?;
    let subscriber = tracing_subscriber::registry().with(filter.targets()).with(EventLayer { sink, format });
    tracing::subscriber::set_global_default(subscriber).map_err(|_| LogStartError::AlreadyStarted)?;
    Ok(LogGuard(()))
}
