//! Formats times as ISO 8601, in UTC.

use crate::calendar::{SECONDS_PER_DAY, date_of_days};

/// The last second of a year with four digits: 9999-12-31T23:59:59Z. Later times are formatted as this one.
pub const SECONDS_MAX: u64 = 253_402_300_799;

/// Formats milliseconds since the Unix epoch: `2026-11-21T05:00:00.000Z`.
#[must_use]
pub fn iso8601_millis(milliseconds: u64) -> String {
    let mut text = *b"1970-01-01T00:00:00.000Z";
    put_date_and_clock(&mut text[..19], milliseconds / 1000);
    put_digits(&mut text[20..23], milliseconds % 1000);
    text.iter().copied().map(char::from).collect()
}

/// Formats seconds since the Unix epoch: `2026-11-21T05:00:00Z`.
#[must_use]
pub fn iso8601_seconds(seconds: u64) -> String {
    let mut text = *b"1970-01-01T00:00:00Z";
    put_date_and_clock(&mut text[..19], seconds);
    text.iter().copied().map(char::from).collect()
}

/// Writes `YYYY-MM-DDThh:mm:ss` over a text of this form.
fn put_date_and_clock(out: &mut [u8], seconds: u64) {
    let seconds = seconds.min(SECONDS_MAX);
    let (year, month, day) = date_of_days(seconds / SECONDS_PER_DAY);
    put_digits(&mut out[0..4], year);
    put_digits(&mut out[5..7], month);
    put_digits(&mut out[8..10], day);
    put_clock(&mut out[11..19], seconds % SECONDS_PER_DAY);
}

/// Writes the digits of `hh:mm:ss` over a text of this form.
///
/// # Panics
/// If `out` is shorter.
pub fn put_clock(out: &mut [u8], second_of_day: u64) {
    put_digits(&mut out[0..2], second_of_day / 3600);
    put_digits(&mut out[3..5], second_of_day / 60 % 60);
    put_digits(&mut out[6..8], second_of_day % 60);
}

/// Writes the last `out.len()` decimal digits of `number`.
pub fn put_digits(out: &mut [u8], mut number: u64) {
    for digit in out.iter_mut().rev() {
        *digit = b'0' + u8::try_from(number % 10).expect("a decimal digit is below 10");
        number /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_have_milliseconds_or_seconds_and_z() {
        assert_eq!(iso8601_millis(784_111_777_007), "1994-11-06T08:49:37.007Z");
        assert_eq!(iso8601_millis(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(iso8601_seconds(1_369_357_323), "2013-05-24T01:02:03Z");
        assert_eq!(iso8601_seconds(u64::MAX / 1000), "9999-12-31T23:59:59Z");
    }

    proptest! {
        #[test]
        fn texts_sort_by_time(one in 0..=SECONDS_MAX * 1000, two in 0..=SECONDS_MAX * 1000) {
            prop_assert_eq!(one.cmp(&two), iso8601_millis(one).cmp(&iso8601_millis(two)));
        }
    }
}
