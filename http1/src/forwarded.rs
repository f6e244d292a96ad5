//! Client addresses from `Forwarded` (RFC 7239) and `X-Forwarded-For`, parsed from the right.
//!
//! Each proxy appends the address that it has seen itself. Everything to the left of it may be forged. So entries are
//! split off at the right end, and the meaning of an entry never depends on what is to its left. An entry without an
//! address (`unknown`, `_hidden`, or invalid) is returned as `None` and never skipped, because the origin of everything
//! to its left is unknown.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::head::RequestHead;
use crate::syntax::{is_token_byte, is_value_byte, trim_ows};

/// Longest entry that is parsed, in bytes. An entry has room for a few addresses and hosts. A longer one is invalid and
/// ends its field.
const ENTRY_BYTES_MAX: usize = 1024;
/// Most digits of a port (RFC 7239 section 6.3).
const PORT_DIGITS_MAX: usize = 5;

/// The header field in which proxies forward client addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ForwardedHeader {
    /// `X-Forwarded-For`: addresses separated by commas; not standardised.
    XForwardedFor,
    /// `Forwarded`, RFC 7239.
    Forwarded,
}

impl ForwardedHeader {
    /// Returns the field's name in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::XForwardedFor => "x-forwarded-for",
            Self::Forwarded => "forwarded",
        }
    }
}

/// Iterates over the addresses of a request's entries, the last entry first. An entry without an address gives `None`.
/// Several fields count as one, in their order (RFC 9110 section 5.2). Entries are parsed lazily.
pub fn forwarded_addresses(
    head: &RequestHead,
    header: ForwardedHeader,
) -> impl Iterator<Item = Option<IpAddr>> {
    head.header_values(header.name()).rev().flat_map(move |value| addresses_of_value(value, header))
}

/// As [`forwarded_addresses`], for the value of one field.
pub(crate) fn addresses_of_value(
    value: &[u8],
    header: ForwardedHeader,
) -> impl Iterator<Item = Option<IpAddr>> {
    let mut left = Some(value);
    std::iter::from_fn(move || {
        let rest = left?;
        let comma = last_comma(rest, header);
        left = comma.map(|comma| &rest[..comma]);
        let entry = comma.map_or(rest, |comma| &rest[comma + 1..]);
        Some(address_of_entry(trim_ows(entry), header))
    })
}

/// Returns the position of the comma before the last entry: the last comma, in `Forwarded` the last one outside a
/// quoted string. Returns `None` when there is none within the length of an entry.
fn last_comma(value: &[u8], header: ForwardedHeader) -> Option<usize> {
    let mut is_quoted = false;
    for (index, byte) in value.iter().enumerate().rev().take(ENTRY_BYTES_MAX + 1) {
        match byte {
            // From the right, a string begins with its closing quote, which cannot be escaped.
            b'"' if header == ForwardedHeader::Forwarded && !(is_quoted && is_escaped(value, index)) => {
                is_quoted = !is_quoted;
            }
            b',' if !is_quoted => return Some(index),
            _ => {}
        }
    }
    None
}

/// Returns whether the byte at `index` of a quoted string follows an odd number of backslashes.
fn is_escaped(value: &[u8], index: usize) -> bool {
    let backslashes = value[..index].iter().rev().take(ENTRY_BYTES_MAX).take_while(|byte| **byte == b'\\');
    backslashes.count() % 2 == 1
}

fn address_of_entry(entry: &[u8], header: ForwardedHeader) -> Option<IpAddr> {
    if entry.len() > ENTRY_BYTES_MAX {
        return None;
    }
    match header {
        ForwardedHeader::XForwardedFor => address_of_list_entry(entry),
        ForwardedHeader::Forwarded => address_of_node(&node_of_element(entry)?),
    }
}

/// Parses an entry of `X-Forwarded-For`: an address, to which some proxies add the port. An IPv6 address with a port
/// has brackets.
fn address_of_list_entry(entry: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(entry).ok()?;
    text.parse::<Ipv6Addr>()
        .map(|address| IpAddr::V6(address).to_canonical())
        .ok()
        .or_else(|| address_of_node(entry).filter(|_| !text.contains('_')))
}

/// Parses a node (RFC 7239 section 6): an address, in brackets if it is IPv6, and an optional port. Other node names
/// have no address.
fn address_of_node(node: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(node).ok()?;
    let (address, port) = match text.strip_prefix('[') {
        Some(bracketed) => {
            let (address, port) = bracketed.split_once(']')?;
            (IpAddr::V6(address.parse::<Ipv6Addr>().ok()?), port)
        }
        None => {
            let (address, port) = text.split_at(text.find(':').unwrap_or(text.len()));
            (IpAddr::V4(address.parse::<Ipv4Addr>().ok()?), port)
        }
    };
    (port.is_empty() || port.strip_prefix(':').is_some_and(is_port)).then(|| address.to_canonical())
}

