//! The cookies of the console's sessions: one for browsers that use TLS, and one for others.
//!
//! The console may speak TLS itself, or a proxy in front of it does. A proxy is recognized by the configuration, or by the
//! browser's login. The cookie of TLS takes precedence: a page without TLS on the same host could have set the other one.

use std::time::Duration;

use cairn_http1::RequestHead;

/// Begins the name of the cookie of TLS. Browsers accept one with this prefix only with `Secure`, `Path=/` and without
/// `Domain`.
const SECURE_PREFIX: &str = "__Host-";

/// Names of the cookies, and who gets which.
pub(super) struct SessionCookies {
    /// The cookie of sessions over TLS.
    secure: String,
    /// The cookie of sessions without TLS.
    plain: String,
    /// With which requests browsers send them: the value of `SameSite`.
    same_site: &'static str,
    /// Whether the console speaks TLS itself.
    is_secure: bool,
    /// Host names for which a proxy speaks TLS.
    secure_hosts: Vec<String>,
}

impl SessionCookies {
    /// Names the cookies of sessions of a store. Browsers never send them with requests that other sites begin.
    pub(super) fn of_sessions(store_id: &str, is_secure: bool, secure_hosts: Vec<String>) -> Self {
        Self::named("session", "Strict", store_id, is_secure, secure_hosts)
    }

    /// Names the cookies of sign-ins of a store. Browsers send them when the provider sends them back, as a navigation.
    pub(super) fn of_sign_ins(store_id: &str, is_secure: bool, secure_hosts: Vec<String>) -> Self {
        Self::named("sign-in", "Lax", store_id, is_secure, secure_hosts)
    }

    fn named(
        kind: &str,
        same_site: &'static str,
        store_id: &str,
        is_secure: bool,
        secure_hosts: Vec<String>,
    ) -> Self {
        const STORE_ID_CHARACTERS: usize = 8;
        let store: String = store_id.chars().take(STORE_ID_CHARACTERS).collect();
        let plain = format!("cairn-{kind}-{store}");
        let secure = format!("{SECURE_PREFIX}{plain}");
        Self { secure, plain, same_site, is_secure, secure_hosts }
    }

    /// Returns whether a request has a cookie, valid or not.
    pub(super) fn are_sent(&self, head: &RequestHead) -> bool {
        self.sent(head).next().is_some()
    }

    /// Returns the value of the cookie that names the session of a request.
    pub(super) fn value<'h>(&self, head: &'h RequestHead) -> Option<&'h str> {
        self.sent(head).next().and_then(|name| single(head, name))
    }

    /// Returns the values of all cookies of a request.
    pub(super) fn all_values<'h>(&self, head: &'h RequestHead) -> impl Iterator<Item = &'h str> {
        self.sent(head).filter_map(|name| single(head, name))
    }

    /// Returns the header that sets the cookie of the browser that sent this login.
    pub(super) fn set(&self, head: &RequestHead, value: &str, age: Duration) -> String {
        self.set_cookie(self.of_login(head), value, age)
    }

    /// Returns the headers that remove the cookies of a request.
    pub(super) fn remove(&self, head: &RequestHead) -> Vec<String> {
        let mut names: Vec<_> = self.sent(head).collect();
        if names.is_empty() {
            names.push(self.of_login(head));
        }
        names.into_iter().map(|name| self.set_cookie(name, "", Duration::ZERO)).collect()
    }

    /// Returns the names of the cookies that a request has, the one of TLS first. Where the configuration says that browsers
    /// use TLS, there is no other.
    fn sent(&self, head: &RequestHead) -> impl Iterator<Item = &str> {
        let plain = Some(&self.plain).filter(|_| !self.is_secure_host(head));
        let names = std::iter::once(&self.secure).chain(plain).map(String::as_str);
        names.filter(move |name| cookies(head).any(|(sent, _)| sent == *name))
    }

    /// Returns the value of a `Set-Cookie` header.
    fn set_cookie(&self, name: &str, value: &str, age: Duration) -> String {
        let secure = if name.starts_with(SECURE_PREFIX) { "; Secure" } else { "" };
        let (seconds, same_site) = (age.as_secs(), self.same_site);
        format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite={same_site}{secure}")
    }

    /// Returns whether browsers reach the host of a request through TLS, by the configuration.
    fn is_secure_host(&self, head: &RequestHead) -> bool {
        self.is_secure
            || head.header_str("host").is_some_and(|host| {
                let name = host.split_once(':').map_or(host, |(name, _)| name);
                self.secure_hosts.iter().any(|known| known.eq_ignore_ascii_case(name))
            })
    }

    /// Returns the name of the cookie for a browser that logs in or out. Whether it uses TLS, it says itself: in `Origin`, or
    /// with a cookie that it sends over TLS only.
    fn of_login(&self, head: &RequestHead) -> &str {
        const HTTPS: &str = "https://";
        let origin = head.header_str("origin").and_then(|origin| origin.get(..HTTPS.len()));
        let is_secure = self.is_secure_host(head)
            || origin.is_some_and(|scheme| scheme.eq_ignore_ascii_case(HTTPS))
            || cookies(head).any(|(name, _)| name == self.secure);
        if is_secure { &self.secure } else { &self.plain }
    }
}

