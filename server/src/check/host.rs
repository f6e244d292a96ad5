//! Checks the kernel, io_uring and the resource limits of the process.

use rustix::process::{Resource, getrlimit};

use super::Finding;
use crate::budget;
use crate::config::{Settings, bytes_text};
use crate::host::open_files::Connections;
use crate::memory_sizes::{CONSOLE_CONNECTIONS_MAX, MANAGEMENT_CONNECTIONS_MAX};

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
    let limit = getrlimit(Resource::Nofile).maximum;
    let configured = Connections {
        data: settings.server.connections_max,
        management: MANAGEMENT_CONNECTIONS_MAX,
        console: CONSOLE_CONNECTIONS_MAX,
    };
    let Ok(found) = cairn_engine::preflight_store(&settings.server.data_dir) else {
        return Finding::warning("not compared: the store cannot be read", "fix the store first");
    };
    // A fault of the memory is reported by its own check.
    let (users, wanted) = budget::of_settings(settings, found).map_or_else(
        |_| {
            (
                (settings.server.executors.unwrap_or(1), settings.storage.slices.unwrap_or(1).into()),
                configured,
            )
        },
        |budget| {
            ((budget.executors, budget.slices), Connections { data: budget.connections_max, ..configured })
        },
    );
    let Connections { data: wanted_data, .. } = wanted;
    match (limit, budget::connections_within(settings, found, limit, users, wanted)) {
        (_, Err(error)) => Finding::refused(error),
        (Some(limit), Ok(possible)) if possible.data < wanted_data => Finding::warning(
            format!("limit {limit}, enough for {} of {wanted_data} connections", possible.data),
            "raise the hard limit (LimitNOFILE, ulimit -Hn), or lower server.connections_max",
        ),
        (Some(limit), Ok(_)) => Finding::ok(format!("limit {limit}, enough for {wanted_data} connections")),
        (None, Ok(_)) => Finding::ok("no limit"),
    }
}
