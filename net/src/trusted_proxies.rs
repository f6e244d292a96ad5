//! Whose word is taken for a client's address: the proxies that an operator trusts, and the walk over what they forwarded.
//!
//! Nothing here looks at a request whose peer is not trusted. Of one that is, the entries are walked from the right, over
//! trusted proxies, to the first address that is none: that is the client, for a proxy that is trusted has seen it. What
//! stands left of it may be anybody's invention and is not read. An entry without an address ends the walk at the
//! proxy that wrote it.
//!
//! Only one of the two header fields is believed, the one that is configured: a proxy that writes one of them passes the other
//! on as a client sent it.

use std::net::{IpAddr, Ipv6Addr};

use cairn_http1::{ForwardedHeader, RequestHead, forwarded_addresses};

/// Most proxies in a row that are walked over. A chain of so many is a loop.
const HOPS_MAX: usize = 32;
/// The bits of an IPv6 address that an IPv4-mapped one has before its IPv4 part (RFC 4291 section 2.5.5.2).
const MAPPED_PREFIX_BITS: u8 = 96;

/// A network of one or more addresses, IPv4 or IPv6.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Network {
    first: IpAddr,
    /// Leading bits that all its addresses share; at least one.
    prefix_bits: u8,
}

impl Network {
    /// `192.0.2.7`, `10.0.0.0/8`, `2001:db8::/32` (RFC 4632 section 3.1, RFC 4291 section 2.3). None for anything else: also
    /// for a network with bits behind its prefix, which is a slip, and for one of all addresses, which would trust everybody.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (address, prefix) =
            text.split_once('/').map_or((text, None), |(address, prefix)| (address, Some(prefix)));
        let address: IpAddr = address.parse().ok()?;
        let all_bits = bits_of(address);
        let prefix_bits = match prefix {
            None => all_bits,
            // The standard parser would also take a sign.
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse().ok()?,
            Some(_) => return None,
        };
        let (first, prefix_bits) = match address.to_canonical() {
            canonical if bits_of(canonical) == all_bits => (canonical, prefix_bits),
            mapped => (mapped, prefix_bits.checked_sub(MAPPED_PREFIX_BITS)?),
        };
        let fits = (1..=bits_of(first)).contains(&prefix_bits);
        let network = Self { first, prefix_bits };
        (fits && network.shared(first) == Some(as_bits(first))).then_some(network)
    }

    /// Whether an address belongs to it; an IPv4-mapped one counts as IPv4.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        self.shared(address.to_canonical()) == Some(as_bits(self.first))
    }

    /// The bits of an address within the prefix; None when it is of the other family.
    fn shared(&self, address: IpAddr) -> Option<u128> {
        let behind = u32::from(bits_of(self.first) - self.prefix_bits);
        (address.is_ipv4() == self.first.is_ipv4()).then(|| as_bits(address) >> behind << behind)
    }
}

impl std::fmt::Display for Network {
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

/// See the file's first lines.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TrustedProxies {
    networks: Vec<Network>,
    header: ForwardedHeader,
}

impl TrustedProxies {
    /// These proxies, which tell whom they speak for in this header field.
    #[must_use]
    pub const fn new(networks: Vec<Network>, header: ForwardedHeader) -> Self {
        Self { networks, header }
    }

    /// Whether this address is a proxy's.
    #[must_use]
    pub fn trust(&self, address: IpAddr) -> bool {
        self.networks.iter().any(|network| network.contains(address))
    }

