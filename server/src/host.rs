//! What the process asks of the host: file descriptors for its connections, and ports that nobody else has.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors beside connections: volumes on every executor, LMDB, rings, listeners.
const DESCRIPTORS_OWN: u64 = 1024;

/// Raises the limit on open descriptors as far as an unprivileged process may, and gives the connections that then can
/// be open: those configured, or as many as there are descriptors for.
pub(crate) fn connections_possible(configured: usize) -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(target: "service", %error, "the limit on open files could not be raised");
    }
    let Some(descriptors) = getrlimit(Resource::Nofile).current else { return configured };
    let possible = possible_with(descriptors);
    if possible < configured {
        tracing::warn!(
            target: "service",
            descriptors,
            connections_max = possible,
            "too few files may be open for server.connections_max, which is lowered; raise the hard limit \
             (LimitNOFILE, ulimit -Hn)"
        );
    }
    configured.min(possible)
}

/// Connections that so many descriptors are enough for. On a host with very few of them, half are for connections.
pub(crate) fn possible_with(descriptors: u64) -> usize {
    let possible = descriptors.saturating_sub(DESCRIPTORS_OWN).max(descriptors / 2).max(1);
    usize::try_from(possible).unwrap_or(usize::MAX)
}

/// How long a start waits for a port. The kernel takes a killed process's rings apart after it has reaped the process, and
/// its listeners with them: for some tenths of a second, longer under load, the port of a server that is gone is taken.
pub(crate) const PORT_PATIENCE: Duration = Duration::from_secs(10);
const PORT_RETRY: Duration = Duration::from_millis(50);

/// Refuses a port that another process listens on and still does after `patience`. The listeners proper share their
/// port among executors (`SO_REUSEPORT`), and would silently share it with another server of the same user.
pub(crate) fn refuse_taken(address: SocketAddr, patience: Duration) -> io::Result<()> {
    if address.port() == 0 {
        return Ok(());
    }
    let give_up = Instant::now() + patience;
    loop {
        match TcpListener::bind(address) {
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && Instant::now() < give_up => {
                #[expect(clippy::disallowed_methods, reason = "executors have not started yet")]
                std::thread::sleep(PORT_RETRY);
            }
            Err(error) => {
                return Err(io::Error::new(error.kind(), format!("cannot listen on {address}: {error}")));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_left_for_the_store() {
        assert_eq!(possible_with(20_000), 20_000 - 1024);
        assert_eq!(possible_with(1024), 512);
        assert_eq!(possible_with(0), 1);
    }

    #[test]
    fn a_port_that_somebody_listens_on_is_refused_by_name() {
        let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = taken.local_addr().unwrap();
        let refused = refuse_taken(address, Duration::from_millis(120));
        assert!(refused.unwrap_err().to_string().contains(&address.to_string()));
    }

    /// Another process may take a port in the moment after it was let go, as happened on a busy machine: several are tried.
    #[test]
    fn a_port_that_was_let_go_is_not_refused() {
        let let_go = || TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap();
        assert!((0..20).any(|_| refuse_taken(let_go(), Duration::ZERO).is_ok()));
    }
}
