//! Sessions of the console: a cookie in place of a credential.
//!
//! A browser logs in once with a token or the root credential, or through an OpenID provider, and keeps only a random id in a cookie that scripts cannot
//! read. The sessions are in memory: the end of the process ends them. Only the SHA-256 of an id is kept.
//!
//! A session ends when it is deleted, when it was not used for the idle limit, at its absolute limit, and when its
//! management token is deleted or expires.
//!
//! A credential has a limited number of sessions. Beyond it, its own session that was not used for the longest time ends, and
//! never that of another credential.
//!
//! Lists name a session by a public id, which is random too and has nothing to do with the cookie.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cairn_http1::RequestHead;
use cairn_identity::Role;
use cairn_identity::directory::Directory;
use cairn_model::Timestamp;
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use super::authentication::Caller;
use super::session_cookies::SessionCookies;
use crate::error::AdminError;
use crate::limits::{SESSIONS_MAX, SESSIONS_OF_CREDENTIAL_MAX, USER_AGENT_BYTES_MAX};

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
    /// Host names, in lower case, for which a proxy speaks TLS. The same applies to them.
    pub secure_hosts: Vec<String>,
    /// A session ends after this time without a request.
    pub idle: Duration,
    /// A session ends after this time.
    pub absolute: Duration,
}

/// The sessions of the console. Clones share them.
#[derive(Clone)]
pub struct Sessions(Arc<Shared>);

struct Shared {
    cookies: SessionCookies,
    options: SessionOptions,
    table: Mutex<HashMap<IdHash, Session>>,
}

struct Session {
    public_id: SessionId,
    caller: Caller,
    /// Where it was begun.
    source: SessionSource,
    /// When its management token expires, or the absolute limit.
    expires_at: Timestamp,
    created_at: Timestamp,
    created: Instant,
    last_used: Instant,
}

/// The public id of a session: 128 random bits. It gives no right.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SessionId(u128);

impl SessionId {
    /// Parses 32 hexadecimal digits.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        const DIGITS: usize = 32;
        let is_id = text.len() == DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_id.then(|| u128::from_str_radix(text, 16).ok().map(Self)).flatten()
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:032x}", self.0)
    }
}

/// The client that a session was begun by.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SessionSource {
    address: IpAddr,
    /// The beginning of `User-Agent`; empty if the client did not send one.
    user_agent: String,
}

impl SessionSource {
    /// Describes the client of a request.
    pub(crate) fn of(address: IpAddr, head: &RequestHead) -> Self {
        let sent = head.header("user-agent").unwrap_or_default();
        let sent = &sent[..sent.len().min(USER_AGENT_BYTES_MAX)];
        let mut user_agent = String::from_utf8_lossy(sent).into_owned();
        user_agent.truncate(user_agent.floor_char_boundary(USER_AGENT_BYTES_MAX));
        Self { address, user_agent }
    }
}

