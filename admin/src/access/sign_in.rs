//! Sign-ins of people, and the cookie that binds each to its browser.

use std::fmt;
use std::sync::Arc;

use cairn_http1::RequestHead;
use cairn_openid::{Begun, SIGN_IN_TIME_MAX, SignIns};

use super::session_cookies::SessionCookies;
use super::sessions::SessionOptions;

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

    /// Returns the cookie of a sign-in that the browser of this request has begun.
    pub(crate) fn cookie_of(&self, begun: &Begun, head: &RequestHead) -> String {
        self.cookies.set(head, &begun.cookie, SIGN_IN_TIME_MAX)
    }

    /// Returns the value of the cookie of a request.
    pub(crate) fn value<'h>(&self, head: &'h RequestHead) -> Option<&'h str> {
        self.cookies.value(head)
    }

    /// Returns the headers that remove the cookies of a request.
    pub(crate) fn remove(&self, head: &RequestHead) -> Vec<String> {
        self.cookies.remove(head)
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

/// Returns whether a browser says that it goes to a page, on its own or because another site sent it there. Pages of other sites
/// cannot load such a request as a part of them.
pub(crate) fn is_navigation(head: &RequestHead) -> bool {
    let is = |name, wanted: &[u8]| head.header(name).is_none_or(|sent| sent == wanted);
    is("sec-fetch-mode", b"navigate") && is("sec-fetch-dest", b"document")
}
