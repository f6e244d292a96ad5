//! Tells the watchdog of the service manager that every executor runs.
//!
//! If the manager has a watchdog (sd_watchdog_enabled(3)), a thread notifies it three times within its limit, but only if
//! every executor has counted a heartbeat since the last time. Executors count in a task of their own. An executor that is
//! blocked or in an endless loop counts nothing, so the manager ends and restarts the process, although the thread here and
//! the other executors still run.

use std::future::pending;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use cairn_net::{ExecutorIndex, timeout};

use super::sd_notify::ServiceManager;
use crate::config::Environment;

/// The manager's limit, in microseconds.
const LIMIT_VARIABLE: &str = "WATCHDOG_USEC";
/// The process that the limit applies to; any process if it is not set.
const PROCESS_VARIABLE: &str = "WATCHDOG_PID";
/// Notifications within the limit. Two may be missed, for example while a busy host does not schedule an executor.
const NOTIFICATIONS: u32 = 3;
/// Heartbeats between two notifications.
const HEARTBEATS: u32 = 4;
/// The count of an executor that has ended in order.
const ENDED: u64 = u64::MAX;

/// The heartbeats of all executors. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Heartbeats {
    counts: Arc<[AtomicU64]>,
    /// Time between two heartbeats; `None` if there is no watchdog.
    interval: Option<Duration>,
}

/// The end of an executor, on drop.
struct Ended<'h>(&'h AtomicU64);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        // After a panic, the process ends. It must not be kept alive until then.
        if !thread::panicking() {
            self.0.store(ENDED, Ordering::Relaxed);
        }
    }
}

impl Heartbeats {
    /// Makes the heartbeats of this number of executors, for a watchdog with this limit.
    pub(crate) fn new(executors: usize, limit: Option<Duration>) -> Self {
        let counts = (0..executors).map(|_| AtomicU64::new(0)).collect();
        Self { counts, interval: limit.map(|limit| limit / NOTIFICATIONS / HEARTBEATS) }
    }

    /// Counts heartbeats of this executor until it is dropped, which counts as the executor's end. Never completes. Costs
    /// nothing without a watchdog.
    pub(crate) async fn count(&self, executor: ExecutorIndex) {
        let Some(interval) = self.interval else { return pending().await };
        let count = &self.counts[executor.0];
        let _ended = Ended(count);
        loop {
            count.fetch_add(1, Ordering::Relaxed);
            let _: Option<()> = timeout(interval, pending()).await;
        }
    }

    /// Returns the executors that have counted nothing since the counts in `seen`, and updates those.
    fn stalled(&self, seen: &mut [u64]) -> Vec<usize> {
        let counts = self.counts.iter().map(|count| count.load(Ordering::Relaxed));
        let unchanged = |(number, (count, seen)): (usize, (u64, &mut u64))| {
            let is_stalled = count == std::mem::replace(seen, count) && count != ENDED;
            is_stalled.then_some(number)
        };
        counts.zip(seen).enumerate().filter_map(unchanged).collect()
    }
}

/// Returns the limit of the manager's watchdog, if it has one for this process.
pub(crate) fn limit(environment: &Environment) -> Option<Duration> {
    let number = |name: &str| environment.get(name)?.to_str()?.parse::<u64>().ok();
    let is_ours = environment.get(PROCESS_VARIABLE).is_none()
        || number(PROCESS_VARIABLE) == Some(u64::from(std::process::id()));
    let limit = number(LIMIT_VARIABLE).filter(|&limit| is_ours && limit > 0)?;
    Some(Duration::from_micros(limit))
}

/// The thread that notifies the watchdog. Ends on drop.
pub(crate) struct Watchdog {
    _stop: Sender<()>,
}

impl Watchdog {
    /// Starts the thread if there is a watchdog. The executors must have started.
    ///
    /// # Errors
    /// If there can be no further thread.
    pub(crate) fn start(
        heartbeats: Heartbeats,
        limit: Option<Duration>,
        manager: ServiceManager,
    ) -> io::Result<Option<Self>> {
        let Some(limit) = limit else { return Ok(None) };
        let (stop, stopped) = channel();
        let mut seen = vec![0; heartbeats.counts.len()];
        let run = move || {
            while stopped.recv_timeout(limit / NOTIFICATIONS) == Err(RecvTimeoutError::Timeout) {
                let stalled = heartbeats.stalled(&mut seen);
                if stalled.is_empty() {
                    manager.alive();
                } else {
                    let seconds = limit.as_secs_f64();
                    tracing::error!(target: "service", executors = ?stalled, "executors do not run; the service manager ends the process after {seconds} s");
                }
            }
        };
        thread::Builder::new().name("watchdog".to_owned()).spawn(run)?;
        Ok(Some(Self { _stop: stop }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit_of(variables: &[(&str, &str)]) -> Option<Duration> {
        limit(&variables.iter().copied().collect())
    }

    #[test]
    fn the_limit_applies_to_the_named_process_only() {
        let own = std::process::id().to_string();
        let second = Some(Duration::from_secs(1));
        assert_eq!(limit_of(&[(LIMIT_VARIABLE, "1000000")]), second);
        assert_eq!(limit_of(&[(LIMIT_VARIABLE, "1000000"), (PROCESS_VARIABLE, &own)]), second);
        assert_eq!(limit_of(&[(LIMIT_VARIABLE, "1000000"), (PROCESS_VARIABLE, "1")]), None);
        for none in ["0", "", "-1", "x"] {
            assert_eq!(limit_of(&[(LIMIT_VARIABLE, none)]), None, "{none:?}");
        }
        assert_eq!(limit_of(&[]), None);
    }

    #[test]
    fn one_executor_without_a_heartbeat_is_found() {
        let heartbeats = Heartbeats::new(3, None);
        let mut seen = [0; 3];
        let beat = |number: usize| {
            heartbeats.counts[number].fetch_add(1, Ordering::Relaxed);
        };
        assert_eq!(heartbeats.stalled(&mut seen), [0, 1, 2]);
        (0..3).for_each(beat);
        assert_eq!(heartbeats.stalled(&mut seen), [0_usize; 0]);
        beat(0);
        beat(2);
        assert_eq!(heartbeats.stalled(&mut seen), [1]);
        drop(Ended(&heartbeats.counts[1]));
        beat(0);
        beat(2);
        assert_eq!(heartbeats.stalled(&mut seen), [0_usize; 0], "it has ended in order");
    }
}
