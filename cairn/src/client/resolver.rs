//! Looks up addresses of servers, and remembers them for a while.
//!
//! The HTTP client looks a name up for each request, also for one on a connection that is open, and starts a thread for that
//! so that the lookup can time out. A command that sends many small requests would start as many threads.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use cairn_sync::Mutex;
use ureq::Error;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

/// The time for which the addresses of a name are used.
const KEPT: Duration = Duration::from_secs(10);

/// The addresses of the server that was asked last.
#[derive(Debug, Default)]
pub(super) struct KeepingResolver {
    names: DefaultResolver,
    last: Mutex<Option<Known>>,
}

#[derive(Debug)]
struct Known {
    authority: String,
    addresses: Vec<SocketAddr>,
    at: Instant,
}

impl KeepingResolver {
    /// Returns what needs no lookup: an address, or a name that was looked up just now.
    fn known(&self, uri: &Uri) -> Option<Vec<SocketAddr>> {
        let authority = uri.authority()?;
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = host.parse::<IpAddr>() {
            let default = if uri.scheme_str() == Some("https") { 443 } else { 80 };
            return Some(vec![SocketAddr::new(address, authority.port_u16().unwrap_or(default))]);
        }
        let last = self.last.lock();
        let known = last.as_ref()?;
        let is_valid = known.authority == authority.as_str() && known.at.elapsed() < KEPT;
        is_valid.then(|| known.addresses.clone())
    }
}

impl Resolver for KeepingResolver {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        if let Some(addresses) = self.known(uri) {
            let mut found = self.empty();
            addresses.into_iter().for_each(|address| found.push(address));
            return Ok(found);
        }
        let found = self.names.resolve(uri, config, timeout)?;
        if let Some(authority) = uri.authority() {
            let known = Known {
                authority: authority.as_str().to_owned(),
                addresses: found.iter().copied().collect(),
                at: Instant::now(),
            };
            *self.last.lock() = Some(known);
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_names_of_just_now_need_no_lookup() {
        let resolver = KeepingResolver::default();
        let known = |uri: &'static str| resolver.known(&Uri::from_static(uri));
        assert_eq!(known("http://127.0.0.1:9000/a"), Some(vec![SocketAddr::from(([127, 0, 0, 1], 9000))]));
        assert_eq!(known("https://[::1]/a"), Some(vec!["[::1]:443".parse().expect("an address")]));
        assert_eq!(known("http://store:9000/a"), None);
        let (authority, address) = ("store:9000".to_owned(), SocketAddr::from(([10, 0, 0, 1], 9000)));
        let now = Instant::now();
        let addresses = vec![address];
        *resolver.last.lock() = Some(Known { authority, addresses, at: now });
        assert_eq!(known("http://store:9000/b"), Some(vec![address]));
        assert_eq!(known("http://store:9001/b"), None);
        if let Some(earlier) = now.checked_sub(KEPT) {
            resolver.last.lock().as_mut().expect("known").at = earlier;
            assert_eq!(known("http://store:9000/b"), None);
        }
    }
}
