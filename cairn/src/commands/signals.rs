//! Ends a long command in order on SIGINT and SIGTERM.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};

use crate::failure::Failure;

/// Exit code of a command that the user has ended.
const INTERRUPTED: i32 = 130;

/// Time in which a command ends by itself after a signal. Then it is ended: it waits for a server that does not answer.
const END_TIMEOUT: Duration = Duration::from_secs(8);
/// The interval at which the flag is looked at.
const GLANCE: Duration = Duration::from_millis(100);

/// Returns a flag that the first signal sets. The second one ends the program at once.
pub(crate) fn stop_flag() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // Registered first, so that the first signal finds the flag clear.
        let registered =
            signal_hook::flag::register_conditional_shutdown(signal, INTERRUPTED, Arc::clone(&stop))
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)));
        registered.map_err(|error| format!("signals cannot be handled: {error}"))?;
    }
    let seen = Arc::clone(&stop);
    thread::spawn(move || {
        while !seen.load(Ordering::Relaxed) {
            nap(GLANCE);
        }
        nap(END_TIMEOUT);
        std::process::exit(INTERRUPTED);
    });
    Ok(stop)
}

/// Lets this thread, which is a plain one, rest.
#[expect(clippy::disallowed_methods, reason = "a plain thread")]
pub(crate) fn nap(duration: Duration) {
    thread::sleep(duration);
}
