//! Parses and formats sizes, counts and durations.

use std::str::FromStr;

/// Units of sizes: powers of 1024, then powers of 1000, each with the largest first.
const UNITS: [(&str, u64); 10] = [
    ("PiB", 1 << 50),
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("PB", 1_000_000_000_000_000),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1000),
];
/// The number of the units that are powers of 1024.
const BINARY_UNITS: usize = 5;
/// Units of durations.
const DURATION_UNITS: [(&str, u64); 4] = [("d", 24 * 3600), ("h", 3600), ("m", 60), ("s", 1)];
/// Removes a limit.
const UNLIMITED: &str = "unlimited";

/// A limit in bytes; `None` means unlimited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ByteLimit(pub(crate) Option<u64>);

/// A limit on a number; `None` means unlimited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CountLimit(pub(crate) Option<u64>);

/// A whole number in a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Whole<const MIN: u64, const MAX: u64>(pub(crate) u64);

/// The number of entries in a page of a list, which the server limits.
pub(crate) type PageLimit = Whole<1, 1000>;
/// The number of entries of a whole list, which takes about a kilobyte of memory for each.
pub(crate) type ListLimit = Whole<1, 100_000>;
/// The days of a lifecycle rule, or of a default retention.
pub(crate) type Days = Whole<1, { cairn_engine::limits::LIFECYCLE_DAYS_MAX as u64 }>;

impl<const MIN: u64, const MAX: u64> Whole<MIN, MAX> {
    /// Returns the number as the API counts days and entries. Its maximum is far below that of the type.
    pub(crate) fn short(self) -> u32 {
        u32::try_from(self.0).unwrap_or(u32::MAX)
    }

    /// Returns the number as a length.
    pub(crate) fn length(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl<const MIN: u64, const MAX: u64> FromStr for Whole<MIN, MAX> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = number(text).filter(|number| (MIN..=MAX).contains(number));
        found.map(Self).ok_or_else(|| format!("expected a whole number from {MIN} to {MAX}"))
    }
}

/// A duration in whole seconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Duration {
    pub(crate) seconds: u64,
}

impl FromStr for Duration {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let seconds = scaled(text, &DURATION_UNITS);
        seconds
            .map(|seconds| Self { seconds })
            .ok_or("expected seconds, or a duration such as 15m, 12h or 7d")
    }
}

impl FromStr for ByteLimit {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == UNLIMITED {
            return Ok(Self(None));
        }
        let units = UNITS.iter().chain([&("B", 1)]);
        scaled(text, units)
            .map(|bytes| Self(Some(bytes)))
            .ok_or("expected a size such as 10GiB, 500MB or 4096, or unlimited")
    }
}

impl FromStr for CountLimit {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            UNLIMITED => Ok(Self(None)),
            text => {
                number(text).map(|count| Self(Some(count))).ok_or("expected a whole number, or unlimited")
            }
        }
    }
}

/// Formats a number of bytes in the largest binary unit that fits, with the exact number.
pub(crate) fn bytes_text(bytes: u64) -> String {
    match UNITS[..BINARY_UNITS].iter().find(|(_, unit)| *unit <= bytes) {
        None => format!("{bytes} B"),
        Some((name, unit)) if bytes.is_multiple_of(*unit) => {
            format!("{} {name} ({bytes} bytes)", bytes / unit)
        }
        Some((name, unit)) => {
            let tenths = u128::from(bytes) * 10 / u128::from(*unit);
            format!("{}.{} {name} ({bytes} bytes)", tenths / 10, tenths % 10)
        }
    }
}

/// Formats a number of things, with the plural of their name.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    match noun.strip_suffix("cy") {
        _ if count == 1 => format!("1 {noun}"),
        Some(stem) => format!("{count} {stem}cies"),
        None => format!("{count} {noun}s"),
    }
}

/// Like [`counted`], with the verb: "1 object was", "2 objects were".
pub(crate) fn were(count: u64, noun: &str) -> String {
    format!("{} {}", counted(count, noun), if count == 1 { "was" } else { "were" })
}

/// Parses digits and a unit, or digits alone.
fn scaled<'u>(text: &str, units: impl IntoIterator<Item = &'u (&'u str, u64)>) -> Option<u64> {
    let digits = text.trim_end_matches(|character: char| !character.is_ascii_digit());
    let unit = text[digits.len()..].trim_start();
    let factor = if unit.is_empty() {
        1
    } else {
        units.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?.1
    };
    number(digits)?.checked_mul(factor)
}

/// Parses digits and nothing else.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_parsed_exactly_or_refused() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("7B", 7),
            ("10GiB", 10 << 30),
            ("10 gib", 10 << 30),
            ("500MB", 500_000_000),
            ("16383PiB", 16383 << 50),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(text.parse(), Ok(ByteLimit(Some(bytes))), "{text}");
        }
        assert_eq!("unlimited".parse(), Ok(ByteLimit(None)));
        for wrong in
            ["", "-1", "+1", "1.5GiB", "10G", "GiB", "16384PiB", "18446744073709551616", "1GiB1", "１"]
        {
            assert!(wrong.parse::<ByteLimit>().is_err(), "{wrong}");
        }
        assert_eq!(("12".parse(), "unlimited".parse()), (Ok(CountLimit(Some(12))), Ok(CountLimit(None))));
        assert_eq!("1000".parse(), Ok(Whole::<1, 1000>(1000)));
        for wrong in ["0", "1001", "", "x", "1k", "-1"] {
            let error = wrong.parse::<Whole<1, 1000>>();
            assert_eq!(error, Err("expected a whole number from 1 to 1000".to_owned()), "{wrong}");
        }
        assert!("12KiB".parse::<CountLimit>().is_err() && "".parse::<CountLimit>().is_err());
    }

    #[test]
    fn durations_without_a_unit_are_seconds() {
        for (text, seconds) in
            [("900", 900), ("90s", 90), ("15m", 900), ("12h", 43_200), ("7d", 604_800), ("0", 0)]
        {
            assert_eq!(text.parse(), Ok(Duration { seconds }), "{text}");
        }
        for wrong in ["", "m", "1.5h", "1w", "-1", "1h30m", "213503982334602d"] {
            assert!(wrong.parse::<Duration>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn nouns_have_a_plural() {
        assert_eq!(counted(0, "day") + ", " + &counted(1, "policy"), "0 days, 1 policy");
        assert_eq!(counted(2, "policy"), "2 policies");
        assert_eq!(were(1, "object") + ", " + &were(2, "object"), "1 object was, 2 objects were");
    }

    #[test]
    fn rounded_sizes_are_shown_with_the_exact_number() {
        assert_eq!(bytes_text(0), "0 B");
        assert_eq!(bytes_text(10 << 30), "10 GiB (10737418240 bytes)");
        assert_eq!(bytes_text(1536), "1.5 KiB (1536 bytes)");
        assert_eq!(bytes_text(u64::MAX), "16383.9 PiB (18446744073709551615 bytes)");
    }
}
