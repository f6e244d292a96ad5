//! Signal handling: the first SIGTERM or SIGINT starts the drain, the second ends the process; SIGHUP reloads certificates.
//!
//! Programs often signal a process and then its process group (coreutils' `timeout` does). Two signals within
//! [`SAME_REQUEST`] therefore count as one.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use cairn_net::Drain;
use cairn_observe::flush_logs;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::certificates::Certificates;
use crate::host::sd_notify::ServiceManager;

/// The exit code is this plus the signal's number, as shells report a process that a signal ended.
const EXIT_BY_SIGNAL: i32 = 128;
/// How long an immediate exit waits for the log to be written.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(200);

/// Signals closer together than this belong to one request to end the process.
const SAME_REQUEST: Duration = Duration::from_millis(100);

/// Starts the thread that waits for signals.
pub(crate) fn watch(
    drain: Drain,
    grace: Duration,
    manager: ServiceManager,
    certificates: Certificates,
) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    let wait = move || {
        let mut first: Option<Instant> = None;
        for signal in signals.forever() {
            match first {
                _ if signal == SIGHUP => manager.reload(|| certificates.reload()),
                None => {
                    first = Some(Instant::now());
                    let grace_period_seconds = grace.as_secs();
                    tracing::info!(target: "service", signal, grace_period_seconds, "draining");
                    drain.begin(grace);
                    manager.stopping(grace);
                }
                Some(first) if first.elapsed() < SAME_REQUEST => {}
                Some(_) => exit_immediately(signal),
            }
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(wait)?;
    Ok(())
}

fn exit_immediately(signal: i32) -> ! {
    tracing::warn!(target: "service", signal, "second signal: exiting immediately");
    flush_logs(FLUSH_TIMEOUT);
    // Everything acknowledged is durable; requests in flight were not acknowledged.
    std::process::exit(EXIT_BY_SIGNAL + signal)
}
