//! `Retry-After` of an answer (RFC 9110, section 10.2.3): seconds, or a date.

use std::time::Duration;

use cairn_http1::date::parse_http_date;
use cairn_model::Timestamp;

use crate::limits::RETRY_AFTER_MAX;

/// Returns how long the receiver asks to wait, at most one hour. `None` if it says nothing that can be understood.
pub(super) fn parse(value: &[u8], now: Timestamp) -> Option<Duration> {
    let text = std::str::from_utf8(value).ok()?.trim_matches([' ', '\t']);
    let seconds = if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than fit are a long time.
        text.parse().unwrap_or(u64::MAX)
    } else {
        let at = parse_http_date(text.as_bytes())?;
        u64::try_from(at).unwrap_or(0).saturating_sub(now.seconds())
    };
    Some(Duration::from_secs(seconds).min(RETRY_AFTER_MAX))
}

#[cfg(test)]
mod tests {
    use super::{Duration, Timestamp, parse};

    #[test]
    fn seconds_and_dates_are_understood_and_capped() {
        let now = Timestamp(784_111_777_000);
        for (value, seconds) in [
            ("0", Some(0)),
            ("120", Some(120)),
            (" 7\t", Some(7)),
            ("3600", Some(3600)),
            ("3601", Some(3600)),
            ("99999999999999999999999", Some(3600)),
            ("Sun, 06 Nov 1994 08:50:37 GMT", Some(60)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(0)),
            ("Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
            ("Mon, 07 Nov 1994 08:49:37 GMT", Some(3600)),
            ("", None),
            ("-1", None),
            ("+1", None),
            ("1.5", None),
            ("soon", None),
        ] {
            assert_eq!(parse(value.as_bytes(), now), seconds.map(Duration::from_secs), "{value:?}");
        }
        assert_eq!(parse(b"\xff", now), None);
    }
}
