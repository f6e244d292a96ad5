//! Finds a client's address behind trusted proxies.
//!
//! Forwarded addresses are used only when the peer is a trusted proxy. They are walked from the right, over trusted
//! proxies, to the first address that is not one. That is the client, because a trusted proxy has seen it. Everything
//! to the left of it may be forged and is not read. An entry without an address ends the walk at the proxy that wrote
//! it.
//!
//! Only one of the two header fields is read, the configured one: a proxy that writes one of them passes the other on
//! as the client sent it.

use std::net::IpAddr;

use cairn_http1::{ForwardedHeader, RequestHead, forwarded_addresses};
use cairn_model::IpNetwork;

/// Most proxies in a row that are walked over. A longer chain is a loop.
const HOPS_MAX: usize = 32;

/// The proxies whose forwarded client addresses are trusted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TrustedProxies {
    networks: Vec<IpNetwork>,
    header: ForwardedHeader,
}

impl TrustedProxies {
    /// Trusts the proxies in `networks`, which forward client addresses in `header`.
    #[must_use]
    pub const fn new(networks: Vec<IpNetwork>, header: ForwardedHeader) -> Self {
        Self { networks, header }
    }

    /// Returns whether an address is a trusted proxy's.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        self.networks.iter().any(|network| network.contains(address))
    }

    /// Returns the client's address of a request from `proxy`, which must be trusted.
    #[must_use]
    pub fn client_address(&self, proxy: IpAddr, head: &RequestHead) -> IpAddr {
        let mut hop = proxy;
        for address in forwarded_addresses(head, self.header).take(HOPS_MAX) {
            match address {
                None => return hop,
                Some(address) if self.contains(address) => hop = address,
                Some(client) => return client,
            }
        }
        hop
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ForwardedHeader::{Forwarded, XForwardedFor};
    use cairn_http1::{HeadLimits, parse_head};
    use proptest::prelude::*;

    const PROXY: &str = "192.0.2.1";

    fn proxies(header: ForwardedHeader) -> TrustedProxies {
        let networks =
            [PROXY, "10.0.0.0/8", "fd00::/8"].map(|text| IpNetwork::parse(text).expect("a network"));
        TrustedProxies::new(networks.to_vec(), header)
    }

    fn head(fields: &str) -> RequestHead {
        let text = format!("GET / HTTP/1.1\r\nhost: h\r\n{fields}\r\n");
        parse_head(text.as_bytes(), &HeadLimits::default()).expect("parses").expect("whole").0
    }

    fn client(header: ForwardedHeader, fields: &str) -> String {
        proxies(header).client_address(PROXY.parse().expect("an address"), &head(fields)).to_string()
    }

    #[test]
    fn the_rightmost_untrusted_address_is_the_client() {
        for (fields, expected) in [
            ("", PROXY),
            ("x-forwarded-for: 198.51.100.7\r\n", "198.51.100.7"),
            ("X-Forwarded-For: 203.0.113.9, 198.51.100.7\r\n", "198.51.100.7"),
            ("x-forwarded-for: 203.0.113.9, 198.51.100.7, fd00::1, 10.1.2.3\r\n", "198.51.100.7"),
            ("x-forwarded-for: 203.0.113.9\r\nx-forwarded-for: 198.51.100.7, 10.1.2.3\r\n", "198.51.100.7"),
            ("x-forwarded-for: 10.9.9.9, 10.1.2.3\r\n", "10.9.9.9"),
            ("x-forwarded-for: 2001:db8::7, ::ffff:10.1.2.3\r\n", "2001:db8::7"),
        ] {
            assert_eq!(client(XForwardedFor, fields), expected, "{fields}");
        }
        let several =
            "forwarded: for=203.0.113.9\r\nForwarded: For=198.51.100.7;proto=https, for=\"[fd00::1]:9\"\r\n";
        assert_eq!(client(Forwarded, several), "198.51.100.7");
    }

    #[test]
    fn an_entry_without_an_address_ends_the_walk() {
        for left in ["unknown", "", "203.0.113.9:", "203.0.113.9 10.1.1.1", "_hidden"] {
            let fields = format!("x-forwarded-for: 198.51.100.7, {left}, 10.1.2.3\r\n");
            assert_eq!(client(XForwardedFor, &fields), "10.1.2.3", "{left:?}");
            let only = format!("x-forwarded-for: 198.51.100.7, {left}\r\n");
            assert_eq!(client(XForwardedFor, &only), PROXY, "{left:?}");
        }
        assert_eq!(
            client(Forwarded, "forwarded: for=198.51.100.7, for=unknown, for=10.1.2.3\r\n"),
            "10.1.2.3"
        );
        assert_eq!(client(Forwarded, "forwarded: for=198.51.100.7, by=10.1.2.3\r\n"), PROXY);
    }

    /// If both fields were read, a client behind a proxy that writes one of them could forge its address in the other.
    #[test]
    fn only_the_configured_field_is_read() {
        let both = "forwarded: for=203.0.113.9\r\nx-forwarded-for: 198.51.100.7\r\n";
        assert_eq!(client(XForwardedFor, both), "198.51.100.7");
        assert_eq!(client(Forwarded, both), "203.0.113.9");
        assert_eq!(client(XForwardedFor, "forwarded: for=203.0.113.9\r\n"), PROXY);
        assert_eq!(client(Forwarded, "x-forwarded-for: 203.0.113.9\r\n"), PROXY);
    }

    #[test]
    fn the_walk_over_proxies_is_limited() {
        let chain = (0..HOPS_MAX + 8).map(|hop| format!("10.0.0.{hop}")).collect::<Vec<_>>().join(", ");
        assert_eq!(client(XForwardedFor, &format!("x-forwarded-for: 198.51.100.7, {chain}\r\n")), "10.0.0.8");
    }

    proptest! {
        /// Forged addresses are to the left of what the proxy appends, or in the field that is not read.
        #[test]
        fn forged_addresses_are_never_used(
            forged in prop::collection::vec("[ -~]{0,60}", 0..4), lines in any::<bool>(), chain in 0..3_usize,
        ) {
            let appended: Vec<String> = std::iter::once("198.51.100.7".to_owned())
                .chain((0..chain).map(|hop| format!("10.0.0.{hop}"))).collect();
            for (header, other, tag) in [(XForwardedFor, Forwarded, ""), (Forwarded, XForwardedFor, "for=")] {
                let appended = appended.iter().map(|hop| format!("{tag}{hop}")).collect::<Vec<_>>().join(",");
                let mut fields: String = forged.iter().map(|text| format!("{}: {text}\r\n", other.name())).collect();
                if lines {
                    fields.extend(forged.iter().map(|text| format!("{}: {text}\r\n", header.name())));
                    fields += &format!("{}: {appended}\r\n", header.name());
                } else {
                    let joined = forged.iter().map(|text| format!("{text}, ")).collect::<String>();
                    fields += &format!("{}: {joined}{appended}\r\n", header.name());
                }
                prop_assert_eq!(client(header, &fields), "198.51.100.7", "{}", fields);
            }
        }
    }
}
