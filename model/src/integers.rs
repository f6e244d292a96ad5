//! Integer conversions that cannot fail on the platforms that Cairn supports.

// Sizes and offsets are `u64` in formats and interfaces, and `usize` in memory. Both have 64 bits.
const _: () = assert!(usize::BITS == 64, "Cairn supports 64-bit platforms only");

/// Converts a size or an index to `usize`. Exact, because `usize` has 64 bits.
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "usize has 64 bits; asserted above")]
pub const fn usize_of(value: u64) -> usize {
    value as usize
}

/// Converts a length or an index to `u64`. Exact, because `usize` has 64 bits.
#[must_use]
pub const fn u64_of(value: usize) -> u64 {
    value as u64
}

#[cfg(test)]
mod tests {
    use super::{u64_of, usize_of};

    #[test]
    fn the_largest_values_are_kept() {
        assert_eq!(usize_of(u64::MAX), usize::MAX);
        assert_eq!(u64_of(usize::MAX), u64::MAX);
    }
}
