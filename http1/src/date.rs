//! Dates of HTTP and RFC 3339.
//!
//! HTTP has three forms (RFC 9110 section 5.6.7): all are parsed, the first one is formatted.
//!
//! All times are in UTC. Nothing here reads a clock.

use cairn_model::calendar::{MONTHS, SECONDS_PER_DAY, WEEKDAYS, date_of_days, days_of_date};
use cairn_model::iso8601::{SECONDS_MAX, put_clock, put_digits};
use cairn_model::usize_of;

/// Two-digit years below this mean 20xx. RFC 9110 asks for "not more than 50 years in the future". A fixed pivot keeps
/// the function pure, and the form has been obsolete since 1995.
const CENTURY_PIVOT: i64 = 70;

/// A date as HTTP sends it: `Sun, 06 Nov 1994 08:49:37 GMT`, always 29 bytes of ASCII. Format it once a second and
/// reuse it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HttpDate([u8; 29]);

impl HttpDate {
    /// Returns the 29 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the date as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("an HTTP date is ASCII")
    }
}

impl AsRef<[u8]> for HttpDate {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl std::fmt::Display for HttpDate {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// Formats `seconds` since the Unix epoch as an IMF-fixdate.
#[must_use]
pub fn http_date(seconds: u64) -> HttpDate {
    let seconds = seconds.min(SECONDS_MAX);
    let days = seconds / SECONDS_PER_DAY;
    let (year, month, day) = date_of_days(days);
    let mut text = *b"Thu, 01 Jan 1970 00:00:00 GMT";
    // The epoch was a Thursday, the fourth day of a week that begins on Monday.
    text[0..3].copy_from_slice(WEEKDAYS[usize_of((days + 3) % 7)]);
    put_digits(&mut text[5..7], day);
    text[8..11].copy_from_slice(MONTHS[usize_of(month - 1)]);
    put_digits(&mut text[12..16], year);
    put_clock(&mut text[17..25], seconds % SECONDS_PER_DAY);
    HttpDate(text)
}

/// Parses an HTTP date in any of its three forms. Returns seconds since the Unix epoch, negative before it, or `None`
/// for an invalid date, which RFC 9110 section 13.1.3 asks to ignore.
#[must_use]
pub fn parse_http_date(value: &[u8]) -> Option<i64> {
    if !value.is_ascii() {
        return None;
    }
    parse_imf_fixdate(value).or_else(|| parse_rfc850(value)).or_else(|| parse_asctime(value))
}

/// Parses `Sun, 06 Nov 1994 08:49:37 GMT`.
fn parse_imf_fixdate(value: &[u8]) -> Option<i64> {
    if value.len() != 29 || !value.ends_with(b" GMT") || &value[3..5] != b", " {
        return None;
    }
    weekday(&value[0..3])?;
    if value[7] != b' ' || value[11] != b' ' || value[16] != b' ' {
        return None;
    }
    let date = (number(&value[12..16])?, month(&value[8..11])?, number(&value[5..7])?);
    seconds_of(date, clock(&value[17..25])?)
}

/// Parses a time of RFC 3339. Returns milliseconds since the Unix epoch. Fractions of a millisecond are rounded up, and
/// times before the epoch become the epoch.
#[must_use]
pub fn parse_rfc3339_millis(text: &str) -> Option<u64> {
    let (date, rest) = text.as_bytes().split_first_chunk::<10>()?;
    let (time, mut rest) = rest.split_first_chunk::<9>()?;
    if date[4] != b'-' || date[7] != b'-' || !matches!(time[0], b'T' | b't') {
        return None;
    }
    let date = (number(&date[..4])?, number(&date[5..7])?, number(&date[8..])?);
    let seconds = seconds_of(date, clock(&time[1..])?)?;
    let mut millis = 0;
    if let Some((b'.', fraction)) = rest.split_first() {
        let count = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, after) = fraction.split_at(count);
        let (kept, finer) = digits.split_at(count.min(3));
        let scale = [0, 100, 10, 1].get(kept.len()).copied().filter(|scale| *scale > 0)?;
        millis = number(kept)? * scale + i64::from(finer.iter().any(|digit| *digit != b'0'));
        rest = after;
    }
    let offset = match rest {
        b"Z" | b"z" => 0,
        [sign @ (b'+' | b'-'), hours @ .., b':', m1, m2] if hours.len() == 2 => {
            let (hours, minutes) = (number(hours)?, number(&[*m1, *m2])?);
            let seconds = (hours < 24 && minutes < 60).then_some(hours * 3600 + minutes * 60)?;
            if *sign == b'+' { seconds } else { -seconds }
        }
        _ => return None,
    };
    Some(u64::try_from((seconds - offset) * 1000 + millis).unwrap_or(0))
}

/// Parses `Sunday, 06-Nov-94 08:49:37 GMT`.
fn parse_rfc850(value: &[u8]) -> Option<i64> {
    let comma = value.iter().position(|&byte| byte == b',')?;
    let (name, rest) = value.split_at(comma);
    if name.len() < 6 || !name.ends_with(b"day") || rest.len() != 24 || !rest.ends_with(b" GMT") {
        return None;
    }
    weekday(name.get(0..3)?)?;
    if rest[1] != b' ' || rest[4] != b'-' || rest[8] != b'-' || rest[11] != b' ' {
        return None;
    }
    let short = number(&rest[9..11])?;
    let year = if short < CENTURY_PIVOT { 2000 + short } else { 1900 + short };
    seconds_of((year, month(&rest[5..8])?, number(&rest[2..4])?), clock(&rest[12..20])?)
}

/// Parses `Sun Nov  6 08:49:37 1994`.
fn parse_asctime(value: &[u8]) -> Option<i64> {
    if value.len() != 24 || [3, 7, 10, 19].iter().any(|&at| value[at] != b' ') {
        return None;
    }
    weekday(&value[0..3])?;
    let day = if value[8] == b' ' { number(&value[9..10])? } else { number(&value[8..10])? };
    seconds_of((number(&value[20..24])?, month(&value[4..7])?, day), clock(&value[11..19])?)
}

fn weekday(name: &[u8]) -> Option<usize> {
    WEEKDAYS.iter().position(|day| day.as_slice() == name)
}

/// Parses the name of a month. Returns 1 to 12.
fn month(name: &[u8]) -> Option<i64> {
    let index = MONTHS.iter().position(|month| month.as_slice() == name)?;
    i64::try_from(index + 1).ok()
}

fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0_i64, |number, digit| {
        digit.is_ascii_digit().then(|| number * 10 + i64::from(digit - b'0'))
    })
}

