//! IPv4 and IPv6 networks (CIDR).

use std::net::{IpAddr, Ipv6Addr};

/// Bits before the IPv4 part of an IPv4-mapped IPv6 address (RFC 4291 section 2.5.5.2).
const MAPPED_PREFIX_BITS: u8 = 96;

/// An IPv4 or IPv6 network of one or more addresses (CIDR).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct IpNetwork {
    first: IpAddr,
    /// Leading bits that all its addresses share: up to 32 or 128.
    prefix_bits: u8,
}

impl IpNetwork {
    /// Parses `192.0.2.7`, `10.0.0.0/8` or `2001:db8::/32` (RFC 4632 section 3.1, RFC 4291 section 2.3). Returns `None`
    /// for anything else, including an address with bits set after the prefix, which is a mistake.
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
        let fits = prefix_bits <= bits_of(first);
        let network = Self { first, prefix_bits };
        (fits && network.masked(first) == Some(as_bits(first))).then_some(network)
    }

    /// Returns whether the network contains every address of its family.
    #[must_use]
    pub const fn contains_all(&self) -> bool {
        self.prefix_bits == 0
    }

    /// Returns whether the network contains an address. An IPv4-mapped address counts as IPv4.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        self.masked(address.to_canonical()) == Some(as_bits(self.first))
    }

    /// Returns an address with the bits after the prefix cleared, or `None` when it is of the other family.
    fn masked(&self, address: IpAddr) -> Option<u128> {
        let host_bits = u32::from(bits_of(self.first) - self.prefix_bits);
        let mask = u128::MAX.checked_shl(host_bits).unwrap_or(0);
        (address.is_ipv4() == self.first.is_ipv4()).then(|| as_bits(address) & mask)
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

#[cfg(test)]
mod tests {
    use super::{IpNetwork, as_bits, bits_of};
    use proptest::prelude::*;
    use std::net::IpAddr;

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
        for (all, one) in
            [("0.0.0.0/0", "203.0.113.9"), ("::/0", "2001:db8::7"), ("::ffff:0:0/96", "203.0.113.9")]
        {
            assert!(contains(all, one) && IpNetwork::parse(all).expect("a network").contains_all(), "{all}");
        }
        assert!(
            !contains("::/0", "203.0.113.9") && !IpNetwork::parse("::/1").expect("a network").contains_all()
        );
        for bad in [
            "",
            "10.0.0.0/",
            "10.0.0.0/33",
            "10.0.0.1/8",
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
        #[test]
        fn a_formatted_network_parses_to_itself(
            address in any::<IpAddr>().prop_map(|address| address.to_canonical()),
            prefix in 0..=128_u8,
            other in any::<IpAddr>().prop_map(|address| address.to_canonical()),
        ) {
            let prefix = prefix.min(bits_of(address));
            let host_bits = u32::from(bits_of(address) - prefix);
            let mask = u128::MAX.checked_shl(host_bits).unwrap_or(0);
            let masked = as_bits(address) & mask;
            let first = match address {
                IpAddr::V4(_) => IpAddr::from(u32::try_from(masked).expect("32 bits").to_be_bytes()),
                IpAddr::V6(_) => IpAddr::from(masked.to_be_bytes()),
            };
            let network = IpNetwork::parse(&format!("{first}/{prefix}")).expect("a network");
            prop_assert_eq!(IpNetwork::parse(&network.to_string()), Some(network));
            prop_assert!(network.contains(address));
            let same = other.is_ipv4() == address.is_ipv4() && as_bits(other) & mask == masked;
            prop_assert_eq!(network.contains(other), same);
        }
    }
}
