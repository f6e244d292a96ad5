//! URLs of targets, parsed strictly: what parsers disagree about is refused.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use http::Uri;

use super::numeric::{self, Numeric};
use crate::limits::{HOST_BYTES_MAX, LABEL_BYTES_MAX, URL_BYTES_MAX};

/// A URL that deliveries can be posted to. Whether its addresses are allowed is another question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetUrl {
    pub(crate) scheme: Scheme,
    pub(crate) host: Host,
    pub(crate) port: u16,
    /// The whole URL in its canonical form: lower-case host, canonical address, no default port.
    pub(crate) uri: Uri,
}

/// The scheme of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    Https,
}

/// The host of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Host {
    /// A name, in lower case.
    Name {
        /// The name without a dot at its end: for `Host`, and for the certificate.
        name: String,
        /// Whether it ended with a dot: then it is looked up without search domains.
        absolute: bool,
    },
    /// A literal address.
    Address(IpAddr),
}

/// An error in a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UrlError {
    /// More than 2048 bytes.
    TooLong,
    /// A character that is not allowed anywhere in a URL: a space, a control character, or one outside of ASCII.
    Character(char),
    /// Another scheme than `http` and `https`, or none.
    Scheme,
    /// A user name or password.
    Credentials,
    /// A fragment (`#…`).
    Fragment,
    /// No host.
    NoHost,
    /// A host that is neither a name nor an address.
    Host,
    /// An IPv6 address with a zone (`%eth0`).
    Zone,
    /// A port that is not a number from 1 to 65535.
    Port,
    /// A `%` that is not followed by two hexadecimal digits.
    Percent,
}

impl TargetUrl {
    /// Parses a URL: `http` or `https`, a host, maybe a port, path and query.
    ///
    /// Hosts are ASCII names, IPv4 addresses in any spelling that the C library accepts, or IPv6 addresses in brackets.
    ///
    /// # Errors
    /// Anything else, with what is wrong.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        check_characters(text)?;
        let (scheme, rest) = text.split_once("://").ok_or(UrlError::Scheme)?;
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            _ => return Err(UrlError::Scheme),
        };
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(UrlError::Credentials);
        }
        let (host, port) = split_port(authority)?;
        let (host, port) = (parse_host(host)?, port.map_or(Ok(scheme.default_port()), parse_port)?);
        check_percent(path)?;
        // A path must begin with a slash when it is sent.
        let slash = if path.starts_with('/') { "" } else { "/" };
        let shown_port = if port == scheme.default_port() { String::new() } else { format!(":{port}") };
        let canonical = format!("{}://{host}{shown_port}{slash}{path}", scheme.name());
        let uri = canonical.parse().map_err(|_| UrlError::Host)?;
        Ok(Self { scheme, host, port, uri })
    }

    /// Returns whether it is `https`.
    #[must_use]
    pub fn is_https(&self) -> bool {
        self.scheme == Scheme::Https
    }
}

impl fmt::Display for TargetUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.uri.fmt(formatter)
    }
}

impl Scheme {
    const fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

/// As in a URL: IPv6 addresses in brackets.
impl fmt::Display for Host {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name { name, .. } => formatter.write_str(name),
            Self::Address(IpAddr::V4(address)) => address.fmt(formatter),
            Self::Address(IpAddr::V6(address)) => write!(formatter, "[{address}]"),
        }
    }
}

/// Refuses everything that no part of a URL may contain. Spaces, tabs and line ends at the edges are not removed.
fn check_characters(text: &str) -> Result<(), UrlError> {
    if text.len() > URL_BYTES_MAX {
        return Err(UrlError::TooLong);
    }
    if text.contains('#') {
        return Err(UrlError::Fragment);
    }
    // RFC 3986, section 2: unreserved and reserved characters, and the percent sign.
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || "-._~:/?[]@!$&'()*+,;=%".contains(letter);
    text.chars().find(|&letter| !allowed(letter)).map_or(Ok(()), |letter| Err(UrlError::Character(letter)))
}

