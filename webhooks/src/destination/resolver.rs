//! Look-ups of host names: with a time limit, and with a bound on those that hang.

use std::collections::VecDeque;
use std::fmt;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use cairn_sync::{Condvar, Mutex};

use crate::limits::{LOOKUP_THREAD_IDLE, LOOKUPS_MAX};

/// Finds the addresses of host names.
pub trait Resolver: Send + Sync {
    /// Returns the addresses of a name: at least one. Blocks for at most the time limit. A dot at the end of the name means
    /// that it is not searched for in the host's own domains.
    ///
    /// # Errors
    /// The name has no address, or it is not known whether it has one. No delivery is made then.
    fn resolve(&self, name: &str, time_limit: Duration) -> Result<Vec<IpAddr>, LookupError>;
}

/// The reason why a look-up has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LookupError {
    /// The system's answer, in its words.
    Failed(String),
    /// The answer did not come in time.
    TimedOut,
    /// Too many look-ups hang.
    Busy,
}

impl fmt::Display for LookupError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(text) => formatter.write_str(text),
            Self::TimedOut => formatter.write_str("the look-up of the host name took too long"),
            Self::Busy => formatter.write_str("too many look-ups of host names are waiting for an answer"),
        }
    }
}

impl std::error::Error for LookupError {}

/// The resolver of the host: `getaddrinfo`, with `/etc/hosts`, search domains and whatever else the operator configured.
///
/// A call of it cannot be interrupted, so it runs in a thread of its own, which the caller leaves behind at its time limit.
/// There are at most [`LOOKUPS_MAX`] such threads; they wait a while for the next look-up.
#[derive(Clone, Default)]
pub struct SystemResolver {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    work: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Lookup>,
    threads: usize,
    idle: usize,
}

/// The result of a look-up.
type Found = Result<Vec<IpAddr>, LookupError>;

struct Lookup {
    name: String,
    give_up_at: Instant,
    answer: mpsc::SyncSender<Found>,
}

impl Resolver for SystemResolver {
    fn resolve(&self, name: &str, time_limit: Duration) -> Result<Vec<IpAddr>, LookupError> {
        let (answer, answered) = mpsc::sync_channel(1);
        self.submit(Lookup { name: name.to_owned(), give_up_at: Instant::now() + time_limit, answer })?;
        match answered.recv_timeout(time_limit) {
            Ok(found) => found,
            Err(RecvTimeoutError::Timeout) => Err(LookupError::TimedOut),
            Err(RecvTimeoutError::Disconnected) => {
                Err(LookupError::Failed("the look-up stopped unexpectedly".to_owned()))
            }
        }
    }
}

impl SystemResolver {
    /// Hands a look-up to a thread.
    fn submit(&self, lookup: Lookup) -> Result<(), LookupError> {
        let mut state = self.shared.state.lock();
        if state.waiting.len() >= LOOKUPS_MAX {
            return Err(LookupError::Busy);
        }
        state.waiting.push_back(lookup);
        if state.waiting.len() > state.idle && state.threads < LOOKUPS_MAX {
            let shared = Arc::clone(&self.shared);
            let spawned =
                std::thread::Builder::new().name("webhook-dns".to_owned()).spawn(move || shared.run());
            match spawned {
                Ok(_) => state.threads += 1,
                // Another thread will take it, if there is one; otherwise it times out.
                Err(error) => tracing::warn!(%error, "no thread for a look-up of a host name"),
            }
        }
        drop(state);
        self.shared.work.notify_one();
        Ok(())
    }
}

impl Shared {
    /// A thread: looks names up until there is nothing to do for a while.
    fn run(&self) {
        let mut answer = None;
        while let Some(lookup) = self.next(answer.take()) {
            if lookup.give_up_at > Instant::now() {
                answer = Some((look_up(&lookup.name), lookup.answer));
            }
        }
    }

    /// Gives an answer, and waits for a look-up. `None` ends the thread.
    fn next(&self, answer: Option<(Found, mpsc::SyncSender<Found>)>) -> Option<Lookup> {
        let mut state = self.state.lock();
        let end = Instant::now() + LOOKUP_THREAD_IDLE;
        state.idle += 1;
        // Whoever gets it may ask again at once, and finds this thread idle. Nobody waits any more if the channel is gone.
        if let Some((found, asked)) = answer {
            let _ = asked.send(found);
        }
        loop {
            let found = state.waiting.pop_front();
            let left = end.saturating_duration_since(Instant::now());
            if found.is_some() || left.is_zero() {
                state.idle -= 1;
                state.threads -= usize::from(found.is_none());
                return found;
            }
            state = self.work.wait_timeout(state, left);
        }
    }
}

/// Asks the system. The port is of no use, but part of the interface.
fn look_up(name: &str) -> Found {
    let found = (name, 0).to_socket_addrs().map_err(|error| LookupError::Failed(error.to_string()))?;
    let mut addresses: Vec<IpAddr> = Vec::new();
    for address in found.map(|found| found.ip()) {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    if addresses.is_empty() {
        return Err(LookupError::Failed("the host name has no address".to_owned()));
    }
    Ok(addresses)
}

#[cfg(test)]
mod tests {
    use super::{LOOKUPS_MAX, Lookup, LookupError, Resolver, SystemResolver};
    use std::net::IpAddr;
    use std::sync::mpsc;
    use std::time::{Duration, Instant};

    #[test]
    fn names_of_the_hosts_file_are_found_and_threads_are_used_again() {
        let resolver = SystemResolver::default();
        for _ in 0..20 {
            let found = resolver.resolve("localhost", Duration::from_secs(120)).expect("every host has it");
            assert!(found.iter().all(IpAddr::is_loopback), "{found:?}");
        }
        assert_eq!(resolver.shared.state.lock().threads, 1);
    }

    #[test]
    fn unknown_names_are_errors() {
        let found = SystemResolver::default()
            .resolve("a.name.that.does.not.exist.invalid.", Duration::from_secs(120));
        assert!(matches!(found, Err(LookupError::Failed(_) | LookupError::TimedOut)), "{found:?}");
    }

    #[test]
    fn look_ups_that_hang_are_bounded() {
        let resolver = SystemResolver::default();
        // As if every thread hung.
        resolver.shared.state.lock().threads = LOOKUPS_MAX;
        let start = Instant::now();
        assert_eq!(resolver.resolve("localhost", Duration::from_millis(20)), Err(LookupError::TimedOut));
        assert!(start.elapsed() >= Duration::from_millis(20));
        let (answer, _answered) = mpsc::sync_channel(1);
        let lookup = || Lookup { name: "localhost".to_owned(), give_up_at: start, answer: answer.clone() };
        while resolver.shared.state.lock().waiting.len() < LOOKUPS_MAX {
            resolver.submit(lookup()).expect("there is room");
        }
        assert_eq!(resolver.resolve("localhost", Duration::from_secs(10)), Err(LookupError::Busy));
    }
}
