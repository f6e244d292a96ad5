//! Distributions of object sizes: one size, a uniform range, or weighted choices.
//!
//! The size of a key is a pure function of the seed and the key's number, so another process can verify the length that
//! `prepare` wrote.

use std::fmt;
use std::str::FromStr;

use crate::random::{mix, scale};
use crate::units::ByteCount;

/// Maximum number of weighted choices.
const CHOICES_MAX: usize = 64;

/// A distribution of object sizes, as `--size` takes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Sizes {
    /// `4KiB`: every object.
    Fixed(ByteCount),
    /// `1KiB..64KiB`: every size from the first to the last, inclusive, with equal probability.
    Uniform(ByteCount, ByteCount),
    /// `4KiB:60,64KiB:30,1MiB:10`: sizes with their weights.
    Weighted(Vec<(ByteCount, u32)>),
}

impl Sizes {
    /// The size of the key with this number.
    #[must_use]
    pub fn of(&self, seed: u64, number: u64) -> ByteCount {
        let uniform = || mix(mix(seed ^ 0x0053_495A_4553).wrapping_add(number));
        match self {
            Self::Fixed(size) => *size,
            Self::Uniform(first, last) => {
                ByteCount(first.0 + scale(uniform(), (last.0 - first.0).saturating_add(1)))
            }
            Self::Weighted(choices) => {
                let total = choices.iter().map(|(_, weight)| u64::from(*weight)).sum();
                let mut left = scale(uniform(), total);
                for (size, weight) in choices {
                    if left < u64::from(*weight) {
                        return *size;
                    }
                    left -= u64::from(*weight);
                }
                unreachable!("the draw is below the sum of the weights")
            }
        }
    }

    /// The largest size that can occur.
    #[must_use]
    pub fn max(&self) -> ByteCount {
        match self {
            Self::Fixed(size) | Self::Uniform(_, size) => *size,
            Self::Weighted(choices) => choices.iter().map(|(size, _)| *size).max().unwrap_or_default(),
        }
    }
}

impl FromStr for Sizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some((first, last)) = text.split_once("..") {
            let (first, last) = (first.parse::<ByteCount>()?, last.parse::<ByteCount>()?);
            if first > last {
                return Err(format!("'{text}': the first size is larger than the last"));
            }
            return Ok(Self::Uniform(first, last));
        }
        if !text.contains(':') {
            return text.parse().map(Self::Fixed);
        }
        let mut choices = Vec::new();
        for choice in text.split(',') {
            let (size, weight) =
                choice.split_once(':').ok_or_else(|| format!("'{choice}' has no weight: write 4KiB:60"))?;
            let weight: u32 = weight.parse().map_err(|_| format!("'{weight}' is not a weight"))?;
            choices.push((size.parse()?, weight));
        }
        if choices.len() > CHOICES_MAX || choices.iter().all(|(_, weight)| *weight == 0) {
            return Err(format!("'{text}': 1 to {CHOICES_MAX} choices, one of them with a weight above 0"));
        }
        Ok(Self::Weighted(choices))
    }
}

impl fmt::Display for Sizes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(size) => write!(out, "{size}"),
            Self::Uniform(first, last) => write!(out, "{first}..{last}"),
            Self::Weighted(choices) => {
                for (number, (size, weight)) in choices.iter().enumerate() {
                    write!(out, "{}{size}:{weight}", if number == 0 { "" } else { "," })?;
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_parsed_and_formatted() {
        for text in ["4KiB", "1KiB..64KiB", "4KiB:60,64KiB:30,1MiB:10", "0B..0B"] {
            assert_eq!(text.parse::<Sizes>().unwrap().to_string(), text);
        }
        for text in ["64KiB..1KiB", "4KiB:0", "4KiB:1,", "4KiB:x", "4KiB:1,5KiB", ""] {
            assert!(text.parse::<Sizes>().is_err(), "{text} was taken");
        }
    }

    #[test]
    fn sizes_follow_their_weights_and_repeat_with_the_seed() {
        let sizes: Sizes = "4KiB:60,64KiB:30,1MiB:10".parse().unwrap();
        let mut counts = [0_u32; 3];
        for number in 0..100_000 {
            let size = sizes.of(5, number);
            assert_eq!(size, sizes.of(5, number));
            let place = [4096, 65_536, 1 << 20].iter().position(|bytes| *bytes == size.0).unwrap();
            counts[place] += 1;
        }
        for (count, expected) in counts.iter().zip([60_000_u32, 30_000, 10_000]) {
            assert!(count.abs_diff(expected) < 1_000, "{counts:?}");
        }
    }

    #[test]
    fn a_uniform_range_includes_both_ends() {
        let sizes: Sizes = "10..13".parse().unwrap();
        let seen: std::collections::BTreeSet<u64> = (0..1_000).map(|number| sizes.of(1, number).0).collect();
        assert_eq!(seen, (10..=13).collect());
        assert_eq!(sizes.max(), ByteCount(13));
    }
}
