//! The deployment-wide policy of sharing, and the URLs of links.

use crate::error::LinkError;
use crate::types::link::LinkKind;
use crate::types::token::CapabilityToken;
use cairn_model::Timestamp;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

const DAY_MILLIS: u64 = 86_400_000;

/// Section `sharing` of the configuration.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct LinkPolicy {
    /// Whether embeds can be created and used.
    pub embeds_enabled: bool,
    /// Longest lifetime of a link, in days.
    pub maximum_lifetime_days: Option<u64>,
    /// Whether every link must expire.
    pub require_expiration: bool,
    /// The base URL of shares: scheme, host and port, without a slash at its end.
    pub share_base_url: Option<String>,
    /// The base URL of embeds, in the same form.
    pub embed_base_url: Option<String>,
}

impl LinkPolicy {
    /// Checks the expiry of a link that is created or changed at `now`.
    pub(crate) fn check_expiry(
        &self,
        created_at: Timestamp,
        expires_at: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<(), LinkError> {
        match (expires_at, self.maximum_lifetime_days) {
            (None, _) if self.require_expiration => Err(LinkError::ExpirationRequired),
            (None, Some(days)) => Err(LinkError::LifetimeTooLong { days }),
            (None, None) => Ok(()),
            (Some(end), _) if end <= now => {
                Err(LinkError::Invalid("expires_at must be in the future".to_owned()))
            }
            (Some(end), Some(days)) if end.0 - created_at.0.min(end.0) > days.saturating_mul(DAY_MILLIS) => {
                Err(LinkError::LifetimeTooLong { days })
            }
            (Some(_), _) => Ok(()),
        }
    }

    fn base_url(&self, kind: LinkKind) -> Option<&str> {
        match kind {
            LinkKind::Share => self.share_base_url.as_deref(),
            LinkKind::Embed => self.embed_base_url.as_deref(),
        }
    }
}

/// A listener, for URLs.
#[derive(Clone, Copy, Debug)]
pub struct ListenerUrl {
    /// The bound address.
    pub address: SocketAddr,
    /// Whether it speaks TLS.
    pub is_secure: bool,
}

impl ListenerUrl {
    /// Returns scheme, host and port. `host` is the header `Host` of a request, which is used if the listener is bound to all
    /// addresses.
    #[must_use]
    pub fn base(&self, host: Option<&str>) -> String {
        let Self { address, is_secure } = self;
        let scheme = if *is_secure { "https" } else { "http" };
        if !address.ip().is_unspecified() {
            return format!("{scheme}://{address}");
        }
        let name = host.map(without_port).filter(|name| !name.is_empty()).unwrap_or("localhost");
        format!("{scheme}://{name}:{}", address.port())
    }
}

/// The listeners that serve links, for URLs without a configured base.
#[derive(Clone, Copy, Debug)]
pub struct ListenerUrls {
    /// The console's listener, or the management plane's if there is no console.
    pub share: ListenerUrl,
    /// The data plane.
    pub embed: ListenerUrl,
}

/// Makes the URLs of links.
#[derive(Debug)]
pub(crate) struct LinkUrls {
    pub(crate) listeners: ListenerUrls,
    warned: [AtomicBool; LinkKind::ALL.len()],
}

impl LinkUrls {
    pub(crate) fn new(listeners: ListenerUrls) -> Self {
        Self { listeners, warned: Default::default() }
    }

    /// Returns the URL of a link. `host` is the header `Host` of the request that asks for it, which is used only if neither a
    /// base URL nor the address of the listener says where clients reach it.
    pub(crate) fn url(
        &self,
        policy: &LinkPolicy,
        kind: LinkKind,
        token: &CapabilityToken,
        host: Option<&str>,
    ) -> String {
        let (listener, path) = match kind {
            LinkKind::Share => (self.listeners.share, "s"),
            LinkKind::Embed => (self.listeners.embed, "e"),
        };
        let base =
            policy.base_url(kind).map_or_else(|| self.listener_base(kind, listener, host), str::to_owned);
        format!("{base}/{path}/{}", token.expose())
    }

    fn listener_base(&self, kind: LinkKind, listener: ListenerUrl, host: Option<&str>) -> String {
        let address = listener.address;
        if address.ip().is_unspecified() && !self.warned[kind.index()].swap(true, Ordering::Relaxed) {
            let (kind, port) = (kind.name(), address.port());
            tracing::warn!(target: "service", "sharing.{kind}_base_url is not set, and port {port} listens on all addresses: URLs of {kind}s contain the host of the request that creates them");
        }
        listener.base(host)
    }
}

/// Returns the host of an authority, without its port. An IPv6 address keeps its brackets.
fn without_port(authority: &str) -> &str {
    match authority.rfind([':', ']']) {
        Some(at) if authority[at..].starts_with(':') => &authority[..at],
        _ => authority,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_000 * DAY_MILLIS);

    fn days(count: u64) -> Option<Timestamp> {
        Some(Timestamp(NOW.0 + count * DAY_MILLIS))
    }

    #[test]
    fn expiry_follows_the_policy() {
        let check = |policy: &LinkPolicy, end| policy.check_expiry(NOW, end, NOW);
        let open = LinkPolicy::default();
        assert_eq!(check(&open, None), Ok(()));
        assert_eq!(check(&open, days(100_000)), Ok(()));
        assert!(matches!(check(&open, Some(NOW)), Err(LinkError::Invalid(_))));
        let required = LinkPolicy { require_expiration: true, ..LinkPolicy::default() };
        assert_eq!(check(&required, None), Err(LinkError::ExpirationRequired));
        assert_eq!(check(&required, days(1)), Ok(()));
        let limited = LinkPolicy { maximum_lifetime_days: Some(7), ..LinkPolicy::default() };
        assert_eq!(check(&limited, days(7)), Ok(()));
        assert_eq!(check(&limited, days(8)), Err(LinkError::LifetimeTooLong { days: 7 }));
        assert_eq!(check(&limited, None), Err(LinkError::LifetimeTooLong { days: 7 }));
        let later = Timestamp(NOW.0 + 6 * DAY_MILLIS);
        assert!(limited.check_expiry(NOW, days(8), later).is_err(), "it counts from the creation");
    }

    #[test]
    fn urls_have_the_configured_base_or_the_address_of_the_listener() {
        let token = CapabilityToken::generate().expect("random bytes");
        let text = token.expose();
        let listener = |address: &str, is_secure| ListenerUrl {
            address: address.parse().expect("an address"),
            is_secure,
        };
        let urls = LinkUrls::new(ListenerUrls {
            share: listener("0.0.0.0:7602", false),
            embed: listener("192.0.2.1:7600", true),
        });
        let mut policy = LinkPolicy::default();
        let share = |policy: &LinkPolicy, host| urls.url(policy, LinkKind::Share, &token, host);
        assert_eq!(share(&policy, Some("files.example:7601")), format!("http://files.example:7602/s/{text}"));
        assert_eq!(share(&policy, Some("[2001:db8::1]")), format!("http://[2001:db8::1]:7602/s/{text}"));
        assert_eq!(share(&policy, None), format!("http://localhost:7602/s/{text}"));
        let embed = urls.url(&policy, LinkKind::Embed, &token, Some("files.example"));
        assert_eq!(embed, format!("https://192.0.2.1:7600/e/{text}"));
        policy.share_base_url = Some("https://share.example".to_owned());
        assert_eq!(share(&policy, Some("files.example")), format!("https://share.example/s/{text}"));
    }
}