/// Divides an authority into host and port. The brackets of an IPv6 address stay.
fn split_port(authority: &str) -> Result<(&str, Option<&str>), UrlError> {
    let end = if authority.starts_with('[') { authority.find(']').ok_or(UrlError::Host)? + 1 } else { 0 };
    match authority[end..].find(':') {
        Some(colon) => Ok((&authority[..end + colon], Some(&authority[end + colon + 1..]))),
        None => Ok((authority, None)),
    }
}

fn parse_port(digits: &str) -> Result<u16, UrlError> {
    // `parse` would accept a sign, and a zero in front is read as octal by some.
    if digits.starts_with('0') || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(UrlError::Port);
    }
    digits.parse().map_err(|_| UrlError::Port)
}

fn parse_host(text: &str) -> Result<Host, UrlError> {
    if let Some(inner) = text.strip_prefix('[') {
        let inner = inner.strip_suffix(']').ok_or(UrlError::Host)?;
        if inner.contains('%') {
            return Err(UrlError::Zone);
        }
        return inner
            .parse::<Ipv6Addr>()
            .map(|address| Host::Address(address.into()))
            .map_err(|_| UrlError::Host);
    }
    let text = text.to_ascii_lowercase();
    let (name, absolute) = text.strip_suffix('.').map_or((text.as_str(), false), |name| (name, true));
    if name.is_empty() {
        return Err(UrlError::NoHost);
    }
    match numeric::parse(name) {
        Numeric::Address(address) => Ok(Host::Address(address.into())),
        Numeric::Invalid => Err(UrlError::Host),
        Numeric::Name if is_name(name) => Ok(Host::Name { name: name.to_owned(), absolute }),
        Numeric::Name => Err(UrlError::Host),
    }
}

/// Returns whether it is a host name. Underscores are common in names of containers.
fn is_name(name: &str) -> bool {
    let is_label = |label: &str| {
        (1..=LABEL_BYTES_MAX).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    name.len() <= HOST_BYTES_MAX && name.split('.').all(is_label)
}

/// Checks percent-encoding. Brackets belong to addresses only.
fn check_percent(path: &str) -> Result<(), UrlError> {
    if let Some(bracket) = path.chars().find(|&letter| letter == '[' || letter == ']') {
        return Err(UrlError::Character(bracket));
    }
    let hex = |rest: &str| rest.len() >= 2 && rest.as_bytes()[..2].iter().all(u8::is_ascii_hexdigit);
    if path.split('%').skip(1).all(hex) { Ok(()) } else { Err(UrlError::Percent) }
}

impl fmt::Display for UrlError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::TooLong => "the URL is longer than 2048 bytes",
            Self::Character(letter) if !letter.is_ascii() => {
                return write!(
                    formatter,
                    "the URL contains {:?}: write an international host name in its ASCII form (xn--…), and percent-encode \
                     the path",
                    letter
                );
            }
            Self::Character(letter) => {
                return write!(
                    formatter,
                    "the URL contains the character {letter:?}, which must be percent-encoded"
                );
            }
            Self::Scheme => "the URL must begin with https:// or http://",
            Self::Credentials => {
                "the URL must not contain a user name or password; receivers authenticate deliveries by their signature"
            }
            Self::Fragment => "the URL must not contain a fragment (#…); it would never be sent",
            Self::NoHost => "the URL has no host",
            Self::Host => "the host of the URL is neither a host name nor an address",
            Self::Zone => "the address in the URL must not have a zone (%…)",
            Self::Port => "the port of the URL must be a number from 1 to 65535",
            Self::Percent => "the URL contains a % that is not followed by two hexadecimal digits",
        };
        formatter.write_str(text)
    }
}

impl std::error::Error for UrlError {}

#[cfg(test)]
mod tests {
    use super::{Host, TargetUrl, UrlError};

