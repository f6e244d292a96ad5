//! The limit on open files, and the connections that it allows.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors for everything but connections: volumes on every executor, LMDB, rings, listeners.
const DESCRIPTORS_RESERVED: u64 = 1024;

/// Raises the soft limit on open descriptors to the hard limit. Returns how many connections can be open: the configured
/// number, or as many as there are descriptors for.
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
            "server.connections_max is lowered, because the limit on open files is too low; raise the hard limit \
             (LimitNOFILE, ulimit -Hn)"
        );
    }
    configured.min(possible)
}

/// Returns how many connections this many descriptors allow. With very few descriptors, half are for connections.
pub(crate) fn possible_with(descriptors: u64) -> usize {
    let possible = descriptors.saturating_sub(DESCRIPTORS_RESERVED).max(descriptors / 2).max(1);
    cairn_model::usize_of(possible)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_reserved_for_the_store() {
        assert_eq!(possible_with(20_000), 20_000 - 1024);
        assert_eq!(possible_with(1024), 512);
        assert_eq!(possible_with(0), 1);
    }
}
