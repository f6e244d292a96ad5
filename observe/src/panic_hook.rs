//! Panics become log lines and are counted.

use std::panic::PanicHookInfo;
use std::time::Duration;

use crate::logging::flush_logs;
use crate::metrics;

/// Whoever catches the panic may decide to end the process at once, so the line is written first. This is the one place
/// where an executor may wait for the log, and it waits no longer than this.
const FLUSH_PATIENCE: Duration = Duration::from_millis(100);

/// Reports panics of all threads through the log, in place of the standard text on the standard error output.
/// Install it after logging has been started.
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
    flush_logs(FLUSH_PATIENCE);
}
