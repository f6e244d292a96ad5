//! Parses and formats the dates of signed requests and of error bodies.
//!
//! All dates are in UTC, from 1970 to 9999, without leap seconds. Dates that do not exist are refused.

use cairn_model::{Timestamp, usize_of};

const SECONDS_PER_DAY: u64 = 24 * 60 * 60;
const MONTHS: [&[u8; 3]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];
const WEEKDAYS: [&[u8; 3]; 7] = [b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat", b"Sun"];

/// The time of a request: `YYYYMMDDTHHMMSSZ`, as in the string to sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AmzDate {
    text: [u8; 16],
    /// Since the Unix epoch.
    pub(super) seconds: u64,
}

impl AmzDate {
    /// Parses `YYYYMMDDTHHMMSSZ`, the format of `x-amz-date` and `X-Amz-Date`.
    pub(super) fn parse_basic(text: &[u8]) -> Option<Self> {
        let text: [u8; 16] = text.try_into().ok()?;
        if text[8] != b'T' || text[15] != b'Z' {
            return None;
        }
        let fields = Fields {
            year: number(&text[0..4])?,
            month: number(&text[4..6])?,
            day: number(&text[6..8])?,
            hour: number(&text[9..11])?,
            minute: number(&text[11..13])?,
            second: number(&text[13..15])?,
        };
        Some(Self { text, seconds: fields.to_seconds()? })
    }

    /// Parses the value of a `Date` header.
    ///
    /// Accepts the preferred format of RFC 9110 section 5.6.7 (`Fri, 24 May 2013 00:00:00 GMT`), the same with the zone
    /// `-0000` or `+0000`, which botocore writes when it signs that header, and the basic format, which AWS accepts too.
    pub(super) fn parse_date_header(text: &[u8]) -> Option<Self> {
        if text.len() == 16 {
            return Self::parse_basic(text);
        }
        let (text, zone) = text.split_first_chunk::<26>()?;
        let punctuation = [text[3], text[4], text[7], text[11], text[16], text[19], text[22], text[25]];
        if punctuation != *b",    :: " || !matches!(zone, b"GMT" | b"-0000" | b"+0000") {
            return None;
        }
        WEEKDAYS.iter().find(|name| ***name == text[..3])?;
        let month = (1..).zip(MONTHS).find(|(_, name)| **name == text[8..11])?.0;
        let fields = Fields {
            year: number(&text[12..16])?,
            month,
            day: number(&text[5..7])?,
            hour: number(&text[17..19])?,
            minute: number(&text[20..22])?,
            second: number(&text[23..25])?,
        };
        Some(fields.to_amz_date(fields.to_seconds()?))
    }

    /// Returns `YYYYMMDDTHHMMSSZ`.
    pub(super) fn text(&self) -> &str {
        std::str::from_utf8(&self.text).expect("the text consists of ASCII digits, T and Z")
    }

    /// Returns `YYYYMMDD`.
    pub(super) fn day(&self) -> &str {
        &self.text()[..8]
    }
}

