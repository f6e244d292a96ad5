//! Parses and validates the values of configuration keys, from text or TOML.
//!
//! An error says what the value must be. It never repeats the value.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

use cairn_model::IpNetwork;
use cairn_observe::LogFilter;

use super::key::Kind;
use super::secret::Secret;

/// A validated value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Value {
    Address(BindAddress),
    Path(PathBuf),
    Flag(bool),
    Number(u64),
    List(Vec<String>),
    Networks(Vec<IpNetwork>),
    Text(String),
    Secret(Secret),
}

impl fmt::Display for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => out.write_str(&address.text),
            Self::Path(path) => path.display().fmt(out),
            Self::Flag(flag) => flag.fmt(out),
            Self::Number(number) => number.fmt(out),
            Self::List(items) => out.write_str(&items.join(",")),
            Self::Networks(networks) => {
                let written: Vec<String> = networks.iter().map(IpNetwork::to_string).collect();
                out.write_str(&written.join(","))
            }
            Self::Text(text) => out.write_str(text),
            Self::Secret(secret) => secret.fmt(out),
        }
    }
}

/// The address of a listener: as configured, and as resolved.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BindAddress {
    /// As configured.
    pub text: String,
    /// The first address that it resolves to.
    pub address: SocketAddr,
}

/// Maximum number of networks. The address of each connection, and those in its requests, are compared with all of them.
const NETWORKS_MAX: usize = 64;
/// Maximum number of host names.
const HOST_NAMES_MAX: usize = 64;
/// Maximum number of texts in a list, and of the bytes of each.
const TEXTS_MAX: usize = 64;
const TEXT_BYTES_MAX: usize = 256;
/// The beginning of a host that browsers reach through TLS.
pub(crate) const HTTPS: &str = "https://";
/// Maximum length of a host name in bytes (RFC 1035 section 2.3.4).
const HOST_NAME_BYTES_MAX: usize = 253;

/// Parses a value from the environment.
pub(crate) fn parse_text(kind: Kind, text: &str) -> Result<Value, String> {
    let parsed = match kind {
        Kind::Address => parse_address(text).map(Value::Address),
        Kind::Path => (!text.is_empty() && !text.contains('\0')).then(|| Value::Path(PathBuf::from(text))),
        Kind::Flag => parse_flag(text).map(Value::Flag),
        Kind::Integer { min, max } => parse_digits(text).and_then(|number| within(number, min, max)),
        Kind::Bytes { min, max } => parse_bytes(text).and_then(|number| within(number, min, max)),
        Kind::HostNames => parse_hosts(listed(text), is_host_name),
        Kind::WebHosts => parse_hosts(listed(text), is_web_host),
        Kind::Texts => parse_texts(listed(text)),
        Kind::Networks => parse_networks(listed(text)),
        Kind::Word { words } => words.contains(&text).then(|| Value::Text(text.to_owned())),
        Kind::Url => is_url(text).then(|| Value::Text(text.to_owned())),
        Kind::Origin => is_origin(text).then(|| Value::Text(text.trim_end_matches('/').to_owned())),
        Kind::LogFilter => return check_filter(text),
        Kind::Text { bytes_max } => (text.len() <= bytes_max).then(|| Value::Text(text.to_owned())),
        Kind::Secret => Some(Value::Secret(Secret::new(text.to_owned()))),
    };
    parsed.ok_or_else(|| expected(kind))
}

/// Parses a value from a TOML file. The TOML type must match: a flag cannot be given as a string.
pub(crate) fn parse_toml(kind: Kind, value: &toml::Value) -> Result<Value, String> {
    let parsed = match (kind, value) {
        (Kind::Flag, toml::Value::Boolean(flag)) => Some(Value::Flag(*flag)),
        (Kind::Integer { min, max } | Kind::Bytes { min, max }, toml::Value::Integer(number)) => {
            u64::try_from(*number).ok().and_then(|number| within(number, min, max))
        }
        (Kind::HostNames, toml::Value::Array(items)) => {
            strings(items).and_then(|names| parse_hosts(names.into_iter(), is_host_name))
        }
        (Kind::WebHosts, toml::Value::Array(items)) => {
            strings(items).and_then(|names| parse_hosts(names.into_iter(), is_web_host))
        }
        (Kind::Texts, toml::Value::Array(items)) => {
            strings(items).and_then(|texts| parse_texts(texts.into_iter()))
        }
        (Kind::Networks, toml::Value::Array(items)) => {
            strings(items).and_then(|networks| parse_networks(networks.into_iter()))
        }
        (
            Kind::Flag
            | Kind::Integer { .. }
            | Kind::HostNames
            | Kind::WebHosts
            | Kind::Texts
            | Kind::Networks,
            _,
        ) => None,
        (_, toml::Value::String(text)) => return parse_text(kind, text),
        _ => None,
    };
    parsed.ok_or_else(|| expected(kind))
}

