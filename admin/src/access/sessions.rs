//! Sessions of the console: a cookie in place of a credential.
//!
//! A browser logs in once with a token or the root credential, or through an OpenID provider, and keeps only a random id in a
//! cookie that scripts cannot read. The sessions are in memory: the end of the process ends them. Only the SHA-256 of an id is
//! kept.
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
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cairn_http1::RequestHead;
use cairn_identity::Role;
use cairn_identity::directory::Directory;
use cairn_model::Timestamp;
use cairn_openid::Logout;
use cairn_sync::Mutex;
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use super::authentication::Caller;
use super::session_cookies::SessionCookies;
use super::session_source::SessionSource;
use crate::error::AdminError;
use crate::limits::{SESSIONS_MAX, SESSIONS_OF_CREDENTIAL_MAX};

/// The console's answer to requests without a session.
pub(crate) const NO_SESSION: &str = "there is no session, or it has ended: log in again";

/// Random bytes of a session's id.
const ID_BYTES: usize = 32;

type IdHash = [u8; 32];

/// The lifetime of sessions, and the attributes of their cookie.
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
    /// The client that began it.
    source: SessionSource,
    /// The time when its management token expires, or the absolute limit.
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

/// A session that has begun.
#[derive(Debug)]
pub(crate) struct BegunSession {
    pub(crate) id: SessionId,
    /// The header that sets its cookie.
    pub(crate) cookie: String,
    /// The latest time at which it ends.
    pub(crate) expires_at: Timestamp,
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

    /// Begins a session of the browser that sent a login. The session that the browser had ends: its cookie is replaced, so the
    /// person could not end it any more.
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
    ) -> Result<BegunSession, AdminError> {
        let (mut id, mut public_id) = (Zeroizing::new([0; ID_BYTES]), [0; 16]);
        getrandom::fill(&mut *id).and_then(|()| getrandom::fill(&mut public_id)).map_err(|error| {
            tracing::error!(target: "service", %error, "a session could not be begun");
            AdminError::Internal
        })?;
        let public_id = SessionId(u128::from_be_bytes(public_id));
        let text = Zeroizing::new(URL_SAFE_NO_PAD.encode(*id));
        let absolute = u64::try_from(self.0.options.absolute.as_millis()).unwrap_or(u64::MAX);
        let end = Timestamp(now.0.saturating_add(absolute));
        let expires_at = token_expires_at.map_or(end, |token| token.min(end));
        let created = Instant::now();
        let mut table = self.0.table.lock();
        table.retain(|_, session| !self.is_over(session, created));
        for earlier in self.0.cookies.all_values(head) {
            table.remove(&hash(earlier));
        }
        make_room(&mut table, &caller);
        let session =
            Session { public_id, caller, source, expires_at, created_at: now, created, last_used: created };
        table.insert(hash(&text), session);
        drop(table);
        let cookie = self.0.cookies.set(head, &text, self.0.options.absolute);
        Ok(BegunSession { id: public_id, cookie, expires_at })
    }

    /// Finds the session of a request, and notes its use.
    pub(crate) fn find(&self, head: &RequestHead, directory: Option<&Directory>) -> Option<FoundSession> {
        let id = self.id_of(head)?;
        let now = Instant::now();
        let mut table = self.0.table.lock();
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
        let table = self.0.table.lock();
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
        let mut table = self.0.table.lock();
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
        let mut table = self.0.table.lock();
        let is_wanted = |session: &Session| session.public_id == id && may_manage(caller, &session.caller);
        let key = table.iter().find(|(_, session)| is_wanted(session)).map(|(key, _)| *key)?;
        let session = table.remove(&key)?;
        Some(session.listed(current == Some(key)))
    }

    /// Ends all sessions of the caller's credential or person. Returns their number.
    pub(crate) fn end_all_of(&self, caller: &Caller) -> usize {
        let mut table = self.0.table.lock();
        let before = table.len();
        table.retain(|_, session| session.caller.identity() != caller.identity());
        before - table.len()
    }

    /// Ends the sessions of people that their provider has ended. Returns their number.
    pub(crate) fn end_of_provider(&self, logout: &Logout) -> usize {
        let is_ended = |session: &Session| {
            let subject = session.caller.subject.as_deref();
            subject.is_some_and(|subject| logout.ends(subject, session.source.at_provider.as_deref()))
        };
        let mut table = self.0.table.lock();
        let before = table.len();
        table.retain(|_, session| !is_ended(session));
        before - table.len()
    }

    /// Ends the session of a request. Returns the cookies that remove it from the browser: those that were sent. With both, the
    /// other one would become the session of the browser, so its session ends, too.
    pub(crate) fn end(&self, head: &RequestHead) -> Vec<String> {
        for id in self.0.cookies.all_values(head) {
            self.0.table.lock().remove(&hash(id));
        }
        self.0.cookies.remove(head)
    }

    fn is_over(&self, session: &Session, now: Instant) -> bool {
        let options = &self.0.options;
        now.saturating_duration_since(session.created) >= options.absolute
            || now.saturating_duration_since(session.last_used) >= options.idle
    }

    /// Ends the session that a browser had when it began a sign-in.
    pub(crate) fn end_earlier(&self, id: &IdHash) {
        self.0.table.lock().remove(id);
    }

    /// Returns the hash of the id that the cookie of a request has. There may be no such session.
    pub(crate) fn id_of(&self, head: &RequestHead) -> Option<IdHash> {
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
mod tests;
