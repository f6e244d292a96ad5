//! The proleptic Gregorian calendar: dates to days since the Unix epoch, and back.
//!
//! Pure arithmetic in UTC, without a clock, time zones or leap seconds. Years are counted from March, so that the leap day
//! is the last of its year, in eras of 400 years, which all have the same number of days.

/// Seconds of a day in UTC.
pub const SECONDS_PER_DAY: u64 = 86_400;
/// The abbreviations of the weekdays in HTTP dates, from Monday on (RFC 9110 section 5.6.7).
pub const WEEKDAYS: [&[u8; 3]; 7] = [b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat", b"Sun"];
/// The abbreviations of the months in HTTP dates (RFC 9110 section 5.6.7).
pub const MONTHS: [&[u8; 3]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];

/// Days from 1 March of year 0 to the Unix epoch.
const DAYS_TO_EPOCH: u64 = 719_468;
const DAYS_PER_ERA: u64 = 146_097;

/// Returns the days from the Unix epoch to a date, negative before it. Months and days count from 1. `None` if the calendar
/// has no such date.
#[must_use]
pub const fn days_of_date(year: i64, month: i64, day: i64) -> Option<i64> {
    if month < 1 || month > 12 || day < 1 || day > days_of_month(year, month) {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let year_of_era = year.rem_euclid(400);
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(year.div_euclid(400) * DAYS_PER_ERA.cast_signed() + day_of_era - DAYS_TO_EPOCH.cast_signed())
}

/// Returns the value of the decimal digits of a field of a date; `None` if another byte is among them.
#[must_use]
pub fn digits_value(digits: &[u8]) -> Option<i64> {
    digits
        .iter()
        .try_fold(0, |value, digit| digit.is_ascii_digit().then(|| value * 10 + i64::from(digit - b'0')))
}

/// Returns year, month (1 to 12) and day (1 to 31) of the day that is `days` after the Unix epoch.
#[must_use]
pub const fn date_of_days(days: u64) -> (u64, u64, u64) {
    let days = days + DAYS_TO_EPOCH;
    let era = days / DAYS_PER_ERA;
    let day_of_era = days % DAYS_PER_ERA;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

const fn days_of_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts day by day, without the arithmetic under test.
    #[test]
    fn dates_of_six_centuries_agree_with_counting() {
        let mut days = 0;
        for year in 1970_u64..2570 {
            let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
            for (month, length) in
                (1..).zip([31, 28 + u64::from(leap), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
            {
                for day in 1..=length {
                    assert_eq!(date_of_days(days), (year, month, day));
                    let date = [year, month, day].map(u64::cast_signed);
                    assert_eq!(days_of_date(date[0], date[1], date[2]), Some(days.cast_signed()));
                    days += 1;
                }
            }
        }
    }

    #[test]
    fn dates_before_the_epoch_are_negative() {
        assert_eq!(days_of_date(1969, 12, 31), Some(-1));
        assert_eq!(days_of_date(1900, 3, 1), Some(-25_508));
        assert_eq!(days_of_date(0, 3, 1), Some(-719_468));
    }

    #[test]
    fn dates_that_do_not_exist_are_none() {
        for (year, month, day) in [
            (2013, 2, 29),
            (1900, 2, 29),
            (2100, 2, 29),
            (2026, 13, 1),
            (2026, 0, 1),
            (2026, 4, 31),
            (2026, 1, 0),
        ] {
            assert_eq!(days_of_date(year, month, day), None, "{year}-{month}-{day}");
        }
    }
}
