//! Memory: whether the limit is enough, and what it is divided into.

use super::Seen;
use crate::budget::{self, Budget, mebibytes};
use crate::config::Settings;
use crate::memory;

pub(super) fn memory(settings: &Settings) -> Seen {
    match budget::of_settings(settings) {
        Err(error) => Seen::refused(error),
        Ok(Budget { limit, executors, cache_bytes, connections_max, .. }) => {
            let set_by = match settings.server.memory_limit {
                Some(_) => "the configuration".to_owned(),
                None => memory::usable().set_by.to_string(),
            };
            let seen = format!(
                "{} by {set_by}: {executors} executors, a cache of {}, {connections_max} connections",
                mebibytes(limit),
                mebibytes(cache_bytes)
            );
            if connections_max < settings.server.connections_max {
                let wanted = settings.server.connections_max;
                let mend = format!(
                    "allow more memory, or lower server.connections_max from {wanted} or storage.cache_bytes"
                );
                return Seen::warning(seen, mend);
            }
            Seen::ok(seen)
        }
    }
}
