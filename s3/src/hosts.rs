//! The names that this server is reached by, and the `Host` headers that put a bucket in front of one of them.
//!
//! Virtual-hosted addressing is not built, and it must be refused rather than overlooked: taken for path style, a
//! request for `bucket.localhost/key` would create or delete a bucket that is named by the key. Own names are the
//! configured ones, the address that the listener is bound to, the address that the connection came in on, and
//! `localhost` for connections over loopback. Any other host is taken as it comes, for proxies and aliases are many.

use std::net::{IpAddr, SocketAddr};

/// The name that every host has for itself (RFC 6761 section 6.3).
const LOOPBACK_NAME: &str = "localhost";

/// The names that do not depend on the connection.
#[derive(Debug)]
pub(crate) struct OwnHosts(Vec<String>);

impl OwnHosts {
    /// The configured names, with or without a port, and the bound address.
    pub(crate) fn new(configured: Vec<String>, bound: SocketAddr) -> Self {
        let address = (!bound.ip().is_unspecified()).then(|| host_of(bound.ip()));
        let mut hosts: Vec<String> =
            configured.iter().map(|host| name_of(host).to_owned()).chain(address).collect();
        hosts.retain(|host| !host.is_empty());
        Self(hosts)
    }

    /// Whether `host`, the value of a `Host` header on a connection to `local`, has a label in front of an own name.
    /// A host that is itself an own name is never virtual-hosted, though a shorter name may be its end.
    pub(crate) fn is_virtual_hosted(&self, host: &str, local: SocketAddr) -> bool {
        let name = name_of(host);
        if self.0.iter().any(|own| own.eq_ignore_ascii_case(name)) {
            return false;
        }
        let local = local.ip().to_canonical();
        // Only these hosts can end with an address; the others are spared the making of its text.
        let may_name_an_address = name.ends_with(|last: char| last.is_ascii_digit() || last == ']');
        self.0.iter().any(|own| has_label_in_front(name, own))
            || (local.is_loopback() && has_label_in_front(name, LOOPBACK_NAME))
            || (may_name_an_address && has_label_in_front(name, &host_of(local)))
    }
}

fn has_label_in_front(name: &str, own: &str) -> bool {
    let Some(at) = name.len().checked_sub(own.len()) else { return false };
    at > 1 && name.as_bytes()[at - 1] == b'.' && name.as_bytes()[at..].eq_ignore_ascii_case(own.as_bytes())
}

/// A host without its port and without the dot that makes a name absolute: resolvers and clients take both forms for
/// the same host.
fn name_of(host: &str) -> &str {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    name.strip_suffix('.').unwrap_or(name)
}

/// An address as it stands in a `Host` header. An IPv4 address that an IPv6 socket sees is written as IPv4.
fn host_of(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::OwnHosts;

    fn own(configured: &[&str], bound: &str) -> OwnHosts {
        let configured = configured.iter().map(|host| (*host).to_owned()).collect();
        OwnHosts::new(configured, bound.parse().expect("an address"))
    }

    #[test]
    fn only_a_label_in_front_of_an_own_name_is_virtual_hosted() {
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
        // Away from loopback it is no name of this server's.
        assert!(!hosts.is_virtual_hosted("b.localhost", local));
    }

    /// A server on 127.0.0.1 knew its address and not the name that every client writes for it, so that
    /// `DELETE /photos` to `name.localhost` deleted the bucket `photos` instead of the object. The same name is valid
    /// whatever the listener is bound to, as long as the connection is one over loopback.
    #[test]
    fn localhost_is_an_own_name_of_every_loopback_connection() {
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

    /// `x.127.0.0.1.:7700` names the same host as `x.127.0.0.1:7700`, and passed for another one because of its dot.
    #[test]
    fn a_trailing_dot_and_a_port_change_no_name() {
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
    fn a_configured_name_is_no_bucket_of_a_shorter_one() {
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
