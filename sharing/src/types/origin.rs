//! Web origins: scheme, host and port, in the form in which browsers send them (RFC 6454).
//!
//! An entry of `allowed_origins` is brought into the form that browsers send (WHATWG URL Standard, "origin" and "host
//! parsing"): lower case, internationalised names in Punycode, no default port. What a browser would never send is refused,
//! because it could never match. The origin of a request is cut out of `Origin` or `Referer` before it is parsed, and by the
//! same parser: no other part of a URL can take its place.

use crate::limits::ORIGIN_BYTES_MAX;
use idna::AsciiDenyList;
use idna::uts46::{DnsLength, Hyphens, Uts46};
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// An origin in its canonical form: lower case, ASCII, without the scheme's default port.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct WebOrigin(Box<str>);

/// The error of a text that is no origin. Holds the violated rule, as part of a sentence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InvalidOrigin(pub &'static str);

const SCHEME: InvalidOrigin = InvalidOrigin("it must begin with http:// or https://");
const HOST: InvalidOrigin = InvalidOrigin("its host is not a valid name");
const IPV4: InvalidOrigin =
    InvalidOrigin("its host must be a name, or an IPv4 address of four decimal numbers");
const IPV6: InvalidOrigin = InvalidOrigin("its host must be an IPv6 address in brackets, without a zone");
const PORT: InvalidOrigin = InvalidOrigin("its port must be a number from 1 to 65535, without leading zeros");

/// Schemes that pages have, with their default ports.
const SCHEMES: [(&str, u16); 2] = [("http", 80), ("https", 443)];

impl WebOrigin {
    /// Parses `scheme://host[:port]`, with `http` or `https`.
    ///
    /// # Errors
    /// [`InvalidOrigin`] with the first rule that the text violates.
    pub fn parse(text: &str) -> Result<Self, InvalidOrigin> {
        if text.len() > ORIGIN_BYTES_MAX {
            return Err(InvalidOrigin("it is too long"));
        }
        check_common_mistakes(text)?;
        let (scheme, authority) = text.split_once("://").ok_or(SCHEME)?;
        let known = SCHEMES.into_iter().find(|(name, _)| scheme.eq_ignore_ascii_case(name));
        let (scheme, default_port) = known.ok_or(SCHEME)?;
        check_authority(authority)?;
        let (host, port) = split_port(authority);
        let port = port.map(parse_port).transpose()?.filter(|port| *port != default_port);
        let mut canonical = String::with_capacity(text.len());
        canonical.push_str(scheme);
        canonical.push_str("://");
        push_host(&mut canonical, host)?;
        if let Some(port) = port {
            canonical.push(':');
            canonical.push_str(&port.to_string());
        }
        Ok(Self(canonical.into()))
    }

    /// Returns which of these origins a header `Origin` names. It must be an origin and nothing else.
    pub(crate) fn find_in_origin<'o>(origins: &'o [Self], value: &[u8]) -> Option<&'o Self> {
        let text = origin_text(value).filter(|text| text.len() == value.len())?;
        Self::find(origins, text)
    }

    /// Returns which of these origins the URL in a header `Referer` belongs to. Only the text before the path counts, and it
    /// must be an origin as a whole.
    pub(crate) fn find_in_referrer<'o>(origins: &'o [Self], value: &[u8]) -> Option<&'o Self> {
        Self::find(origins, origin_text(value)?)
    }

    /// Returns the origin that a header `Origin` names, if it names one.
    pub(crate) fn of_origin(value: &[u8]) -> Option<Self> {
        Self::of_referrer(value).filter(|_| origin_text(value).is_some_and(|text| text.len() == value.len()))
    }

    /// Returns the origin of the URL in a header `Referer`, if it has one.
    pub(crate) fn of_referrer(value: &[u8]) -> Option<Self> {
        Self::parse(origin_text(value)?).ok()
    }

    fn find<'o>(origins: &'o [Self], sent: &str) -> Option<&'o Self> {
        // Browsers send the canonical form, which needs no parser.
        let is_same = |origin: &&Self| *origin.0 == *sent;
        origins.iter().find(is_same).or_else(|| {
            let sent = Self::parse(sent).ok()?;
            origins.iter().find(|origin| **origin == sent)
        })
    }

    /// Returns the canonical text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for WebOrigin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// Returns the part of a URL, or of a serialized origin, that comes before its path, query and fragment.