/// Returns names and values of the cookies of a request.
fn cookies(head: &RequestHead) -> impl Iterator<Item = (&str, &str)> {
    let sent = head.header_str("cookie").unwrap_or_default().split(';');
    sent.map(|cookie| cookie.trim().split_once('=').unwrap_or((cookie.trim(), "")))
}

/// Returns the value of a cookie. A second one of the same name was set by somebody else: it is not known which of them is
/// right.
fn single<'h>(head: &'h RequestHead, name: &str) -> Option<&'h str> {
    let mut values = cookies(head).filter(|(sent, _)| *sent == name).map(|(_, value)| value);
    values.next().filter(|_| values.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_http1::{HeadLimits, parse_head};

    const PLAIN: &str = "cairn-session-01234567";
    const SECURE: &str = "__Host-cairn-session-01234567";

    fn made(is_secure: bool) -> SessionCookies {
        SessionCookies::of_sessions("0123456789abcdef", is_secure, vec!["console.example".to_owned()])
    }

    /// The provider's page is another site, so a strict cookie would be missing.
    #[test]
    fn cookies_of_sign_ins_are_sent_with_navigations_from_elsewhere() {
        let cookies = SessionCookies::of_sign_ins("0123456789abcdef", true, Vec::new());
        let expected = "__Host-cairn-sign-in-01234567=id; Path=/; Max-Age=5; HttpOnly; SameSite=Lax; Secure";
        assert_eq!(cookies.set(&head(""), "id", Duration::from_secs(5)), expected);
    }

    fn head_of(host: &str, fields: &str) -> RequestHead {
        let text = format!("POST / HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n");
        parse_head(text.as_bytes(), &HeadLimits::default()).expect("parses").expect("whole").0
    }

    fn head(fields: &str) -> RequestHead {
        head_of("console:7602", fields)
    }

    /// Regression: behind a proxy with TLS, browsers sent the cookie of the session without TLS, too.
    #[test]
    fn logins_through_a_proxy_with_tls_get_the_cookie_of_tls() {
        let cookies = made(false);
        let set = |head: &RequestHead| cookies.set(head, "id", Duration::from_secs(5));
        for fields in [
            "Origin: https://console:7602\r\n".to_owned(),
            "Origin: HTTPS://console\r\n".to_owned(),
            format!("Cookie: {SECURE}=old\r\n"),
        ] {
            let expected = format!("{SECURE}=id; Path=/; Max-Age=5; HttpOnly; SameSite=Strict; Secure");
            assert_eq!(set(&head(&fields)), expected, "{fields}");
        }
        for fields in
            ["", "Origin: http://console:7602\r\n", "Origin: null\r\n", "Origin: \u{e4}https://\r\n"]
        {
            let expected = format!("{PLAIN}=id; Path=/; Max-Age=5; HttpOnly; SameSite=Strict");
            assert_eq!(set(&head(fields)), expected, "{fields}");
        }
        for (host, is_secure) in [("Console.Example", true), ("console.example:8443", true), ("nas", false)] {
            assert_eq!(set(&head_of(host, "")).starts_with(SECURE), is_secure, "{host}");
        }
        assert!(made(true).set(&head(""), "id", Duration::ZERO).starts_with(SECURE));
    }

    #[test]
    fn the_cookie_of_tls_takes_precedence() {
        let cookies = made(false);
        let both = format!("Cookie: a=b; {PLAIN}=p; {SECURE}=s\r\n");
        for (fields, expected) in [
            (both.as_str(), Some("s")),
            (&format!("Cookie: {PLAIN}=p\r\n"), Some("p")),
            (&format!("Cookie: {SECURE}=s; {SECURE}=t; {PLAIN}=p\r\n"), None),
            (&format!("Cookie: {PLAIN}=p; {PLAIN}=p\r\n"), None),
            ("Cookie: a=b\r\n", None),
            ("", None),
        ] {
            assert_eq!(cookies.value(&head(fields)), expected, "{fields}");
        }
        let plain = format!("Cookie: {PLAIN}=p\r\n");
        assert!(cookies.are_sent(&head(&plain)));
        assert!(!cookies.are_sent(&head_of("console.example", &plain)), "no other one counts there");
        assert!(!made(true).are_sent(&head(&plain)));
        assert_eq!(cookies.all_values(&head(&both)).collect::<Vec<_>>(), ["s", "p"]);
    }

    #[test]
    fn logging_out_removes_the_cookies_that_were_sent() {
        let (cookies, end) = (made(false), "=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict");
        let (secure, plain) = (format!("{SECURE}{end}; Secure"), format!("{PLAIN}{end}"));
        for (fields, expected) in [
            (format!("Cookie: {PLAIN}=p\r\n"), vec![&plain]),
            (format!("Cookie: {SECURE}=s\r\n"), vec![&secure]),
            (format!("Cookie: {PLAIN}=p; {SECURE}=s\r\n"), vec![&secure, &plain]),
            (String::new(), vec![&plain]),
            ("Origin: https://console\r\n".to_owned(), vec![&secure]),
        ] {
            assert_eq!(cookies.remove(&head(&fields)).iter().collect::<Vec<_>>(), expected, "{fields}");
        }
    }
}
