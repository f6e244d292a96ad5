//! Rate limits of password attempts, per client and per share.
//!
//! They make guessing hopeless, and keep visitors from forcing many hashes. A client may fail [`CLIENT_FAILURES_MAX`]
//! times a minute with one share, and a share may fail [`SHARE_FAILURES_MAX`] times an hour for all clients together.
//! Beyond that, passwords are refused unchecked. An attempt counts as a failure until it has succeeded, so that many
//! attempts at once are not all checked. Visitors who have unlocked the share do not come here.
//!
//! Of one client, only [`COUNTED_FAILURES_MAX`] failures an hour count for the share, so that it cannot lock the share for
//! everybody else. Beyond [`SHARE_FAILURES_MAX`] it is refused itself.
//!
//! Invariant: the tables are bounded. Clients beyond them share one entry, as do shares. An entry of a share has at most
//! [`SHARE_FAILURES_MAX`] clients, because each counts at least once.

use crate::types::id::LinkId;
use cairn_model::client_network;
use cairn_sync::Mutex;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Failures of one client with one share in [`CLIENT_PERIOD`].
const CLIENT_FAILURES_MAX: usize = 5;
const CLIENT_PERIOD: Duration = Duration::from_secs(60);
/// Failures with one share in [`SHARE_PERIOD`].
const SHARE_FAILURES_MAX: usize = 100;
const SHARE_PERIOD: Duration = Duration::from_secs(3600);
/// Failures of one client that count for a share: five clients are needed to lock it.
const COUNTED_FAILURES_MAX: usize = 20;
/// Most entries of each table. An entry of a client takes about 200 bytes, one of a share up to five kilobytes.
const ENTRIES_MAX: usize = 8192;

/// Recent attempts that failed or are being checked.
#[derive(Default, Debug)]
pub(crate) struct Attempts(Mutex<Tables>);

#[derive(Default, Debug)]
struct Tables {
    clients: Table<(LinkId, IpAddr), Times>,
    shares: Table<LinkId, ShareFailures>,
}

/// The failures that a table keeps of an entry.
trait Failures: Default {
    /// Removes what is too old.
    fn prune(&mut self, now: Instant);
    fn is_empty(&self) -> bool;
    /// Removes an attempt that is no failure.
    fn take_back(&mut self, attempt: &Attempt);
}

/// The times of a client's attempts with a share, the earliest first.
#[derive(Default, Debug)]
struct Times(VecDeque<Instant>);

/// The failures of a share in [`SHARE_PERIOD`].
#[derive(Default, Debug)]
struct ShareFailures(Vec<ClientFailures>);

/// The failures of one client with a share in the [`SHARE_PERIOD`] that began with the first of them.
#[derive(Debug)]
struct ClientFailures {
    client: IpAddr,
    first: Instant,
    count: usize,
}

#[derive(Debug)]
struct Table<K, F> {
    entries: HashMap<K, F>,
    /// Shared by all that are not in the full table.
    others: F,
}

impl<K, F: Default> Default for Table<K, F> {
    fn default() -> Self {
        Self { entries: HashMap::new(), others: F::default() }
    }
}

/// An attempt that may be checked. It counts as a failure unless [`Attempts::succeeded`] takes it back.
#[derive(Debug)]
pub(crate) struct Attempt {
    share: LinkId,
    client: IpAddr,
    at: Instant,
}

/// Returns how much of a period that began at `begin` is left.
fn left(period: Duration, begin: Instant, now: Instant) -> Duration {
    period.saturating_sub(now.saturating_duration_since(begin))
}

impl Times {
    /// Returns how long to wait until another attempt is allowed.
    fn wait(&self, now: Instant) -> Option<Duration> {
        let oldest = self.0.front().filter(|_| self.0.len() >= CLIENT_FAILURES_MAX)?;
        Some(left(CLIENT_PERIOD, *oldest, now))
    }
}

