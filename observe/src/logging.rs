//! Starting and ending the log of the process.

use std::fmt;
use std::io::Write;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tracing_subscriber::layer::SubscriberExt;

use crate::event_layer::EventLayer;
use crate::filter::LogFilter;
use crate::format::LogFormat;
use crate::request_log::{REQUEST_LEVEL, REQUEST_TARGET};
use crate::sink::Sink;

/// How long the end of the process waits for the last lines to be written.
const FLUSH_PATIENCE: Duration = Duration::from_secs(1);

static ACTIVE: OnceLock<Logging> = OnceLock::new();

/// What the fast paths need to know about the log.
pub(crate) struct Logging {
    pub(crate) sink: Arc<Sink>,
    pub(crate) format: LogFormat,
    /// Whether the filter lets request lines through; read once, filters do not change while the process runs.
    pub(crate) request_lines: bool,
}

/// The log of this process, once started.
pub(crate) fn active() -> Option<&'static Logging> {
    ACTIVE.get()
}

/// Why logging did not start.
#[derive(Debug)]
pub enum LogStartError {
    /// It has been started before; a process has one log.
    AlreadyStarted,
    /// The writer thread could not be started.
    Thread(std::io::Error),
}

impl fmt::Display for LogStartError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AlreadyStarted => out.write_str("logging has already been started"),
            Self::Thread(error) => {
                write!(out, "the thread that writes the log could not be started: {error}")
            }
        }
    }
}

impl std::error::Error for LogStartError {}

/// Writes out what is left of the log when dropped.
#[derive(Debug)]
#[must_use = "the log's last lines are written when this is dropped"]
pub struct LogGuard(());

impl Drop for LogGuard {
    fn drop(&mut self) {
        flush_logs(FLUSH_PATIENCE);
    }
}

/// Starts the log of the process: events and request lines that pass `filter` go to `output`, written by a thread of
/// its own, so that no caller ever waits for it.
///
/// # Errors
/// When it was started before, or its thread cannot be started.
pub fn start_logging(
    filter: &LogFilter,
    format: LogFormat,
    output: impl Write + Send + 'static,
) -> Result<LogGuard, LogStartError> {
    let sink = Sink::start(output, format).map_err(LogStartError::Thread)?;
    let request_lines = filter.enables(REQUEST_TARGET, REQUEST_LEVEL);
    let logging = Logging { sink: Arc::clone(&sink), format, request_lines };
    ACTIVE.set(logging).map_err(|_| LogStartError::AlreadyStarted)?;
    let subscriber = tracing_subscriber::registry().with(filter.targets()).with(EventLayer { sink, format });
    tracing::subscriber::set_global_default(subscriber).map_err(|_| LogStartError::AlreadyStarted)?;
    Ok(LogGuard(()))
}

/// Waits until what was logged so far has been written, at most `patience`. For threads that are about to end the
/// process; executors have no use for it.
pub fn flush_logs(patience: Duration) {
    if let Some(logging) = active() {
        logging.sink.flush(patience);
    }
}
