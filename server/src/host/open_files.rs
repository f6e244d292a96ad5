//! The limit on open files: what the store and the executors need of it, and the connections that it allows.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors of the process: standard streams, the small stores, signals, threads that read `/proc`.
const OF_PROCESS: u64 = 64;
/// Descriptors of an executor: rings, listeners, and what wakes it. It opens every volume besides.
const OF_EXECUTOR: u64 = 24;
/// Descriptors of a slice: its metadata, during a compaction twice, and its commit log. Each volume has one more.
const OF_SLICE: u64 = 12;
/// Descriptors that are open for a moment: deliveries of webhooks, look-ups of names, connections that are being
/// closed. A low limit leaves fewer for them.
const MOMENTARY: u64 = 512;
/// The management plane and the console each get at most one part in this many of the connections.
const PLANE_PART: u64 = 16;
/// The fewest connections of the data plane, the management plane and the console.
const LEAST: Connections = Connections { data: 16, management: 16, console: 6 };

/// Connections of each plane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Connections {
    pub(crate) data: usize,
    pub(crate) management: usize,
    /// 0 without a console.
    pub(crate) console: usize,
}

/// The permanent users of file descriptors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Users {
    pub(crate) executors: usize,
    pub(crate) slices: usize,
    /// Of all slices.
    pub(crate) volumes: usize,
}

impl Users {
    const fn descriptors(self) -> u64 {
        let Self { executors, slices, volumes } = self;
        OF_PROCESS
            + executors as u64 * OF_EXECUTOR
            + slices as u64 * OF_SLICE
            + volumes as u64 * (executors as u64 + 1)
    }
}

/// Raises the soft limit to the hard limit and returns it; `None` means unlimited.
pub(crate) fn raise() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(target: "service", %error, "the limit on open files could not be raised");
    }
    getrlimit(Resource::Nofile).current
}

/// Returns how many of the `wanted` connections can be open.
///
/// # Errors
/// The remedy, if the limit is too low for any useful number.
pub(crate) fn connections_within(
    limit: Option<u64>,
    users: Users,
    wanted: Connections,
) -> Result<Connections, String> {
    let Some(limit) = limit else { return Ok(wanted) };
    let console = if wanted.console > 0 { LEAST.console } else { 0 };
    let least = (LEAST.data + LEAST.management + console) as u64;
    let left = limit.saturating_sub(users.descriptors());
    // With very few descriptors, half of what is left is for connections.
    let all = left.saturating_sub(MOMENTARY).max(left / 2);
    if all < least {
        let Users { executors, slices, .. } = users;
        return Err(format!(
            "the limit of {limit} on open files is too low for {executors} executors and {slices} slices, which need at least \
             {}: raise the hard limit (LimitNOFILE, ulimit -Hn), or lower server.executors",
            users.descriptors() + 2 * least
        ));
    }
    // Visitors of the console take the place of others only where descriptors are short: all planes are hardly ever full at once.
    if all >= (wanted.data + wanted.management) as u64 {
        return Ok(wanted);
    }
    let of_plane =
        |wanted: usize, least: usize| wanted.min(cairn_model::usize_of(all / PLANE_PART).max(least));
    let management = of_plane(wanted.management, LEAST.management);
    let console = of_plane(wanted.console, console);
    let data = wanted.data.min(cairn_model::usize_of(all) - management - console);
    Ok(Connections { data, management, console })
}

#[cfg(test)]
mod tests {
    use super::*;

    const USERS: Users = Users { executors: 2, slices: 1, volumes: 1 };
    const WANTED: Connections = Connections { data: 16_384, management: 1024, console: 4096 };

    #[test]
    fn descriptors_are_left_for_the_store_and_all_planes() {
        let within = |limit| connections_within(Some(limit), USERS, WANTED);
        assert_eq!(connections_within(None, USERS, WANTED), Ok(WANTED));
        assert_eq!(within(524_288), Ok(WANTED));
        assert_eq!(within(20_000), Ok(WANTED));
        assert_eq!(within(16_000), Ok(Connections { data: 13_441, management: 960, console: 960 }));
        assert_eq!(within(1024), Ok(Connections { data: 392, management: 28, console: 28 }));
        let refused = within(150).expect_err("too few");
        assert!(refused.contains("need at least 203") && refused.contains("LimitNOFILE"), "{refused}");
        assert_eq!(within(203), Ok(Connections { data: 16, management: 16, console: 6 }));
    }

    /// The start failed with a volume's path, or the volumes could not be opened under load.
    #[test]
    fn each_executor_opens_each_volume() {
        let many = Users { executors: 16, slices: 64, volumes: 64 };
        assert!(connections_within(Some(1024), many, WANTED).is_err());
        let connections = connections_within(Some(8192), many, WANTED).expect("enough");
        let used = cairn_model::usize_of(many.descriptors())
            + connections.data
            + connections.management
            + connections.console;
        assert!(used <= 8192, "{connections:?}");
    }
}
