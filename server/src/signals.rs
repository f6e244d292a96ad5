//! SIGTERM and SIGINT: the first begins the drain, the second ends the process at once.

use std::io;
use std::thread;
use std::time::Duration;

use cairn_net::Drain;
use cairn_observe::flush_logs;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// What a shell reports of a process that a signal ended: this plus the signal's number.
const EXIT_BY_SIGNAL: i32 = 128;
/// How long the end at once waits for the log.
const FLUSH_PATIENCE: Duration = Duration::from_millis(200);

/// Starts the thread that waits for signals.
pub(crate) fn watch(drain: Drain, grace: Duration) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    let wait = move || {
        for signal in signals.forever() {
            if drain.is_begun() {
                tracing::warn!(target: "service", signal, "second signal: ending at once");
                flush_logs(FLUSH_PATIENCE);
                // Everything acknowledged is on the disk; what is in flight was promised to nobody.
                std::process::exit(EXIT_BY_SIGNAL + signal);
            }
            tracing::info!(target: "service", signal, grace_period_seconds = grace.as_secs(), "draining");
            drain.begin(grace);
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(wait)?;
    Ok(())
}
