//! Origins: which texts a rule may contain, and when two are the same origin (RFC 6454 sections 4 and 5).
//!
//! Scheme and host are compared ignoring case, and the scheme's default port equals no port. A text of another form
//! than `scheme://host[:port]`, such as `null`, equals only the same text.

/// Allows every origin.
pub(crate) const ANY: &str = "*";

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

    /// Whether `allowed` names the same origin.
    pub(crate) fn is(&self, allowed: &str) -> bool {
        match (&self.parsed, Origin::parse(allowed)) {
            (Some(request), Some(allowed)) => {
                request.scheme.eq_ignore_ascii_case(allowed.scheme)
                    && request.host.eq_ignore_ascii_case(allowed.host)
                    && request.port == allowed.port
            }
            _ => self.text == allowed,
        }
    }
}

/// Checks that a rule may contain `text`: `*` alone, or a text that an origin can equal.
///
/// # Errors
/// What is wrong with it, for the client.
pub(crate) fn check(text: &str) -> Result<(), &'static str> {
    if text == ANY {
        return Ok(());
    }
    if text.contains('*') {
        return Err("origins are matched exactly: name each one, or use a single * for all");
    }
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/');
    if plain || Origin::parse(text).is_some() {
        return Ok(());
    }
    Err("an origin is scheme://host or scheme://host:port, without a path or a slash at the end")
}

#[cfg(test)]
mod tests {
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
            assert!(RequestOrigin::new(other).is(one), "{one} {other}");
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
            assert!(!RequestOrigin::new(other).is(one), "{one} {other}");
        }
    }

    #[test]
    fn patterns_and_paths_are_not_origins() {
        for text in
            ["*", "https://a.example:8443", "capacitor://localhost", "http://[::1]:3000", "null", "example"]
        {
            assert_eq!(check(text), Ok(()), "{text}");
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
            assert!(check(text).is_err(), "{text}");
        }
    }
}