fn origin_text(value: &[u8]) -> Option<&str> {
    const SEPARATOR: &[u8] = b"://";
    let authority = value.windows(SEPARATOR.len()).position(|bytes| bytes == SEPARATOR)? + SEPARATOR.len();
    // A browser never sends a backslash here, and others may take it for a slash: it stays, and no origin has one.
    let length = value[authority..].iter().position(|byte| b"/?#".contains(byte));
    let end = length.map_or(value.len(), |length| authority + length);
    std::str::from_utf8(&value[..end]).ok().filter(|text| text.is_ascii())
}

/// Refuses what people write instead of an origin, with the reason.
fn check_common_mistakes(text: &str) -> Result<(), InvalidOrigin> {
    match text {
        "" => Err(InvalidOrigin("it is empty")),
        "null" => Err(InvalidOrigin(
            "null is the origin of local files and sandboxed frames, which anybody can make",
        )),
        _ if text.contains('*') => Err(InvalidOrigin("wildcards are not allowed: list each origin")),
        _ if text.chars().any(|c| c.is_whitespace() || c.is_control()) => {
            Err(InvalidOrigin("it must not contain spaces or control characters"))
        }
        _ => Ok(()),
    }
}

fn check_authority(authority: &str) -> Result<(), InvalidOrigin> {
    let first = authority.find(['/', '\\', '?', '#']);
    match first.map(|at| authority.split_at(at)) {
        Some((_, "/")) => return Err(InvalidOrigin("it must not end with a slash")),
        Some((_, rest)) if rest.starts_with(['/', '\\']) => {
            return Err(InvalidOrigin("it must not have a path: only scheme, host and port"));
        }
        Some(_) => {
            return Err(InvalidOrigin("it must not have a query or fragment: only scheme, host and port"));
        }
        None => {}
    }
    if authority.contains('@') {
        return Err(InvalidOrigin("it must not have a user name"));
    }
    Ok(())
}

/// Divides an authority into host and port. The brackets of an IPv6 address stay.
fn split_port(authority: &str) -> (&str, Option<&str>) {
    match authority.rfind([':', ']']) {
        Some(at) if authority[at..].starts_with(':') => (&authority[..at], Some(&authority[at + 1..])),
        _ => (authority, None),
    }
}

fn parse_port(text: &str) -> Result<u16, InvalidOrigin> {
    // The number's own parser would accept a sign.
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    is_plain.then(|| text.parse().ok()).flatten().ok_or(PORT)
}

/// Appends the canonical form of a host.
fn push_host(out: &mut String, host: &str) -> Result<(), InvalidOrigin> {
    if host.is_empty() {
        return Err(InvalidOrigin("it has no host"));
    }
    if host.contains([':', '[', ']']) {
        let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).ok_or(IPV6)?;
        push_ipv6(out, inner.parse().map_err(|_| IPV6)?);
        return Ok(());
    }
    // As browsers do it, except that the name must be one that DNS can have.
    let (denied, length) = (AsciiDenyList::URL, DnsLength::VerifyAllowRootDot);
    let name = Uts46::new().to_ascii(host.as_bytes(), denied, Hyphens::Allow, length).map_err(|_| HOST)?;
    if ends_in_number(&name) {
        let address: Ipv4Addr = name.parse().map_err(|_| IPV4)?;
        out.push_str(&address.to_string());
    } else {
        out.push_str(&name);
    }
    Ok(())
}

/// Returns whether browsers take a host for an IPv4 address (WHATWG URL Standard, "ends in a number checker").
fn ends_in_number(host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host);
    let last = host.rsplit('.').next().unwrap_or_default();
    let is_hexadecimal =
        last.strip_prefix("0x").is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    is_hexadecimal || (!last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Appends an IPv6 address as browsers write it. Unlike the standard library, they never write a part of it as IPv4.
fn push_ipv6(out: &mut String, address: Ipv6Addr) {
    let text = match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] => format!("[::ffff:{high:x}:{low:x}]"),
        _ => format!("[{address}]"),
    };
    out.push_str(&text);
}

#[cfg(test)]
mod tests;
