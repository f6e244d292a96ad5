//! The headers of an imported version: those of an upload, its tags and its lock.

use cairn_engine::limits::OBJECT_TAGS_MAX;
use cairn_engine::{Attributes, ObjectLock, Retention, RetentionMode, Tags};
use cairn_http1::{RequestHead, parse_rfc3339_millis, query_pairs};
use cairn_model::Timestamp;

use super::checksum;
use super::header_text::text;
use crate::error::AdminError;
use crate::handlers::objects::stored_headers;

const TAGGING: &str = "x-amz-tagging";
const MODE: &str = "x-amz-object-lock-mode";
const RETAIN_UNTIL: &str = "x-amz-object-lock-retain-until-date";
const LEGAL_HOLD: &str = "x-amz-object-lock-legal-hold";

/// Reads stored headers, tags and lock, without the checksum. Unlike a new lock, an imported one may have ended.
///
/// # Errors
/// `INVALID_REQUEST`.
pub(super) fn of_version(head: &RequestHead) -> Result<(Attributes, ObjectLock), AdminError> {
    let is_known =
        |name: &str| [TAGGING, MODE, RETAIN_UNTIL, LEGAL_HOLD].contains(&name) || checksum::is_header(name);
    let attributes = stored_headers(head, is_known)?;
    Ok((Attributes { tags: tags(head)?, ..attributes }, lock(head)?))
}

fn tags(head: &RequestHead) -> Result<Tags, AdminError> {
    let refused = || {
        AdminError::invalid(format!(
            "{TAGGING}: must be encoded like a query, with at most {OBJECT_TAGS_MAX} tags that are valid in S3"
        ))
    };
    let mut tags = Vec::new();
    for pair in query_pairs(text(head, TAGGING)?.unwrap_or_default()) {
        let (key, value) = pair.map_err(|_| refused())?;
        tags.push((key.into_owned(), value.into_owned()));
    }
    Tags::new(tags, OBJECT_TAGS_MAX).map_err(|_| refused())
}

fn lock(head: &RequestHead) -> Result<ObjectLock, AdminError> {
    let retention = match (text(head, MODE)?, text(head, RETAIN_UNTIL)?) {
        (None, None) => None,
        (Some(mode), Some(until)) => {
            let mode = RetentionMode::parse(mode);
            let until =
                parse_rfc3339_millis(until).map(Timestamp).filter(|until| *until <= Retention::UNTIL_MAX);
            let (mode, until) = mode.zip(until).ok_or_else(|| {
                AdminError::invalid(format!(
                    "{MODE} must be GOVERNANCE or COMPLIANCE, {RETAIN_UNTIL} a time (RFC 3339)"
                ))
            })?;
            Some(Retention { mode, until })
        }
        _ => return Err(AdminError::invalid(format!("{MODE} and {RETAIN_UNTIL} must be given together"))),
    };
    let legal_hold = match text(head, LEGAL_HOLD)? {
        None => None,
        Some("ON") => Some(true),
        Some("OFF") => Some(false),
        Some(_) => return Err(AdminError::invalid(format!("{LEGAL_HOLD} must be ON or OFF"))),
    };
    Ok(ObjectLock { retention, legal_hold })
}

#[cfg(test)]
mod tests {
    use super::of_version;
    use cairn_engine::{Attributes, ObjectLock, Retention, RetentionMode};
    use cairn_http1::{HeadLimits, parse_head};
    use cairn_model::Timestamp;

    fn read(fields: &str) -> Result<(Attributes, ObjectLock), String> {
        let text = format!("PUT / HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
        let (head, _) = parse_head(text.as_bytes(), &HeadLimits::default()).expect("parses").expect("whole");
        of_version(&head).map_err(|error| error.message())
    }

    #[test]
    fn tags_and_lock_are_read() {
        let (attributes, lock) = read(
            "content-type: a/b\r\nx-amz-meta-a: 1\r\nx-amz-tagging: a%20b=c+d&e=\r\nx-amz-object-lock-mode: COMPLIANCE\r\n\
             x-amz-object-lock-retain-until-date: 1970-01-01T00:00:01.000Z\r\nx-amz-object-lock-legal-hold: OFF\r\n",
        )
        .expect("is valid");
        assert_eq!(attributes.tags.iter().collect::<Vec<_>>(), [("a b", "c d"), ("e", "")]);
        assert_eq!(attributes.headers.len(), 2);
        let retention = Some(Retention { mode: RetentionMode::Compliance, until: Timestamp(1000) });
        assert_eq!(lock, ObjectLock { retention, legal_hold: Some(false) });
        assert_eq!(read("").expect("is valid"), (Attributes::default(), ObjectLock::default()));
    }

    #[test]
    fn invalid_tags_and_locks_are_refused() {
        for fields in [
            "x-amz-tagging: a=%zz\r\n",
            "x-amz-tagging: a=1&a=2\r\n",
            "x-amz-tagging: a=1&b=2&c=3&d=4&e=5&f=6&g=7&h=8&i=9&j=10&k=11\r\n",
            "x-amz-object-lock-mode: COMPLIANCE\r\n",
            "x-amz-object-lock-mode: NONE\r\nx-amz-object-lock-retain-until-date: 2030-01-01T00:00:00Z\r\n",
            "x-amz-object-lock-mode: COMPLIANCE\r\nx-amz-object-lock-retain-until-date: soon\r\n",
            "x-amz-object-lock-legal-hold: on\r\n",
            "x-amz-acl: private\r\n",
        ] {
            assert!(read(fields).is_err(), "{fields}");
        }
    }
}
