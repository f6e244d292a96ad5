//! The running log of the process.

use super::format::LogFormat;
use super::sink::Sink;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

pub(super) static ACTIVE: OnceLock<Logging> = OnceLock::new();

/// The parts of the log that the request log uses directly.
pub(crate) struct Logging {
    pub(crate) sink: Arc<Sink>,
    pub(crate) format: LogFormat,
    /// The requests that are logged; `Off` if the filter does not enable request lines. Fixed while the process runs.
    pub(crate) request_log: RequestLog,
    /// Whether request lines name bucket and key.
    pub(crate) paths: bool,
}

cairn_model::named_enum! {
    /// The requests that have a line in the log. Named as in the configuration.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub enum RequestLog {
        /// All.
        #[default]
        All => "all",
        /// Those with a status of 400 or more, and those that ended before the response was complete.
        Errors => "errors",
        /// None.
        Off => "off",
    }
}

/// Returns the log of this process once it is started.
pub(crate) fn active() -> Option<&'static Logging> {
    ACTIVE.get()
}

/// Waits at most `timeout` until everything logged so far has been written. Blocks. For threads that are about to end the
/// process.
pub fn flush_logs(timeout: Duration) {
    if let Some(logging) = active() {
        logging.sink.flush(timeout);
    }
}