/// A session as lists show it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ListedSession {
    pub(crate) id: SessionId,
    pub(crate) caller: Caller,
    pub(crate) created_at: Timestamp,
    pub(crate) last_used_at: Timestamp,
    pub(crate) expires_at: Timestamp,
    pub(crate) address: IpAddr,
    pub(crate) user_agent: String,
    /// Whether the request that lists them belongs to it.
    pub(crate) is_current: bool,
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
        let SessionOptions { store_id, is_secure, secure_hosts, .. } = &options;
        let cookies = SessionCookies::of_sessions(store_id, *is_secure, secure_hosts.clone());
        Self(Arc::new(Shared { cookies, options, table: Mutex::default() }))
    }

    fn table(&self) -> MutexGuard<'_, HashMap<IdHash, Session>> {
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a session of the browser that sent a login. Returns the cookie to set, and when the session ends at the latest.
    ///
    /// When the credential has too many, its own one that was not used for the longest time ends. When there are too many
    /// altogether, this concerns the credential that has the most.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` if the operating system has no random bytes.
    pub(crate) fn begin(
        &self,
        caller: Caller,
        head: &RequestHead,
        source: SessionSource,
        token_expires_at: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<(String, Timestamp), AdminError> {
        let (mut id, mut public_id) = (Zeroizing::new([0; ID_BYTES]), [0; 16]);
        getrandom::fill(&mut *id).and_then(|()| getrandom::fill(&mut public_id)).map_err(|error| {
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
        make_room(&mut table, &caller);
        let session = Session {
            public_id: SessionId(u128::from_be_bytes(public_id)),
            caller,
            source,
            expires_at,
            created_at: now,
            created,
            last_used: created,
        };
        table.insert(hash(&text), session);
        drop(table);
        let cookie = self.0.cookies.set(head, &text, self.0.options.absolute);
        Ok((cookie, expires_at))
    }

    /// Finds the session of a request, and notes its use.
    pub(crate) fn find(&self, head: &RequestHead, directory: Option<&Directory>) -> Option<FoundSession> {
        let id = self.id_of(head)?;
        let now = Instant::now();
        let mut table = self.table();
        let session = table.get_mut(&id)?;
        if self.is_over(session, now) || !has_valid_token(session, directory) {
            table.remove(&id);
            return None;
        }
        session.last_used = now;
        Some(FoundSession { caller: session.caller.clone(), expires_at: session.expires_at })
    }

    /// Returns whether the session of a request that is in progress still exists. This is no use of it.
    pub(crate) fn is_active(&self, head: &RequestHead, directory: Option<&Directory>) -> bool {
        let Some(id) = self.id_of(head) else { return false };
        let now = Instant::now();
        let table = self.table();
        table
            .get(&id)
            .is_some_and(|session| !self.is_over(session, now) && has_valid_token(session, directory))
    }

    /// Returns whether a request has a cookie of this store, valid or not.
    pub(crate) fn has_cookie(&self, head: &RequestHead) -> bool {
        self.0.cookies.are_sent(head)
    }

    /// Returns the sessions that a caller may see and end: those of the same credential, or all for a system administrator.
    /// The one that was used last is the first.
    ///
    /// The names of tokens are not unique, so equal names do not make sessions those of one person.
    pub(crate) fn list(
        &self,
        caller: &Caller,
        head: &RequestHead,
        directory: Option<&Directory>,
    ) -> Vec<ListedSession> {
        let (now, current) = (Instant::now(), self.id_of(head));
        let mut table = self.table();
        table.retain(|_, session| !self.is_over(session, now) && has_valid_token(session, directory));
        let visible = table.iter().filter(|(_, session)| may_manage(caller, &session.caller));
        let mut listed: Vec<_> =
            visible.map(|(id, session)| session.listed(current.as_ref() == Some(id))).collect();
        drop(table);
        listed.sort_by_key(|session| std::cmp::Reverse((session.is_current, session.last_used_at)));
        listed
    }

    /// Ends a session that a caller may see. Returns it, or `None` if there is no such session.
    pub(crate) fn end_by_id(
        &self,
        caller: &Caller,
        head: &RequestHead,
        id: SessionId,
    ) -> Option<ListedSession> {
        let current = self.id_of(head);
        let mut table = self.table();
        let is_wanted = |session: &Session| session.public_id == id && may_manage(caller, &session.caller);
        let key = table.iter().find(|(_, session)| is_wanted(session)).map(|(key, _)| *key)?;
        let session = table.remove(&key)?;
        Some(session.listed(current == Some(key)))
    }

    /// Ends all sessions of the caller's credential or person. Returns their number.
    pub(crate) fn end_all_of(&self, caller: &Caller) -> usize {
        let mut table = self.table();
        let before = table.len();
        table.retain(|_, session| session.caller.identity() != caller.identity());
        before - table.len()
    }

    /// Ends the session of a request. Returns the cookies that remove it from the browser: those that were sent. With both, the
    /// other one would become the session of the browser, so its session ends, too.
    pub(crate) fn end(&self, head: &RequestHead) -> Vec<String> {
        for id in self.0.cookies.all_values(head) {
            self.table().remove(&hash(id));
        }
        self.0.cookies.remove(head)
    }

    fn is_over(&self, session: &Session, now: Instant) -> bool {
        let options = &self.0.options;
        now.saturating_duration_since(session.created) >= options.absolute
            || now.saturating_duration_since(session.last_used) >= options.idle
    }

    /// Returns the session that the cookie of a request names.
    fn id_of(&self, head: &RequestHead) -> Option<IdHash> {
        self.0.cookies.value(head).map(hash)
    }
}

impl Session {
    fn listed(&self, is_current: bool) -> ListedSession {
        let used_after = self.last_used.saturating_duration_since(self.created);
        let used_after = u64::try_from(used_after.as_millis()).unwrap_or(u64::MAX);
        ListedSession {
            id: self.public_id,
            caller: self.caller.clone(),
            created_at: self.created_at,
            last_used_at: Timestamp(self.created_at.0.saturating_add(used_after)),
            expires_at: self.expires_at,
            address: self.source.address,
            user_agent: self.source.user_agent.clone(),
            is_current,
        }
    }
}

/// Returns whether a caller may see and end the sessions of another.
fn may_manage(caller: &Caller, other: &Caller) -> bool {
    caller.identity() == other.identity() || caller.standing.role() == Some(Role::SystemAdmin)
}

/// Ends a session if there is no room for another one of the caller.
fn make_room(table: &mut HashMap<IdHash, Session>, caller: &Caller) {
    let mut counts: HashMap<_, usize> = HashMap::new();
    for session in table.values() {
        *counts.entry(session.caller.identity()).or_default() += 1;
    }
    let own = caller.identity();
    let has_too_many = counts.get(&own).is_some_and(|count| *count >= SESSIONS_OF_CREDENTIAL_MAX);
    let concerned = match has_too_many {
        true => Some(own),
        false if table.len() < SESSIONS_MAX => None,
        false => counts.into_iter().max_by_key(|(_, count)| *count).map(|(credential, _)| credential),
    };
    let of_concerned = table.iter().filter(|(_, session)| Some(session.caller.identity()) == concerned);
    let oldest = of_concerned.min_by_key(|(_, session)| session.last_used).map(|(id, _)| *id);
    oldest.and_then(|id| table.remove(&id));
}

fn has_valid_token(session: &Session, directory: Option<&Directory>) -> bool {
    match session.caller.token {
        Some(token) => directory.is_some_and(|directory| directory.is_token_valid(token)),
        None => true,
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
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

/// Returns whether a read may come from a page of the console, or from the person at the browser. Pages of other origins are
/// refused, such as those on another port of the same host. Programs and old browsers do not say where a request comes from.
pub(crate) fn is_wanted_read(head: &RequestHead) -> bool {
    head.header("sec-fetch-site").is_none_or(|site| matches!(site, b"same-origin" | b"none"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::AuthenticationKind;
    use cairn_http1::{HeadLimits, parse_head};
    use cairn_identity::Standing;

    const NOW: Timestamp = Timestamp(1_000_000);

    fn sessions(is_secure: bool, idle: u64) -> Sessions {
        let (store_id, idle) = ("0123456789abcdef".to_owned(), Duration::from_secs(idle));
        let (secure_hosts, absolute) = (vec!["console.example".to_owned()], Duration::from_secs(3600));
        Sessions::new(SessionOptions { store_id, is_secure, secure_hosts, idle, absolute })
    }

    fn caller() -> Caller {
        Caller {
            standing: Standing::Role(Role::Auditor),
            principal: "root".to_owned(),
            token: None,
            subject: None,
            authentication: AuthenticationKind::Token,
        }
    }

    fn head(fields: &str) -> RequestHead {
        let text = format!("POST / HTTP/1.1\r\nHost: console:7602\r\n{fields}\r\n");
        parse_head(text.as_bytes(), &HeadLimits::default()).expect("parses").expect("whole").0
    }

    fn source() -> SessionSource {
        SessionSource { address: IpAddr::from([192, 0, 2, 1]), user_agent: "browser".to_owned() }
    }

    fn begin(sessions: &Sessions) -> RequestHead {
        begin_as(sessions, caller())
    }

    fn begin_as(sessions: &Sessions, caller: Caller) -> RequestHead {
        let (cookie, _) = sessions.begin(caller, &head(""), source(), None, NOW).expect("random bytes");
        head(&format!("Cookie: a=b; {}\r\n", cookie.split(';').next().expect("a pair")))
    }

    #[test]
    fn a_session_is_found_by_its_cookie_until_it_ends() {
        let sessions = sessions(false, 60);
        let request = begin(&sessions);
        assert_eq!(sessions.find(&request, None).expect("found").caller, caller());
        assert!(sessions.is_active(&request, None));
        let other = begin(&sessions);
        let removal = sessions.end(&request);
        assert!(
            removal[0].contains("=; Path=/; Max-Age=0")
                && removal.len() == 1
                && sessions.find(&request, None).is_none()
        );
        assert!(!sessions.is_active(&request, None) && sessions.is_active(&other, None));
        assert!(sessions.find(&other, None).is_some(), "only one session has ended");
        assert!(sessions.find(&head(""), None).is_none());
        let cookie = other.header_str("cookie").expect("a cookie");
        let twice = head(&format!("Cookie: {cookie}; {}\r\n", cookie.split("; ").nth(1).expect("a pair")));
        assert!(sessions.find(&twice, None).is_none(), "two cookies of one name");
    }

    #[test]
    fn unused_sessions_end_and_their_number_is_limited() {
        let unused = sessions(false, 0);
        let request = begin(&unused);
        assert!(!unused.is_active(&request, None) && unused.find(&request, None).is_none());
        let sessions = sessions(false, 60);
        let [first, second] = [begin(&sessions), begin(&sessions)];
        for _ in 0..SESSIONS_OF_CREDENTIAL_MAX - 1 {
            begin(&sessions);
        }
        assert!(sessions.find(&first, None).is_none(), "the one that was not used for the longest time");
        assert!(sessions.find(&second, None).is_some());
        assert_eq!(sessions.table().len(), SESSIONS_OF_CREDENTIAL_MAX);
    }

    /// Regression: 1001 logins of an auditor ended the sessions of everybody else.
    #[test]
    fn logins_of_one_credential_end_no_session_of_another() {
        let sessions = sessions(false, 60);
        let named = |name: String| Caller { principal: name, ..caller() };
        let quiet = begin_as(&sessions, named("token:quiet".to_owned()));
        for credential in 0..=SESSIONS_MAX / SESSIONS_OF_CREDENTIAL_MAX {
            for _ in 0..2 * SESSIONS_OF_CREDENTIAL_MAX {
                begin_as(&sessions, named(format!("token:{credential}")));
            }
        }
        assert!(sessions.find(&quiet, None).is_some());
        assert_eq!(sessions.table().len(), SESSIONS_MAX);
    }

    #[test]
    fn callers_see_and_end_their_own_sessions_and_administrators_all() {
        let sessions = sessions(false, 60);
        let named = |name: &str, role| Caller {
            principal: name.to_owned(),
            standing: Standing::Role(role),
            ..caller()
        };
        let (auditor, other) = (named("token:a", Role::Auditor), named("token:b", Role::StorageAdmin));
        let admin = named("system", Role::SystemAdmin);
        let [of_auditor, of_other, of_admin] =
            [&auditor, &other, &admin].map(|caller| begin_as(&sessions, caller.clone()));
        let list = |caller, head| sessions.list(caller, head, None);
        let [seen] = &list(&auditor, &of_auditor)[..] else { panic!("only its own") };
        assert_eq!((seen.is_current, seen.created_at, &*seen.user_agent), (true, NOW, "browser"));
        let all = list(&admin, &of_admin);
        assert_eq!(all.len(), 3);
        assert!(all[0].is_current && all[1..].iter().all(|session| !session.is_current));
        let id_of_other = list(&other, &of_other)[0].id;
        assert_eq!(sessions.end_by_id(&auditor, &of_auditor, id_of_other), None);
        assert!(sessions.find(&of_other, None).is_some());
        assert!(sessions.end_by_id(&admin, &of_admin, id_of_other).is_some());
        assert!(sessions.find(&of_other, None).is_none());
        assert_eq!(sessions.end_by_id(&admin, &of_admin, id_of_other), None, "it has ended");
        assert!(sessions.end_by_id(&auditor, &of_auditor, seen.id).is_some_and(|ended| ended.is_current));
    }

    /// People have equal names, and a person can be called like a token.
    #[test]
    fn signing_out_everywhere_ends_the_sessions_of_one_person() {
        let sessions = sessions(false, 60);
        let person = |name: &str, subject: &str| Caller {
            principal: name.to_owned(),
            subject: Some(subject.into()),
            ..caller()
        };
        let own = person("person:ada", "1");
        let others = [person("person:ada", "2"), person("root", "3"), caller()];
        let of_own = [own.clone(), person("person:renamed", "1")].map(|caller| begin_as(&sessions, caller));
        let of_others = others.map(|caller| begin_as(&sessions, caller));
        assert_eq!(sessions.end_all_of(&own), 2);
        assert!(of_own.iter().all(|head| sessions.find(head, None).is_none()));
        assert!(of_others.iter().all(|head| sessions.find(head, None).is_some()));
    }

    #[test]
    fn public_ids_are_not_the_cookies() {
        let sessions = sessions(false, 60);
        let request = begin(&sessions);
        let cookie = request.header_str("cookie").expect("a cookie");
        let [session] = &sessions.list(&caller(), &request, None)[..] else { panic!("one") };
        let text = session.id.to_string();
        assert_eq!(SessionId::parse(&text), Some(session.id));
        let hashed = sessions.id_of(&request).expect("a cookie");
        assert!(!cookie.contains(&text) && !hex::encode(hashed).contains(&text));
        for wrong in ["", "+1", &text[1..], &format!("{text}0"), &text.replace(&text[..1], "+")] {
            assert_eq!(SessionId::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn user_agents_are_cut() {
        for (sent, kept) in [("x".repeat(9000), USER_AGENT_BYTES_MAX), ("\u{e9}".to_owned(), 2)] {
            let source =
                SessionSource::of(IpAddr::from([192, 0, 2, 1]), &head(&format!("User-Agent: {sent}\r\n")));
            assert_eq!(source.user_agent, sent[..kept]);
        }
        let cut = format!("User-Agent: {}\u{e9}\r\n", "x".repeat(USER_AGENT_BYTES_MAX - 1));
        let source = SessionSource::of(IpAddr::from([192, 0, 2, 1]), &head(&cut));
        assert_eq!(source.user_agent, "x".repeat(USER_AGENT_BYTES_MAX - 1));
        assert_eq!(SessionSource::of(source.address, &head("")).user_agent, "");
    }

    #[test]
    fn cookies_are_protected() {
        let (cookie, end) =
            sessions(true, 60).begin(caller(), &head(""), source(), None, NOW).expect("random bytes");
        assert!(cookie.starts_with("__Host-cairn-session-01234567="), "{cookie}");
        assert!(cookie.ends_with("; Path=/; Max-Age=3600; HttpOnly; SameSite=Strict; Secure"), "{cookie}");
        assert_eq!(end, Timestamp(NOW.0 + 3_600_000));
        let token_end = Some(Timestamp(NOW.0 + 5));
        let (cookie, end) =
            sessions(false, 60).begin(caller(), &head(""), source(), token_end, NOW).expect("random bytes");
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

    #[test]
    fn pages_of_other_origins_read_nothing() {
        for (fields, expected) in [
            ("", true),
            ("Sec-Fetch-Site: same-origin\r\n", true),
            ("Sec-Fetch-Site: none\r\n", true),
            ("Sec-Fetch-Site: same-site\r\n", false),
            ("Sec-Fetch-Site: cross-site\r\n", false),
            ("Sec-Fetch-Site: \u{ff}\r\n", false),
        ] {
            assert_eq!(is_wanted_read(&head(fields)), expected, "{fields}");
        }
    }
}
