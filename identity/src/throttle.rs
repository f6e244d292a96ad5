//! Throttles guesses of credentials by source address, on both planes.
//!
//! Each client (an IPv4 address or an IPv6 network of 64 bits) may fail a few times without any effect. Beyond that its
//! failures are answered with a delay, at one per [`FAILURE_INTERVAL`]. Correct credentials are never delayed.
//!
//! A delay alone would not limit guesses over many connections. So while the failures *with the root credential* of a
//! client are ahead of that rate, requests with the root credential from the same client are refused unchecked: a person
//! may have chosen its secret. Only failures that name root lead to this, and only for as long as they are ahead, which
//! is [`FAILURE_INTERVAL`] after the last guess. All other secrets are long and random. They are always checked, so that
//! nobody can lock out an application or an administrator by sending wrong credentials from the same address.
//!
//! Successful requests take no lock: [`CredentialThrottle::root_attempts`] loads one atomic unless somebody is refused.
//!
//! Invariants: the table is bounded; clients beyond it share one entry. A client is forgotten when it is no longer ahead
//! of the rate.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cairn_model::client_network;
use cairn_sync::Mutex;

/// Time that one failure takes up. At this rate, 8 random characters take millions of years to guess.
const FAILURE_INTERVAL: Duration = Duration::from_millis(250);
/// The lead over the rate that a client may have without a delay: 16 failures, so that a mistyped secret in a client that
/// retries is reported at once.
const FREE_FAILURES: Duration = Duration::from_secs(4);
/// Longest delay of a response: whoever mistypes a secret during an attack from the same address waits no longer.
const DELAY_MAX: Duration = Duration::from_secs(2);
/// The lead beyond [`FREE_FAILURES`] that a client's failures with the root credential may have before root is refused
/// unchecked. A client that waits for each response stays below it.
const ROOT_REFUSED_BEYOND: Duration = Duration::from_secs(1);
/// Most clients whose failures are counted separately, of about 60 bytes each.
const CLIENTS_MAX: usize = 4096;
/// Most delayed responses at once, on both planes and all executors, so that guesses cannot use up the connections.
const DELAYED_RESPONSES_MAX: usize = 256;

/// The kind of a wrong credential.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FailedCredential {
    /// The root credential, whose secret a person may have chosen.
    Root,
    /// A credential whose secret is long and random, or one that does not exist.
    Other,
}

/// The decision about a request with the root credential.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RootAttempts {
    /// It is checked.
    Checked,
    /// It is refused unchecked, because it is being guessed from the same address.
    Refused,
}

/// Counts of recent failures. Clones share them.
#[derive(Clone, Debug)]
pub struct CredentialThrottle(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    created: Instant,
    /// The time when root is checked again for every client, in milliseconds after `created`.
    root_refused_until: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    clients: HashMap<IpAddr, Failures>,
    /// Shared by all clients that are not in the full table.
    others: Failures,
    delayed: usize,
}

/// The failures of one client, each as the time at which they fit the rate. `None`: there were none.
#[derive(Clone, Copy, Debug, Default)]
struct Failures {
    all: Option<Instant>,
    root: Option<Instant>,
}

/// Adds one failure. Returns how far the failures are ahead of the rate, limited so that a client soon recovers.
fn add(failures: &mut Option<Instant>, now: Instant) -> Duration {
    let fits = failures.map_or(now, |fits| fits.max(now)) + FAILURE_INTERVAL;
    let fits = fits.min(now + FREE_FAILURES + DELAY_MAX);
    *failures = Some(fits);
    fits - now
}

impl Failures {
    fn is_recovered(&self, now: Instant) -> bool {
        [self.all, self.root].into_iter().flatten().all(|fits| fits <= now)
    }
}

/// The delay of a response to a wrong credential. Drop it when the response is sent.
#[derive(Debug)]
pub struct DelayedResponse {
    throttle: CredentialThrottle,
    delay: Duration,
}

impl DelayedResponse {
    /// Returns how long the response must wait.
    #[must_use]
    pub const fn delay(&self) -> Duration {
        self.delay
    }
}

impl Drop for DelayedResponse {
    fn drop(&mut self) {
        let mut state = self.throttle.0.state.lock();
        assert!(state.delayed > 0, "every delayed response was counted");
        state.delayed -= 1;
    }
}

impl Shared {
    fn milliseconds(&self, at: Instant) -> u64 {
        let elapsed = at.saturating_duration_since(self.created).as_millis();
        u64::try_from(elapsed).expect("a process runs for less than 2^64 milliseconds")
    }
}

impl Default for CredentialThrottle {
    fn default() -> Self {
        let (root_refused_until, state) = (AtomicU64::new(0), Mutex::default());
        Self(Arc::new(Shared { created: Instant::now(), root_refused_until, state }))
    }
}

impl CredentialThrottle {
    /// Returns whether the root credential of a request from this address is checked.
    #[must_use]
    pub fn root_attempts(&self, client: IpAddr, now: Instant) -> RootAttempts {
        // The value only avoids the lock. A failure that another core counts at this moment may be missed.
        if self.0.milliseconds(now) >= self.0.root_refused_until.load(Ordering::Relaxed) {
            return RootAttempts::Checked;
        }
        let state = self.0.state.lock();
        let root = state.clients.get(&client_network(client)).unwrap_or(&state.others).root;
        match root {
            Some(fits) if fits.saturating_duration_since(now) > FREE_FAILURES + ROOT_REFUSED_BEYOND => {
                RootAttempts::Refused
            }
            _ => RootAttempts::Checked,
        }
    }