/// Returns whether a text is a port: digits, or an obfuscated port (RFC 7239 section 6.3).
fn is_port(text: &str) -> bool {
    let obfuscated = |name: &str| {
        !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
    };
    let is_number =
        (1..=PORT_DIGITS_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number || text.strip_prefix('_').is_some_and(obfuscated)
}

/// Returns the value of `for` in one element of `Forwarded` (RFC 7239 section 4). Returns `None` when it is missing or
/// occurs twice, or the element is malformed.
fn node_of_element(element: &[u8]) -> Option<Vec<u8>> {
    let (mut rest, mut node) = (element, None);
    loop {
        rest = trim_ows(rest);
        if !rest.is_empty() && rest[0] != b';' {
            let (name, value, after) = split_parameter(rest)?;
            rest = trim_ows(after);
            if name.eq_ignore_ascii_case(b"for") && node.replace(value).is_some() {
                return None;
            }
        }
        match rest {
            [] => return node,
            [b';', after @ ..] => rest = after,
            _ => return None,
        }
    }
}

/// Splits off the first parameter: returns its name, its value without quotes and escapes, and the rest.
fn split_parameter(bytes: &[u8]) -> Option<(&[u8], Vec<u8>, &[u8])> {
    let (name, rest) = bytes.split_at(token_length(bytes));
    let rest = rest.strip_prefix(b"=").filter(|_| !name.is_empty())?;
    if let Some(quoted) = rest.strip_prefix(b"\"") {
        let (value, after) = unquote(quoted)?;
        return Some((name, value, after));
    }
    let (value, after) = rest.split_at(token_length(rest));
    (!value.is_empty()).then(|| (name, value.to_vec(), after))
}

fn token_length(bytes: &[u8]) -> usize {
    bytes.iter().position(|byte| !is_token_byte(*byte)).unwrap_or(bytes.len())
}

/// Parses a quoted string (RFC 9110 section 5.6.4) after its opening quote. Returns its text and the rest after the
/// closing quote.
fn unquote(bytes: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let (mut text, mut rest) = (Vec::new(), bytes);
    loop {
        let (byte, after) = match rest {
            [b'"', after @ ..] => return Some((text, after)),
            [b'\\', escaped, after @ ..] => (*escaped, after),
            [b'\\'] | [] => return None,
            [byte, after @ ..] => (*byte, after),
        };
        if !is_value_byte(byte) {
            return None;
        }
        text.push(byte);
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ForwardedHeader::{Forwarded, XForwardedFor};
    use proptest::prelude::*;

    fn read(header: ForwardedHeader, value: &str) -> Vec<Option<IpAddr>> {
        addresses_of_value(value.as_bytes(), header).collect()
    }

    fn named(address: &str) -> Option<IpAddr> {
        Some(address.parse().expect("an address"))
    }

    #[test]
    fn x_forwarded_for_is_parsed_from_the_right() {
        let value = "198.51.100.7, 2001:db8::1 ,[2001:db8::2]:443,\t192.0.2.43:47011, [2001:db8::3], ::ffff:192.0.2.1";
        let expected = [
            named("192.0.2.1"),
            named("2001:db8::3"),
            named("192.0.2.43"),
            named("2001:db8::2"),
            named("2001:db8::1"),
            named("198.51.100.7"),
        ];
        assert_eq!(read(XForwardedFor, value), expected);
    }

    #[test]
    fn malformed_x_forwarded_for_entries_have_no_address() {
        for bad in [
            "",
            "unknown",
            "192.0.2",
            "192.0.2.1.",
            "192.0.2.01",
            "192.0.2.256",
            "192.0.2.1:",
            "192.0.2.1:123456",
            "192.0.2.1:_http",
            "192.0.2.1 x",
            "\"192.0.2.1\"",
            "for=192.0.2.1",
            "2001:db8::1%eth0",
            "[192.0.2.1]",
            "[2001:db8::1",
            "[2001:db8::1]x",
            "[2001:db8::1]:",
            "192.0.2.1;x",
            "0x7f000001",
            "localhost",
            "１９２.0.2.1",
        ] {
            assert_eq!(read(XForwardedFor, bad), [None], "{bad:?}");
            assert_eq!(
                read(XForwardedFor, &format!("192.0.2.9,{bad}")),
                [None, named("192.0.2.9")],
                "{bad:?}"
            );
        }
    }

    /// The examples of RFC 7239 sections 4, 6 and 7.1.
    #[test]
    fn forwarded_is_parsed_as_in_its_rfc() {
        let long = "for=192.0.2.60;proto=http;by=203.0.113.43";
        for (value, expected) in [
            ("for=\"_gazonk\"", vec![None]),
            ("For=\"[2001:db8:cafe::17]:4711\"", vec![named("2001:db8:cafe::17")]),
            (long, vec![named("192.0.2.60")]),
            ("for=192.0.2.43, for=198.51.100.17", vec![named("198.51.100.17"), named("192.0.2.43")]),
            ("for=_hidden, for=_SEVKISEK", vec![None, None]),
            ("for=\"192.0.2.43:47011\"", vec![named("192.0.2.43")]),
            (
                "for=192.0.2.43,for=\"[2001:db8:cafe::17]\",for=unknown",
                vec![None, named("2001:db8:cafe::17"), named("192.0.2.43")],
            ),
            ("for=\"192.0.2.43:_port\"", vec![named("192.0.2.43")]),
        ] {
            assert_eq!(read(Forwarded, value), expected, "{value}");
        }
    }

    #[test]
    fn commas_in_quoted_strings_do_not_separate_entries() {
        let value = r#"for=192.0.2.1;host="a,\"b,\\", host="\\\",for=192.0.2.66" ;; FOR="\192.0.2.2""#;
        assert_eq!(read(Forwarded, value), [named("192.0.2.2"), named("192.0.2.1")]);
    }

    #[test]
    fn malformed_forwarded_entries_have_no_address() {
        for bad in [
            "",
            ";",
            "for",
            "for=",
            "for=\"\"",
            "for =192.0.2.1",
            "for= 192.0.2.1",
            "192.0.2.1",
            "proto=https",
            "for=192.0.2.1;for=192.0.2.1",
            "for=192.0.2.1 proto=http",
            "for=192.0.2.1;proto",
            "for=[2001:db8::1]",
            "for=\"2001:db8::1\"",
            "for=192.0.2.1:80",
            "for=\"192.0.2.1\"x",
            "=192.0.2.1",
            "for=\"192.0.2.1\";by=\"",
            "for=\"192.0.2.1:\"",
            "for=\"192.0.2.1:_\"",
            "for=\"192.0.2.1:_a b\"",
            "for=\" 192.0.2.1\"",
        ] {
            assert_eq!(read(Forwarded, bad), [None], "{bad:?}");
        }
    }

    /// Parsed from the left, a quote that a client leaves open would swallow the proxy's own entry, and the proxy's
    /// address would be taken for the client's.
    #[test]
    fn an_open_quote_hides_no_entry_to_its_right() {
        let value = "for=\"192.0.2.66, for=198.51.100.7";
        assert_eq!(read(Forwarded, value).first(), Some(&named("198.51.100.7")));
    }

    #[test]
    fn the_length_of_an_entry_is_limited() {
        let long = format!("192.0.2.1, for=192.0.2.2;host={}", "a".repeat(ENTRY_BYTES_MAX));
        assert_eq!(read(Forwarded, &long), [None], "nothing left of it is read either");
        let fits = format!("for=192.0.2.2;host={}", "a".repeat(ENTRY_BYTES_MAX - 19));
        assert_eq!(
            read(Forwarded, &format!("for=192.0.2.1,{fits}")),
            [named("192.0.2.2"), named("192.0.2.1")]
        );
        let quotes = format!("\"{}", "\\".repeat(60_000));
        assert!(read(Forwarded, &quotes).len() <= 2);
    }

    proptest! {
        #[test]
        fn an_entry_does_not_depend_on_the_left(left in "[ -~\t]{0,200}", address in any::<IpAddr>(), port in any::<Option<u16>>()) {
            let node = match (address, port) {
                (address, None) if address.is_ipv4() => address.to_string(),
                (address, None) => format!("[{address}]"),
                (address, Some(port)) => std::net::SocketAddr::new(address, port).to_string(),
            };
            let expected = Some(Some(address.to_canonical()));
            let listed = addresses_of_value(format!("{left},{node}").as_bytes(), XForwardedFor).next();
            prop_assert_eq!(listed, expected);
            let element = format!("{left}, proto=https;for=\"{node}\";host=\"a\\\",b\"");
            prop_assert_eq!(addresses_of_value(element.as_bytes(), Forwarded).next(), expected);
        }
    }
}
