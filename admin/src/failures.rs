//! Slows down who guesses credentials: the answer to a wrong one is held back, the longer the more of them came from the
//! same client. Who sends a right one, or none, waits for nothing.
//!
//! Shared by all executors, so that a client gains nothing by spreading its guesses over connections.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cairn_net::within;

use crate::error::AdminError;
use crate::limits::{
    HELD_BACK_MAX, WRONG_CREDENTIAL_CLIENTS_MAX, WRONG_CREDENTIAL_DELAY, WRONG_CREDENTIAL_DELAY_MAX,
    WRONG_CREDENTIAL_MEMORY,
};

/// The wrong credentials of late, on all executors.
#[derive(Clone, Default)]
pub struct WrongCredentials(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    clients: HashMap<IpAddr, Count>,
    /// Of all clients that found no place in the table.
    others: Option<Count>,
    held_back: usize,
}

#[derive(Clone, Copy)]
struct Count {
    wrong: u32,
    last: Instant,
}

impl Count {
    fn is_over(&self, now: Instant) -> bool {
        now.duration_since(self.last) >= WRONG_CREDENTIAL_MEMORY
    }
}

/// A place among the answers that are held back; free again when dropped.
struct HeldBack<'w>(&'w WrongCredentials);

impl Drop for HeldBack<'_> {
    fn drop(&mut self) {
        self.0.lock().held_back -= 1;
    }
}

impl WrongCredentials {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a wrong credential and returns when it may be answered, with what it is answered.
    pub(crate) async fn hold_back(&self, client: IpAddr) -> AdminError {
        let delay = self.lock().count(client, Instant::now());
        let Some(_place) = self.admit() else {
            return AdminError::TooManyRequests("too many wrong credentials are being answered");
        };
        let _: Option<()> = within(delay, std::future::pending()).await;
        AdminError::Unauthenticated
    }

    fn admit(&self) -> Option<HeldBack<'_>> {
        let mut state = self.lock();
        if state.held_back >= HELD_BACK_MAX {
            return None;
        }
        state.held_back += 1;
        Some(HeldBack(self))
    }
}

impl State {
    /// Counts one more wrong credential, and says for how long its answer is held back.
    fn count(&mut self, client: IpAddr, now: Instant) -> Duration {
        if self.clients.len() >= WRONG_CREDENTIAL_CLIENTS_MAX {
            self.clients.retain(|_, count| !count.is_over(now));
        }
        let new = Count { wrong: 0, last: now };
        let has_room = self.clients.len() < WRONG_CREDENTIAL_CLIENTS_MAX;
        let count = if has_room || self.clients.contains_key(&client) {
            self.clients.entry(client).or_insert(new)
        } else {
            self.others.get_or_insert(new)
        };
        if count.is_over(now) {
            *count = new;
        }
        // Beyond this many doublings the delay is at its longest anyway.
        let doublings = count.wrong.min(16);
        *count = Count { wrong: count.wrong.saturating_add(1), last: now };
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
        let wrong = WrongCredentials::default();
        let places: Vec<_> = (0..HELD_BACK_MAX).map_while(|_| wrong.admit()).collect();
        assert_eq!((places.len(), wrong.admit().is_none()), (HELD_BACK_MAX, true));
        drop(places);
        assert!(wrong.admit().is_some());
    }
}