/// Describes what a value of this kind must be; completes the sentence "… must be".
pub(crate) fn expected(kind: Kind) -> String {
    match kind {
        Kind::Address => "an address <host>:<port> whose host can be resolved".to_owned(),
        Kind::Path => "a path".to_owned(),
        Kind::Flag => "true or false".to_owned(),
        Kind::Integer { min, max } => format!("a whole number from {min} to {max}"),
        Kind::Bytes { min, max } => {
            format!(
                "a number of bytes from {} to {}, such as 1048576 or 512MiB",
                bytes_text(min),
                bytes_text(max)
            )
        }
        Kind::HostNames => format!("a list of at most {HOST_NAMES_MAX} host names"),
        Kind::WebHosts => {
            format!(
                "a list of at most {HOST_NAMES_MAX} host names, such as nas or https://console.example.com"
            )
        }
        Kind::Texts => format!("a list of at most {TEXTS_MAX} texts, each of 1 to {TEXT_BYTES_MAX} bytes"),
        Kind::Networks => format!(
            "a list of at most {NETWORKS_MAX} addresses and networks such as 192.0.2.7, 10.0.0.0/8 or fd00::/8; a network \
             has no bits set after its prefix and does not contain all addresses"
        ),
        Kind::Word { words } => words.join(" or "),
        Kind::Url => "an http or https URL without query or fragment".to_owned(),
        Kind::Origin => "an http or https URL without a path".to_owned(),
        Kind::LogFilter => "a log filter".to_owned(),
        Kind::Text { bytes_max } => format!("text of at most {bytes_max} bytes"),
        Kind::Secret => "text".to_owned(),
    }
}

/// Units of byte counts, largest first.
const UNITS: [(&str, u64); 4] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

/// Formats a number of bytes in the largest unit that divides it.
pub(crate) fn bytes_text(bytes: u64) -> String {
    let unit = UNITS.iter().find(|(_, size)| bytes >= *size && bytes.is_multiple_of(*size));
    unit.map_or_else(|| bytes.to_string(), |(suffix, size)| format!("{}{suffix}", bytes / size))
}

fn within(number: u64, min: u64, max: u64) -> Option<Value> {
    (min..=max).contains(&number).then_some(Value::Number(number))
}

/// Parses digits only: the standard parser would also accept a sign.
fn parse_digits(text: &str) -> Option<u64> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

fn parse_bytes(text: &str) -> Option<u64> {
    for (suffix, size) in UNITS {
        if let Some(number) = text.strip_suffix(suffix) {
            return parse_digits(number.trim_end())?.checked_mul(size);
        }
    }
    parse_digits(text)
}

fn parse_flag(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

fn parse_address(text: &str) -> Option<BindAddress> {
    // Names are resolved once, here: nothing that is started later may wait for a resolver.
    let address = text.to_socket_addrs().ok()?.next()?;
    Some(BindAddress { text: text.to_owned(), address })
}

/// Splits a list from the environment into its members.
fn listed(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|member| !member.is_empty())
}

/// Returns the members of a list from a file; `None` if one is not a string.
fn strings(items: &[toml::Value]) -> Option<Vec<&str>> {
    items.iter().map(toml::Value::as_str).collect()
}

/// Parses networks of proxies. A network of all addresses is refused: it would trust every client.
fn parse_networks<'a>(networks: impl Iterator<Item = &'a str>) -> Option<Value> {
    let networks: Vec<IpNetwork> = networks.map(IpNetwork::parse).collect::<Option<_>>()?;
    let is_bounded = networks.len() <= NETWORKS_MAX && !networks.iter().any(IpNetwork::contains_all);
    is_bounded.then_some(Value::Networks(networks))
}

fn parse_texts<'a>(texts: impl Iterator<Item = &'a str>) -> Option<Value> {
    let texts: Vec<String> = texts.map(str::to_owned).collect();
    let fits = |text: &String| (1..=TEXT_BYTES_MAX).contains(&text.len()) && !text.contains(char::is_control);
    (texts.len() <= TEXTS_MAX && texts.iter().all(fits)).then_some(Value::List(texts))
}

