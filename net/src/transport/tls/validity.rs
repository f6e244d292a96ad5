//! Reads the validity period of a certificate from its DER.
//!
//! Operators need the period, and the TLS library does not expose it. Walks the structure (RFC 5280 section 4.1) down to the
//! validity and checks nothing else.

use cairn_model::calendar::{SECONDS_PER_DAY, days_of_date, digits_value};
use std::ops::Range;

const SEQUENCE: u8 = 0x30;
const EXPLICIT_VERSION: u8 = 0xA0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
/// UTCTime has two digits for the year. From this value on they mean 19xx (RFC 5280 section 4.1.2.5.1).
const UTC_TIME_PIVOT: i64 = 50;

/// Returns the validity of a certificate in seconds since 1970, or `None` when it is malformed.
pub(crate) fn validity(certificate: &[u8]) -> Option<Range<i64>> {
    let (_, whole, _) = element(certificate)?;
    let (_, signed, _) = element(whole)?;
    let mut rest = signed;
    if signed.first() == Some(&EXPLICIT_VERSION) {
        (_, _, rest) = element(signed)?;
    }
    // Skip the serial number, the signature algorithm and the issuer.
    for _ in 0..3 {
        (_, _, rest) = element(rest)?;
    }
    let (tag, validity, _) = element(rest)?;
    let (not_before, begin, rest) = element(validity)?;
    let (not_after, end, _) = element(rest)?;
    (tag == SEQUENCE).then_some(())?;
    Some(seconds(not_before, begin)?..seconds(not_after, end)?)
}

/// Splits off the first element: returns its tag, its content and the rest.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let count = usize::from(first & 0x7F);
        // A certificate is shorter than 4 GiB.
        if count > 4 || count > rest.len() {
            return None;
        }
        let (digits, rest) = rest.split_at(count);
        (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

/// Converts `YYMMDDHHMMSSZ` or `YYYYMMDDHHMMSSZ` to seconds since 1970.
fn seconds(tag: u8, text: &[u8]) -> Option<i64> {
    let digits = text.strip_suffix(b"Z")?;
    let (year, digits) = match tag {
        UTC_TIME => {
            let (year, rest) = digits.split_at_checked(2)?;
            let year = digits_value(year)?;
            (year + if year < UTC_TIME_PIVOT { 2000 } else { 1900 }, rest)
        }
        GENERALIZED_TIME => {
            let (year, rest) = digits.split_at_checked(4)?;
            (digits_value(year)?, rest)
        }
        _ => return None,
    };
    if digits.len() != 10 {
        return None;
    }
    let field = |index: usize| digits_value(&digits[2 * index..2 * index + 2]);
    let days = days_of_date(year, field(0)?, field(1)?)?;
    Some(days * SECONDS_PER_DAY.cast_signed() + field(2)? * 3600 + field(3)? * 60 + field(4)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utc_time_and_generalized_time_are_parsed() {
        assert_eq!(seconds(UTC_TIME, b"700101000000Z"), Some(0));
        assert_eq!(seconds(UTC_TIME, b"261121212213Z"), Some(1_795_296_133));
        assert_eq!(seconds(UTC_TIME, b"491231235959Z"), Some(2_524_607_999));
        assert_eq!(seconds(UTC_TIME, b"500101000000Z"), Some(-631_152_000));
        assert_eq!(seconds(GENERALIZED_TIME, b"20240229120000Z"), Some(1_709_208_000));
        assert_eq!(seconds(GENERALIZED_TIME, b"99991231235959Z"), Some(253_402_300_799));
        for wrong in [&b"20241301000000Z"[..], b"2024010100000Z", b"20240101000000", b"2024010100000xZ", b"Z"]
        {
            assert_eq!(seconds(GENERALIZED_TIME, wrong), None);
        }
        assert_eq!(seconds(0x02, b"700101000000Z"), None);
    }

    #[test]
    fn truncated_certificates_do_not_panic() {
        let key = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let der = key.cert.der();
        assert!(validity(der).is_some_and(|range| range.start < range.end));
        for length in 0..der.len() / 2 {
            let _ = validity(&der[..length]);
        }
        assert_eq!(validity(&[]), None);
        assert_eq!(validity(&[0x30, 0x85, 1, 1, 1, 1, 1, 0]), None);
    }
}
