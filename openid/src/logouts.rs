//! The logout tokens that were used. Each counts once, and for sign-ins that were begun before, too.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use cairn_sync::Mutex;
use sha2::{Digest as _, Sha256};

use crate::error::SignInError;
use crate::limits::{CLOCK_SKEW_SECONDS, LOGOUT_AGE_SECONDS_MAX, LOGOUTS_USED_MAX, SIGN_IN_TIME_MAX};
use crate::token::Logout;

/// The time for which a token is remembered: longer than it is accepted, and longer than a sign-in takes.
const REMEMBERED: Duration =
    Duration::from_secs(SIGN_IN_TIME_MAX.as_secs() + LOGOUT_AGE_SECONDS_MAX + 3 * CLOCK_SKEW_SECONDS);

/// The tokens, by the hashes of their ids.
#[derive(Default)]
pub(crate) struct Logouts(Mutex<HashMap<[u8; 32], Used>>);

struct Used {
    logout: Logout,
    at: Instant,
}

impl Logouts {
    /// Uses a valid token.
    ///
    /// # Errors
    /// `Invalid` if it was used before; `Busy` if there are too many, which only the provider can send.
    pub(crate) fn use_up(&self, logout: &Logout, now: Instant) -> Result<(), SignInError> {
        let mut used = self.0.lock();
        used.retain(|_, used| now.saturating_duration_since(used.at) < REMEMBERED);
        let id = Sha256::digest(&logout.id).into();
        if used.contains_key(&id) {
            return Err(SignInError::Invalid("the logout token was used before (jti)".to_owned()));
        }
        if used.len() >= LOGOUTS_USED_MAX {
            return Err(SignInError::Busy);
        }
        used.insert(id, Used { logout: logout.clone(), at: now });
        Ok(())
    }

    /// Returns whether the provider has ended the session of a person since its sign-in was begun.
    pub(crate) fn have_ended(&self, subject: &str, session: Option<&str>, begun: Instant) -> bool {
        self.0.lock().values().any(|used| used.at >= begun && used.logout.ends(subject, session))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logout(id: &str, subject: Option<&str>, session: Option<&str>) -> Logout {
        let [subject, session] = [subject, session].map(|text| text.map(str::to_owned));
        Logout { subject, session, id: id.to_owned() }
    }

    #[test]
    fn a_token_counts_once_as_long_as_it_is_accepted() {
        let (logouts, now) = (Logouts::default(), Instant::now());
        let use_up = |id: &str, now| logouts.use_up(&logout(id, Some("1"), None), now);
        assert_eq!(use_up("a", now), Ok(()));
        assert_eq!(use_up("b", now), Ok(()));
        let later = now + Duration::from_secs(LOGOUT_AGE_SECONDS_MAX + 2 * CLOCK_SKEW_SECONDS);
        assert!(matches!(use_up("a", later), Err(SignInError::Invalid(why)) if why.contains("jti")));
        for number in 2..LOGOUTS_USED_MAX {
            assert_eq!(use_up(&number.to_string(), now), Ok(()));
        }
        assert_eq!(use_up("one more", now), Err(SignInError::Busy));
        assert_eq!(use_up("one more", now + REMEMBERED), Ok(()));
    }

    /// Regression: a logout that came while a sign-in was being finished found no session, and was lost.
    #[test]
    fn a_logout_counts_for_sign_ins_that_were_begun_before() {
        let (logouts, begun) = (Logouts::default(), Instant::now());
        let at = begun + SIGN_IN_TIME_MAX;
        for (id, subject, session) in
            [("a", None, Some("s")), ("b", Some("2"), Some("t")), ("c", Some("3"), None)]
        {
            assert_eq!(logouts.use_up(&logout(id, subject, session), at), Ok(()));
        }
        for (subject, session, is_ended) in [
            ("1", Some("s"), true),
            ("1", Some("t"), false),
            ("1", None, false),
            ("2", Some("t"), true),
            ("2", Some("u"), false),
            ("2", None, true),
            ("3", Some("u"), true),
            ("3", None, true),
        ] {
            assert_eq!(logouts.have_ended(subject, session, begun), is_ended, "{subject} {session:?}");
            assert!(
                !logouts.have_ended(subject, session, at + Duration::from_millis(1)),
                "it was begun afterwards"
            );
        }
    }
}
