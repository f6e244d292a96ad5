//! Whom a proxy says that it speaks for: the entries of `Forwarded` (RFC 7239) and of `X-Forwarded-For`, read from the right.
//!
//! Each proxy appends what it has seen itself, and what stands left of that may have been sent by anybody. So entries are cut
//! off at the right end, and what one of them means never depends on what stands left of it. An entry that names no
//! address, by its own wish (`unknown`, `_hidden`) or because it cannot be read, is given as such and never skipped: what
//! stands left of it belongs to nobody known.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::head::RequestHead;
use crate::syntax::{is_token_byte, is_value_byte, trim_ows};

/// Longest entry that is read, in bytes. One names a few addresses and hosts; a longer one counts as one that cannot be
/// read, and ends its field.
const ENTRY_BYTES_MAX: usize = 1024;
/// Digits of a port (RFC 7239 section 6.3).
const PORT_DIGITS_MAX: usize = 5;

/// The field in which proxies tell whom they speak for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ForwardedHeader {
    /// `X-Forwarded-For`: addresses separated by commas, of no standard.
    XForwardedFor,
    /// `Forwarded`, RFC 7239.
    Forwarded,
}

impl ForwardedHeader {
    /// The field's name in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::XForwardedFor => "x-forwarded-for",
            Self::Forwarded => "forwarded",
        }
    }
}

/// The addresses that a request's entries name, the last entry first; `None` for an entry that names none. Several fields
/// count as one, in their order (RFC 9110 section 5.2). Reads no further than it is asked.
pub fn forwarded_addresses(
    head: &RequestHead,
    header: ForwardedHeader,
) -> impl Iterator<Item = Option<IpAddr>> {
    head.header_values(header.name()).rev().flat_map(move |value| addresses_of_value(value, header))
}

/// The same of one field's value.
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

/// Where the last entry begins, less one: the last comma, in `Forwarded` the last outside of a quoted string. `None` when
/// there is none within the length of an entry.
fn last_comma(value: &[u8], header: ForwardedHeader) -> Option<usize> {
    let mut is_quoted = false;
    for (index, byte) in value.iter().enumerate().rev().take(ENTRY_BYTES_MAX + 1) {
        match byte {
            // From the right a string begins with its closing quote, which nothing can escape.
            b'"' if header == ForwardedHeader::Forwarded && !(is_quoted && is_escaped(value, index)) => {
                is_quoted = !is_quoted;
            }
            b',' if !is_quoted => return Some(index),
            _ => {}
        }
    }
    None
}

/// Whether the byte at `index` of a quoted string stands behind an odd number of backslashes.
fn is_escaped(value: &[u8], index: usize) -> bool {
    let backslashes = value[..index].iter().rev().take(ENTRY_BYTES_MAX).take_while(|byte| **byte == b'\\');
    backslashes.count() % 2 == 1
}

fn address_of_entry(entry: &[u8], header: ForwardedHeader) -> Option<IpAddr> {
    if entry.len() > ENTRY_BYTES_MAX {
        return None;
    }
    match header {
        ForwardedHeader::XForwardedFor => address_of_listed(entry),
        ForwardedHeader::Forwarded => address_of_node(&node_of_element(entry)?),
    }
}

/// An entry of `X-Forwarded-For`: an address, some proxies add the port. An IPv6 address with a port has brackets.
fn address_of_listed(entry: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(entry).ok()?;
    text.parse::<Ipv6Addr>()
        .map(|address| IpAddr::V6(address).to_canonical())
        .ok()
        .or_else(|| address_of_node(entry).filter(|_| !text.contains('_')))
}

/// A node (RFC 7239 section 6): an address, an IPv6 one in brackets, and perhaps a port. Other names of nodes have no address.
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

/// Digits, or an obfuscated port (RFC 7239 section 6.3).
fn is_port(text: &str) -> bool {
    let obfuscated = |name: &str| {
        !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
    };
    let is_number =
        (1..=PORT_DIGITS_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number || text.strip_prefix('_').is_some_and(obfuscated)
}

/// The value of `for` in one element of `Forwarded` (RFC 7239 section 4); `None` when there is none, more than one, or when
/// the element is not written as it must be.
fn node_of_element(element: &[u8]) -> Option<Vec<u8>> {
    let (mut rest, mut node) = (element, None);
    loop {
        rest = trim_ows(rest);
        if !rest.is_empty() && rest[0] != b';' {
            let (name, value, after) = pair(rest)?;
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

/// A parameter at the beginning of `bytes`, its value without quotes and escapes, and what follows.
fn pair(bytes: &[u8]) -> Option<(&[u8], Vec<u8>, &[u8])> {
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

/// A quoted string (RFC 9110 section 5.6.4) behind its opening quote: its text, and what follows the closing one.
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
    fn x_forwarded_for_is_read_from_the_right_with_ports_and_brackets() {
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
    fn x_forwarded_for_does_not_guess() {
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
    fn forwarded_as_in_its_rfc() {
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
    fn commas_and_escapes_in_quoted_strings_part_no_entries() {
        let value = r#"for=192.0.2.1;host="a,\"b,\\", host="\\\",for=192.0.2.66" ;; FOR="\192.0.2.2""#;
        assert_eq!(read(Forwarded, value), [named("192.0.2.2"), named("192.0.2.1")]);
    }

    #[test]
    fn forwarded_does_not_guess() {
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

    /// Read from the left, a quote that a client leaves open takes the proxy's own entry into its string, and hides the client
    /// behind the proxy's address.
    #[test]
    fn a_quote_left_open_on_the_left_hides_nothing_on_its_right() {
        let value = "for=\"192.0.2.66, for=198.51.100.7";
        assert_eq!(read(Forwarded, value).first(), Some(&named("198.51.100.7")));
    }

    #[test]
    fn an_entry_has_a_longest_length() {
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
        fn what_stands_left_changes_nothing_on_its_right(left in "[ -~\t]{0,200}", address in any::<IpAddr>(), port in any::<Option<u16>>()) {
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
