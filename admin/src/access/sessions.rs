//! Sessions of the console: a cookie in place of a credential.
//!
//! A browser logs in once with a token or the root credential, and keeps only a random id in a cookie that scripts cannot
//! read. The sessions are in memory: the end of the process ends them. Only the SHA-256 of an id is kept.
//!
//! A session ends when it is deleted, when it was not used for the idle limit, at its absolute limit, and when its
//! management token is deleted or expires.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cairn_http1::RequestHead;
use cairn_identity::directory::Directory;
use cairn_model::Timestamp;
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use super::authentication::Caller;
use crate::error::AdminError;
use crate::limits::SESSIONS_MAX;

/// What the console answers without a session.
pub(crate) const NO_SESSION: &str = "there is no session, or it has ended: log in again";

/// Random bytes of a session's id.
const ID_BYTES: usize = 32;

type IdHash = [u8; 32];

/// How long sessions last, and how their cookie is set.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// Identifies the store: the ports of one host share cookies, and other stores may be on other ports.
    pub store_id: String,
    /// Whether the console speaks TLS. Then browsers send the cookie over TLS only.
    pub is_secure: bool,
    /// A session ends after this time without a request.
    pub idle: Duration,
    /// A session ends after this time.
    pub absolute: Duration,
}

/// The sessions of the console. Clones share them.
#[derive(Clone)]
pub struct Sessions(Arc<Shared>);

struct Shared {
    cookie: String,
    options: SessionOptions,
    table: Mutex<HashMap<IdHash, Session>>,
}

struct Session {
    caller: Caller,
    /// When its management token expires, or the absolute limit.
    expires_at: Timestamp,
    created: Instant,
    last_used: Instant,
}

/// A session that a request belongs to.
#[derive(Clone, Debug)]
pub(crate) struct FoundSession {
    pub(crate) caller: Caller,
    /// The latest time at which it ends.
    pub(crate) expires_at: Timestamp,
}

impl Sessions {
    /// Makes a table without sessions.
    #[must_use]
    pub fn new(options: SessionOptions) -> Self {
        const STORE_ID_CHARACTERS: usize = 8;
        let store: String = options.store_id.chars().take(STORE_ID_CHARACTERS).collect();
        // Browsers accept a cookie with this prefix only with `Secure`, `Path=/` and without `Domain`.
        let prefix = if options.is_secure { "__Host-" } else { "" };
        let cookie = format!("{prefix}cairn-session-{store}");
        Self(Arc::new(Shared { cookie, options, table: Mutex::default() }))
    }

    fn table(&self) -> MutexGuard<'_, HashMap<IdHash, Session>> {
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a session. Returns the cookie to set, and when the session ends at the latest.
    ///
    /// When there are too many, the one that was not used for the longest time ends.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` if the operating system has no random bytes.
    pub(crate) fn begin(
        &self,
        caller: Caller,
        token_expires_at: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<(String, Timestamp), AdminError> {
        let mut id = Zeroizing::new([0; ID_BYTES]);
        getrandom::fill(&mut *id).map_err(|error| {
            tracing::error!(target: "service", %error, "a session could not be begun");
            AdminError::Internal
        })?;
        let text = Zeroizing::new(URL_SAFE_NO_PAD.encode(*id));
        let absolute = u64::try_from(self.0.options.absolute.as_millis()).unwrap_or(u64::MAX);
        let end = Timestamp(now.0.saturating_add(absolute));
        let expires_at = token_expires_at.map_or(end, |token| token.min(end));
        let created = Instant::now();
        let mut table = self.table();
        table.retain(|_, session| !self.is_over(session, created));
        if table.len() >= SESSIONS_MAX {
            let oldest = table.iter().min_by_key(|(_, session)| session.last_used).map(|(id, _)| *id);
            oldest.and_then(|id| table.remove(&id));
        }
        table.insert(hash(&text), Session { caller, expires_at, created, last_used: created });
        drop(table);
        Ok((self.set_cookie(&text, self.0.options.absolute), expires_at))
    }

    /// Finds the session of a request, and notes its use.
    pub(crate) fn find(&self, head: &RequestHead, directory: Option<&Directory>) -> Option<FoundSession> {
        let id = self.id_of(head)?;
        let now = Instant::now();
        let mut table = self.table();
        let session = table.get_mut(&id)?;
        let token_is_valid = || match session.caller.token {
            Some(token) => directory.is_some_and(|directory| directory.is_token_valid(token)),
            None => true,
        };
        if self.is_over(session, now) || !token_is_valid() {
            table.remove(&id);
            return None;
        }
        session.last_used = now;
        Some(FoundSession { caller: session.caller.clone(), expires_at: session.expires_at })
    }

    /// Returns whether a request has a cookie of this store, valid or not.
    pub(crate) fn has_cookie(&self, head: &RequestHead) -> bool {
        let mut names = head.header_str("cookie").unwrap_or_default().split(';');
        names.any(|cookie| cookie.trim().split('=').next() == Some(self.0.cookie.as_str()))
    }

    /// Ends the session of a request. Returns the cookie that removes it from the browser.
    pub(crate) fn end(&self, head: &RequestHead) -> String {
        if let Some(id) = self.id_of(head) {
            self.table().remove(&id);
        }
        self.set_cookie("", Duration::ZERO)
    }

    fn is_over(&self, session: &Session, now: Instant) -> bool {
        let options = &self.0.options;
        now.saturating_duration_since(session.created) >= options.absolute
            || now.saturating_duration_since(session.last_used) >= options.idle
    }

    fn id_of(&self, head: &RequestHead) -> Option<IdHash> {
        let cookies = head.header_str("cookie")?;
        let mut values = cookies.split(';').filter_map(|cookie| {
            let (name, value) = cookie.trim().split_once('=')?;
            (name == self.0.cookie).then_some(value)
        });
        let value = values.next()?;
        // A second one was set by somebody else: it is not known which of them is right.
        values.next().is_none().then(|| hash(value))
    }

    fn set_cookie(&self, value: &str, age: Duration) -> String {
        let secure = if self.0.options.is_secure { "; Secure" } else { "" };
        let (name, seconds) = (&self.0.cookie, age.as_secs());
        format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}")
    }
}

