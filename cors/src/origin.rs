//! Origins: which texts a rule may contain, and when two are the same origin (RFC 6454 sections 4 and 5).
//!
//! Scheme and host are compared ignoring case, and the scheme's default port equals no port. A text of another form
//! than `scheme://host[:port]`, such as `null`, equals only the same text.

/// Allows every origin.
pub(crate) const ANY: &str = "*";

/// The matching of origins by rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OriginMatching {
    /// An origin is `*` alone, or equals that of a request.
    Exact,
    /// An origin may also have one `*` in it, for any text without a slash, as on AWS.
    Patterns,
}

/// Default ports of schemes, which browsers omit.
const DEFAULT_PORTS: [(&str, u16); 4] = [("http", 80), ("https", 443), ("ws", 80), ("wss", 443)];

struct Origin<'a> {
    scheme: &'a str,
    host: &'a str,
    port: Option<u16>,
}

impl<'a> Origin<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let (scheme, authority) = text.split_once("://")?;
        let scheme_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
        if !scheme.starts_with(|first: char| first.is_ascii_alphabetic()) || !scheme.bytes().all(scheme_byte)
        {
            return None;
        }
        let (host, port) = match authority.rfind([':', ']']) {
            Some(at) if authority[at..].starts_with(':') => {
                (&authority[..at], Some(parse_port(&authority[at + 1..])?))
            }
            _ => (authority, None),
        };
        is_host(host).then_some(())?;
        let default = DEFAULT_PORTS.iter().find(|(name, _)| scheme.eq_ignore_ascii_case(name));
        let port = port.filter(|port| default.is_none_or(|(_, default)| port != default));
        Some(Self { scheme, host, port })
    }
}

fn parse_port(digits: &str) -> Option<u16> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

fn is_host(host: &str) -> bool {
    match host.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']').is_some_and(|ip| ip.parse::<std::net::Ipv6Addr>().is_ok()),
        None => {
            let host_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
            !host.is_empty() && host.bytes().all(host_byte)
        }
    }
}

/// The origin of a request, to be compared with those of rules.
pub(crate) struct RequestOrigin<'a> {
    text: &'a str,
    parsed: Option<Origin<'a>>,
}

impl<'a> RequestOrigin<'a> {
    /// Parses `text`.
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, parsed: Origin::parse(text) }
    }

    /// Returns whether `allowed` names the same origin, or is a pattern that matches it.
    pub(crate) fn is(&self, allowed: &str, matching: OriginMatching) -> bool {
        if let (OriginMatching::Patterns, Some((start, end))) = (matching, allowed.split_once('*')) {
            return self.lies_between(start, end);
        }
        match (&self.parsed, Origin::parse(allowed)) {
            (Some(request), Some(allowed)) => {
                request.scheme.eq_ignore_ascii_case(allowed.scheme)
                    && request.host.eq_ignore_ascii_case(allowed.host)
                    && request.port == allowed.port
            }
            _ => self.text == allowed,
        }
    }

    fn lies_between(&self, start: &str, end: &str) -> bool {
        let text = self.text;
        let Some(rest) = text.len().checked_sub(start.len() + end.len()) else { return false };
        let at = |from: usize, length: usize| text.get(from..from + length);
        at(0, start.len()).is_some_and(|found| found.eq_ignore_ascii_case(start))
            && at(start.len() + rest, end.len()).is_some_and(|found| found.eq_ignore_ascii_case(end))
            && at(start.len(), rest).is_some_and(|found| !found.contains('/') || start.is_empty())
    }
}

