//! Tests of the address table: against the registries of IANA, and the traps that other projects fell into.

use super::{AddressKind, judge};
use std::net::IpAddr;

fn address(text: &str) -> IpAddr {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn kind(text: &str, allow_private_networks: bool) -> Option<AddressKind> {
    judge(address(text), allow_private_networks).err().map(|refused| refused.kind)
}

/// IANA IPv4 and IPv6 Special-Purpose Address Registries: block, and the column "Globally Reachable" (`false` for N/A).
const REGISTRY: &[(&str, bool)] = &[
    ("0.0.0.0/8", false),
    ("0.0.0.0/32", false),
    ("10.0.0.0/8", false),
    ("100.64.0.0/10", false),
    ("127.0.0.0/8", false),
    ("169.254.0.0/16", false),
    ("172.16.0.0/12", false),
    ("192.0.0.0/24", false),
    ("192.0.0.0/29", false),
    ("192.0.0.8/32", false),
    ("192.0.0.9/32", true),
    ("192.0.0.10/32", true),
    ("192.0.0.170/32", false),
    ("192.0.0.171/32", false),
    ("192.0.2.0/24", false),
    ("192.31.196.0/24", true),
    ("192.52.193.0/24", true),
    ("192.88.99.0/24", false),
    ("192.88.99.2/32", false),
    ("192.168.0.0/16", false),
    ("192.175.48.0/24", true),
    ("198.18.0.0/15", false),
    ("198.51.100.0/24", false),
    ("203.0.113.0/24", false),
    ("240.0.0.0/4", false),
    ("255.255.255.255/32", false),
    ("::1/128", false),
    ("::/128", false),
    ("::ffff:0:0/96", false),
    ("64:ff9b::/96", true),
    ("64:ff9b:1::/48", false),
    ("100::/64", false),
    ("100:0:0:1::/64", false),
    ("2001::/23", false),
    ("2001::/32", false),
    ("2001:1::1/128", true),
    ("2001:1::2/128", true),
    ("2001:1::3/128", true),
    ("2001:2::/48", false),
    ("2001:3::/32", true),
    ("2001:4:112::/48", true),
    ("2001:10::/28", false),
    ("2001:20::/28", true),
    ("2001:30::/28", true),
    ("2001:db8::/32", false),
    ("2002::/16", false),
    ("2620:4f:8000::/48", true),
    ("3fff::/20", false),
    ("5f00::/16", false),
    ("fc00::/7", false),
    ("fe80::/10", false),
];

/// The first and the last address of a block.
fn edges(block: &str) -> [IpAddr; 2] {
    let (base, bits) = block.split_once('/').expect("a block");
    let bits: u32 = bits.parse().expect("a number of bits");
    match address(base) {
        IpAddr::V4(base) => {
            let host = u32::MAX.checked_shr(bits).unwrap_or(0);
            [base.into(), IpAddr::V4((u32::from(base) | host).into())]
        }
        IpAddr::V6(base) => {
            let host = u128::MAX.checked_shr(bits).unwrap_or(0);
            [base.into(), IpAddr::V6((u128::from(base) | host).into())]
        }
    }
}

#[test]
fn no_address_that_the_registries_call_unreachable_is_allowed() {
    for (block, reachable) in REGISTRY {
        for edge in edges(block) {
            if !reachable {
                assert!(judge(edge, false).is_err(), "{edge} in {block}");
            }
        }
    }
}

#[test]
fn the_neighbours_of_a_block_are_public() {
    for text in [
        "1.0.0.0",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.0",
        "192.0.3.0",
        "192.167.255.255",
        "192.169.0.0",
        "192.88.98.255",
        "192.88.100.0",
        "198.17.255.255",
        "198.20.0.0",
        "198.51.99.255",
        "203.0.112.255",
        "203.0.114.0",
        "223.255.255.255",
        "168.63.129.15",
        "168.63.129.17",
        "8.8.8.8",
        "2000::1",
        "2001:200::1",
        "2001:4860:4860::8888",
        "2001:db7::1",
        "2001:db9::1",
        "2003::1",
        "2606:4700::1111",
        "2620:4f:8000::1",
        "3fff:1000::1",
        "3ffd::1",
        "2a00::1",
    ] {
        assert_eq!(kind(text, false), None, "{text}");
    }
}

#[test]
fn private_networks_are_opened_by_their_setting_and_nothing_else_is() {
    use AddressKind as K;
    for (text, expected) in [
        ("127.0.0.1", K::Loopback),
        ("127.255.255.255", K::Loopback),
        ("10.1.2.3", K::Private),
        ("172.31.255.255", K::Private),
        ("192.168.1.1", K::Private),
        ("100.64.0.1", K::Shared),
        ("100.127.255.255", K::Shared),
        ("::1", K::Loopback),
        ("fc00::1", K::UniqueLocal),
        ("fd12:3456::1", K::UniqueLocal),
        ("::ffff:127.0.0.1", K::Loopback),
        ("64:ff9b::192.168.1.1", K::Private),
    ] {
        assert_eq!(kind(text, false), Some(expected), "{text}");
        assert_eq!(kind(text, true), None, "{text} with the setting");
        let message = judge(address(text), false).expect_err("refused").to_string();
        assert!(message.contains(&address(text).to_string()), "{message}");
        assert!(message.contains("webhooks.allow_private_networks = true allows it"), "{message}");
    }
    for (text, expected) in [
        ("0.0.0.0", K::Unspecified),
        ("0.1.2.3", K::Unspecified),
        ("::", K::Unspecified),
        ("169.254.0.1", K::LinkLocal),
        ("fe80::1", K::LinkLocal),
        ("febf::1", K::LinkLocal),
        ("fec0::1", K::Reserved),
        ("224.0.0.1", K::Multicast),
        ("239.255.255.255", K::Multicast),
        ("ff02::1", K::Multicast),
        ("255.255.255.255", K::Broadcast),
        ("240.0.0.1", K::Reserved),
        ("192.0.0.1", K::Reserved),
        ("192.0.2.1", K::Reserved),
        ("198.19.255.255", K::Reserved),
        ("198.51.100.1", K::Reserved),
        ("203.0.113.1", K::Reserved),
        ("2001:db8::1", K::Reserved),
        ("3fff:fff::1", K::Reserved),
        ("2001:2::1", K::Reserved),
        ("100::1", K::Reserved),
        ("5f00::1", K::Reserved),
        ("4000::1", K::Reserved),
        ("64:ff9b:1::1", K::Tunnel),
        ("64:ff9b:1:ffff:ffff:ffff:ffff:ffff", K::Tunnel),
    ] {
        for allow in [false, true] {
            assert_eq!(kind(text, allow), Some(expected), "{text} with allow_private_networks = {allow}");
        }
        let message = judge(address(text), false).expect_err("refused").to_string();
        assert!(message.ends_with("which is never allowed"), "{message}");
    }
}

#[test]
fn metadata_services_are_never_allowed_in_any_spelling() {
    for text in [
        "169.254.169.254",
        "168.63.129.16",
        "192.0.0.192",
        "100.100.100.200",
        "fd00:ec2::254",
        "fd20:ce::254",
        "fd00:42::42",
        "::ffff:169.254.169.254",
        "::ffff:a9fe:a9fe",
        "::ffff:100.100.100.200",
        "64:ff9b::169.254.169.254",
        "64:ff9b::168.63.129.16",
        "2002:a9fe:a9fe::1",
        "::169.254.169.254",
        "2a00::5efe:168.63.129.16",
        "2001:0:a9fe:a9fe::1",
    ] {
        for allow in [false, true] {
            assert_eq!(
                kind(text, allow),
                Some(AddressKind::Metadata),
                "{text} with allow_private_networks = {allow}"
            );
        }
    }
}

/// Other projects judged only the IPv6 address and so let through what the packets really reach.
#[test]
fn addresses_inside_of_addresses_are_judged() {
    use AddressKind as K;
    for (text, expected) in [
        // IPv4-mapped.
        ("::ffff:7f00:1", K::Loopback),
        ("::ffff:a9fe:a9fe", K::Metadata),
        ("::ffff:0.0.0.0", K::Unspecified),
        // NAT64.
        ("64:ff9b::7f00:1", K::Loopback),
        ("64:ff9b::a00:1", K::Private),
        // 6to4.
        ("2002:7f00:1::", K::Loopback),
        ("2002:c0a8:101::1", K::Private),
        // Teredo: the server, and the client with all bits inverted.
        ("2001:0:7f00:1::1", K::Loopback),
        ("2001:0:808:808:0:0:80ff:fffe", K::Loopback),
        ("2001:0:808:808:0:0:3f57:fefe", K::Private),
        // Teredo with public ends.
        ("2001:0:808:808:0:0:f7f7:f7f7", K::Tunnel),
        // IPv4-compatible.
        ("::7f00:1", K::Loopback),
        ("::808:808", K::Reserved),
        // Translated (RFC 2765).
        ("::ffff:0:7f00:1", K::Reserved),
        // ISATAP, with both values of the universal bit.
        ("2a00:1:2:3:0:5efe:7f00:1", K::Loopback),
        ("2a00:1:2:3:200:5efe:a00:1", K::Private),
        ("fe80::5efe:808:808", K::LinkLocal),
    ] {
        assert_eq!(kind(text, false), Some(expected), "{text}");
    }
    for text in ["2002:7f00:1::", "2001:0:7f00:1::1", "::7f00:1", "2a00:1:2:3:0:5efe:a00:1"] {
        let refused = judge(address(text), true).expect_err("no setting opens tunnels into private networks");
        assert!(refused.to_string().ends_with("which is never allowed"), "{refused}");
    }
    let refused = judge(address("64:ff9b::7f00:1"), false).expect_err("refused");
    assert!(
        refused.to_string().starts_with("64:ff9b::7f00:1 contains 127.0.0.1, which is a loopback address"),
        "{refused}"
    );
}

/// Refusing NAT64 wholesale broke every IPv4-only receiver behind DNS64 elsewhere.
#[test]
fn public_hosts_behind_nat64_are_allowed() {
    for text in [
        "64:ff9b::a29f:8ae8",
        "64:ff9b::808:808",
        "::ffff:8.8.8.8",
        "2002:808:808::1",
        "2a00:1:2:3:0:5efe:808:808",
    ] {
        assert_eq!(kind(text, false), None, "{text}");
    }
}
