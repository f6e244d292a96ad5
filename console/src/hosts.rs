//! The hosts that requests may name: protection against DNS rebinding.
//!
//! A site whose name suddenly resolves to 127.0.0.1 (DNS rebinding) would have the same origin as the console. Its requests
//! still name that site in `Host`, so they are refused. A literal address cannot be rebound.

use std::net::{IpAddr, SocketAddr};

/// The hosts of the console.
#[derive(Clone, Debug)]
pub struct ConsoleHosts {
    /// `console.hosts`, and the host of `server.console_bind` as it was written.
    names: Vec<String>,
    /// Whether the listener is bound to all addresses.
    is_unspecified: bool,
}

impl ConsoleHosts {
    /// Returns the hosts of a listener.
    #[must_use]
    pub fn new(names: Vec<String>, bound: SocketAddr) -> Self {
        Self { names, is_unspecified: bound.ip().is_unspecified() }
    }

    /// Returns whether a request to the address `local` may have this `Host`. Ports are ignored: a tunnel may change them.
    pub(crate) fn allows(&self, host: &str, local: SocketAddr) -> bool {
        let name = host_name(host);
        let address: Option<IpAddr> = name.trim_matches(['[', ']']).parse().ok();
        match address {
            Some(address) => {
                self.is_unspecified || address == local.ip().to_canonical() || address.is_loopback()
            }
            None => {
                name.eq_ignore_ascii_case("localhost")
                    || self.names.iter().any(|known| host_name(known).eq_ignore_ascii_case(name))
            }
        }
    }
}

/// Returns a host without its port.
fn host_name(host: &str) -> &str {
    match host.rfind([':', ']']) {
        Some(at) if host[at..].starts_with(':') && !host[..at].contains(':') => &host[..at],
        Some(at) if host[at..].starts_with(':') && host[..at].ends_with(']') => &host[..at],
        _ => host,
    }
}

/// Returns the Content-Security-Policy of the page that this host names.
///
/// Scripts and styles come from `/assets/` alone: shares are served on the same origin, and what they contain must never run.
pub(crate) fn content_security_policy(host: &str) -> String {
    // A policy cannot name an IPv6 address.
    let assets = if host.contains('[') { "'self'".to_owned() } else { format!("{host}/assets/") };
    format!(
        "default-src 'none'; script-src {assets}; style-src {assets}; img-src 'self' blob:; media-src 'self'; \
         connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn unknown_names_are_refused() {
        let names = vec!["console.example:7602".to_owned(), "nas".to_owned()];
        let hosts = ConsoleHosts::new(names, address("192.0.2.1:7602"));
        let local = address("192.0.2.1:7602");
        for host in [
            "localhost",
            "LOCALHOST:1234",
            "192.0.2.1:7602",
            "127.0.0.1",
            "[::1]:7602",
            "Console.Example",
            "nas:1",
        ] {
            assert!(hosts.allows(host, local), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "evil.example:7602",
            "198.51.100.7",
            "localhost.evil.example",
            "console.example.evil",
        ] {
            assert!(!hosts.allows(host, local), "{host}");
        }
        let everywhere = ConsoleHosts::new(Vec::new(), address("0.0.0.0:7602"));
        assert!(everywhere.allows("198.51.100.7:80", local) && !everywhere.allows("evil.example", local));
    }

    #[test]
    fn policy_names_the_folder_of_the_files() {
        let policy = content_security_policy("console.example:7602");
        assert!(policy.contains("script-src console.example:7602/assets/;"), "{policy}");
        assert!(content_security_policy("[::1]:7602").contains("script-src 'self';"));
    }
}
