//! Slows down who guesses credentials: the answer to a wrong one is held back, the longer the more of them came from the
//! same client. Who sends a right one, or none, waits for nothing.
//!
//! Shared by all executors, so that a client gains nothing by spreading its guesses over connections; and while several of
//! its answers are held back, the root credential, whose secret a person may have chosen, is not even looked at when it comes
//! from the same address. Tokens are too long to be guessed and always looked at, so that a flood of guesses does not lock
//! administrators out.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cairn_net::within;

use crate::error::AdminError;
use crate::limits::{
    HELD_BACK_MAX, HELD_BACK_PER_CLIENT_MAX, WRONG_CREDENTIAL_CLIENTS_MAX, WRONG_CREDENTIAL_DELAY,
    WRONG_CREDENTIAL_DELAY_MAX, WRONG_CREDENTIAL_MEMORY,
};

/// The wrong credentials of late, on all executors.
#[derive(Clone, Default)]
pub struct WrongCredentials(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    clients: HashMap<IpAddr, Count>,
    /// Of all clients that found no place in the table.
    others: Count,
    held_back: usize,
}

#[derive(Clone, Copy, Default)]
struct Count {
    wrong: u32,
    last: Option<Instant>,
    held_back: usize,
}

impl Count {
    fn is_over(&self, now: Instant) -> bool {
        self.last.is_none_or(|last| now.duration_since(last) >= WRONG_CREDENTIAL_MEMORY)
    }
}

/// A place among the answers that are held back; free again when dropped.
struct HeldBack<'w> {
    among: &'w WrongCredentials,
    client: IpAddr,
}

impl Drop for HeldBack<'_> {
    fn drop(&mut self) {
        let mut state = self.among.lock();
        state.held_back -= 1;
        let count = state.of(self.client);
        count.held_back = count.held_back.saturating_sub(1);
    }
}

/// What counts as one client: an IPv4 address, or an IPv6 network of 64 bits, which one client has to itself.
fn client_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        v4 => v4,
    }
}

impl WrongCredentials {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether so many answers of this client are held back that a credential which might be guessed is not looked at.
    pub(crate) fn is_crowded(&self, address: IpAddr) -> bool {
        let client = client_of(address);
        self.lock().clients.get(&client).is_some_and(|count| count.held_back >= HELD_BACK_PER_CLIENT_MAX)
    }

    /// Counts a wrong credential and returns when it may be answered, with what it is answered.
    pub(crate) async fn hold_back(&self, address: IpAddr) -> AdminError {
        let Some((_place, delay)) = self.admit(client_of(address), Instant::now()) else {
            return AdminError::TooManyRequests("too many wrong credentials are being answered");
        };
        let _: Option<()> = within(delay, std::future::pending()).await;
        AdminError::Unauthenticated
    }

    /// A place to be held back in, and for how long.
    fn admit(&self, client: IpAddr, now: Instant) -> Option<(HeldBack<'_>, Duration)> {
        let mut state = self.lock();
        let delay = state.count(client, now);
        if state.held_back >= HELD_BACK_MAX {
            return None;
        }
        state.held_back += 1;
        state.of(client).held_back += 1;
        Some((HeldBack { among: self, client }, delay))
    }
}

impl State {
    /// The count of a client.
    fn of(&mut self, client: IpAddr) -> &mut Count {
        match self.clients.get_mut(&client) {
            Some(count) => count,
            None => &mut self.others,
        }
    }

    /// Counts one more wrong credential, and says for how long its answer is held back.
    fn count(&mut self, client: IpAddr, now: Instant) -> Duration {
        if self.clients.len() >= WRONG_CREDENTIAL_CLIENTS_MAX {
            self.clients.retain(|_, count| !count.is_over(now) || count.held_back > 0);
        }
        if self.clients.len() < WRONG_CREDENTIAL_CLIENTS_MAX {
            self.clients.entry(client).or_default();
        }
        let count = self.of(client);
        if count.is_over(now) {
            count.wrong = 0;
        }
        // Beyond this many doublings the delay is at its longest anyway.
        let doublings = count.wrong.min(16);
        count.wrong = count.wrong.saturating_add(1);
        count.last = Some(now);
        WRONG_CREDENTIAL_DELAY.saturating_mul(1 << doublings).min(WRONG_CREDENTIAL_DELAY_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

    #[test]
    fn each_wrong_credential_of_a_client_is_held_back_longer_and_a_quiet_minute_forgives() {
        let (mut state, now) = (State::default(), Instant::now());
        let delays: Vec<u128> = (0..8).map(|_| state.count(CLIENT, now).as_millis()).collect();
        assert_eq!(delays, [50, 100, 200, 400, 800, 1600, 2000, 2000]);
        let other = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));
        assert_eq!(state.count(other, now).as_millis(), 50, "of another client nothing is known");
        let later = now + WRONG_CREDENTIAL_MEMORY;
        assert_eq!(state.count(CLIENT, later).as_millis(), 50);
    }

    #[test]
    fn a_flood_of_addresses_is_remembered_in_bounded_memory() {
        let (mut state, now) = (State::default(), Instant::now());
        for number in 0..10_000 {
            state.count(IpAddr::V4(std::net::Ipv4Addr::from_bits(number)), now);
        }
        assert_eq!(state.clients.len(), WRONG_CREDENTIAL_CLIENTS_MAX);
        assert_eq!(state.count(CLIENT, now), WRONG_CREDENTIAL_DELAY_MAX, "the rest share one count");
    }

    #[test]
    fn only_so_many_answers_are_held_back_at_once() {
        let (wrong, now) = (WrongCredentials::default(), Instant::now());
        let places: Vec<_> = (0..HELD_BACK_MAX).map_while(|_| wrong.admit(CLIENT, now)).collect();
        assert_eq!((places.len(), wrong.admit(CLIENT, now).is_none()), (HELD_BACK_MAX, true));
        drop(places);
        assert!(wrong.admit(CLIENT, now).is_some());
    }

    /// Hundreds of connections at once were answered at once when all places were taken, and with them thousands of
    /// guesses of the root secret in a second.
    #[test]
    fn who_has_several_answers_held_back_has_no_further_guess_looked_at() {
        let (wrong, now) = (WrongCredentials::default(), Instant::now());
        let mut places: Vec<_> = (1..HELD_BACK_PER_CLIENT_MAX).map(|_| wrong.admit(CLIENT, now)).collect();
        assert!(!wrong.is_crowded(CLIENT));
        places.push(wrong.admit(CLIENT, now));
        assert!(wrong.is_crowded(CLIENT));
        assert!(!wrong.is_crowded(IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2))), "another client");
        places.pop();
        assert!(!wrong.is_crowded(CLIENT), "one has been answered");
        let of_network = |last| client_of(format!("2001:db8::{last}").parse().expect("an address"));
        assert_eq!(of_network(1), of_network(2));
    }
}
