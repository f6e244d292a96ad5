//! Description of the store of links.

use crate::limits::{HEADROOM, MAP_BYTES};
use cairn_tables::StoreSchema;

/// The store of links.
pub(crate) static SCHEMA: StoreSchema = StoreSchema {
    name: "shares and embeds",
    fresh_start: "start without shares and embeds",
    without_space: "changes are refused",
    after_failure: "nothing is changed",
    identity_table: "store",
    map_bytes: MAP_BYTES,
    tables_max: 16,
    compared_bytes_max: 64 << 20,
    headroom: HEADROOM,
};
