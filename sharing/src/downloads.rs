//! Recent downloads: the requests of a visitor within an hour count as one.

use crate::limits::{DOWNLOAD_PERIOD, DOWNLOADS_REMEMBERED_MAX};
use crate::types::id::LinkId;
use crate::types::link::LinkKind;
use cairn_model::client_network;
use quick_cache::sync::Cache;
use std::net::IpAddr;
use std::time::Instant;

/// The identity of a visitor of a link.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Visitor {
    /// The client's address; all addresses of an IPv6 network of 64 bits are one.
    network: IpAddr,
    /// The visitor's unlock of a share with a password: several visitors may share an address.
    unlock: Option<[u8; 16]>,
}

impl Visitor {
    /// Returns the visitor with this address, and with this unlock if there is one.
    #[must_use]
    pub fn new(client: IpAddr, unlock: Option<[u8; 16]>) -> Self {
        Self { network: client_network(client), unlock }
    }
}

/// Recent downloads. When there are too many, some are forgotten, and counted again if they continue.
pub(crate) struct RecentDownloads(Cache<(LinkKind, LinkId, Visitor), Instant>);

impl Default for RecentDownloads {
    fn default() -> Self {
        Self(Cache::new(DOWNLOADS_REMEMBERED_MAX))
    }
}

impl RecentDownloads {
    /// Returns whether a download of this visitor was counted within the last hour.
    pub(crate) fn contains(&self, kind: LinkKind, link: LinkId, visitor: Visitor, now: Instant) -> bool {
        let counted = self.0.get(&(kind, link, visitor));
        counted.is_some_and(|at| now.saturating_duration_since(at) < DOWNLOAD_PERIOD)
    }

    /// Remembers a counted download.
    pub(crate) fn insert(&self, kind: LinkKind, link: LinkId, visitor: Visitor, now: Instant) {
        self.0.insert((kind, link, visitor), now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_download_is_remembered_for_an_hour() {
        let (downloads, now) = (RecentDownloads::default(), Instant::now());
        let visitor = |address: &str, unlock| Visitor::new(address.parse().expect("an address"), unlock);
        let (link, first) = (LinkId([1; 16]), visitor("2001:db8::1", None));
        downloads.insert(LinkKind::Share, link, first, now);
        let contains = |kind, link, visitor, at| downloads.contains(kind, link, visitor, at);
        assert!(contains(LinkKind::Share, link, visitor("2001:db8::2", None), now));
        assert!(!contains(LinkKind::Embed, link, first, now));
        assert!(!contains(LinkKind::Share, LinkId([2; 16]), first, now));
        assert!(!contains(LinkKind::Share, link, visitor("2001:db8::1", Some([1; 16])), now));
        assert!(!contains(LinkKind::Share, link, first, now + DOWNLOAD_PERIOD));
    }
}
