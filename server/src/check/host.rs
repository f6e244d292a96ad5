//! Checks the kernel, io_uring and the resource limits of the process.

use rustix::process::{Resource, getrlimit};

use super::Finding;
use crate::config::{Settings, bytes_text};
use crate::host::open_files::possible_with;

pub(super) fn kernel() -> Finding {
    match cairn_net::check_kernel() {
        Ok(Some(release)) => Finding::ok(format!("Linux {release}")),
        Ok(None) => Finding::warning("its version cannot be read from /proc", "mount /proc"),
        Err(error) => Finding::refused(error),
    }
}

pub(super) fn io_uring() -> Finding {
    match cairn_net::check_io_uring() {
        Ok(()) => Finding::ok("this process may use it"),
        Err(error) => Finding::refused(error),
    }
}

pub(super) fn locked_memory() -> Finding {
    match cairn_net::check_memlock() {
        Ok(Some(limit)) => Finding::ok(format!("up to {} may be locked", bytes_text(limit))),
        Ok(None) => Finding::ok("no limit"),
        Err(error) => Finding::refused(error),
    }
}

/// Checks the hard limit, because the start raises the soft limit to it.
pub(super) fn open_files(settings: &Settings) -> Finding {
    let wanted = settings.server.connections_max;
    match getrlimit(Resource::Nofile).maximum {
        Some(limit) if possible_with(limit) < wanted => Finding::warning(
            format!("limit {limit}, enough for {} of {wanted} connections", possible_with(limit)),
            "raise the hard limit (LimitNOFILE, ulimit -Hn), or lower server.connections_max",
        ),
        Some(limit) => Finding::ok(format!("limit {limit}, enough for {wanted} connections")),
        None => Finding::ok("no limit"),
    }
}
