//! The size of a growth step of the volumes.

use crate::limits::{BLOCK_BYTES, BLOCK_UNITS, GROWTH_BYTES_MAX, GROWTH_BYTES_MIN, UNIT_BYTES};

/// Returns the units of a growth step of a slice that has allocated `units` units.
pub(crate) fn growth_step(units: u64) -> u64 {
    (units * UNIT_BYTES / 4).clamp(GROWTH_BYTES_MIN, GROWTH_BYTES_MAX) / BLOCK_BYTES as u64 * BLOCK_UNITS
}
