//! Description of the store of webhooks and their deliveries.

use crate::limits::{HEADROOM, MAP_BYTES};
use cairn_tables::StoreSchema;

/// The store of webhooks and their deliveries.
pub(crate) static SCHEMA: StoreSchema = StoreSchema {
    name: "webhooks",
    fresh_start: "start without webhooks and their deliveries",
    without_space: "changes are refused, and deliveries wait",
    after_failure: "nothing is delivered",
    identity_table: "store",
    map_bytes: MAP_BYTES,
    tables_max: 16,
    // A damaged delivery is left out, and does not prevent a start.
    compared_bytes_max: 0,
    headroom: HEADROOM,
};
