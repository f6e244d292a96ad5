//! The character classes of RFC 9110 and RFC 9112 that several modules check. Pure predicates, no state.

/// Whether `byte` may stand in a token (RFC 9110 section 5.6.2).
pub(crate) const fn is_token_byte(byte: u8) -> bool {
    matches!(byte,
        b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~'
        | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z')
}

/// Whether `byte` may stand in a field value: visible ASCII, space, tab and the bytes above ASCII, which clients do
/// send in metadata (RFC 9110 section 5.5).
pub(crate) const fn is_value_byte(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

/// Whether `byte` may stand in the request target as sent. RFC 3986 allows less; clients in use send `|`, `{` or `^`
/// unescaped, and those cannot be misunderstood, while `#"<>` and bytes above ASCII can.
pub(crate) const fn is_target_byte(byte: u8) -> bool {
    byte > b' ' && byte < 0x7f && !matches!(byte, b'#' | b'"' | b'<' | b'>')
}

/// Whether `byte` may stand in `Host`: a registered name, an IPv4 address or a bracketed IPv6 one, and a port
/// (RFC 3986 section 3.2, without user information).
pub(crate) const fn is_host_byte(byte: u8) -> bool {
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
                | b':'
                | b'['
                | b']'
                | b'%'
        )
}

/// Without the spaces and tabs at both ends (`OWS`, RFC 9110 section 5.6.3).
pub(crate) const fn trim_ows(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = bytes {
        bytes = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    bytes
}

/// The members of a comma-separated list, trimmed, empty ones left out (RFC 9110 section 5.6.1). Not for lists whose
/// members may hold quoted commas.
pub(crate) fn list_members(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(trim_ows).filter(|member| !member.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_lose_spaces_and_empty_members() {
        let members: Vec<&[u8]> = list_members(b" a ,, b\t,c d,").collect();
        assert_eq!(members, [&b"a"[..], b"b", b"c d"]);
    }

    #[test]
    fn trimming_keeps_inner_spaces() {
        assert_eq!(trim_ows(b" \t a b \t"), b"a b");
        assert_eq!(trim_ows(b" \t "), b"");
    }
}
