//! Sign-ins that wait for their person, each bound to one browser.
//!
//! An entry is found by the SHA-256 of its secret, which the browser's cookie has. So it is of no use to anybody who knows only
//! `state`: a link with the state and the code of another person does not sign anybody in. It is taken once. What became of a
//! failed one stays until its page has read it.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cairn_model::client_network;
use cairn_sync::Mutex;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::error::SignInError;
use crate::limits::{PENDING_MAX, PENDING_OF_CLIENT_MAX, RANDOM_BYTES, SIGN_IN_TIME_MAX};

type CookieHash = [u8; 32];
/// Names the session of the console that a browser had before.
pub(crate) type SessionHash = [u8; 32];

/// The table of sign-ins.
#[derive(Default)]
pub(crate) struct Pending(Mutex<HashMap<CookieHash, Entry>>);

struct Entry {
    /// The network of the client.
    client: IpAddr,
    begun: Instant,
    earlier: Option<SessionHash>,
    state: State,
}

enum State {
    Waiting { state: String, nonce: String, verifier: Zeroizing<String> },
    Failed(SignInError),
}

/// A sign-in that was begun.
pub(crate) struct New {
    pub(crate) cookie: Zeroizing<String>,
    pub(crate) state: String,
    pub(crate) nonce: String,
    /// The PKCE challenge (RFC 7636): the SHA-256 of the verifier.
    pub(crate) challenge: String,
}

/// A sign-in that the browser came back with. Nobody else can take it.
pub(crate) struct Taken {
    cookie: CookieHash,
    pub(crate) client: IpAddr,
    pub(crate) begun: Instant,
    pub(crate) earlier: Option<SessionHash>,
    pub(crate) nonce: String,
    pub(crate) verifier: Zeroizing<String>,
}

impl Pending {
    /// Begins a sign-in. When there are too many of a network, its oldest one ends; when there are too many altogether, the
    /// oldest one of the network that has the most.
    pub(crate) fn begin(
        &self,
        client: IpAddr,
        earlier: Option<SessionHash>,
        now: Instant,
    ) -> Result<New, getrandom::Error> {
        let (cookie, verifier) = (random()?, random()?);
        let (state, nonce) = (random()?.to_string(), random()?.to_string());
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
        let client = client_network(client);
        let mut entries = self.0.lock();
        entries.retain(|_, entry| !is_over(entry.begun, now));
        make_room(&mut entries, client);
        let waiting = State::Waiting { state: state.clone(), nonce: nonce.clone(), verifier };
        entries.insert(hash(&cookie), Entry { client, begun: now, earlier, state: waiting });
        Ok(New { cookie, state, nonce, challenge })
    }

    /// Takes the sign-in of a browser, if it has this state.
    pub(crate) fn take(&self, cookie: &str, state: &str, now: Instant) -> Option<Taken> {
        let cookie = hash(cookie);
        let mut entries = self.0.lock();
        let entry = entries.get(&cookie)?;
        let State::Waiting { state: expected, .. } = &entry.state else { return None };
        if is_over(entry.begun, now) || !bool::from(expected.as_bytes().ct_eq(state.as_bytes())) {
            return None;
        }
        let Entry { client, begun, earlier, state } = entries.remove(&cookie)?;
        let State::Waiting { nonce, verifier, .. } = state else { return None };
        Some(Taken { cookie, client, begun, earlier, nonce, verifier })
    }

    /// Keeps why a sign-in has failed, for the page of its browser.
    pub(crate) fn fail(&self, taken: &Taken, error: SignInError) {
        let Taken { cookie, client, begun, .. } = *taken;
        let mut entries = self.0.lock();
        // The same browser may have begun another one meanwhile.
        if !entries.contains_key(&cookie) {
            make_room(&mut entries, client);
            entries.insert(cookie, Entry { client, begun, earlier: None, state: State::Failed(error) });
        }
    }

    /// Returns whether this cookie has a sign-in that waits, or that has failed and was not told yet.
    pub(crate) fn knows(&self, cookie: &str, now: Instant) -> bool {
        self.0.lock().get(&hash(cookie)).is_some_and(|entry| !is_over(entry.begun, now))
    }

    /// Returns why the sign-in of a browser has failed, once.
    pub(crate) fn failure(&self, cookie: &str, now: Instant) -> Option<SignInError> {
        let cookie = hash(cookie);
        let mut entries = self.0.lock();
        let entry = entries.get(&cookie)?;
        if matches!(entry.state, State::Waiting { .. }) {
            return None;
        }
        let entry = entries.remove(&cookie)?;
        match entry.state {
            State::Failed(error) if !is_over(entry.begun, now) => Some(error),
            _ => None,
        }
    }
}

