//! Detects virtual-hosted-style requests: `Host` headers with a bucket in front of one of the server's names.
//!
//! Source: "Virtual hosting of general purpose buckets" (AWS). The mode `strict` refuses such a request. If it were taken
//! for path style, a request for `bucket.localhost/key` would create or delete a bucket that is named like the key. The
//! server's names are the configured ones, the address that the listener is bound to, the address that the client connected
//! to, and `localhost` for connections over loopback. Any other host is accepted as path style, because there may be any
//! number of proxies and aliases.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The name of every host for itself (RFC 6761 section 6.3).
const LOOPBACK_NAME: &str = "localhost";

/// The server's names that do not depend on the connection.
#[derive(Debug)]
pub(crate) struct ServerHosts(Vec<String>);

impl ServerHosts {
    /// Collects the configured names, with or without a port, and the bound address.
    pub(crate) fn new(configured: Vec<String>, bound: SocketAddr) -> Self {
        let address = (!bound.ip().is_unspecified()).then(|| host_of(bound.ip()));
        let mut hosts: Vec<String> =
            configured.iter().map(|host| name_of(host).to_owned()).chain(address).collect();
        hosts.retain(|host| !host.is_empty());
        Self(hosts)
    }

    /// Returns the labels in front of a name of this server in `host`, the value of a `Host` header on a connection to
    /// `local`. `None`: the host names no bucket, and the request is path style. A host that is itself a name of this server
    /// has none, even if it ends with a shorter one. Among several names that the host ends with, the longest counts.
    pub(crate) fn bucket_in<'h>(&self, host: &'h str, local: SocketAddr) -> Option<HostBucket<'h>> {
        let name = name_of(host);
        if self.0.iter().any(|own| own.eq_ignore_ascii_case(name)) {
            return None;
        }
        let local = local.ip().to_canonical();
        // Only these hosts can end with an address. Formatting it is skipped for the others.
        let may_name_an_address = name.ends_with(|last: char| last.is_ascii_digit() || last == ']');
        if may_name_an_address && labels_in_front(name, &host_of(local)).is_some() {
            return Some(HostBucket::OfAddress);
        }
        let of_names = self.0.iter().filter_map(|own| labels_in_front(name, own));
        let of_loopback = labels_in_front(name, LOOPBACK_NAME).filter(|_| local.is_loopback());
        let labels = of_names.chain(of_loopback).min_by_key(|labels| labels.len())?;
        let is_of_address = name[labels.len() + 1..].parse::<Ipv4Addr>().is_ok() || name.ends_with(']');
        Some(if is_of_address { HostBucket::OfAddress } else { HostBucket::Named(labels) })
    }
}

/// The part of a host in front of a name of this server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HostBucket<'h> {
    /// The name of a bucket, as sent and not validated.
    Named(&'h str),
    /// Something in front of an address, which has no names below it.
    OfAddress,
}

/// Returns the labels in front of `own`, without the dot.
fn labels_in_front<'h>(name: &'h str, own: &str) -> Option<&'h str> {
    let at = name.len().checked_sub(own.len())?;
    let ends_with_own = at > 1
        && name.as_bytes()[at - 1] == b'.'
        && name.as_bytes()[at..].eq_ignore_ascii_case(own.as_bytes());
    // The dot is one byte, so what is in front of it ends at the boundary of a character.
    ends_with_own.then(|| &name[..at - 1])
}

/// Removes the port, and the trailing dot of an absolute name: for resolvers and clients both forms are the same host.
fn name_of(host: &str) -> &str {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    name.strip_suffix('.').unwrap_or(name)
}

