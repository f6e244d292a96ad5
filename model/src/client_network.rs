//! The client that an address belongs to, for limits per client.

use std::net::{IpAddr, Ipv6Addr};

/// Bits of an IPv6 address that one client has to itself and can change at will (RFC 6177).
const IPV6_HOST_BITS: u32 = 64;

/// Returns what counts as one client: an IPv4 address, or the first address of an IPv6 network of 64 bits.
#[must_use]
pub fn client_network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> IPV6_HOST_BITS << IPV6_HOST_BITS))
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_ipv6_network_are_one_client() {
        let of = |text: &str| client_network(text.parse().expect("an address"));
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
    }
}
