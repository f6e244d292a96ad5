//! Finds a client's address behind trusted proxies.
//!
//! Forwarded addresses are used only when the peer is a trusted proxy. They are walked from the right, over trusted
//! proxies, to the first address that is not one. That is the client, because a trusted proxy has seen it. Everything
//! to the left of it may be forged and is not read. An entry without an address ends the walk at the proxy that wrote
//! it.
//!
//! Only one of the two header fields is read, the configured one: a proxy that writes one of them passes the other on
//! as the client sent it.

use std::net::{IpAddr, Ipv6Addr};

use cairn_http1::{ForwardedHeader, RequestHead, forwarded_addresses};

/// Most proxies in a row that are walked over. A longer chain is a loop.
const HOPS_MAX: usize = 32;
/// Bits before the IPv4 part of an IPv4-mapped IPv6 address (RFC 4291 section 2.5.5.2).
const MAPPED_PREFIX_BITS: u8 = 96;

/// An IPv4 or IPv6 network of one or more addresses (CIDR).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IpNetwork {
    first: IpAddr,
    /// Leading bits that all its addresses share: 1 to 32 or 128.
    prefix_bits: u8,
}

impl IpNetwork {
    /// Parses `192.0.2.7`, `10.0.0.0/8` or `2001:db8::/32` (RFC 4632 section 3.1, RFC 4291 section 2.3). Returns `None`
    /// for anything else, including an address with bits set after the prefix, which is a mistake, and a network of all
    /// addresses, which would trust every client.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (address, prefix) =
            text.split_once('/').map_or((text, None), |(address, prefix)| (address, Some(prefix)));
        let address: IpAddr = address.parse().ok()?;
        let all_bits = bits_of(address);
        let prefix_bits = match prefix {
            None => all_bits,
            // The standard parser would also accept a sign.
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse().ok()?,
            Some(_) => return None,
        };
        let (first, prefix_bits) = match address.to_canonical() {
            canonical if bits_of(canonical) == all_bits => (canonical, prefix_bits),
            mapped => (mapped, prefix_bits.checked_sub(MAPPED_PREFIX_BITS)?),
        };
        let fits = (1..=bits_of(first)).contains(&prefix_bits);
        let network = Self { first, prefix_bits };
        (fits && network.masked(first) == Some(as_bits(first))).then_some(network)
    }

    /// Returns whether the network contains an address. An IPv4-mapped address counts as IPv4.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        self.masked(address.to_canonical()) == Some(as_bits(self.first))
    }

    /// Returns an address with the bits after the prefix cleared, or `None` when it is of the other family.
    fn masked(&self, address: IpAddr) -> Option<u128> {
        let host_bits = u32::from(bits_of(self.first) - self.prefix_bits);
        (address.is_ipv4() == self.first.is_ipv4()).then(|| as_bits(address) >> host_bits << host_bits)
    }
}

impl std::fmt::Display for IpNetwork {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.prefix_bits == bits_of(self.first) {
            return self.first.fmt(out);
        }
        write!(out, "{}/{}", self.first, self.prefix_bits)
    }
}

const fn bits_of(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn as_bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => Ipv6Addr::to_bits(address),
    }
}

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

    #[test]
    fn networks_contain_their_addresses_and_mistakes_are_refused() {
        let contains = |network: &str, address: &str| {
            IpNetwork::parse(network).expect(network).contains(address.parse().expect(address))
        };
        assert!(contains("10.0.0.0/8", "10.255.0.1") && !contains("10.0.0.0/8", "11.0.0.0"));
        assert!(contains("192.0.2.7", "192.0.2.7") && !contains("192.0.2.7", "192.0.2.6"));
        assert!(
            contains("192.0.2.6/31", "::ffff:192.0.2.7") && contains("::ffff:192.0.2.0/120", "192.0.2.9")
        );
        assert!(
            contains("2001:db8::/33", "2001:db8:7fff::1") && !contains("2001:db8::/33", "2001:db8:8000::")
        );
        assert!(
            !contains("::/1", "10.0.0.1") && !contains("128.0.0.0/1", "8000::"),
            "IPv4 and IPv6 are separate"
        );
        assert_eq!(IpNetwork::parse("::ffff:10.0.0.0/104").expect("a network").to_string(), "10.0.0.0/8");
        for bad in [
            "",
            "10.0.0.0/",
            "10.0.0.0/33",
            "10.0.0.1/8",
            "0.0.0.0/0",
            "::/0",
            "::ffff:0:0/96",
            "::ffff:10.0.0.0/8",
            "10.0.0.0/+8",
            "10.0.0.0/-1",
            "10.0.0.0/255.0.0.0",
            "10.0.0/8",
            "proxy.example.com",
            "2001:db8::1/32",
            "2001:db8::/129",
            " 10.0.0.0/8",
            "10.0.0.0 /8",
            "[2001:db8::]/32",
            "192.0.2.1:80",
            "10.0.0.0/0008x",
        ] {
            assert_eq!(IpNetwork::parse(bad), None, "{bad:?}");
        }
    }

    proptest! {
        /// What a client forges is to the left of what the proxy appends, or in the field that is not read.
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

        #[test]
        fn a_formatted_network_parses_to_itself(
            address in any::<IpAddr>().prop_map(|address| address.to_canonical()),
            prefix in 1..=128_u8,
            other in any::<IpAddr>().prop_map(|address| address.to_canonical()),
        ) {
            let prefix = prefix.min(bits_of(address));
            let host_bits = u32::from(bits_of(address) - prefix);
            let masked = as_bits(address) >> host_bits << host_bits;
            let first = match address {
                IpAddr::V4(_) => IpAddr::from(u32::try_from(masked).expect("32 bits").to_be_bytes()),
                IpAddr::V6(_) => IpAddr::from(masked.to_be_bytes()),
            };
            let network = IpNetwork::parse(&format!("{first}/{prefix}")).expect("a network");
            prop_assert_eq!(IpNetwork::parse(&network.to_string()), Some(network));
            prop_assert!(network.contains(address));
            let same = other.is_ipv4() == address.is_ipv4() && as_bits(other) >> host_bits << host_bits == masked;
            prop_assert_eq!(network.contains(other), same);
        }
    }
}
