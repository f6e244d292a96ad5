//! Sizes and durations as people write them.

use std::str::FromStr;

/// Units of sizes, the largest first of each kind: powers of 1024, and of 1000.
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
/// How many of them count in 1024.
const BINARY_UNITS: usize = 5;
/// Units of durations.
const DURATION_UNITS: [(&str, u64); 4] = [("d", 24 * 3600), ("h", 3600), ("m", 60), ("s", 1)];
/// What takes a limit away.
const UNLIMITED: &str = "unlimited";

/// A limit in bytes: a size, or none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ByteLimit(pub(crate) Option<u64>);

/// A limit in numbers: a count, or none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CountLimit(pub(crate) Option<u64>);

/// A time span.
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

/// A number of bytes in the largest unit of 1024 that fits, exact where it comes out even, else with the number.
pub(crate) fn bytes_text(bytes: u64) -> String {
    match UNITS[..BINARY_UNITS].iter().find(|(_, unit)| *unit <= bytes) {
        None => format!("{bytes} B"),
        Some((name, unit)) if bytes.is_multiple_of(*unit) => format!("{} {name}", bytes / unit),
        Some((name, unit)) => {
            let tenths = u128::from(bytes) * 10 / u128::from(*unit);
            format!("{}.{} {name} ({bytes})", tenths / 10, tenths % 10)
        }
    }
}

/// Digits and a unit, or digits alone.
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

/// Digits and nothing else.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_exactly_or_refused() {
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
        assert!("12KiB".parse::<CountLimit>().is_err() && "".parse::<CountLimit>().is_err());
    }

    #[test]
    fn durations_are_seconds_unless_they_have_a_unit() {
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
    fn sizes_are_shown_short_and_never_rounded_unseen() {
        assert_eq!(bytes_text(0), "0 B");
        assert_eq!(bytes_text(10 << 30), "10 GiB");
        assert_eq!(bytes_text(1536), "1.5 KiB (1536)");
        assert_eq!(bytes_text(u64::MAX), "16383.9 PiB (18446744073709551615)");
    }
}
