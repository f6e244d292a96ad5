//! Panic hook that logs and counts panics.

use std::panic::PanicHookInfo;
use std::time::Duration;

use super::active::flush_logs;
use crate::metrics;

/// The time for which a panicking thread waits for its log line to be written, because the process may end right afterwards.
/// This is the only place where an executor may wait for the log.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(100);

/// Reports panics of all threads in the log instead of on the standard error output. Must be called after logging was
/// started.
pub fn install_panic_hook() {
    std::panic::set_hook(Box::new(report));
}

fn report(info: &PanicHookInfo<'_>) {
    metrics::PANICS.add(1);
    let thread = std::thread::current();
    let location = info.location().map(ToString::to_string).unwrap_or_default();
    tracing::error!(
        target: "service",
        thread = thread.name().unwrap_or("unnamed"),
        location,
        "panic: {}",
        info.payload_as_str().unwrap_or("no message"),
    );
    flush_logs(FLUSH_TIMEOUT);
}