    /// The client's address of a request that came from `proxy`, which is trusted.
    #[must_use]
    pub fn client_behind(&self, proxy: IpAddr, head: &RequestHead) -> IpAddr {
        let mut hop = proxy;
        for address in forwarded_addresses(head, self.header).take(HOPS_MAX) {
            match address {
                None => return hop,
                Some(address) if self.trust(address) => hop = address,
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
        let networks = [PROXY, "10.0.0.0/8", "fd00::/8"].map(|text| Network::parse(text).expect("a network"));
        TrustedProxies::new(networks.to_vec(), header)
    }

    fn head(fields: &str) -> RequestHead {
        let text = format!("GET / HTTP/1.1\r\nhost: h\r\n{fields}\r\n");
        parse_head(text.as_bytes(), &HeadLimits::default()).expect("parses").expect("whole").0
    }

    fn client(header: ForwardedHeader, fields: &str) -> String {
        proxies(header).client_behind(PROXY.parse().expect("an address"), &head(fields)).to_string()
    }

    #[test]
    fn the_first_address_from_the_right_that_is_no_proxy_is_the_client() {
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
    fn an_entry_without_an_address_ends_the_walk_at_the_proxy_that_wrote_it() {
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

    /// Whichever of the two went first, a client behind a proxy that writes the other one could say who it is.
    #[test]
    fn the_field_that_is_not_configured_is_never_read() {
        let both = "forwarded: for=203.0.113.9\r\nx-forwarded-for: 198.51.100.7\r\n";
        assert_eq!(client(XForwardedFor, both), "198.51.100.7");
        assert_eq!(client(Forwarded, both), "203.0.113.9");
        assert_eq!(client(XForwardedFor, "forwarded: for=203.0.113.9\r\n"), PROXY);
        assert_eq!(client(Forwarded, "x-forwarded-for: 203.0.113.9\r\n"), PROXY);
    }

    #[test]
    fn a_chain_of_proxies_has_a_longest_length() {
        let chain = (0..HOPS_MAX + 8).map(|hop| format!("10.0.0.{hop}")).collect::<Vec<_>>().join(", ");
        assert_eq!(client(XForwardedFor, &format!("x-forwarded-for: 198.51.100.7, {chain}\r\n")), "10.0.0.8");
    }

    #[test]
    fn networks_are_what_they_say() {
        let contains = |network: &str, address: &str| {
            Network::parse(network).expect(network).contains(address.parse().expect(address))
        };
        assert!(contains("10.0.0.0/8", "10.255.0.1") && !contains("10.0.0.0/8", "11.0.0.0"));
        assert!(contains("192.0.2.7", "192.0.2.7") && !contains("192.0.2.7", "192.0.2.6"));
        assert!(
            contains("192.0.2.6/31", "::ffff:192.0.2.7") && contains("::ffff:192.0.2.0/120", "192.0.2.9")
        );
        assert!(
            contains("2001:db8::/33", "2001:db8:7fff::1") && !contains("2001:db8::/33", "2001:db8:8000::")
        );
        assert!(!contains("::/1", "10.0.0.1") && !contains("128.0.0.0/1", "8000::"), "families are apart");
        assert_eq!(Network::parse("::ffff:10.0.0.0/104").expect("a network").to_string(), "10.0.0.0/8");
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
            assert_eq!(Network::parse(bad), None, "{bad:?}");
        }
    }

    proptest! {
        /// Whatever a client sends itself stands left of what the proxy appends, or in the field that is not read.
        #[test]
        fn what_a_client_invents_never_wins(
            invented in prop::collection::vec("[ -~]{0,60}", 0..4), lines in any::<bool>(), chain in 0..3_usize,
        ) {
            let appended: Vec<String> = std::iter::once("198.51.100.7".to_owned())
                .chain((0..chain).map(|hop| format!("10.0.0.{hop}"))).collect();
            for (header, other, tag) in [(XForwardedFor, Forwarded, ""), (Forwarded, XForwardedFor, "for=")] {
                let appended = appended.iter().map(|hop| format!("{tag}{hop}")).collect::<Vec<_>>().join(",");
                let mut fields: String = invented.iter().map(|text| format!("{}: {text}\r\n", other.name())).collect();
                if lines {
                    fields.extend(invented.iter().map(|text| format!("{}: {text}\r\n", header.name())));
                    fields += &format!("{}: {appended}\r\n", header.name());
                } else {
                    let joined = invented.iter().map(|text| format!("{text}, ")).collect::<String>();
                    fields += &format!("{}: {joined}{appended}\r\n", header.name());
                }
                prop_assert_eq!(client(header, &fields), "198.51.100.7", "{}", fields);
            }
        }

        #[test]
        fn a_network_written_out_is_the_same_network(
            address in any::<IpAddr>().prop_map(|address| address.to_canonical()),
            prefix in 1..=128_u8,
            other in any::<IpAddr>().prop_map(|address| address.to_canonical()),
        ) {
            let prefix = prefix.min(bits_of(address));
            let behind = u32::from(bits_of(address) - prefix);
            let cut = as_bits(address) >> behind << behind;
            let first = match address {
                IpAddr::V4(_) => IpAddr::from(u32::try_from(cut).expect("32 bits").to_be_bytes()),
                IpAddr::V6(_) => IpAddr::from(cut.to_be_bytes()),
            };
            let network = Network::parse(&format!("{first}/{prefix}")).expect("a network");
            prop_assert_eq!(Network::parse(&network.to_string()), Some(network));
            prop_assert!(network.contains(address));
            let same = other.is_ipv4() == address.is_ipv4() && as_bits(other) >> behind << behind == cut;
            prop_assert_eq!(network.contains(other), same);
        }
    }
}
