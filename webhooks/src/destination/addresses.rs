//! Addresses that deliveries may go to: the special-purpose registries of IANA, as a table.
//!
//! IPv4 is open except for the blocks below. IPv6 is closed except for 2000::/3, of which further blocks are taken out. An
//! address that carries an IPv4 address inside is judged by that one too, because the packets may end up there.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The kind of an address, if it is not a public one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressKind {
    /// 127.0.0.0/8 and `::1`.
    Loopback,
    /// RFC 1918: 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16.
    Private,
    /// RFC 6598: 100.64.0.0/10, between a provider and its customers.
    Shared,
    /// RFC 4193: fc00::/7.
    UniqueLocal,
    /// 169.254.0.0/16 and fe80::/10.
    LinkLocal,
    /// 224.0.0.0/4 and ff00::/8.
    Multicast,
    /// 255.255.255.255.
    Broadcast,
    /// 0.0.0.0/8 and `::`. Connections to them reach this host.
    Unspecified,
    /// The address of a cloud's metadata service, which hands out credentials.
    Metadata,
    /// Addresses of a tunnel or a local translator, whose end is not known.
    Tunnel,
    /// Everything else that is not assigned to hosts on the Internet.
    Reserved,
}

impl AddressKind {
    /// Returns whether `webhooks.allow_private_networks` opens it.
    const fn is_private_network(self) -> bool {
        matches!(self, Self::Loopback | Self::Private | Self::Shared | Self::UniqueLocal)
    }
}

impl fmt::Display for AddressKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Loopback => "a loopback address",
            Self::Private => "a private address (RFC 1918)",
            Self::Shared => "a shared address (100.64.0.0/10)",
            Self::UniqueLocal => "a unique local address (fc00::/7)",
            Self::LinkLocal => "a link-local address",
            Self::Multicast => "a multicast address",
            Self::Broadcast => "the broadcast address",
            Self::Unspecified => "an unspecified address",
            Self::Metadata => "the address of a cloud metadata service",
            Self::Tunnel => "an address of a tunnel or translator",
            Self::Reserved => "a reserved address",
        })
    }
}

/// Metadata services of clouds. Some of them have public or private addresses.
const METADATA: [IpAddr; 7] = [
    // Amazon, Google, Microsoft, DigitalOcean, Hetzner, OpenStack and others.
    IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254)),
    // Microsoft's platform services: public space.
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    // Oracle.
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    // Alibaba: shared space.
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    // Amazon, Google and Scaleway over IPv6: unique local space.
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42)),
];

/// The blocks of the IPv4 registry that are not reachable globally. The first that matches counts.
const BLOCKS_V4: [(Ipv4Addr, u32, AddressKind); 16] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8, AddressKind::Unspecified),
    (Ipv4Addr::new(10, 0, 0, 0), 8, AddressKind::Private),
    (Ipv4Addr::new(100, 64, 0, 0), 10, AddressKind::Shared),
    (Ipv4Addr::new(127, 0, 0, 0), 8, AddressKind::Loopback),
    (Ipv4Addr::new(169, 254, 0, 0), 16, AddressKind::LinkLocal),
    (Ipv4Addr::new(172, 16, 0, 0), 12, AddressKind::Private),
    (Ipv4Addr::new(192, 0, 0, 0), 24, AddressKind::Reserved),
    (Ipv4Addr::new(192, 0, 2, 0), 24, AddressKind::Reserved),
    // The relay of 6to4 (RFC 7526: no longer used).
    (Ipv4Addr::new(192, 88, 99, 0), 24, AddressKind::Tunnel),
    (Ipv4Addr::new(192, 168, 0, 0), 16, AddressKind::Private),
    (Ipv4Addr::new(198, 18, 0, 0), 15, AddressKind::Reserved),
    (Ipv4Addr::new(198, 51, 100, 0), 24, AddressKind::Reserved),
    (Ipv4Addr::new(203, 0, 113, 0), 24, AddressKind::Reserved),
    (Ipv4Addr::new(224, 0, 0, 0), 4, AddressKind::Multicast),
    (Ipv4Addr::new(255, 255, 255, 255), 32, AddressKind::Broadcast),
    (Ipv4Addr::new(240, 0, 0, 0), 4, AddressKind::Reserved),
];

/// The IPv6 blocks with a name. The first that matches counts.
const BLOCKS_V6: [(Ipv6Addr, u32, AddressKind); 12] = [
    (Ipv6Addr::UNSPECIFIED, 128, AddressKind::Unspecified),
    (Ipv6Addr::LOCALHOST, 128, AddressKind::Loopback),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, AddressKind::UniqueLocal),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, AddressKind::LinkLocal),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8, AddressKind::Multicast),
    // Translators of a site's own (RFC 8215): where they lead is not known.
    (Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, 0, 0), 48, AddressKind::Tunnel),
    (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96, AddressKind::Tunnel),
    // Teredo.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 32, AddressKind::Tunnel),
    // Protocol assignments, among them benchmarks, ORCHID and anycast services that are not web servers.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, AddressKind::Reserved),
    // Documentation.
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, AddressKind::Reserved),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, AddressKind::Reserved),
    // 6bone, which was given back (RFC 3701).
    (Ipv6Addr::new(0x3ffe, 0, 0, 0, 0, 0, 0, 0), 16, AddressKind::Reserved),
];

