//! The address of an S3 data plane, in its parts.

use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use ureq::http::Uri;

/// `http://host:port` or `https://host:port`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Endpoint {
    /// `http` or `https`.
    pub(crate) scheme: String,
    /// The name or address; an IPv6 address is in brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Endpoint {
    /// Returns whether the connection is encrypted.
    pub(crate) fn has_tls(&self) -> bool {
        self.scheme == "https"
    }

    const fn default_port(is_tls: bool) -> u16 {
        if is_tls { 443 } else { 80 }
    }

    /// The host, with the port unless it is the default one: what clients send as `Host`.
    pub(crate) fn authority(&self) -> String {
        self.authority_of("")
    }

    /// The authority below a bucket's name in virtual-hosted style.
    pub(crate) fn authority_of(&self, prefix: &str) -> String {
        if self.port == Self::default_port(self.has_tls()) {
            format!("{prefix}{}", self.host)
        } else {
            format!("{prefix}{}:{}", self.host, self.port)
        }
    }

    /// The whole address, without a slash at its end.
    pub(crate) fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.authority())
    }

    /// Returns whether the host is an IP address, below which no bucket can be named.
    pub(crate) fn is_address(&self) -> bool {
        let host = self.host.trim_start_matches('[').trim_end_matches(']');
        host.parse::<IpAddr>().is_ok() || host.parse::<Ipv6Addr>().is_ok()
    }
}

impl FromStr for Endpoint {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str = "expected the address of the S3 plane, such as http://127.0.0.1:7600";
        let uri: Uri = text.trim_end_matches('/').parse().map_err(|_| FORM)?;
        let authority = uri.authority().ok_or(FORM)?;
        let scheme = uri.scheme_str().filter(|scheme| matches!(*scheme, "http" | "https")).ok_or(FORM)?;
        if authority.as_str().contains('@') {
            return Err("the address must not contain a password");
        }
        if uri.path() != "/" || uri.query().is_some() {
            return Err("the address must end after the port: buckets and keys are no part of it");
        }
        let after_host = authority.as_str().strip_prefix(authority.host()).ok_or(FORM)?;
        let port = match after_host.strip_prefix(':') {
            None => Self::default_port(scheme == "https"),
            Some(port) => port.parse().ok().filter(|port| *port != 0).ok_or(FORM)?,
        };
        Ok(Self { scheme: scheme.to_owned(), host: authority.host().to_ascii_lowercase(), port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_in_parts() {
        for (text, url, host) in [
            ("http://127.0.0.1:7600/", "http://127.0.0.1:7600", "127.0.0.1"),
            ("https://S3.example.org", "https://s3.example.org", "s3.example.org"),
            ("https://s3.example.org:443", "https://s3.example.org", "s3.example.org"),
            ("http://[::1]:7600", "http://[::1]:7600", "[::1]"),
        ] {
            let endpoint: Endpoint = text.parse().expect(text);
            assert_eq!((endpoint.url().as_str(), endpoint.host.as_str()), (url, host));
            assert_eq!(endpoint.is_address(), host != "s3.example.org");
        }
        for wrong in [
            "",
            "127.0.0.1:7600",
            "ftp://h",
            "http://",
            "http://h:0",
            "http://h:99999",
            "http://h:x",
            "http://h/bucket",
            "http://h?x",
            "http://key:secret@h",
        ] {
            assert!(wrong.parse::<Endpoint>().is_err(), "{wrong}");
        }
    }
}
