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
/// The time for which an immediate exit waits for the log to be written.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(200);

/// Signals closer together than this belong to one request to end the process.
const SAME_REQUEST: Duration = Duration::from_millis(100);

/// The request that a SIGTERM or SIGINT makes.
#[derive(Debug, PartialEq, Eq)]
enum Asked {
    Drain,
    /// It belongs to the request before.
    Nothing,
    Exit,
}

impl Asked {
    /// Returns what a signal at `now` asks for, if the first one came at `first`.
    fn by_signal(first: Option<Instant>, now: Instant) -> Self {
        match first {
            None => Self::Drain,
            Some(first) if now.saturating_duration_since(first) < SAME_REQUEST => Self::Nothing,
            Some(_) => Self::Exit,
        }
    }
}

/// Starts the thread that waits for signals.
pub(crate) fn watch(
    drain: Drain,
    grace: Duration,
    manager: ServiceManager,
    certificates: Certificates,
) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    let wait = move || {
        let mut first = None;
        for signal in signals.forever() {
            if signal == SIGHUP {
                manager.reload(|| certificates.reload());
                continue;
            }
            let now = Instant::now();
            match Asked::by_signal(first, now) {
                Asked::Drain => {
                    first = Some(now);
                    let grace_period_seconds = grace.as_secs();
                    tracing::info!(target: "service", signal, grace_period_seconds, "draining");
                    drain.begin(grace);
                    manager.stopping(grace);
                }
                Asked::Nothing => {}
                Asked::Exit => exit_immediately(signal),
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

#[cfg(test)]
mod tests {
    use super::{Asked, SAME_REQUEST};
    use std::time::{Duration, Instant};

    /// coreutils' `timeout` signals the process and then its group: the process received SIGTERM twice within a millisecond,
    /// treated the second one as a request to end immediately, and cut off the requests in flight.
    #[test]
    fn two_signals_in_quick_succession_count_as_one() {
        let first = Instant::now();
        let asked = |after| Asked::by_signal(Some(first), first + after);
        assert_eq!(Asked::by_signal(None, first), Asked::Drain);
        assert_eq!(asked(Duration::from_millis(1)), Asked::Nothing);
        assert_eq!(asked(SAME_REQUEST), Asked::Exit);
        assert_eq!(asked(Duration::from_secs(60)), Asked::Exit);
    }
}