impl Failures for Times {
    fn prune(&mut self, now: Instant) {
        while self.0.front().is_some_and(|&time| left(CLIENT_PERIOD, time, now).is_zero()) {
            self.0.pop_front();
        }
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn take_back(&mut self, attempt: &Attempt) {
        if let Some(position) = self.0.iter().position(|&time| time == attempt.at) {
            self.0.remove(position);
        }
    }
}

impl ShareFailures {
    /// Returns how long a client has to wait until another attempt is allowed.
    fn wait(&self, client: IpAddr, now: Instant) -> Option<Duration> {
        let wait = |failures: &ClientFailures| left(SHARE_PERIOD, failures.first, now);
        let counted: usize = self.0.iter().map(|failures| failures.count.min(COUNTED_FAILURES_MAX)).sum();
        if counted >= SHARE_FAILURES_MAX {
            return self.0.iter().map(wait).min();
        }
        let own = self.0.iter().find(|failures| failures.client == client);
        own.filter(|failures| failures.count >= SHARE_FAILURES_MAX).map(wait)
    }

    fn add(&mut self, client: IpAddr, now: Instant) {
        match self.0.iter_mut().find(|failures| failures.client == client) {
            Some(failures) => failures.count += 1,
            None => self.0.push(ClientFailures { client, first: now, count: 1 }),
        }
        assert!(self.0.len() <= SHARE_FAILURES_MAX, "the share was not locked, and each client counts");
    }
}

impl Failures for ShareFailures {
    fn prune(&mut self, now: Instant) {
        self.0.retain(|failures| !left(SHARE_PERIOD, failures.first, now).is_zero());
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn take_back(&mut self, attempt: &Attempt) {
        // The client may have begun another period since.
        let is_of_attempt =
            |failures: &ClientFailures| failures.client == attempt.client && failures.first <= attempt.at;
        if let Some(position) = self.0.iter().position(is_of_attempt) {
            self.0[position].count -= 1;
            if self.0[position].count == 0 {
                self.0.swap_remove(position);
            }
        }
    }
}

impl<K: Eq + Hash + Copy, F: Failures> Table<K, F> {
    fn entry(&mut self, key: K, now: Instant) -> &mut F {
        if self.entries.len() >= ENTRIES_MAX && !self.entries.contains_key(&key) {
            self.entries.retain(|_, failures| {
                failures.prune(now);
                !failures.is_empty()
            });
            if self.entries.len() >= ENTRIES_MAX {
                self.others.prune(now);
                return &mut self.others;
            }
        }
        let failures = self.entries.entry(key).or_default();
        failures.prune(now);
        failures
    }

    fn take_back(&mut self, key: K, attempt: &Attempt) {
        let Some(failures) = self.entries.get_mut(&key) else {
            self.others.take_back(attempt);
            return;
        };
        failures.take_back(attempt);
        if failures.is_empty() {
            self.entries.remove(&key);
        }
    }
}

impl Attempts {
    /// Begins an attempt.
    ///
    /// # Errors
    /// The time until the next attempt is allowed.
    pub(crate) fn begin(&self, share: LinkId, client: IpAddr, now: Instant) -> Result<Attempt, Duration> {
        let client = client_network(client);
        let tables = &mut *self.0.lock();
        let of_client = tables.clients.entry((share, client), now);
        let of_share = tables.shares.entry(share, now);
        if let Some(wait) = of_client.wait(now).max(of_share.wait(client, now)) {
            return Err(wait);
        }
        of_client.0.push_back(now);
        of_share.add(client, now);
        Ok(Attempt { share, client, at: now })
    }

    /// Takes an attempt back: its password was right, or it was not checked.
    pub(crate) fn succeeded(&self, attempt: &Attempt) {
        let tables = &mut *self.0.lock();
        tables.clients.take_back((attempt.share, attempt.client), attempt);
        tables.shares.take_back(attempt.share, attempt);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const SHARE: LinkId = LinkId([1; 16]);
    const OTHER: LinkId = LinkId([2; 16]);

    fn client(number: u32) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from_bits(number))
    }

