//! Sizes and times in the two languages of the pages.

use crate::public::negotiation::Language;
use cairn_http1::iso8601_millis;
use cairn_model::Timestamp;

const MONTHS_ENGLISH: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const MONTHS_GERMAN: [&str; 12] = [
    "Januar",
    "Februar",
    "März",
    "April",
    "Mai",
    "Juni",
    "Juli",
    "August",
    "September",
    "Oktober",
    "November",
    "Dezember",
];

/// Formats a number of bytes: rounded in powers of ten, and exactly.
pub(crate) fn size(bytes: u64, language: Language) -> String {
    let unit = if language == Language::German { "Bytes" } else { "bytes" };
    let exact = match (bytes, language) {
        (1, Language::English) => "1 byte".to_owned(),
        (1, Language::German) => "1 Byte".to_owned(),
        _ => format!("{} {unit}", grouped(bytes, language)),
    };
    match rounded(bytes, language) {
        Some(rounded) => format!("{rounded} ({exact})"),
        None => exact,
    }
}

/// Formats a number of bytes in powers of ten; `None` below 1000.
pub(crate) fn rounded(bytes: u64, language: Language) -> Option<String> {
    const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];
    let mut divisor: u64 = 1000;
    let mut unit = 0;
    // 999 950 bytes round to 1.0 MB, not to 1000.0 kB.
    while unit + 1 < UNITS.len() && tenths(bytes, divisor) >= 10_000 {
        divisor = divisor.saturating_mul(1000);
        unit += 1;
    }
    if bytes < 1000 {
        return None;
    }
    let tenths = tenths(bytes, divisor);
    let point = if language == Language::German { ',' } else { '.' };
    Some(if tenths >= 1000 {
        format!("{} {}", (u128::from(bytes) + u128::from(divisor) / 2) / u128::from(divisor), UNITS[unit])
    } else {
        format!("{}{point}{} {}", tenths / 10, tenths % 10, UNITS[unit])
    })
}

/// Returns `bytes / divisor` in tenths, rounded.
fn tenths(bytes: u64, divisor: u64) -> u128 {
    (u128::from(bytes) * 10 + u128::from(divisor) / 2) / u128::from(divisor)
}

/// Formats a number with separators of thousands.
pub(crate) fn grouped(number: u64, language: Language) -> String {
    let digits = number.to_string();
    let separator = if language == Language::German { '.' } else { ',' };
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(separator);
        }
        text.push(digit);
    }
    text
}

/// Formats a time to the minute, in UTC.
pub(crate) fn time(time: Timestamp, language: Language) -> String {
    let iso = iso8601_millis(time.0);
    let parts = iso.split_once('T').and_then(|(date, clock)| {
        let mut date = date.splitn(3, '-');
        let (year, month, day) = (date.next()?, date.next()?, date.next()?);
        let month = month.parse::<usize>().ok()?.checked_sub(1)?;
        let day = day.trim_start_matches('0');
        let minute = clock.get(..5)?;
        Some(match language {
            Language::English => format!("{day} {} {year}, {minute} UTC", MONTHS_ENGLISH.get(month)?),
            Language::German => format!("{day}. {} {year}, {minute} UTC", MONTHS_GERMAN.get(month)?),
        })
    });
    parts.unwrap_or(iso)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_and_exact() {
        for (bytes, english, german) in [
            (0, "0 bytes", "0 Bytes"),
            (1, "1 byte", "1 Byte"),
            (999, "999 bytes", "999 Bytes"),
            (1000, "1.0 kB (1,000 bytes)", "1,0 kB (1.000 Bytes)"),
            (999_949, "1000 kB (999,949 bytes)", "1000 kB (999.949 Bytes)"),
            (999_950, "1.0 MB (999,950 bytes)", "1,0 MB (999.950 Bytes)"),
            (123_456_789, "123 MB (123,456,789 bytes)", "123 MB (123.456.789 Bytes)"),
            (
                u64::MAX,
                "18.4 EB (18,446,744,073,709,551,615 bytes)",
                "18,4 EB (18.446.744.073.709.551.615 Bytes)",
            ),
        ] {
            assert_eq!(size(bytes, Language::English), english);
            assert_eq!(size(bytes, Language::German), german);
        }
    }

    #[test]
    fn times_are_in_utc() {
        let at = Timestamp(1_772_697_845_123);
        assert_eq!(time(at, Language::English), "5 March 2026, 08:04 UTC");
        assert_eq!(time(at, Language::German), "5. März 2026, 08:04 UTC");
    }
}