/// Parses `08:49:37`. Returns the second of the day. A leap second counts as the last second of its minute.
fn clock(text: &[u8]) -> Option<i64> {
    if text[2] != b':' || text[5] != b':' {
        return None;
    }
    let (hour, minute, second) = (number(&text[0..2])?, number(&text[3..5])?, number(&text[6..8])?);
    (hour < 24 && minute < 60 && second <= 60).then(|| hour * 3600 + minute * 60 + second.min(59))
}

fn seconds_of((year, month, day): (i64, i64, i64), clock: i64) -> Option<i64> {
    Some(days_of_date(year, month, day)? * SECONDS_PER_DAY.cast_signed() + clock)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_model::iso8601::iso8601_millis;
    use proptest::prelude::*;

    #[test]
    fn all_three_http_forms_are_parsed() {
        for text in
            ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"]
        {
            assert_eq!(parse_http_date(text.as_bytes()), Some(784_111_777), "{text}");
        }
        assert_eq!(http_date(784_111_777).as_str(), "Sun, 06 Nov 1994 08:49:37 GMT");
    }

    #[test]
    fn the_limits_of_the_calendar_are_formatted_and_parsed() {
        assert_eq!(http_date(0).as_str(), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(http_date(951_782_400).as_str(), "Tue, 29 Feb 2000 00:00:00 GMT");
        assert_eq!(http_date(u64::MAX).as_str(), "Fri, 31 Dec 9999 23:59:59 GMT");
        assert_eq!(parse_http_date(b"Mon, 29 Feb 2100 00:00:00 GMT"), None);
        assert_eq!(parse_http_date(b"Wed, 31 Dec 1969 23:59:59 GMT"), Some(-1));
    }

    #[test]
    fn invalid_dates_are_none() {
        for text in [
            "",
            "now",
            "Sun, 06 Nov 1994 08:49:37 UTC",
            "Sun, 06 Nov 1994 24:00:00 GMT",
            "Sun, 00 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 GMT ",
            "Xxx, 06 Nov 1994 08:49:37 GMT",
            "1994-11-06T08:49:37Z",
            ", GMT",
            "Sunday, 06-Nov-1994 08:49:37 GMT",
            "Sün, 6 Nov 1994 08:49:37 GMT",
        ] {
            assert_eq!(parse_http_date(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn rfc_3339_times_are_parsed_in_any_zone() {
        let five = 1_795_237_200_000;
        for (text, expected) in [
            ("2026-11-21T05:00:00Z", five),
            ("2026-11-21t05:00:00.000z", five),
            ("2026-11-21T06:30:00+01:30", five),
            ("2026-11-20T23:00:00-06:00", five),
            ("2026-11-21T05:00:00.25Z", five + 250),
            ("2026-11-21T05:00:00.0010001Z", five + 2),
            ("1969-12-31T23:59:59Z", 0),
            (&iso8601_millis(five + 7), five + 7),
        ] {
            assert_eq!(parse_rfc3339_millis(text), Some(expected), "{text}");
        }
        for bad in [
            "",
            "2026-11-21",
            "2026-11-21T05:00:00",
            "2026-11-21 05:00:00Z",
            "2026-11-31T05:00:00Z",
            "2026-13-01T05:00:00Z",
            "2026-00-01T05:00:00Z",
            "2026-11-00T05:00:00Z",
            "2026-11-21T25:00:00Z",
            "2026-11-21T05:00:00.Z",
            "2026-11-21T05:00:00+1:00",
            "2026-11-21T05:00:00+24:00",
            "2026-11-21T05:00:00Zx",
            "+026-11-21T05:00:00Z",
            "2026-11-21T05:00:00\u{661}Z",
        ] {
            assert_eq!(parse_rfc3339_millis(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn a_formatted_date_parses_to_itself(seconds in 0..=SECONDS_MAX) {
            prop_assert_eq!(parse_http_date(http_date(seconds).as_bytes()), i64::try_from(seconds).ok());
        }

        #[test]
        fn any_bytes_are_parsed_without_panic(value in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = parse_http_date(&value);
        }

        #[test]
        fn any_text_like_a_date_is_parsed_without_panic(value in "[A-Za-z]{3,9},? ?[0-9 A-Za-z:,-]{15,26}( GMT)?") {
            let _ = parse_http_date(value.as_bytes());
        }
    }
}
