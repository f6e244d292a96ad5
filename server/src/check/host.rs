//! The kernel, io_uring and the limits of the process.

use rustix::process::{Resource, getrlimit};

use super::Seen;
use crate::config::{Settings, bytes_text};
use crate::host::possible_with;

pub(super) fn kernel() -> Seen {
    match cairn_net::probe_kernel() {
        Ok(Some(release)) => Seen::ok(format!("Linux {release}")),
        Ok(None) => Seen::warning("/proc does not tell its version", "mount /proc"),
        Err(error) => Seen::refused(error),
    }
}

pub(super) fn io_uring() -> Seen {
    match cairn_net::probe_io_uring() {
        Ok(()) => Seen::ok("this process may use it"),
        Err(error) => Seen::refused(error),
    }
}

pub(super) fn locked_memory() -> Seen {
    match cairn_net::probe_memlock() {
        Ok(Some(limit)) => Seen::ok(format!("{} may be locked", bytes_text(limit))),
        Ok(None) => Seen::ok("without limit"),
        Err(error) => Seen::refused(error),
    }
}

/// The hard limit counts: the start raises the other to it.
pub(super) fn open_files(settings: &Settings) -> Seen {
    let wanted = settings.server.connections_max;
    match getrlimit(Resource::Nofile).maximum {
        Some(limit) if possible_with(limit) < wanted => Seen::warning(
            format!("{limit} may be open, enough for {} of {wanted} connections", possible_with(limit)),
            "raise the hard limit (LimitNOFILE, ulimit -Hn), or lower server.connections_max",
        ),
        Some(limit) => Seen::ok(format!("{limit} may be open, enough for {wanted} connections")),
        None => Seen::ok("without limit"),
    }
}
