//! The logout tokens that were used, each of which counts once.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use cairn_sync::Mutex;
use sha2::{Digest as _, Sha256};

use crate::error::SignInError;
use crate::limits::{CLOCK_SKEW_SECONDS, LOGOUT_AGE_SECONDS_MAX, LOGOUTS_USED_MAX};

/// The time for which a token is remembered: longer than it is accepted.
const REMEMBERED: Duration = Duration::from_secs(LOGOUT_AGE_SECONDS_MAX + 3 * CLOCK_SKEW_SECONDS);

/// The ids of tokens, as hashes.
#[derive(Default)]
pub(crate) struct Logouts(Mutex<HashMap<[u8; 32], Instant>>);

impl Logouts {
    /// Uses a valid token.
    ///
    /// # Errors
    /// `Invalid` if it was used before; `Busy` if there are too many, which only the provider can send.
    pub(crate) fn use_up(&self, id: &str, now: Instant) -> Result<(), SignInError> {
        let mut used = self.0.lock();
        used.retain(|_, at| now.saturating_duration_since(*at) < REMEMBERED);
        let id = Sha256::digest(id).into();
        if used.contains_key(&id) {
            return Err(SignInError::Invalid("the logout token was used before (jti)".to_owned()));
        }
        if used.len() >= LOGOUTS_USED_MAX {
            return Err(SignInError::Busy);
        }
        used.insert(id, now);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_counts_once_as_long_as_it_is_accepted() {
        let (logouts, now) = (Logouts::default(), Instant::now());
        assert_eq!(logouts.use_up("a", now), Ok(()));
        assert_eq!(logouts.use_up("b", now), Ok(()));
        let later = now + Duration::from_secs(LOGOUT_AGE_SECONDS_MAX + 2 * CLOCK_SKEW_SECONDS);
        assert!(matches!(logouts.use_up("a", later), Err(SignInError::Invalid(why)) if why.contains("jti")));
        for number in 2..LOGOUTS_USED_MAX {
            assert_eq!(logouts.use_up(&number.to_string(), now), Ok(()));
        }
        assert_eq!(logouts.use_up("one more", now), Err(SignInError::Busy));
        assert_eq!(logouts.use_up("one more", now + REMEMBERED), Ok(()));
    }
}