    #[test]
    fn a_client_may_fail_five_times_a_minute() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        for _ in 0..5 {
            attempts.begin(SHARE, client(1), now).expect("allowed");
        }
        let later = now + Duration::from_secs(20);
        assert_eq!(attempts.begin(SHARE, client(1), later).expect_err("refused"), Duration::from_secs(40));
        attempts.begin(SHARE, client(2), now).expect("another client");
        attempts.begin(OTHER, client(1), now).expect("another share");
        attempts.begin(SHARE, client(1), now + CLIENT_PERIOD).expect("a minute later");
    }

    #[test]
    fn a_share_may_fail_a_hundred_times_an_hour() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        for number in 0..100 {
            attempts.begin(SHARE, client(number), now).expect("allowed");
        }
        assert_eq!(attempts.begin(SHARE, client(1000), now).expect_err("refused"), SHARE_PERIOD);
        attempts.begin(OTHER, client(1000), now).expect("another share");
        attempts.begin(SHARE, client(1000), now + SHARE_PERIOD).expect("an hour later");
    }

    /// Fails as often as a client may, with a minute between every five attempts. Returns how often it was allowed to.
    fn fail(attempts: &Attempts, from: u32, times: u32, begin: Instant) -> usize {
        let at = |number: u32| begin + CLIENT_PERIOD * (number / 5);
        (0..times).filter(|&number| attempts.begin(SHARE, client(from), at(number)).is_ok()).count()
    }

    /// Regression: one address failed a hundred times in twenty minutes, and so kept the share locked for everybody.
    #[test]
    fn one_client_does_not_lock_a_share_for_others() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        let most = fail(&attempts, 1, 300, now);
        assert_eq!(most, SHARE_FAILURES_MAX, "the client itself is refused");
        let later = now + CLIENT_PERIOD * 30;
        assert_eq!(
            attempts.begin(SHARE, client(1), later).expect_err("refused"),
            SHARE_PERIOD - CLIENT_PERIOD * 30
        );
        for number in 2..5 {
            assert_eq!(fail(&attempts, number, 30, now + CLIENT_PERIOD * 20), 30, "{number}");
        }
        // 80 failures of four clients count. Twenty more lock the share.
        for number in 5..25 {
            attempts.begin(SHARE, client(number), later).expect("allowed");
        }
        assert_eq!(
            attempts.begin(SHARE, client(99), later).expect_err("locked"),
            SHARE_PERIOD - CLIENT_PERIOD * 30
        );
        attempts.begin(SHARE, client(99), now + SHARE_PERIOD).expect("the first client counts no more");
    }

    #[test]
    fn a_right_password_takes_back_no_later_failure() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        let attempt = attempts.begin(SHARE, client(1), now).expect("allowed");
        attempts.begin(SHARE, client(1), now + SHARE_PERIOD).expect("allowed");
        attempts.succeeded(&attempt);
        assert_eq!(attempts.0.lock().shares.entries[&SHARE].0[0].count, 1);
    }

    #[test]
    fn right_passwords_do_not_count() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        for _ in 0..200 {
            let attempt = attempts.begin(SHARE, client(1), now).expect("allowed");
            attempts.succeeded(&attempt);
        }
        assert!(attempts.0.lock().clients.entries.is_empty() && attempts.0.lock().shares.entries.is_empty());
    }

    #[test]
    fn a_flood_of_clients_uses_bounded_memory() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        for number in 0..20_000u32 {
            let share = LinkId(u128::from(number / 50).to_be_bytes());
            let _ = attempts.begin(share, client(number), now);
        }
        let tables = attempts.0.lock();
        assert!(tables.clients.entries.len() <= ENTRIES_MAX);
        assert!(tables.clients.others.0.len() <= CLIENT_FAILURES_MAX);
        let clients = tables.shares.entries.values().map(|failures| failures.0.len());
        assert!(clients.max().is_some_and(|most| most <= SHARE_FAILURES_MAX));
    }
}