/// Formats an address as in a `Host` header. An IPv4 address that an IPv6 socket sees is written as IPv4.
fn host_of(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::{HostBucket, ServerHosts};
    use std::net::SocketAddr;

    fn own(configured: &[&str], bound: &str) -> ServerHosts {
        let configured = configured.iter().map(|host| (*host).to_owned()).collect();
        ServerHosts::new(configured, bound.parse().expect("an address"))
    }

    impl ServerHosts {
        fn is_virtual_hosted(&self, host: &str, local: SocketAddr) -> bool {
            self.bucket_in(host, local).is_some()
        }
    }

    #[test]
    fn bucket_is_what_is_in_front_of_the_longest_name() {
        let hosts = own(&["example.org", "s3.example.org", "192.0.2.7"], "[::]:7600");
        let local = "127.0.0.1:7600".parse().expect("an address");
        for (host, bucket) in [
            ("photos.s3.example.org", "photos"),
            ("a.b.s3.example.org:7600", "a.b"),
            ("Photos.S3.Example.org.", "Photos"),
            ("photos.example.org", "photos"),
            ("a.s4.example.org", "a.s4"),
            ("photos.localhost:7600", "photos"),
            ("..s3.example.org", "."),
            ("\u{e4}.example.org", "\u{e4}"),
        ] {
            assert_eq!(hosts.bucket_in(host, local), Some(HostBucket::Named(bucket)), "{host}");
        }
        for host in ["b.127.0.0.1:7600", "b.192.0.2.7"] {
            assert_eq!(hosts.bucket_in(host, local), Some(HostBucket::OfAddress), "{host}");
        }
        let local = "[::1]:7600".parse().expect("an address");
        assert_eq!(hosts.bucket_in("b.[::1]:7600", local), Some(HostBucket::OfAddress));
    }

    #[test]
    fn label_in_front_of_a_server_name_is_virtual_hosted() {
        let hosts = own(&["s3.example.org"], "192.0.2.7:7600");
        let local = "192.0.2.7:7600".parse().expect("an address");
        for host in ["b.s3.example.org", "B.S3.Example.Org:7600", "x.192.0.2.7:7600", "a.b.s3.example.org"] {
            assert!(hosts.is_virtual_hosted(host, local), "{host}");
        }
        for host in
            ["s3.example.org", "192.0.2.7:7600", "xs3.example.org", ".s3.example.org", "other.org", ""]
        {
            assert!(!hosts.is_virtual_hosted(host, local), "{host}");
        }
        // `localhost` is a name of this server on loopback connections only.
        assert!(!hosts.is_virtual_hosted("b.localhost", local));
    }

    /// A server on 127.0.0.1 knew its address but not the name `localhost`, so that `DELETE /photos` to
    /// `name.localhost` deleted the bucket `photos` instead of an object. On loopback connections the name is valid
    /// whatever address the listener is bound to.
    #[test]
    fn localhost_is_a_server_name_on_loopback() {
        for (bound, local) in [
            ("127.0.0.1:7600", "127.0.0.1:7600"),
            ("0.0.0.0:7600", "127.0.0.1:7600"),
            ("[::]:7600", "[::1]:7600"),
            ("[::]:7600", "[::ffff:127.0.0.1]:7600"),
        ] {
            let (hosts, local) = (own(&[], bound), local.parse().expect("an address"));
            for host in ["name.localhost:7700", "Name.LocalHost", "name.localhost."] {
                assert!(hosts.is_virtual_hosted(host, local), "{bound} {host}");
            }
            for host in
                ["localhost", "localhost:7700", "localhost.:7700", "notlocalhost", "127.0.0.1", "[::1]:80"]
            {
                assert!(!hosts.is_virtual_hosted(host, local), "{bound} {host}");
            }
        }
        let mapped = "[::ffff:127.0.0.1]:7600".parse().expect("an address");
        assert!(own(&[], "[::]:7600").is_virtual_hosted("x.127.0.0.1:7600", mapped));
    }

    /// `x.127.0.0.1.:7700` names the same host as `x.127.0.0.1:7700`, but was not recognized because of its dot.
    #[test]
    fn trailing_dot_and_port_are_ignored() {
        let hosts = own(&["s3.example.org.", "store.lan:7600", ":7600"], "127.0.0.1:7600");
        let local = "127.0.0.1:7600".parse().expect("an address");
        for host in
            ["x.127.0.0.1.:7700", "b.s3.example.org", "b.s3.example.org.:1", "b.store.lan", "b.store.lan."]
        {
            assert!(hosts.is_virtual_hosted(host, local), "{host}");
        }
        for host in ["127.0.0.1.:7700", "s3.example.org.", "store.lan.:7600", "other."] {
            assert!(!hosts.is_virtual_hosted(host, local), "{host}");
        }
    }

    /// With `example.org` and `s3.example.org` both configured, the second was refused as a bucket of the first.
    #[test]
    fn configured_name_is_not_a_bucket_of_a_shorter_one() {
        let hosts = own(&["example.org", "s3.example.org", "store.localhost"], "127.0.0.1:7600");
        let local = "127.0.0.1:7600".parse().expect("an address");
        for host in ["s3.example.org:7600", "S3.Example.org.", "store.localhost:7600"] {
            assert!(!hosts.is_virtual_hosted(host, local), "{host}");
        }
        for host in ["b.s3.example.org", "b.example.org", "b.store.localhost"] {
            assert!(hosts.is_virtual_hosted(host, local), "{host}");
        }
    }
}
