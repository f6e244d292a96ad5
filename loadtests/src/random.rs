//! Reproducible pseudo-random numbers: SplitMix64, and its mixing step as a hash.
//!
//! These functions define the content of objects and the sizes of keys (see `content` and `key_space`), so that a later process
//! can verify what an earlier one wrote. Changing them invalidates stored test data.

/// A sequence of numbers; equal seeds give equal sequences.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    state: u64,
}

const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        mix(self.state)
    }

    /// Returns a number below `limit`, which must be at least 1. The bias is below `limit / 2^64`.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        scale(self.next(), limit)
    }
}

/// SplitMix64's finaliser: every bit of the input reaches every bit of the output.
pub(crate) const fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

/// Maps a uniform 64-bit value to `0..limit` without a division.
pub(crate) fn scale(uniform: u64, limit: u64) -> u64 {
    debug_assert!(limit > 0);
    u64::try_from((u128::from(uniform) * u128::from(limit)) >> 64)
        .expect("a product's upper half has 64 bits")
}

/// Returns FNV-1a of the bytes, mixed with the seed.
pub(crate) fn hash(seed: u64, bytes: &[u8]) -> u64 {
    let fnv = bytes
        .iter()
        .fold(0xCBF2_9CE4_8422_2325_u64, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3));
    mix(fnv ^ mix(seed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_pinned() {
        let mut random = Random::new(0);
        assert_eq!(random.next(), 0xE220_A839_7B1D_CDAF);
        assert_eq!(random.next(), 0x6E78_9E6A_A1B9_65F4);
        assert_ne!(hash(1, b"a"), hash(2, b"a"));
        assert_ne!(hash(1, b"a"), hash(1, b"b"));
    }

    #[test]
    fn numbers_cover_the_range_below_their_limit() {
        let mut random = Random::new(7);
        let mut seen = [false; 10];
        for _ in 0..1_000 {
            seen[crate::units::index(random.below(10))] = true;
        }
        assert_eq!(seen, [true; 10]);
        assert_eq!(random.below(1), 0);
    }
}
