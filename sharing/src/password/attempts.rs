//! Rate limits of password attempts, per client and per share.
//!
//! They make guessing hopeless, and keep visitors from forcing many hashes. A client may fail [`CLIENT_FAILURES_MAX`]
//! times a minute with one share, and a share may fail [`SHARE_FAILURES_MAX`] times an hour for all clients together.
//! Beyond that, passwords are refused unchecked. An attempt counts as a failure until it has succeeded, so that many
//! attempts at once are not all checked. Visitors who have unlocked the share do not come here.
//!
//! Invariant: the tables are bounded. Clients beyond them share one entry, as do shares.

use crate::types::id::LinkId;
use cairn_model::client_network;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Failures of one client with one share in [`CLIENT_PERIOD`].
const CLIENT_FAILURES_MAX: usize = 5;
const CLIENT_PERIOD: Duration = Duration::from_secs(60);
/// Failures with one share in [`SHARE_PERIOD`].
const SHARE_FAILURES_MAX: usize = 100;
const SHARE_PERIOD: Duration = Duration::from_secs(3600);
/// Most entries of each table. An entry of a client takes about 200 bytes, one of a share up to two kilobytes.
const ENTRIES_MAX: usize = 8192;

/// Recent attempts that failed or are being checked.
#[derive(Default, Debug)]
pub(crate) struct Attempts(Mutex<Tables>);

#[derive(Default, Debug)]
struct Tables {
    clients: Table<(LinkId, IpAddr)>,
    shares: Table<LinkId>,
}

/// The times of attempts, the earliest first.
type Times = VecDeque<Instant>;

#[derive(Debug)]
struct Table<K> {
    entries: HashMap<K, Times>,
    /// Shared by all that are not in the full table.
    others: Times,
}

impl<K> Default for Table<K> {
    fn default() -> Self {
        Self { entries: HashMap::new(), others: Times::new() }
    }
}

/// An attempt that may be checked. It counts as a failure unless [`Attempts::succeeded`] takes it back.
#[derive(Debug)]
pub(crate) struct Attempt {
    share: LinkId,
    client: IpAddr,
    at: Instant,
}

/// Removes times that are too old.
fn prune(times: &mut Times, period: Duration, now: Instant) {
    while times.front().is_some_and(|&time| now.saturating_duration_since(time) >= period) {
        times.pop_front();
    }
}

impl<K: Eq + Hash + Copy> Table<K> {
    fn entry(&mut self, key: K, period: Duration, now: Instant) -> &mut Times {
        if self.entries.len() >= ENTRIES_MAX && !self.entries.contains_key(&key) {
            self.entries.retain(|_, times| {
                prune(times, period, now);
                !times.is_empty()
            });
            if self.entries.len() >= ENTRIES_MAX {
                prune(&mut self.others, period, now);
                return &mut self.others;
            }
        }
        let times = self.entries.entry(key).or_default();
        prune(times, period, now);
        times
    }

    fn remove(&mut self, key: K, at: Instant) {
        let Some(times) = self.entries.get_mut(&key) else {
            self.others.retain(|&time| time != at);
            return;
        };
        if let Some(position) = times.iter().position(|&time| time == at) {
            times.remove(position);
        }
        if times.is_empty() {
            self.entries.remove(&key);
        }
    }
}

/// Returns how long to wait until `times` has room for another.
fn wait(times: &Times, max: usize, period: Duration, now: Instant) -> Option<Duration> {
    let oldest = times.front().filter(|_| times.len() >= max)?;
    Some(period.saturating_sub(now.saturating_duration_since(*oldest)))
}

impl Attempts {
    fn lock(&self) -> MutexGuard<'_, Tables> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins an attempt.
    ///
    /// # Errors
    /// How long to wait until the next attempt is allowed.
    pub(crate) fn begin(&self, share: LinkId, client: IpAddr, now: Instant) -> Result<Attempt, Duration> {
        let client = client_network(client);
        let tables = &mut *self.lock();
        let of_client = tables.clients.entry((share, client), CLIENT_PERIOD, now);
        let of_share = tables.shares.entry(share, SHARE_PERIOD, now);
        let waits = [
            wait(of_client, CLIENT_FAILURES_MAX, CLIENT_PERIOD, now),
            wait(of_share, SHARE_FAILURES_MAX, SHARE_PERIOD, now),
        ];
        if let Some(wait) = waits.into_iter().flatten().max() {
            return Err(wait);
        }
        of_client.push_back(now);
        of_share.push_back(now);
        Ok(Attempt { share, client, at: now })
    }

    /// Takes an attempt back: its password was right, or it was not checked.
    pub(crate) fn succeeded(&self, attempt: &Attempt) {
        let tables = &mut *self.lock();
        tables.clients.remove((attempt.share, attempt.client), attempt.at);
        tables.shares.remove(attempt.share, attempt.at);
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

    #[test]
    fn right_passwords_do_not_count() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        for _ in 0..200 {
            let attempt = attempts.begin(SHARE, client(1), now).expect("allowed");
            attempts.succeeded(&attempt);
        }
        assert!(attempts.lock().clients.entries.is_empty() && attempts.lock().shares.entries.is_empty());
    }

    #[test]
    fn a_flood_of_clients_uses_bounded_memory() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        for number in 0..20_000u32 {
            let share = LinkId(u128::from(number / 50).to_be_bytes());
            let _ = attempts.begin(share, client(number), now);
        }
        let tables = attempts.lock();
        assert!(
            tables.clients.entries.len() <= ENTRIES_MAX && tables.clients.others.len() <= CLIENT_FAILURES_MAX
        );
    }
}