fn parse_hosts<'a>(names: impl Iterator<Item = &'a str>, is_host: fn(&str) -> bool) -> Option<Value> {
    let names: Vec<String> = names.map(str::to_ascii_lowercase).collect();
    let fits = names.len() <= HOST_NAMES_MAX && names.iter().all(|name| is_host(name));
    fits.then_some(Value::List(names))
}

fn is_host_name(name: &str) -> bool {
    let label = |label: &str| {
        !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    name.len() <= HOST_NAME_BYTES_MAX && name.split('.').all(label)
}

/// Returns whether a text is a host name, or an `https` origin.
fn is_web_host(text: &str) -> bool {
    let Some(host) = text.strip_prefix(HTTPS) else { return is_host_name(text) };
    let (name, port) = host.split_once(':').unwrap_or((host, "443"));
    is_host_name(name) && parse_digits(port).is_some_and(|port| (1..=u64::from(u16::MAX)).contains(&port))
}

fn is_url(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    rest.is_some_and(|rest| {
        !rest.is_empty()
            && !rest.starts_with('/')
            && rest
                .bytes()
                .all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'?' | b'#' | b'@' | b'"' | b'<'))
    })
}

/// Returns whether a text is a URL of a whole server.
fn is_origin(text: &str) -> bool {
    let text = text.strip_suffix('/').unwrap_or(text);
    is_url(text) && text.matches('/').count() == "//".len()
}

fn check_filter(text: &str) -> Result<Value, String> {
    match LogFilter::parse(text) {
        Ok(_) => Ok(Value::Text(text.to_owned())),
        Err(refusal) => Err(format!("a valid log filter: {refusal}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_outside_its_range_is_refused() {
        let kind = Kind::Integer { min: 1, max: 300 };
        assert_eq!(parse_text(kind, "300"), Ok(Value::Number(300)));
        for bad in ["0", "301", "+5", "-1", "5 ", "0x5", "", "1e2", "99999999999999999999999"] {
            assert_eq!(parse_text(kind, bad), Err("a whole number from 1 to 300".to_owned()), "{bad:?}");
        }
        assert!(parse_toml(kind, &toml::Value::Integer(-1)).is_err());
        assert!(parse_toml(kind, &toml::Value::String("5".to_owned())).is_err());
    }

    #[test]
    fn byte_counts_have_binary_units_and_do_not_overflow() {
        let kind = Kind::Bytes { min: 0, max: u64::MAX };
        assert_eq!(parse_text(kind, "3MiB"), Ok(Value::Number(3 << 20)));
        assert_eq!(parse_text(kind, "1 GiB"), Ok(Value::Number(1 << 30)));
        assert_eq!(parse_text(kind, "17"), Ok(Value::Number(17)));
        for bad in ["3MB", "MiB", "18446744073709551615KiB", "1.5GiB", "-1KiB"] {
            assert!(parse_text(kind, bad).is_err(), "{bad}");
        }
        assert_eq!(bytes_text(16 << 40), "16TiB");
        assert_eq!(bytes_text(1000), "1000");
    }

    #[test]
    fn an_address_needs_host_and_port() {
        assert_eq!(parse_address("127.0.0.1:7600").unwrap().address.port(), 7600);
        assert!(parse_address("[::1]:0").unwrap().address.ip().is_loopback());
        for bad in ["7600", "127.0.0.1", ":x", "127.0.0.1:70000", ""] {
            assert!(parse_address(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn invalid_host_names_and_urls_are_refused() {
        assert_eq!(
            parse_text(Kind::HostNames, "S3.example.com, localhost"),
            Ok(Value::List(vec!["s3.example.com".into(), "localhost".into()]))
        );
        assert!(parse_text(Kind::HostNames, "a..b").is_err());
        assert!(parse_text(Kind::HostNames, "http://a").is_err());
        assert!(parse_text(Kind::HostNames, "https://a").is_err());
        assert_eq!(
            parse_text(Kind::WebHosts, "nas, https://Console.example:8443"),
            Ok(Value::List(vec!["nas".into(), "https://console.example:8443".into()]))
        );
        for bad in [
            "http://a",
            "https://",
            "https://a/",
            "https://a:",
            "https://a:0",
            "https://a:65536",
            "a:1",
            "https://[::1]",
        ] {
            assert!(parse_text(Kind::WebHosts, bad).is_err(), "{bad}");
        }
        assert!(parse_text(Kind::Url, "https://share.example.com/x").is_ok());
        for bad in ["ftp://a", "https://", "https://a?b", "https://u@h", "share.example.com"] {
            assert!(parse_text(Kind::Url, bad).is_err(), "{bad}");
            assert!(parse_text(Kind::Origin, bad).is_err(), "{bad}");
        }
    }
}
