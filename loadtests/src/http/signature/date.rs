//! Formats the time of a signature, such as `20130524T000000Z`, and its day.

use std::time::{SystemTime, UNIX_EPOCH};

/// A second of UTC in the form of SigV4.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Moment {
    seconds: u64,
    stamp: String,
}

/// Length of `20130524`.
const DATE_BYTES: usize = 8;

impl Moment {
    /// The current time.
    #[must_use]
    pub fn now() -> Self {
        Self::from_unix_seconds(unix_seconds())
    }

    /// A given second.
    #[must_use]
    pub fn from_unix_seconds(seconds: u64) -> Self {
        let (year, month, day) = civil(seconds / 86_400);
        let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
        let stamp = format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z");
        Self { seconds, stamp }
    }

    /// Updates to the current second; cheap if it has not changed.
    pub fn refresh(&mut self) {
        if unix_seconds() != self.seconds {
            *self = Self::now();
        }
    }

    /// `20130524T000000Z`
    #[must_use]
    pub fn stamp(&self) -> &str {
        &self.stamp
    }

    /// `20130524`
    #[must_use]
    pub fn date(&self) -> &str {
        &self.stamp[..DATE_BYTES]
    }
}

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Returns year, month and day of a day counted from 1970-01-01. The calculation uses 400-year cycles of 146 097 days, and
/// years that begin in March, so that the leap day is the last day of its year.
const fn civil(days: u64) -> (u64, u64, u64) {
    let since_march_0000 = days + 719_468;
    let cycle = since_march_0000 / 146_097;
    let day_of_cycle = since_march_0000 % 146_097;
    let year_of_cycle =
        (day_of_cycle - day_of_cycle / 1_460 + day_of_cycle / 36_524 - day_of_cycle / 146_096) / 365;
    let day_of_year = day_of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_cycle + cycle * 400 + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_seconds_have_their_dates() {
        for (seconds, stamp) in [
            (0, "19700101T000000Z"),
            (951_782_400, "20000229T000000Z"),
            (1_369_353_600, "20130524T000000Z"),
            (1_709_251_199, "20240229T235959Z"),
            (4_107_542_400, "21000301T000000Z"),
        ] {
            assert_eq!(Moment::from_unix_seconds(seconds).stamp(), stamp);
        }
        assert_eq!(Moment::from_unix_seconds(1_369_353_600).date(), "20130524");
    }
}
