//! Extents: runs of units in a volume.

use crate::limits::{BLOCK_BYTES, UNIT_BYTES};

/// A run of units of one volume of a slice.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub(crate) struct Extent {
    /// Number of the volume within its slice.
    pub(crate) volume: u32,
    /// First unit.
    pub(crate) start: u32,
    /// Number of units, at least 1.
    pub(crate) units: u32,
}

impl Extent {
    /// Offset of the first byte in the volume's file.
    pub(crate) const fn offset(&self) -> u64 {
        self.start as u64 * UNIT_BYTES
    }

    /// Length in bytes.
    pub(crate) const fn bytes(&self) -> u64 {
        self.units as u64 * UNIT_BYTES
    }

    /// Address in the slice's flat space of units: volume in the high half. Runs of two volumes never touch, for a
    /// volume has fewer than 2^32 units.
    pub(crate) const fn address(&self) -> u64 {
        ((self.volume as u64) << 32) | self.start as u64
    }

    /// Whether the two have a unit in common.
    pub(crate) const fn overlaps(&self, other: &Self) -> bool {
        self.address() < other.address() + other.units as u64
            && other.address() < self.address() + self.units as u64
    }

    /// The extent of `units` units at a flat address; `None` when it would not fit a volume.
    pub(crate) fn at(address: u64, units: u64) -> Option<Self> {
        let volume = u32::try_from(address >> 32).ok()?;
        let start = u32::try_from(address & 0xFFFF_FFFF).ok()?;
        let units = u32::try_from(units).ok()?;
        start.checked_add(units)?;
        Some(Self { volume, start, units })
    }
}

/// Units that `bytes` bytes take.
pub(crate) const fn units_for(bytes: u64) -> u64 {
    bytes.div_ceil(UNIT_BYTES)
}

/// Blocks that a payload of `bytes` bytes has.
pub(crate) const fn blocks_for(bytes: u64) -> u64 {
    bytes.div_ceil(BLOCK_BYTES as u64)
}

/// Appends `extent`, joining it to the last one when they touch.
pub(crate) fn push_extent(extents: &mut Vec<Extent>, extent: Extent) {
    if let Some(last) = extents.last_mut()
        && last.volume == extent.volume
        && last.start.checked_add(last.units) == Some(extent.start)
        && let Some(units) = last.units.checked_add(extent.units)
    {
        last.units = units;
        return;
    }
    extents.push(extent);
}
