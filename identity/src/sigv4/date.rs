//! Parses the dates of signed requests.
//!
//! All dates are in UTC, from 1970 to 9999, without leap seconds. Dates that do not exist are refused.

use cairn_model::calendar::{MONTHS, SECONDS_PER_DAY, WEEKDAYS, days_of_date, digits_value};

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
        let days =
            days_of_date(digits_value(&text[..4])?, digits_value(&text[4..6])?, digits_value(&text[6..8])?)?;
        let (hour, minute, second) =
            (digits_value(&text[9..11])?, digits_value(&text[11..13])?, digits_value(&text[13..15])?);
        if hour >= 24 || minute >= 60 || second >= 60 {
            return None;
        }
        let seconds = days * SECONDS_PER_DAY.cast_signed() + hour * 3600 + minute * 60 + second;
        Some(Self { text, seconds: u64::try_from(seconds).ok()? })
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
        let month = (1_u8..).zip(MONTHS).find(|(_, name)| **name == text[8..11])?.0;
        let mut basic = *b"YYYYMMDDTHHMMSSZ";
        basic[..4].copy_from_slice(&text[12..16]);
        basic[4..6].copy_from_slice(&[b'0' + month / 10, b'0' + month % 10]);
        for (at, field) in [(6, &text[5..7]), (9, &text[17..19]), (11, &text[20..22]), (13, &text[23..25])] {
            basic[at..at + 2].copy_from_slice(field);
        }
        Self::parse_basic(&basic)
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

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_model::iso8601::iso8601_seconds;

    #[test]
    fn both_formats_give_the_same_date() {
        let basic = AmzDate::parse_basic(b"20130524T010203Z").expect("valid");
        let header = AmzDate::parse_date_header(b"Fri, 24 May 2013 01:02:03 GMT").expect("valid");
        assert_eq!(basic, header);
        assert_eq!(AmzDate::parse_date_header(b"Fri, 24 May 2013 01:02:03 -0000"), Some(basic));
        assert_eq!(AmzDate::parse_date_header(b"20130524T010203Z"), Some(basic));
        assert_eq!(basic.seconds, 1_369_357_323);
        assert_eq!((basic.text(), basic.day()), ("20130524T010203Z", "20130524"));
    }

    #[test]
    fn dates_of_four_centuries_round_trip() {
        let mut seconds = 0;
        while seconds < SECONDS_PER_DAY * 366 * 400 {
            let text: String = iso8601_seconds(seconds).replace(['-', ':'], "");
            assert_eq!(
                AmzDate::parse_basic(text.as_bytes()).map(|date| date.seconds),
                Some(seconds),
                "{text}"
            );
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
