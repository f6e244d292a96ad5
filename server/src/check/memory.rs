//! Memory: whether the limit is enough, and what it is divided into.

use super::Seen;
use crate::budget::{self, Budget, mebibytes};
use crate::config::{Settings, keys};
use crate::error::ServeError;

pub(super) fn memory(settings: &Settings) -> Seen {
    let budget = match budget::of_settings(settings) {
        Err(ServeError::Store(_)) => {
            return Seen::warning("cannot be divided without knowing the store", "mend the store first");
        }
        Err(error) => return Seen::refused(error),
        Ok(budget) => budget,
    };
    let Budget { limit, executors, slices, cache_bytes, connections_max, .. } = budget;
    let mut seen = format!(
        "{} by {}: {executors} executors, a cache of {}, {connections_max} connections",
        mebibytes(limit),
        budget::limit_source(settings),
        mebibytes(cache_bytes)
    );
    let usual = budget::slices_of_new_store();
    let is_new = matches!(cairn_engine::examine_store(&settings.server.data_dir), Ok(None));
    // For good, however much memory there is later.
    if is_new && settings.storage.slices.is_none() && slices < usual {
        seen.push_str(&format!("; a new store gets {slices} slices for good, with more memory {usual}"));
    }
    let wanted = settings.server.connections_max;
    if connections_max < wanted && settings.values.is_given(&keys::CONNECTIONS_MAX) {
        let mend = format!(
            "allow more memory, or lower server.connections_max from {wanted} or storage.cache_bytes"
        );
        return Seen::warning(seen, mend);
    }
    Seen::ok(seen)
}
