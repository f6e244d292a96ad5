//! Extents: runs of units in a volume.

use crate::limits::{BLOCK_BYTES, UNIT_BYTES};

/// A run of consecutive units of one volume of a slice.
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
    /// Returns units `start` up to `end`, exclusive, of a volume.
    ///
    /// # Panics
    /// If the range is empty.
    pub(crate) const fn between(volume: u32, start: u32, end: u32) -> Self {
        assert!(start < end, "an extent has at least one unit");
        Self { volume, start, units: end - start }
    }

    /// Returns the offset of the first byte in the volume's file.
    pub(crate) const fn offset(&self) -> u64 {
        self.start as u64 * UNIT_BYTES
    }

    /// Returns the length in bytes.
    pub(crate) const fn bytes(&self) -> u64 {
        self.units as u64 * UNIT_BYTES
    }

    /// Returns the address of the first unit in the slice's flat space of units.
    ///
    /// The volume's number is the high half, the unit's number the low half. Runs of two volumes never touch, because
    /// unit 0 of each volume is its header and a volume has fewer than 2^32 units.
    pub(crate) const fn address(&self) -> u64 {
        ((self.volume as u64) << 32) | self.start as u64
    }

    /// Returns the address after the last unit.
    pub(crate) const fn end_address(&self) -> u64 {
        self.address() + self.units as u64
    }

    /// Returns whether the two have a unit in common.
    pub(crate) const fn overlaps(&self, other: &Self) -> bool {
        self.address() < other.end_address() && other.address() < self.end_address()
    }

    /// Returns the extent of `units` units at a flat address.
    ///
    /// # Panics
    /// If that is empty or not within one volume.
    pub(crate) fn at(address: u64, units: u64) -> Self {
        let half = |number: u64| u32::try_from(number).expect("half of an address fits 32 bits");
        let (volume, start) = (half(address >> 32), half(address & u64::from(u32::MAX)));
        let units = u32::try_from(units).expect("a volume has fewer than 2^32 units");
        assert!(units > 0, "an extent has at least one unit");
        assert!(start.checked_add(units).is_some(), "an extent ends within its volume");
        Self { volume, start, units }
    }
}

/// Returns the sum of the extents' units.
pub(crate) fn total_units<'e>(extents: impl IntoIterator<Item = &'e Extent>) -> u64 {
    extents.into_iter().map(|extent| u64::from(extent.units)).sum()
}

/// Returns the number of units that `bytes` bytes take.
pub(crate) const fn units_for(bytes: u64) -> u64 {
    bytes.div_ceil(UNIT_BYTES)
}

/// Returns the number of blocks that a payload of `bytes` bytes has.
pub(crate) const fn blocks_for(bytes: u64) -> u64 {
    bytes.div_ceil(BLOCK_BYTES as u64)
}

/// Appends `extent`. Joins it with the last one if that ends where `extent` begins.
pub(crate) fn push_extent(extents: &mut Vec<Extent>, extent: Extent) {
    assert!(extent.units > 0, "an extent has at least one unit");
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

#[cfg(test)]
mod tests {
    use super::{Extent, push_extent};

    #[test]
    fn address_and_extent_convert_both_ways() {
        let extent = Extent { volume: 7, start: 9, units: 3 };
        assert_eq!(Extent::at(extent.address(), 3), extent);
        assert_eq!(Extent::between(7, 9, 12), extent);
    }

    #[test]
    #[should_panic(expected = "ends within its volume")]
    fn extent_beyond_its_volume_panics() {
        Extent::at(u64::from(u32::MAX), 1);
    }

    #[test]
    fn touching_extents_of_one_volume_are_joined() {
        let mut extents = vec![Extent::between(0, 1, 5)];
        for more in [Extent::between(0, 5, 8), Extent::between(1, 8, 9), Extent::between(1, 10, 11)] {
            push_extent(&mut extents, more);
        }
        assert_eq!(extents, [Extent::between(0, 1, 8), Extent::between(1, 8, 9), Extent::between(1, 10, 11)]);
    }
}