/// A refused address, with the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefusedAddress {
    /// The address.
    pub address: IpAddr,
    /// The IPv4 address inside of it that was refused.
    pub inside: Option<Ipv4Addr>,
    /// The kind of the address.
    pub kind: AddressKind,
    /// Whether `webhooks.allow_private_networks` would allow it.
    pub allowed_by_setting: bool,
}

impl fmt::Display for RefusedAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.address)?;
        if let Some(inside) = self.inside {
            write!(formatter, " contains {inside}, which")?;
        }
        write!(formatter, " is {}", self.kind)?;
        if self.allowed_by_setting {
            write!(formatter, "; webhooks.allow_private_networks = true allows it")
        } else {
            write!(formatter, ", which is never allowed")
        }
    }
}

/// Decides whether deliveries may go to an address.
pub(super) fn judge(address: IpAddr, allow_private_networks: bool) -> Result<(), RefusedAddress> {
    match address {
        IpAddr::V4(address) => judge_v4(address, allow_private_networks),
        IpAddr::V6(address) => judge_v6(address, allow_private_networks),
    }
}

fn judge_v4(address: Ipv4Addr, allow_private_networks: bool) -> Result<(), RefusedAddress> {
    let in_block = |base: Ipv4Addr, bits| (u32::from(address) ^ u32::from(base)) >> (32 - bits) == 0;
    let found = BLOCKS_V4.iter().find(|(base, bits, _)| in_block(*base, *bits)).map(|(.., kind)| *kind);
    allow_or_refuse(address.into(), found, allow_private_networks)
}

fn judge_v6(address: Ipv6Addr, allow_private_networks: bool) -> Result<(), RefusedAddress> {
    let contains = |refused: RefusedAddress| match refused.address {
        IpAddr::V4(inside) => RefusedAddress { address: address.into(), inside: Some(inside), ..refused },
        IpAddr::V6(_) => refused,
    };
    match inside(address) {
        // The kernel opens an IPv4 connection; a translator ends at the IPv4 address.
        Some(Inside::Mapped(v4) | Inside::Translated(v4)) => {
            return judge_v4(v4, allow_private_networks).map_err(contains);
        }
        // A tunnel that ends in a private network has no use. No setting opens it.
        Some(Inside::Tunnel(ends)) => {
            for v4 in ends.into_iter().flatten() {
                judge_v4(v4, false)
                    .map_err(|refused| RefusedAddress { allowed_by_setting: false, ..contains(refused) })?;
            }
        }
        None => {}
    }
    let in_block = |base: Ipv6Addr, bits| (u128::from(address) ^ u128::from(base)) >> (128 - bits) == 0;
    let named = BLOCKS_V6.iter().find(|(base, bits, _)| in_block(*base, *bits)).map(|(.., kind)| *kind);
    let is_unicast = in_block(Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);
    let found = named.or((!is_unicast).then_some(AddressKind::Reserved));
    allow_or_refuse(address.into(), found, allow_private_networks)
}

fn allow_or_refuse(
    address: IpAddr,
    found: Option<AddressKind>,
    allow_private: bool,
) -> Result<(), RefusedAddress> {
    let kind = if METADATA.contains(&address) { Some(AddressKind::Metadata) } else { found };
    match kind {
        Some(kind) if !(allow_private && kind.is_private_network()) => {
            let allowed_by_setting = kind.is_private_network();
            Err(RefusedAddress { address, inside: None, kind, allowed_by_setting })
        }
        _ => Ok(()),
    }
}

/// The IPv4 addresses inside of an IPv6 address.
enum Inside {
    /// `::ffff:a.b.c.d`: another way to write the IPv4 address.
    Mapped(Ipv4Addr),
    /// 64:ff9b::/96 (RFC 6052): public hosts behind NAT64 and DNS64.
    Translated(Ipv4Addr),
    /// Ends of an automatic tunnel.
    Tunnel([Option<Ipv4Addr>; 2]),
}

/// Returns the IPv4 addresses inside of an address.
fn inside(address: Ipv6Addr) -> Option<Inside> {
    let bits = u128::from(address);
    #[expect(clippy::cast_possible_truncation, reason = "the 32 bits that begin there")]
    let v4_at = |start: u32| Ipv4Addr::from((bits >> (96 - start)) as u32);
    let last = v4_at(96);
    let segments = address.segments();
    match segments {
        [0, 0, 0, 0, 0, 0xffff, ..] => Some(Inside::Mapped(last)),
        [0x64, 0xff9b, 0, 0, 0, 0, ..] => Some(Inside::Translated(last)),
        // 6to4 (RFC 3056).
        [0x2002, ..] => Some(Inside::Tunnel([Some(v4_at(16)), None])),
        // Teredo (RFC 4380): the server, and the client with all bits inverted.
        [0x2001, 0, ..] => Some(Inside::Tunnel([Some(v4_at(32)), Some(Ipv4Addr::from(!u32::from(last)))])),
        // IPv4-compatible (RFC 4291), which `::` and `::1` are not.
        [0, 0, 0, 0, 0, 0, ..] if bits > 1 => Some(Inside::Tunnel([Some(last), None])),
        // ISATAP (RFC 5214), below any prefix.
        [.., 0 | 0x200, 0x5efe, _, _] => Some(Inside::Tunnel([Some(last), None])),
        _ => None,
    }
}

/// Returns the address that a connection to this one ends at: IPv4 where IPv6 only carries it.
pub(super) fn canonical(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) => match inside(v6) {
            Some(Inside::Mapped(v4) | Inside::Translated(v4)) => v4.into(),
            _ => address,
        },
        IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests;