impl std::fmt::Debug for Sessions {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Sessions").finish_non_exhaustive()
    }
}

fn hash(id: &str) -> IdHash {
    Sha256::digest(id.as_bytes()).into()
}

/// Returns whether a request was sent by a page of the console itself.
///
/// The cookie is not enough: browsers send it with requests of pages on other ports of the same host, too.
pub(crate) fn is_of_console(head: &RequestHead) -> bool {
    const HEADER: &str = "x-service-console";
    let is_same_origin = match head.header_str("sec-fetch-site") {
        Some(site) => site == "same-origin",
        None => head.header_str("origin").is_some_and(|origin| {
            let origin_host = origin.split_once("://").map(|(_, host)| host);
            origin_host.is_some() && origin_host == head.header_str("host")
        }),
    };
    is_same_origin && head.header(HEADER) == Some(b"1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::AuthenticationKind;
    use cairn_http1::{HeadLimits, parse_head};
    use cairn_identity::Role;

    const NOW: Timestamp = Timestamp(1_000_000);

    fn sessions(is_secure: bool, idle: u64) -> Sessions {
        let (store_id, idle) = ("0123456789abcdef".to_owned(), Duration::from_secs(idle));
        Sessions::new(SessionOptions { store_id, is_secure, idle, absolute: Duration::from_secs(3600) })
    }

    fn caller() -> Caller {
        Caller {
            role: Role::Auditor,
            principal: "root".to_owned(),
            token: None,
            authentication: AuthenticationKind::Token,
            directory_version: 0,
        }
    }

    fn head(fields: &str) -> RequestHead {
        let text = format!("POST / HTTP/1.1\r\nHost: console:7602\r\n{fields}\r\n");
        parse_head(text.as_bytes(), &HeadLimits::default()).expect("parses").expect("whole").0
    }

    fn begin(sessions: &Sessions) -> RequestHead {
        let (cookie, _) = sessions.begin(caller(), None, NOW).expect("random bytes");
        head(&format!("Cookie: a=b; {}\r\n", cookie.split(';').next().expect("a pair")))
    }

    #[test]
    fn a_session_is_found_by_its_cookie_until_it_ends() {
        let sessions = sessions(false, 60);
        let request = begin(&sessions);
        assert_eq!(sessions.find(&request, None).expect("found").caller, caller());
        let other = begin(&sessions);
        let removal = sessions.end(&request);
        assert!(removal.contains("=; Path=/; Max-Age=0") && sessions.find(&request, None).is_none());
        assert!(sessions.find(&other, None).is_some(), "only one session has ended");
        assert!(sessions.find(&head(""), None).is_none());
        let cookie = other.header_str("cookie").expect("a cookie");
        let twice = head(&format!("Cookie: {cookie}; {}\r\n", cookie.split("; ").nth(1).expect("a pair")));
        assert!(sessions.find(&twice, None).is_none(), "two cookies of one name");
    }

    #[test]
    fn unused_sessions_end_and_their_number_is_limited() {
        let unused = sessions(false, 0);
        assert!(unused.find(&begin(&unused), None).is_none());
        let sessions = sessions(false, 60);
        let first = begin(&sessions);
        for _ in 0..SESSIONS_MAX {
            begin(&sessions);
        }
        assert!(sessions.find(&first, None).is_none(), "the one that was not used for the longest time");
        assert_eq!(sessions.table().len(), SESSIONS_MAX);
    }

    #[test]
    fn cookies_are_protected() {
        let (cookie, end) = sessions(true, 60).begin(caller(), None, NOW).expect("random bytes");
        assert!(cookie.starts_with("__Host-cairn-session-01234567="), "{cookie}");
        assert!(cookie.ends_with("; Path=/; Max-Age=3600; HttpOnly; SameSite=Strict; Secure"), "{cookie}");
        assert_eq!(end, Timestamp(NOW.0 + 3_600_000));
        let token_end = Some(Timestamp(NOW.0 + 5));
        let (cookie, end) = sessions(false, 60).begin(caller(), token_end, NOW).expect("random bytes");
        assert!(cookie.starts_with("cairn-session-01234567=") && !cookie.contains("Secure"), "{cookie}");
        assert_eq!(Some(end), token_end);
    }

    #[test]
    fn only_pages_of_the_console_change_anything() {
        let console = "x-service-console: 1\r\n";
        for (fields, expected) in [
            ("Sec-Fetch-Site: same-origin\r\n", true),
            ("Sec-Fetch-Site: same-site\r\n", false),
            ("Sec-Fetch-Site: none\r\n", false),
            ("Sec-Fetch-Site: cross-site\r\nOrigin: http://console:7602\r\n", false),
            ("Origin: http://console:7602\r\n", true),
            ("Origin: http://console:7603\r\n", false),
            ("Origin: null\r\n", false),
            ("", false),
        ] {
            assert_eq!(is_of_console(&head(&format!("{fields}{console}"))), expected, "{fields}");
            assert!(!is_of_console(&head(fields)), "the header is missing");
        }
        assert!(!is_of_console(&head("Sec-Fetch-Site: same-origin\r\nx-service-console: 2\r\n")));
    }
}