fn is_over(begun: Instant, now: Instant) -> bool {
    now.saturating_duration_since(begun) >= SIGN_IN_TIME_MAX
}

/// Removes an entry if there is no room for another one of a network.
fn make_room(entries: &mut HashMap<CookieHash, Entry>, client: IpAddr) {
    let mut counts: HashMap<IpAddr, usize> = HashMap::new();
    for entry in entries.values() {
        *counts.entry(entry.client).or_default() += 1;
    }
    let has_too_many = counts.get(&client).is_some_and(|count| *count >= PENDING_OF_CLIENT_MAX);
    let concerned = match has_too_many {
        true => Some(client),
        false if entries.len() < PENDING_MAX => None,
        false => counts.into_iter().max_by_key(|(_, count)| *count).map(|(client, _)| client),
    };
    let of_concerned = entries.iter().filter(|(_, entry)| Some(entry.client) == concerned);
    let oldest = of_concerned.min_by_key(|(_, entry)| entry.begun).map(|(cookie, _)| *cookie);
    oldest.and_then(|cookie| entries.remove(&cookie));
}

fn random() -> Result<Zeroizing<String>, getrandom::Error> {
    let mut bytes = Zeroizing::new([0; RANDOM_BYTES]);
    getrandom::fill(&mut *bytes)?;
    Ok(Zeroizing::new(URL_SAFE_NO_PAD.encode(*bytes)))
}

fn hash(cookie: &str) -> CookieHash {
    Sha256::digest(cookie.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn client(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    #[test]
    fn a_sign_in_is_taken_once_by_its_browser_with_its_state() {
        let (pending, now) = (Pending::default(), Instant::now());
        let new = pending.begin(client(1), Some([7; 32]), now).expect("random bytes");
        let other = pending.begin(client(1), None, now).expect("random bytes");
        assert!(pending.take(&new.cookie, &other.state, now).is_none(), "another state");
        assert!(pending.take(&other.cookie, &new.state, now).is_none(), "another browser");
        assert!(pending.take("", "", now).is_none());
        let taken = pending.take(&new.cookie, &new.state, now).expect("it waits");
        assert_eq!((taken.nonce, taken.earlier), (new.nonce, Some([7; 32])));
        assert_eq!(URL_SAFE_NO_PAD.encode(Sha256::digest(taken.verifier.as_bytes())), new.challenge);
        assert!(pending.take(&new.cookie, &new.state, now).is_none(), "a replay");
        assert!(pending.take(&other.cookie, &other.state, now).is_some());
    }

    #[test]
    fn a_sign_in_expires() {
        let (pending, now) = (Pending::default(), Instant::now());
        let new = pending.begin(client(1), None, now).expect("random bytes");
        let later = now + SIGN_IN_TIME_MAX;
        assert!(pending.take(&new.cookie, &new.state, later).is_none());
        assert!(pending.take(&new.cookie, &new.state, later - Duration::from_secs(1)).is_some());
        drop(pending.begin(client(1), None, now).expect("random bytes"));
        drop(pending.begin(client(1), None, later).expect("random bytes"));
        assert_eq!(pending.0.lock().len(), 1, "expired ones are removed");
    }

    #[test]
    fn a_failure_is_told_once() {
        let (pending, now) = (Pending::default(), Instant::now());
        let new = pending.begin(client(1), None, now).expect("random bytes");
        assert_eq!(pending.failure(&new.cookie, now), None);
        let taken = pending.take(&new.cookie, &new.state, now).expect("it waits");
        assert!(!pending.knows(&new.cookie, now));
        pending.fail(&taken, SignInError::Busy);
        assert!(pending.knows(&new.cookie, now) && !pending.knows(&new.cookie, now + SIGN_IN_TIME_MAX));
        assert!(pending.take(&new.cookie, &new.state, now).is_none());
        assert_eq!(pending.failure(&new.cookie, now), Some(SignInError::Busy));
        assert_eq!(pending.failure(&new.cookie, now), None);
        assert!(!pending.knows(&new.cookie, now));
    }

    #[test]
    fn a_client_with_many_sign_ins_ends_its_own_ones() {
        let (pending, now) = (Pending::default(), Instant::now());
        let first = pending.begin(client(1), None, now).expect("random bytes");
        for _ in 0..10 * PENDING_OF_CLIENT_MAX {
            drop(pending.begin(client(2), None, now).expect("random bytes"));
        }
        assert_eq!(pending.0.lock().len(), PENDING_OF_CLIENT_MAX + 1);
        for network in 0..200_u8 {
            for _ in 0..10 {
                drop(pending.begin(client(network + 10), None, now).expect("random bytes"));
            }
        }
        assert_eq!(pending.0.lock().len(), PENDING_MAX);
        assert!(pending.take(&first.cookie, &first.state, now).is_some());
    }
}
