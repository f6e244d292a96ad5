//! Sign-ins of people, and the cookie that binds them to their browser.
//!
//! A browser has one cookie for all sign-ins that it has begun, for example in two tabs. Its value is the list of their
//! secrets.

use std::fmt;
use std::sync::Arc;

use cairn_http1::RequestHead;
use cairn_openid::{Begun, SIGN_IN_TIME_MAX, SignIns};

use super::session_cookies::SessionCookies;
use super::sessions::SessionOptions;

/// Most sign-ins of one browser at a time.
const OF_BROWSER_MAX: usize = 4;
/// Between the secrets in a cookie. They are base64url.
const SEPARATOR: &str = ".";

/// Sign-ins of people. Clones share them.
#[derive(Clone)]
pub struct PersonSignIns {
    pub(crate) sign_ins: SignIns,
    cookies: Arc<SessionCookies>,
}

impl PersonSignIns {
    /// Makes those of a console with these sessions.
    #[must_use]
    pub fn new(sign_ins: SignIns, options: &SessionOptions) -> Self {
        let SessionOptions { store_id, is_secure, secure_hosts, .. } = options;
        let cookies = SessionCookies::of_sign_ins(store_id, *is_secure, secure_hosts.clone());
        Self { sign_ins, cookies: Arc::new(cookies) }
    }

    /// Returns the header that adds a sign-in to those that the browser of this request has begun. When there are too many, the
    /// oldest ones are dropped.
    pub(crate) fn add(&self, begun: &Begun, head: &RequestHead) -> String {
        let mut secrets: Vec<_> = self.known(head);
        secrets.push(&begun.cookie);
        let first = secrets.len().saturating_sub(OF_BROWSER_MAX);
        self.cookies.set(head, &secrets[first..].join(SEPARATOR), SIGN_IN_TIME_MAX)
    }

    /// Returns the secrets of the sign-ins that the browser of a request has begun.
    pub(crate) fn secrets<'h>(&self, head: &'h RequestHead) -> impl Iterator<Item = &'h str> {
        self.cookies.value(head).into_iter().flat_map(|value| value.split(SEPARATOR)).take(OF_BROWSER_MAX)
    }

    /// Returns those of them that have not ended.
    fn known<'h>(&self, head: &'h RequestHead) -> Vec<&'h str> {
        self.secrets(head).filter(|secret| self.sign_ins.knows(secret)).collect()
    }

    /// Returns the headers that take the sign-ins that have ended out of the cookie of a request.
    pub(crate) fn remove_ended(&self, head: &RequestHead) -> Vec<String> {
        let known = self.known(head);
        if known.is_empty() {
            return self.cookies.remove(head);
        }
        vec![self.cookies.set(head, &known.join(SEPARATOR), SIGN_IN_TIME_MAX)]
    }

    /// Returns whether a request names the host that the provider sends browsers back to. On another one, the cookie would be
    /// missing then.
    pub(crate) fn is_at_its_host(&self, head: &RequestHead) -> bool {
        let url = self.sign_ins.settings().console_url.as_str();
        let (scheme, host) = url.split_once("://").unwrap_or_default();
        let default = if scheme == "https" { ":443" } else { ":80" };
        let plain = |host: &str| host.strip_suffix(default).unwrap_or(host).to_ascii_lowercase();
        head.header_str("host").is_some_and(|sent| plain(sent) == plain(host))
    }
}

impl fmt::Debug for PersonSignIns {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.sign_ins.fmt(out)
    }
}

/// Returns whether a browser says that it goes to a page, on its own or because another site sent it there. Pages of other
/// sites cannot load such a request as a part of them.
pub(crate) fn is_navigation(head: &RequestHead) -> bool {
    let is = |name, wanted: &[u8]| head.header(name).is_none_or(|sent| sent == wanted);
    is("sec-fetch-mode", b"navigate") && is("sec-fetch-dest", b"document")
}
