//! The rules for targets, and the judgement of schemes and addresses.

use std::fmt;
use std::net::{IpAddr, SocketAddr, UdpSocket};

use super::addresses::{self, RefusedAddress};
use super::url::{Host, TargetUrl, UrlError};

/// The rules for targets. The default allows HTTPS to public addresses.
#[derive(Clone, Debug, Default)]
pub struct TargetPolicy {
    /// `webhooks.allow_http`: whether `http` is allowed as well.
    pub allow_http: bool,
    /// `webhooks.allow_private_networks`: whether loopback, private, shared and unique local addresses are allowed.
    pub allow_private_networks: bool,
    /// The listeners of this server. A delivery never goes there, whatever the settings.
    pub own_listeners: Vec<SocketAddr>,
}

/// The reason why a target was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetRefused {
    /// `http`, although `webhooks.allow_http` is off.
    Http,
    /// An address that is not allowed.
    Address(RefusedAddress),
    /// A listener of this server.
    OwnListener(SocketAddr),
}

/// The reason why a webhook cannot be created with a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidTarget {
    /// The URL is not one of a target.
    Url(UrlError),
    /// The target is not allowed.
    Refused(TargetRefused),
}

/// Parses a target and judges what is known of it without a look-up: the scheme and a literal address.
///
/// # Errors
/// The URL is not valid, or the target is not allowed. The message says why, and which setting would allow it.
pub fn check_at_creation(url: &str, policy: &TargetPolicy) -> Result<TargetUrl, InvalidTarget> {
    let target = TargetUrl::parse(url).map_err(InvalidTarget::Url)?;
    policy.judge_scheme(&target).map_err(InvalidTarget::Refused)?;
    if let Host::Address(address) = target.host {
        policy.judge(SocketAddr::new(address, target.port)).map_err(InvalidTarget::Refused)?;
    }
    Ok(target)
}

impl TargetPolicy {
    /// Judges the scheme of a target.
    pub(crate) fn judge_scheme(&self, target: &TargetUrl) -> Result<(), TargetRefused> {
        if target.is_https() || self.allow_http { Ok(()) } else { Err(TargetRefused::Http) }
    }

    /// Judges an address that a connection would go to.
    ///
    /// # Errors
    /// Deliveries must not go there.
    pub fn judge(&self, address: SocketAddr) -> Result<(), TargetRefused> {
        addresses::judge(address.ip(), self.allow_private_networks).map_err(TargetRefused::Address)?;
        let canonical = SocketAddr::new(addresses::canonical(address.ip()), address.port());
        let is_own = self.own_listeners.iter().any(|listener| reaches(canonical, *listener));
        if is_own { Err(TargetRefused::OwnListener(address)) } else { Ok(()) }
    }
}

/// Returns whether a connection to the address reaches the listener.
fn reaches(address: SocketAddr, listener: SocketAddr) -> bool {
    let listens_at = addresses::canonical(listener.ip());
    address.port() == listener.port()
        && (address.ip() == listens_at || listens_at.is_unspecified() && is_of_this_host(address.ip()))
}

/// Returns whether an address belongs to an interface of this host: then, and only then, a socket can be bound to it.
fn is_of_this_host(address: IpAddr) -> bool {
    address.is_loopback() || UdpSocket::bind((address, 0)).is_ok()
}

impl fmt::Display for TargetRefused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http => {
                formatter.write_str("the scheme must be https; webhooks.allow_http = true allows http")
            }
            Self::Address(refused) => refused.fmt(formatter),
            Self::OwnListener(address) => {
                write!(formatter, "{address} is a listener of this server, which is never allowed")
            }
        }
    }
}

impl std::error::Error for TargetRefused {}

impl fmt::Display for InvalidTarget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(error) => error.fmt(formatter),
            Self::Refused(refused) => refused.fmt(formatter),
        }
    }
}

impl std::error::Error for InvalidTarget {}

#[cfg(test)]
mod tests {
    use super::{InvalidTarget, TargetPolicy, TargetRefused, check_at_creation};

    fn message(url: &str, policy: &TargetPolicy) -> String {
        check_at_creation(url, policy).map_or_else(|error| error.to_string(), |target| target.to_string())
    }

    #[test]
    fn a_refusal_at_creation_names_the_address_the_reason_and_the_setting() {
        let strict = TargetPolicy::default();
        let http = TargetPolicy { allow_http: true, ..strict.clone() };
        let all = TargetPolicy { allow_private_networks: true, ..http.clone() };
        for (url, policy, expected) in [
            (
                "http://example.com/",
                &strict,
                "the scheme must be https; webhooks.allow_http = true allows http",
            ),
            ("http://example.com/", &http, "http://example.com/"),
            (
                "https://127.1/",
                &strict,
                "127.0.0.1 is a loopback address; webhooks.allow_private_networks = true allows it",
            ),
            (
                "https://0x7f.1/",
                &strict,
                "127.0.0.1 is a loopback address; webhooks.allow_private_networks = true allows it",
            ),
            ("http://127.0.0.1:9000/x", &all, "http://127.0.0.1:9000/x"),
            (
                "https://2852039166/",
                &all,
                "169.254.169.254 is the address of a cloud metadata service, which is never allowed",
            ),
            ("https://[fe80::1]/", &all, "fe80::1 is a link-local address, which is never allowed"),
            ("https://0/", &all, "0.0.0.0 is an unspecified address, which is never allowed"),
            // Names are judged at every attempt, not at creation.
            ("https://localhost/", &strict, "https://localhost/"),
        ] {
            assert_eq!(message(url, policy), expected, "{url}");
        }
    }

    #[test]
    fn deliveries_never_go_to_our_own_listeners() {
        let own_listeners = ["127.0.0.1:7600", "0.0.0.0:7601", "[::1]:7602", "[::]:7603"]
            .map(|text| text.parse().expect("an address"))
            .to_vec();
        let policy = TargetPolicy { allow_http: true, allow_private_networks: true, own_listeners };
        for url in [
            "http://127.0.0.1:7600/",
            "http://[::ffff:127.0.0.1]:7600/",
            "http://[64:ff9b::127.0.0.1]:7600/",
            "http://127.0.0.1:7601/",
            "http://127.9.9.9:7601/",
            "http://[::1]:7602/",
            "http://[::1]:7603/",
            "http://127.0.0.1:7603/",
        ] {
            let refused = check_at_creation(url, &policy);
            assert!(
                matches!(refused, Err(InvalidTarget::Refused(TargetRefused::OwnListener(_)))),
                "{url}: {refused:?}"
            );
        }
        for url in [
            "http://127.0.0.1:7602/",
            "http://127.0.0.2:7600/",
            "http://192.168.255.254:7601/",
            "http://127.0.0.1:7604/",
        ] {
            assert_eq!(message(url, &policy), url);
        }
    }
}
