//! Checks the memory limit, and shows how it is divided.

use super::Finding;
use crate::budget::{self, Budget, mebibytes};
use crate::config::{Settings, keys};

pub(super) fn memory(settings: &Settings) -> Finding {
    let Ok(found) = cairn_engine::preflight_store(&settings.server.data_dir) else {
        return Finding::warning("cannot be divided because the store cannot be read", "fix the store first");
    };
    let budget = match budget::of_settings(settings, found) {
        Err(error) => return Finding::refused(error),
        Ok(budget) => budget,
    };
    let Budget { limit, executors, slices, cache_bytes, connections_max, .. } = budget;
    let mut message = format!(
        "{} (set by {}): {executors} executors, {} cache, {connections_max} connections",
        mebibytes(limit),
        budget::limit_source(settings),
        mebibytes(cache_bytes)
    );
    let usual = budget::slices_of_new_store();
    // The number of slices never changes, however much memory is available later.
    if found.is_none() && settings.storage.slices.is_none() && slices < usual {
        message
            .push_str(&format!("; a new store gets {slices} slices permanently ({usual} with more memory)"));
    }
    let wanted = settings.server.connections_max;
    if connections_max < wanted && settings.values.is_given(&keys::CONNECTIONS_MAX) {
        let fix = format!(
            "allow more memory, or lower server.connections_max (now {wanted}) or storage.cache_bytes"
        );
        return Finding::warning(message, fix);
    }
    Finding::ok(message)
}
