//! Parses and resolves `Range` headers as S3 does (RFC 9110, section 14).
//!
//! One range is served. Several ranges or an invalid one count as no range, as on S3.

use crate::syntax::trim_ows;

/// The result of resolving a `Range` header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RangeOutcome {
    /// 200 with the whole representation: no range, several ranges or an invalid one.
    Whole,
    /// 206: one range that overlaps the representation.
    Part(ResolvedRange),
    /// 416: a range after the end, any range on an empty representation, or `-0`.
    Unsatisfiable,
}

/// A range within a representation. It is never empty: `first <= last < size`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResolvedRange {
    first: u64,
    last: u64,
    size: u64,
}

impl ResolvedRange {
    /// Returns the range of these bytes of `size`. `None` if it is empty or outside.
    #[must_use]
    pub const fn of(range: &std::ops::Range<u64>, size: u64) -> Option<Self> {
        if range.start >= range.end || range.end > size {
            return None;
        }
        Some(Self { first: range.start, last: range.end - 1, size })
    }

    /// Returns the position of the first byte.
    #[must_use]
    pub const fn first(&self) -> u64 {
        self.first
    }

    /// Returns the position of the last byte, inclusive.
    #[must_use]
    pub const fn last(&self) -> u64 {
        self.last
    }

    /// Returns the number of bytes, at least 1.
    #[must_use]
    pub const fn length(&self) -> u64 {
        self.last - self.first + 1
    }

    /// Returns the range with an exclusive end.
    #[must_use]
    pub const fn as_range(&self) -> std::ops::Range<u64> {
        self.first..self.last + 1
    }

    /// Returns the value of `Content-Range`: `bytes 0-4/10`.
    #[must_use]
    pub fn content_range(&self) -> String {
        format!("bytes {}-{}/{}", self.first, self.last, self.size)
    }
}

/// Returns the value of `Content-Range` in a 416: `bytes */10`. `size` is in bytes.
#[must_use]
pub fn unsatisfied_content_range(size: u64) -> String {
    format!("bytes */{size}")
}

/// Resolves `value`, the optional `Range` header, for a representation of `size` bytes.
#[must_use]
pub fn resolve_range(value: Option<&[u8]>, size: u64) -> RangeOutcome {
    match value.and_then(parse) {
        None => RangeOutcome::Whole,
        Some(spec) => match spec.resolve(size) {
            Some((first, last)) => {
                assert!(first <= last && last < size, "a resolved range is within the representation");
                RangeOutcome::Part(ResolvedRange { first, last, size })
            }
            None => RangeOutcome::Unsatisfiable,
        },
    }
}

/// One range as sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Spec {
    /// `a-b`, a ≤ b.
    Between(u64, u64),
    /// `a-`.
    From(u64),
    /// `-n`.
    Suffix(u64),
}

impl Spec {
    fn resolve(self, size: u64) -> Option<(u64, u64)> {
        let end = size.checked_sub(1)?;
        match self {
            Self::Between(first, last) => (first <= end).then(|| (first, last.min(end))),
            Self::From(first) => (first <= end).then_some((first, end)),
            Self::Suffix(length) => (length > 0).then(|| (size - length.min(size), end)),
        }
    }
}

fn parse(value: &[u8]) -> Option<Spec> {
    let (unit, set) = value.split_at_checked(6)?;
    if !unit.eq_ignore_ascii_case(b"bytes=") {
        return None;
    }
    let set = trim_ows(set);
    let dash = set.iter().position(|&byte| byte == b'-')?;
    match (&set[..dash], &set[dash + 1..]) {
        (b"", length) => parse_number(length).map(Spec::Suffix),
        (first, b"") => parse_number(first).map(Spec::From),
        (first, last) => {
            let (first, last) = (parse_number(first)?, parse_number(last)?);
            (first <= last).then_some(Spec::Between(first, last))
        }
    }
}

/// Parses only digits, so a list of ranges fails here. A number beyond `u64` counts as the largest one.
fn parse_number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = digits
        .iter()
        .fold(0_u64, |number, digit| number.saturating_mul(10).saturating_add(u64::from(digit - b'0')));
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn part(value: &str, size: u64) -> Option<(u64, u64)> {
        match resolve_range(Some(value.as_bytes()), size) {
            RangeOutcome::Part(range) => Some((range.first(), range.last())),
            _ => None,
        }
    }

    #[test]
    fn the_three_forms_are_resolved() {
        assert_eq!(part("bytes=0-4", 10), Some((0, 4)));
        assert_eq!(part("bytes=5-", 10), Some((5, 9)));
        assert_eq!(part("bytes=-3", 10), Some((7, 9)));
        assert_eq!(part("Bytes=0-0", 10), Some((0, 0)));
    }

    #[test]
    fn ends_beyond_the_size_are_reduced() {
        assert_eq!(part("bytes=5-99999999999999999999999", 10), Some((5, 9)));
        assert_eq!(part("bytes=-11", 10), Some((0, 9)));
    }

    #[test]
    fn a_range_after_the_end_is_unsatisfiable() {
        for (value, size) in
            [("bytes=10-", 10), ("bytes=10-20", 10), ("bytes=-0", 10), ("bytes=0-", 0), ("bytes=-1", 0)]
        {
            assert_eq!(resolve_range(Some(value.as_bytes()), size), RangeOutcome::Unsatisfiable, "{value}");
        }
    }

    #[test]
    fn invalid_ranges_select_the_whole() {
        for value in [
            "",
            "bytes",
            "bytes=",
            "bytes=-",
            "bytes=a-b",
            "bytes=4-2",
            "bytes=0-1,3-4",
            "items=0-1",
            "bytes=+1-2",
            "bytes=1--2",
            "bytes=0x1-2",
            "bytes 0-1",
        ] {
            assert_eq!(resolve_range(Some(value.as_bytes()), 10), RangeOutcome::Whole, "{value}");
        }
        assert_eq!(resolve_range(None, 10), RangeOutcome::Whole);
    }

    #[test]
    fn content_range_contains_the_size() {
        let RangeOutcome::Part(range) = resolve_range(Some(b"bytes=2-"), 10) else { panic!("not a part") };
        assert_eq!(range.content_range(), "bytes 2-9/10");
        assert_eq!(range.length(), 8);
        assert_eq!(unsatisfied_content_range(10), "bytes */10");
    }

    proptest! {
        #[test]
        fn a_part_lies_within_the_size(value in prop::collection::vec(any::<u8>(), 0..40), size in any::<u64>()) {
            let mut sent = b"bytes=".to_vec();
            sent.extend(value);
            if let RangeOutcome::Part(range) = resolve_range(Some(&sent), size) {
                prop_assert!(range.first() <= range.last() && range.last() < size);
            }
        }

        #[test]
        fn valid_ranges_select_their_bytes(first in 0_u64..2000, length in 0_u64..2000, size in 0_u64..2000) {
            let last = first + length;
            let expected: Vec<u64> = (0..size).filter(|at| (first..=last).contains(at)).collect();
            let outcome = resolve_range(Some(format!("bytes={first}-{last}").as_bytes()), size);
            match expected.first() {
                None => prop_assert_eq!(outcome, RangeOutcome::Unsatisfiable),
                Some(&start) => {
                    let end = start + expected.len() as u64;
                    let RangeOutcome::Part(range) = outcome else { panic!("not a part") };
                    prop_assert_eq!(range.as_range(), start..end);
                }
            }
        }
    }
}
