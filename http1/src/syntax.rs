//! Character classes, lists and the host of RFC 9110 and RFC 9112.

use memchr::memchr;
use std::net::Ipv6Addr;

/// Returns whether all `bytes` are `allowed`. It looks at each of them, so that the compiler can compare many at once.
pub(crate) fn all_bytes(bytes: &[u8], allowed: impl Fn(u8) -> bool) -> bool {
    bytes.iter().fold(true, |all, byte| all & allowed(*byte))
}

/// Returns whether `byte` is allowed in a token (RFC 9110 section 5.6.2).
pub(crate) const fn is_token_byte(byte: u8) -> bool {
    matches!(byte,
        b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~'
        | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z')
}

/// Returns whether `byte` is allowed in a field value: visible ASCII, space, tab, and bytes above ASCII, which clients
/// send in metadata (RFC 9110 section 5.5).
pub(crate) const fn is_value_byte(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

/// Returns whether `byte` is allowed in the request target as sent. RFC 3986 allows fewer bytes, but some clients send
/// `|`, `{` or `^` unescaped. Those are unambiguous, while `#"<>` and bytes above ASCII are not.
pub(crate) const fn is_target_byte(byte: u8) -> bool {
    byte > b' ' && byte < 0x7f && !matches!(byte, b'#' | b'"' | b'<' | b'>')
}

/// Returns whether `value` is a valid `Host`: a registered name, an IPv4 address or a bracketed IPv6 address, and perhaps a
/// port, which may be empty (RFC 9110 section 7.2, RFC 3986 section 3.2). An IPv6 address may have a zone, which some
/// clients leave in place. Other literals in brackets do not exist.
pub(crate) fn is_host(value: &[u8]) -> bool {
    let after_host = if let [b'[', rest @ ..] = value {
        let Some(end) = memchr(b']', rest).filter(|end| is_ipv6_address(&rest[..*end])) else { return false };
        &rest[end + 1..]
    } else {
        let end = value.iter().position(|byte| !is_host_name_byte(*byte)).unwrap_or(value.len());
        if end == 0 {
            return false;
        }
        &value[end..]
    };
    match after_host {
        [] => true,
        [b':', port @ ..] => is_port(port),
        _ => false,
    }
}

/// Returns whether `bytes` are an IPv6 address, perhaps with a zone.
fn is_ipv6_address(bytes: &[u8]) -> bool {
    let (address, zone) = bytes.split_at(memchr(b'%', bytes).unwrap_or(bytes.len()));
    let address = std::str::from_utf8(address).ok().and_then(|text| text.parse::<Ipv6Addr>().ok());
    address.is_some() && all_bytes(zone, is_host_name_byte)
}

/// Returns whether `digits` are a port of at most 65 535, or nothing.
fn is_port(digits: &[u8]) -> bool {
    let number = digits.iter().try_fold(0_u16, |number, byte| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
        number.checked_mul(10)?.checked_add(u16::from(digit))
    });
    number.is_some()
}

/// Returns whether `byte` is allowed in the name of a host or in an IPv4 address (RFC 3986 section 3.2.2).
const fn is_host_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'-' | b'.'
                | b'_'
                | b'~'
                | b'!'
                | b'$'
                | b'&'
                | b'\''
                | b'('
                | b')'
                | b'*'
                | b'+'
                | b','
                | b';'
                | b'='
                | b'%'
        )
}

/// Returns whether `text` is a token (RFC 9110 section 5.6.2), as names of fields are.
#[must_use]
pub fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(is_token_byte)
}

/// Returns whether `bytes` can be the value of a field; see [`is_value_byte`].
#[must_use]
pub fn is_field_value(bytes: &[u8]) -> bool {
    all_bytes(bytes, is_value_byte)
}

/// Removes spaces and tabs at both ends (`OWS`, RFC 9110 section 5.6.3).
#[must_use]
pub const fn trim_ows(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = bytes {
        bytes = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    bytes
}

/// Iterates over the non-empty members of a comma-separated list, trimmed (RFC 9110 section 5.6.1). Not for lists whose
/// members may contain quoted commas.
pub(crate) fn list_members(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(trim_ows).filter(|member| !member.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_members_are_trimmed_and_not_empty() {
        let members: Vec<&[u8]> = list_members(b" a ,, b\t,c d,").collect();
        assert_eq!(members, [&b"a"[..], b"b", b"c d"]);
    }

    #[test]
    fn trimming_keeps_inner_spaces() {
        assert_eq!(trim_ows(b" \t a b \t"), b"a b");
        assert_eq!(trim_ows(b" \t "), b"");
    }
}