/// Checks that a rule may contain `text`: `*` alone, a text that an origin can equal, or a pattern.
///
/// # Errors
/// The problem with it, for the client.
pub(crate) fn check(text: &str, matching: OriginMatching) -> Result<(), &'static str> {
    if text == ANY {
        return Ok(());
    }
    match (text.matches('*').count(), matching) {
        (0, _) => {}
        (1, OriginMatching::Patterns) => return check(&text.replace('*', "1"), OriginMatching::Exact),
        (_, OriginMatching::Patterns) => return Err("an origin can not have more than one wildcard"),
        (_, OriginMatching::Exact) => {
            return Err("origins are matched exactly: name each one, or use a single * for all");
        }
    }
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/');
    if plain || Origin::parse(text).is_some() {
        return Ok(());
    }
    Err("an origin is scheme://host or scheme://host:port, without a path or a slash at the end")
}

#[cfg(test)]
mod tests {
    use super::OriginMatching::{Exact, Patterns};
    use super::{RequestOrigin, check};

    #[test]
    fn origins_with_the_same_scheme_host_and_port_are_equal() {
        for (one, other) in [
            ("https://app.example.com", "https://app.example.com"),
            ("HTTPS://App.Example.com", "https://app.example.COM"),
            ("https://app.example.com:443", "https://app.example.com"),
            ("http://localhost:8080", "http://localhost:8080"),
            ("http://[::1]:8080", "http://[::1]:8080"),
            ("http://[::1]", "http://[::1]:80"),
            ("null", "null"),
            ("example", "example"),
        ] {
            assert!(RequestOrigin::new(other).is(one, Exact), "{one} {other}");
        }
        for (one, other) in [
            ("https://app.example.com", "http://app.example.com"),
            ("https://app.example.com", "https://app.example.com:8443"),
            ("https://app.example.com:80", "https://app.example.com"),
            ("https://app.example.com", "https://app.example.com.evil.test"),
            ("https://app.example.com", "https://evil-app.example.com"),
            ("https://app.example.com", "https://app.example.com/"),
            ("https://app.example.com", "null"),
            ("https://app.example.com", ""),
            ("example", "Example"),
            ("null", "NULL"),
        ] {
            assert!(!RequestOrigin::new(other).is(one, Exact), "{one} {other}");
        }
    }

    #[test]
    fn patterns_match_any_text_without_a_slash() {
        for (pattern, origin, is_match) in [
            ("https://*.example.com", "https://app.example.com", true),
            ("https://*.example.com", "HTTPS://a.b.Example.com", true),
            ("https://*.example.com", "https://example.com", false),
            ("https://*.example.com", "http://app.example.com", false),
            ("https://*.example.com", "https://app.example.com.evil.test", false),
            ("https://*.example.com", "https://evil.test/.example.com", false),
            ("http://localhost:*", "http://localhost:3000", true),
            ("*.example.com", "https://app.example.com", true),
            ("https://ab*ba", "https://aba", false),
            ("https://\u{e4}*", "https://\u{e4}\u{f6}", true),
        ] {
            assert_eq!(RequestOrigin::new(origin).is(pattern, Patterns), is_match, "{pattern} {origin}");
            assert!(!RequestOrigin::new(origin).is(pattern, Exact), "{pattern} {origin}");
        }
        for text in ["https://*.example.com", "http://*", "*.example.com", "http://localhost:*"] {
            assert_eq!((check(text, Patterns).is_ok(), check(text, Exact).is_ok()), (true, false), "{text}");
        }
        for text in ["https://*.*.com", "https://*.example.com/", "**"] {
            assert!(check(text, Patterns).is_err(), "{text}");
        }
    }

    #[test]
    fn patterns_and_paths_are_not_origins() {
        for text in
            ["*", "https://a.example:8443", "capacitor://localhost", "http://[::1]:3000", "null", "example"]
        {
            assert_eq!(check(text, Exact), Ok(()), "{text}");
        }
        for text in [
            "",
            "https://*.example.com",
            "*example.com",
            "**",
            "https://a.example/",
            "https://a.example/path",
            "https://a.example:",
            "https://a.example:65536",
            "https://a.example:+1",
            "https://user@a.example",
            "https://[::1",
            "https://[example]",
            "https://",
            "://a",
            "a b",
            "https://\u{e4}.example",
        ] {
            assert!(check(text, Exact).is_err(), "{text}");
        }
    }
}
