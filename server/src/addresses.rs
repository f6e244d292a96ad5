//! The addresses of the listeners.

use std::net::SocketAddr;

/// The addresses of the listeners, with the actual ports where port 0 was configured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addresses {
    pub(crate) data: SocketAddr,
    pub(crate) management: SocketAddr,
    pub(crate) console: Option<SocketAddr>,
}

impl Addresses {
    /// Returns all addresses.
    pub(crate) fn all(self) -> impl Iterator<Item = SocketAddr> {
        [self.data, self.management].into_iter().chain(self.console)
    }

    /// Returns how a person would read where the service is ready.
    pub(crate) fn ready_text(self) -> String {
        let Self { data, management, console } = self;
        let console = console.map(|address| format!(", console on {address}")).unwrap_or_default();
        format!("S3 on {data}, management on {management}{console}")
    }
}