    fn canonical(text: &str) -> String {
        TargetUrl::parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).to_string()
    }

    #[test]
    fn urls_have_one_canonical_form() {
        for (text, expected) in [
            ("https://Example.COM/Hook?A=b", "https://example.com/Hook?A=b"),
            ("HTTPS://example.com", "https://example.com/"),
            ("https://example.com?x=1", "https://example.com/?x=1"),
            ("https://example.com./a", "https://example.com/a"),
            ("https://example.com:443/", "https://example.com/"),
            ("https://example.com:80/", "https://example.com:80/"),
            ("http://example.com:80/", "http://example.com/"),
            ("http://my_service:3000/%2e%2E", "http://my_service:3000/%2e%2E"),
            ("http://2130706433/", "http://127.0.0.1/"),
            ("http://0177.1./", "http://127.0.0.1/"),
            ("http://[::FFFF:7f00:1]:8080/", "http://[::ffff:127.0.0.1]:8080/"),
            ("https://xn--bcher-kva.example/a;b,c:d@e", "https://xn--bcher-kva.example/a;b,c:d@e"),
        ] {
            assert_eq!(canonical(text), expected, "{text}");
        }
    }

    #[test]
    fn a_dot_at_the_end_means_an_absolute_name() {
        let host = |text| TargetUrl::parse(text).expect("a URL").host;
        assert_eq!(host("https://a.b./"), Host::Name { name: "a.b".to_owned(), absolute: true });
        assert_eq!(host("https://a.b/"), Host::Name { name: "a.b".to_owned(), absolute: false });
    }

    #[test]
    fn what_parsers_disagree_about_is_refused() {
        use UrlError as E;
        let long = format!("https://example.com/{}", "a".repeat(2048));
        let long_label = format!("https://{}.example/", "a".repeat(64));
        let long_name = format!("https://{}example/", "a.".repeat(124));
        for (text, error) in [
            ("", E::Scheme),
            ("example.com/", E::Scheme),
            ("//example.com/", E::Scheme),
            ("ftp://example.com/", E::Scheme),
            ("file:///etc/passwd", E::Scheme),
            ("javascript://example.com/", E::Scheme),
            ("https:/example.com/", E::Scheme),
            (" https://example.com/", E::Character(' ')),
            ("https://example.com/ ", E::Character(' ')),
            ("https://exa\tmple.com/", E::Character('\t')),
            ("https://example.com/\r\nHost: other", E::Character('\r')),
            ("https://example.com/\0", E::Character('\0')),
            ("https://example.com\\@127.0.0.1/", E::Character('\\')),
            ("https://bücher.example/", E::Character('ü')),
            ("https://１２７.0.0.1/", E::Character('１')),
            ("https://127。0。0。1/", E::Character('。')),
            ("https://example.com/<id>", E::Character('<')),
            ("https://user@example.com/", E::Credentials),
            ("https://user:password@example.com/", E::Credentials),
            ("https://@example.com/", E::Credentials),
            ("https://example.com#@127.0.0.1/", E::Fragment),
            ("https://example.com/#", E::Fragment),
            ("https://", E::NoHost),
            ("https:///path", E::NoHost),
            ("https://./", E::NoHost),
            ("https://:443/", E::NoHost),
            ("https://example..com/", E::Host),
            ("https://example.com../", E::Host),
            ("https://127%2e0.0.1/", E::Host),
            ("https://%65xample.com/", E::Host),
            ("https://exam!ple.com/", E::Host),
            ("https://1.2.3.4.5/", E::Host),
            ("https://256.1.1.1/", E::Host),
            ("https://::1/", E::NoHost),
            ("https://[::1/", E::Host),
            ("https://[::1]x/", E::Host),
            ("https://[v1.x]/", E::Host),
            ("https://[127.0.0.1]/", E::Host),
            ("https://[fe80::1%25eth0]/", E::Zone),
            ("https://[fe80::1%eth0]/", E::Zone),
            ("https://example.com:/", E::Port),
            ("https://example.com:0/", E::Port),
            ("https://example.com:080/", E::Port),
            ("https://example.com:+80/", E::Port),
            ("https://example.com:65536/", E::Port),
            ("https://example.com:80:80/", E::Port),
            ("https://example.com/%", E::Percent),
            ("https://example.com/%0g", E::Percent),
            ("https://example.com/[", E::Character('[')),
            (&long, E::TooLong),
            (&long_label, E::Host),
            (&long_name, E::Host),
        ] {
            assert_eq!(TargetUrl::parse(text).map(|url| url.to_string()), Err(error), "{text:?}");
        }
    }

    #[test]
    fn messages_say_what_to_do() {
        let message = |text| TargetUrl::parse(text).expect_err("refused").to_string();
        assert!(message("https://bücher.example/").contains("xn--"));
        assert!(message("https://a/ b").contains("percent-encoded"));
    }
}