    /// Counts a wrong credential. Returns the delay of its response, or `None` when so many responses are delayed that
    /// this one must be an error without a delay.
    #[must_use]
    pub fn record_failure(
        &self,
        client: IpAddr,
        failed: FailedCredential,
        now: Instant,
    ) -> Option<DelayedResponse> {
        let mut state = self.0.state.lock();
        let failures = state.entry(client_network(client), now);
        let ahead = add(&mut failures.all, now);
        if failed == FailedCredential::Root {
            let until =
                now + add(&mut failures.root, now).saturating_sub(FREE_FAILURES + ROOT_REFUSED_BEYOND);
            // Rounded up: the atomic must not end before the entry does.
            self.0.root_refused_until.fetch_max(self.0.milliseconds(until) + 1, Ordering::Relaxed);
        }
        if state.delayed >= DELAYED_RESPONSES_MAX {
            return None;
        }
        state.delayed += 1;
        let delay = ahead.saturating_sub(FREE_FAILURES).min(DELAY_MAX);
        Some(DelayedResponse { throttle: self.clone(), delay })
    }
}

impl State {
    /// Returns the failures of a client, or those of all others when the table is full.
    fn entry(&mut self, client: IpAddr, now: Instant) -> &mut Failures {
        if self.clients.len() >= CLIENTS_MAX && !self.clients.contains_key(&client) {
            self.clients.retain(|_, failures| !failures.is_recovered(now));
            if self.clients.len() >= CLIENTS_MAX {
                return &mut self.others;
            }
        }
        self.clients.entry(client).or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
    const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2));

    fn delay(throttle: &CredentialThrottle, client: IpAddr, failed: FailedCredential, now: Instant) -> u128 {
        throttle.record_failure(client, failed, now).expect("few are delayed").delay().as_millis()
    }

    #[test]
    fn the_delay_grows_after_free_failures_and_ends_with_them() {
        let (throttle, now) = (CredentialThrottle::default(), Instant::now());
        let failed = FailedCredential::Other;
        let delays: Vec<u128> = (0..26).map(|_| delay(&throttle, CLIENT, failed, now)).collect();
        assert_eq!(delays[..18], [&[0; 16][..], &[250, 500]].concat());
        assert_eq!(delays[23..], [2000; 3]);
        assert_eq!(delay(&throttle, OTHER, failed, now), 0, "another client has its own count");
        assert_eq!(delay(&throttle, CLIENT, failed, now + FREE_FAILURES + DELAY_MAX), 0);
    }

    /// 38 700 guesses of the root secret in a second were checked on the data plane.
    #[test]
    fn guesses_of_the_root_secret_are_limited_however_many_are_sent() {
        let throttle = CredentialThrottle::default();
        let (begin, mut checked) = (Instant::now(), 0);
        for guess in 0..100_000 {
            let now = begin + Duration::from_micros(100 * guess);
            if throttle.root_attempts(CLIENT, now) == RootAttempts::Checked {
                checked += 1;
                drop(throttle.record_failure(CLIENT, FailedCredential::Root, now));
            }
        }
        assert!((40..=64).contains(&checked), "{checked} guesses were checked in 10 s");
        let end = begin + Duration::from_secs(10);
        assert_eq!(throttle.root_attempts(OTHER, end), RootAttempts::Checked, "another client");
        let later = end + FAILURE_INTERVAL;
        assert_eq!(throttle.root_attempts(CLIENT, later), RootAttempts::Checked, "soon after the last guess");
    }

    #[test]
    fn wrong_keys_of_accounts_do_not_lock_out_root() {
        let (throttle, now) = (CredentialThrottle::default(), Instant::now());
        for _ in 0..1000 {
            drop(throttle.record_failure(CLIENT, FailedCredential::Other, now));
        }
        assert_eq!(throttle.root_attempts(CLIENT, now), RootAttempts::Checked);
    }

    #[test]
    fn a_flood_of_addresses_uses_bounded_memory_and_shares_one_count() {
        let (throttle, now) = (CredentialThrottle::default(), Instant::now());
        for number in 0..10_000 {
            let client = IpAddr::V4(Ipv4Addr::from_bits(number));
            drop(throttle.record_failure(client, FailedCredential::Root, now));
        }
        assert_eq!(throttle.0.state.lock().clients.len(), CLIENTS_MAX);
        assert_eq!(throttle.root_attempts(CLIENT, now), RootAttempts::Refused);
        let later = now + FREE_FAILURES + DELAY_MAX;
        assert_eq!(throttle.root_attempts(CLIENT, later), RootAttempts::Checked);
        drop(throttle.record_failure(CLIENT, FailedCredential::Root, later));
        assert_eq!(throttle.0.state.lock().clients.len(), 1, "recovered clients are forgotten");
    }

    #[test]
    fn the_number_of_delayed_responses_is_limited() {
        let (throttle, now) = (CredentialThrottle::default(), Instant::now());
        let fail = || throttle.record_failure(CLIENT, FailedCredential::Other, now);
        let delayed: Vec<_> = (0..DELAYED_RESPONSES_MAX).map_while(|_| fail()).collect();
        assert_eq!((delayed.len(), fail().is_none()), (DELAYED_RESPONSES_MAX, true));
        drop(delayed);
        assert!(fail().is_some());
    }
}
