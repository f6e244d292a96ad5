//! Points in time, given as an age, a date or a time.

use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use cairn_http1::{iso8601_millis, parse_rfc3339_millis};
use jiff::Zoned;

use crate::quantity::Duration;

/// The last millisecond of the year 9999, which RFC 3339 can express.
const MILLIS_MAX: u64 = 253_402_300_799_999;

/// A point in time, as the API reads it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Moment(pub(crate) String);

impl FromStr for Moment {
    type Err = &'static str;

    /// Parses an age, a date, a time of RFC 3339, or a time of today or yesterday.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(time) = time(text).or_else(|| local_time(text, &Zoned::now())) {
            return Ok(Self(time));
        }
        let age = span(text).ok_or(
            "expected an age such as 1h, a date such as 2026-11-21, 2026-11-21T05:00:00Z, or \"yesterday 18:00\"",
        )?;
        Ok(Self(iso8601_millis(now_millis().saturating_sub(age.seconds.saturating_mul(1000)))))
    }
}

/// Returns a time of RFC 3339, or the first moment of a date.
fn time(text: &str) -> Option<String> {
    let midnight = format!("{text}T00:00:00Z");
    [text.to_owned(), midnight].into_iter().find(|time| parse_rfc3339_millis(time).is_some())
}

/// Returns a time of today or yesterday in the time zone of `now`, such as `yesterday 18:00`. Without a time, the first moment.
fn local_time(text: &str, now: &Zoned) -> Option<String> {
    let (day, clock) = text.split_once(' ').unwrap_or((text, "00:00"));
    let date = match day {
        "today" => now.date(),
        "yesterday" => now.date().yesterday().ok()?,
        _ => return None,
    };
    let time = date.to_datetime(clock.parse().ok()?).to_zoned(now.time_zone().clone()).ok()?;
    u64::try_from(time.timestamp().as_millisecond()).ok().map(iso8601_millis)
}

/// Returns a duration with its unit: a bare number could be seconds or a year.
fn span(text: &str) -> Option<Duration> {
    text.parse().ok().filter(|_| text.ends_with(|last: char| last.is_ascii_alphabetic()))
}

/// A point in the future.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Deadline {
    /// A time, as the API reads it.
    At(String),
    /// This many seconds from now.
    In(u64),
}

impl Deadline {
    /// Returns the time, as the API reads it. `now` is the time of the server (RFC 3339).
    pub(crate) fn from(&self, now: &str) -> String {
        match self {
            Self::At(time) => time.clone(),
            Self::In(seconds) => {
                let now = parse_rfc3339_millis(now).unwrap_or_else(now_millis);
                iso8601_millis(now.saturating_add(seconds.saturating_mul(1000)).min(MILLIS_MAX))
            }
        }
    }
}

impl FromStr for Deadline {
    type Err = &'static str;

    /// Parses a duration from now, a date, or a time of RFC 3339.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(time) = time(text) {
            return Ok(Self::At(time));
        }
        let duration = span(text)
            .ok_or("expected a duration such as 30d, a date such as 2026-11-21, or 2026-11-21T05:00:00Z")?;
        Ok(Self::In(duration.seconds))
    }
}

/// Returns the time of this host in milliseconds since the Unix epoch.
pub(crate) fn now_millis() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(text: &str) -> Option<u64> {
        text.parse::<Moment>().ok().and_then(|moment| parse_rfc3339_millis(&moment.0))
    }

    #[test]
    fn a_date_is_its_first_moment_and_an_age_ends_now() {
        assert_eq!(millis("2026-11-21"), millis("2026-11-21T00:00:00Z"));
        assert_eq!(millis("2026-11-21T05:00:00+01:00"), Some(1_795_233_600_000));
        for (age, seconds) in [("90s", 90), ("15m", 900), ("1h", 3600), ("7d", 604_800)] {
            let before = now_millis();
            let found = millis(age).unwrap();
            let after = now_millis();
            assert!((before..=after).contains(&(found + seconds * 1000)), "{age}");
        }
        for wrong in [
            "",
            "yesterday at six",
            "yesterday 25:00",
            "tomorrow 18:00",
            "2026",
            "3600",
            "2026-13-01",
            "2026-11",
            "1w",
            "-1h",
            "05:00",
        ] {
            assert!(wrong.parse::<Moment>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_of_today_and_yesterday_are_local() {
        let now: Zoned = "2026-11-21T05:00:00+01:00[+01:00]".parse().expect("a time");
        let local = |text| local_time(text, &now);
        assert_eq!(local("yesterday 18:00").as_deref(), Some("2026-11-20T17:00:00.000Z"));
        assert_eq!(local("today 04:30:15").as_deref(), Some("2026-11-21T03:30:15.000Z"));
        assert_eq!(local("yesterday").as_deref(), Some("2026-11-19T23:00:00.000Z"));
        assert_eq!((local("today  18:00"), local("18:00"), local("yesterday ")), (None, None, None));
        assert!("yesterday 18:00".parse::<Moment>().is_ok());
    }

    #[test]
    fn a_deadline_counts_from_the_time_of_the_server() {
        let from = |text: &str| text.parse::<Deadline>().map(|end| end.from("2026-11-21T05:00:00.000Z"));
        assert_eq!(from("30d").as_deref(), Ok("2026-12-21T05:00:00.000Z"));
        assert_eq!(from("90s").as_deref(), Ok("2026-11-21T05:01:30.000Z"));
        assert_eq!(from("2027-01-01").as_deref(), Ok("2027-01-01T00:00:00Z"));
        assert_eq!(from("2027-01-01T05:00:00+01:00").as_deref(), Ok("2027-01-01T05:00:00+01:00"));
        assert_eq!(from("200000000d").as_deref(), Ok("9999-12-31T23:59:59.999Z"));
        for wrong in ["", "tomorrow", "2026", "3600", "1w", "-1h", "never"] {
            assert!(from(wrong).is_err(), "{wrong}");
        }
    }
}
