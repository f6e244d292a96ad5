//! SIGTERM and SIGINT: the first begins the drain, the second ends the process at once. SIGHUP: the certificates are read again.
//!
//! Who ends a process often signals it and its process group, one right after the other (`timeout` of coreutils does);
//! two signals within [`SAME_REQUEST`] are therefore one.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use cairn_net::Drain;
use cairn_observe::flush_logs;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::certificates::Certificates;
use crate::supervisor::Supervisor;

/// What a shell reports of a process that a signal ended: this plus the signal's number.
const EXIT_BY_SIGNAL: i32 = 128;
/// How long the end at once waits for the log.
const FLUSH_PATIENCE: Duration = Duration::from_millis(200);

/// Signals closer together than this come from one decision to end the process.
const SAME_REQUEST: Duration = Duration::from_millis(100);

/// Starts the thread that waits for signals.
pub(crate) fn watch(
    drain: Drain,
    grace: Duration,
    supervisor: Supervisor,
    certificates: Certificates,
) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    let wait = move || {
        let mut first: Option<Instant> = None;
        for signal in signals.forever() {
            match first {
                _ if signal == SIGHUP => supervisor.reload(|| certificates.reload()),
                None => {
                    first = Some(Instant::now());
                    let grace_period_seconds = grace.as_secs();
                    tracing::info!(target: "service", signal, grace_period_seconds, "draining");
                    drain.begin(grace);
                    supervisor.stopping(grace);
                }
                Some(first) if first.elapsed() < SAME_REQUEST => {}
                Some(_) => end_at_once(signal),
            }
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(wait)?;
    Ok(())
}

fn end_at_once(signal: i32) -> ! {
    tracing::warn!(target: "service", signal, "second signal: ending at once");
    flush_logs(FLUSH_PATIENCE);
    // Everything acknowledged is on the disk; what is in flight was promised to nobody.
    std::process::exit(EXIT_BY_SIGNAL + signal)
}