/// Formats a time like `2013-05-24T00:00:00Z`, the format of S3 error bodies.
pub(super) fn iso8601(time: Timestamp) -> String {
    let Fields { year, month, day, hour, minute, second } = Fields::from_seconds(time.seconds());
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// A calendar date and time in UTC.
#[derive(Clone, Copy)]
struct Fields {
    year: u64,
    month: u64,
    day: u64,
    hour: u64,
    minute: u64,
    second: u64,
}

impl Fields {
    fn to_seconds(self) -> Option<u64> {
        let exists = self.year >= 1970
            && (1..=12).contains(&self.month)
            && (1..=days_in_month(self.year, self.month)).contains(&self.day)
            && self.hour < 24
            && self.minute < 60
            && self.second < 60;
        if !exists {
            return None;
        }
        let days_of_months: u64 = (1..self.month).map(|month| days_in_month(self.year, month)).sum();
        let days = days_before_year(self.year) + days_of_months + self.day - 1;
        Some(days * SECONDS_PER_DAY + self.hour * 3600 + self.minute * 60 + self.second)
    }

    fn from_seconds(seconds: u64) -> Self {
        let mut days = seconds / SECONDS_PER_DAY;
        // No year is longer than 366 days, so this estimate is never too late, and rarely more than a few years too early.
        let mut year = 1970 + days / 366;
        while days_before_year(year + 1) <= days {
            year += 1;
        }
        days -= days_before_year(year);
        let mut month = 1;
        while days >= days_in_month(year, month) {
            days -= days_in_month(year, month);
            month += 1;
        }
        let second = seconds % SECONDS_PER_DAY;
        Self {
            year,
            month,
            day: days + 1,
            hour: second / 3600,
            minute: second / 60 % 60,
            second: second % 60,
        }
    }

    fn to_amz_date(self, seconds: u64) -> AmzDate {
        let Self { year, month, day, hour, minute, second } = self;
        let digit = |value: u64| b"0123456789"[usize_of(value % 10)];
        let text = [
            digit(year / 1000),
            digit(year / 100),
            digit(year / 10),
            digit(year),
            digit(month / 10),
            digit(month),
            digit(day / 10),
            digit(day),
            b'T',
            digit(hour / 10),
            digit(hour),
            digit(minute / 10),
            digit(minute),
            digit(second / 10),
            digit(second),
            b'Z',
        ];
        AmzDate { text, seconds }
    }
}

const fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

const fn days_in_month(year: u64, month: u64) -> u64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap(year) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Returns the number of days from 1 January 1970 to 1 January of `year`.
const fn days_before_year(year: u64) -> u64 {
    const fn leap_days_through(year: u64) -> u64 {
        year / 4 - year / 100 + year / 400
    }
    (year - 1970) * 365 + leap_days_through(year - 1) - leap_days_through(1969)
}

/// Parses decimal digits, without a sign.
fn number(digits: &[u8]) -> Option<u64> {
    digits
        .iter()
        .try_fold(0, |value, digit| digit.is_ascii_digit().then(|| value * 10 + u64::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_formats_give_the_same_date() {
        let basic = AmzDate::parse_basic(b"20130524T010203Z").expect("valid");
        let header = AmzDate::parse_date_header(b"Fri, 24 May 2013 01:02:03 GMT").expect("valid");
        assert_eq!(basic, header);
        assert_eq!(AmzDate::parse_date_header(b"Fri, 24 May 2013 01:02:03 -0000"), Some(basic));
        assert_eq!(AmzDate::parse_date_header(b"20130524T010203Z"), Some(basic));
        assert_eq!(basic.seconds, 1_369_357_323);
        assert_eq!((basic.text(), basic.day()), ("20130524T010203Z", "20130524"));
        assert_eq!(iso8601(Timestamp(1_369_357_323_999)), "2013-05-24T01:02:03Z");
    }

    #[test]
    fn dates_of_four_centuries_round_trip() {
        let mut seconds = 0;
        while seconds < SECONDS_PER_DAY * 366 * 400 {
            let fields = Fields::from_seconds(seconds);
            assert_eq!(fields.to_seconds(), Some(seconds));
            let date = fields.to_amz_date(seconds);
            assert_eq!(AmzDate::parse_basic(&date.text), Some(date));
            seconds += SECONDS_PER_DAY + 1;
        }
    }

    #[test]
    fn dates_that_do_not_exist_are_refused() {
        for text in [
            "20130229T000000Z",
            "19000228T000000Z",
            "20131301T000000Z",
            "20130001T000000Z",
            "20130100T000000Z",
            "20130132T000000Z",
            "20130101T240000Z",
            "20130101T006000Z",
            "20130101T000060Z",
            "20130101t000000Z",
            "20130101T000000+",
            "+0130101T000000Z",
            "20130101T000000",
            "",
        ] {
            assert_eq!(AmzDate::parse_basic(text.as_bytes()), None, "{text}");
        }
        assert!(AmzDate::parse_basic(b"20240229T000000Z").is_some());
    }

    #[test]
    fn other_date_header_formats_are_refused() {
        for text in [
            "Fri, 24 May 2013 00:00:00 UTC",
            "Fri, 24 Mai 2013 00:00:00 GMT",
            "Fry, 24 May 2013 00:00:00 GMT",
            "Fri, 24-May-2013 00:00:00 GMT",
            "Fri, 31 Jun 2013 00:00:00 GMT",
            "Friday, 24-May-13 00:00:00 GMT",
            "2013-05-24T00:00:00Z",
        ] {
            assert_eq!(AmzDate::parse_date_header(text.as_bytes()), None, "{text}");
        }
    }
}
