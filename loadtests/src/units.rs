//! Parses byte counts and durations: `4KiB`, `16MiB`, `500ms`, `2m`.
//!
//! Only suffixes for powers of 1024 are accepted; `KB` is refused, because its meaning is ambiguous.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A number of bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct ByteCount(pub u64);

const SUFFIXES: [(&str, u64); 5] =
    [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40), ("B", 1)];

impl FromStr for ByteCount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is not a size: write 4096, 4KiB, 16MiB or 5GiB");
        let (digits, unit) = SUFFIXES
            .iter()
            .find_map(|(suffix, unit)| text.strip_suffix(suffix).map(|digits| (digits, *unit)))
            .unwrap_or((text, 1));
        let count: u64 = digits.trim().parse().map_err(|_| wrong())?;
        count.checked_mul(unit).map(Self).ok_or_else(wrong)
    }
}

impl fmt::Display for ByteCount {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (suffix, unit) in [SUFFIXES[3], SUFFIXES[2], SUFFIXES[1], SUFFIXES[0]] {
            if self.0 >= unit && self.0.is_multiple_of(unit) {
                return write!(out, "{}{suffix}", self.0 / unit);
            }
        }
        write!(out, "{}B", self.0)
    }
}

/// A duration given as an option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span(pub Duration);

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is not a duration: write 10s, 500ms or 2m");
        let (digits, milliseconds) = if let Some(digits) = text.strip_suffix("ms") {
            (digits, 1)
        } else if let Some(digits) = text.strip_suffix('s') {
            (digits, 1_000)
        } else if let Some(digits) = text.strip_suffix('m') {
            (digits, 60_000)
        } else {
            (text, 1_000)
        };
        let count: u64 = digits.parse().map_err(|_| wrong())?;
        count.checked_mul(milliseconds).map(|total| Self(Duration::from_millis(total))).ok_or_else(wrong)
    }
}

/// Converts a count to an index into memory.
///
/// # Panics
/// If the count does not fit, on a host whose addresses have fewer than 64 bits.
pub(crate) fn index(count: u64) -> usize {
    usize::try_from(count).expect("what indexes memory fits in an address")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_parsed_and_formatted_in_powers_of_1024() {
        for (text, bytes) in [("0", 0), ("17", 17), ("4KiB", 4096), ("16MiB", 1 << 24), ("5GiB", 5 << 30)] {
            assert_eq!(text.parse(), Ok(ByteCount(bytes)));
        }
        assert_eq!(ByteCount(4096).to_string(), "4KiB");
        assert_eq!(ByteCount(4097).to_string(), "4097B");
        for text in ["", "4KB", "-1", "KiB", "99999999999TiB", "1.5MiB"] {
            assert!(text.parse::<ByteCount>().is_err(), "{text} was taken");
        }
    }

    #[test]
    fn durations_have_milliseconds_seconds_and_minutes() {
        for (text, milliseconds) in [("10", 10_000), ("10s", 10_000), ("500ms", 500), ("2m", 120_000)] {
            assert_eq!(text.parse(), Ok(Span(Duration::from_millis(milliseconds))));
        }
        assert!("ten".parse::<Span>().is_err());
    }
}
