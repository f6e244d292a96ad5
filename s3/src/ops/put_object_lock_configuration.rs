//! PutObjectLockConfiguration: sets the default retention of a bucket with object lock. Source: API Reference,
//! PutObjectLockConfiguration; "Object Lock considerations" for the longest retention.

use crate::body::read_document;
use crate::call::Call;
use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::headers::object_lock::refuse_other_children;
use crate::reply::Reply;
use crate::xml::reader::Element;
use cairn_engine::{BucketChange, DefaultRetention, RetentionMode, RetentionPeriod};
use cairn_http1::StatusCode;
use cairn_net::RequestBody;

pub(crate) async fn put_object_lock_configuration(
    call: &Call<'_>,
    body: &mut RequestBody<'_>,
) -> S3Result<Reply> {
    let bucket = call.bucket()?;
    let retention = default_retention(&read_document(call, body, "ObjectLockConfiguration").await?)?;
    if !bucket.settings().object_lock {
        let message =
            "Object Lock configuration cannot be enabled on existing buckets: create the bucket with it.";
        return Err(S3Error::with_message(ErrorCode::InvalidBucketState, message));
    }
    call.engine.store().change_bucket(&bucket, BucketChange::DefaultRetention(retention)).await?;
    call.recording.describe(|| describe(retention));
    Ok(Reply::empty(StatusCode::OK))
}

/// Describes a default retention for the audit trail.
fn describe(retention: Option<DefaultRetention>) -> String {
    retention.map_or_else(
        || "without default retention".to_owned(),
        |retention| format!("default retention {retention}"),
    )
}

/// Reads the configuration. A configuration without a rule removes the default retention.
///
/// # Errors
/// `MalformedXML`; `InvalidArgument` for a period that is not positive or too long; `NotImplemented` for another element.
pub(crate) fn default_retention(document: &Element) -> S3Result<Option<DefaultRetention>> {
    refuse_other_children(document, &["ObjectLockEnabled", "Rule"])?;
    if document.only_text("ObjectLockEnabled")? != Some("Enabled") {
        return Err(ErrorCode::MalformedXML.into());
    }
    let Some(rule) = document.only_child("Rule")? else { return Ok(None) };
    refuse_other_children(rule, &["DefaultRetention"])?;
    let retention = rule.only_child("DefaultRetention")?.ok_or(ErrorCode::MalformedXML)?;
    refuse_other_children(retention, &["Mode", "Days", "Years"])?;
    let mode = retention.only_text("Mode")?.and_then(RetentionMode::parse).ok_or(ErrorCode::MalformedXML)?;
    let period = match (retention.only_text("Days")?, retention.only_text("Years")?) {
        (Some(days), None) => RetentionPeriod::Days(period("Days", days, RetentionPeriod::DAYS_MAX)?),
        (None, Some(years)) => RetentionPeriod::Years(period("Years", years, RetentionPeriod::YEARS_MAX)?),
        (None, None) | (Some(_), Some(_)) => return Err(ErrorCode::MalformedXML.into()),
    };
    Ok(Some(DefaultRetention { mode, period }))
}

fn period(name: &'static str, text: &str, max: u32) -> S3Result<u32> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(ErrorCode::MalformedXML.into());
    }
    // A number that does not fit into 32 bits is too large in any case.
    let number = if digits.len() < text.len() { 0 } else { digits.parse().unwrap_or(u32::MAX) };
    match number {
        0 => {
            let message = "Default retention period must be a positive integer value.";
            Err(S3Error::invalid_argument(name, text, message))
        }
        number if number > max => {
            let message = format!("Default retention period too large: it has at most {max} {name}.");
            Err(S3Error::invalid_argument(name, text, message))
        }
        number => Ok(number),
    }
}

#[cfg(test)]
mod tests {
    use super::default_retention;
    use crate::xml::reader::parse;
    use cairn_engine::{DefaultRetention, RetentionMode, RetentionPeriod};

    fn read(inner: &str) -> Result<Option<DefaultRetention>, &'static str> {
        let body = format!("<ObjectLockConfiguration>{inner}</ObjectLockConfiguration>");
        default_retention(&parse(body.as_bytes()).expect(inner)).map_err(|error| error.code())
    }

    fn rule(inner: &str) -> Result<Option<DefaultRetention>, &'static str> {
        read(&format!(
            "<ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule><DefaultRetention>{inner}</DefaultRetention></Rule>"
        ))
    }

    #[test]
    fn period_is_positive_and_bounded() {
        let expected = |mode, period| Ok(Some(DefaultRetention { mode, period }));
        assert_eq!(
            rule("<Mode>GOVERNANCE</Mode><Days>36500</Days>"),
            expected(RetentionMode::Governance, RetentionPeriod::Days(36_500))
        );
        assert_eq!(
            rule("<Years>100</Years><Mode>COMPLIANCE</Mode>"),
            expected(RetentionMode::Compliance, RetentionPeriod::Years(100))
        );
        for bad in ["<Days>0</Days>", "<Days>36501</Days>", "<Years>101</Years>", "<Years>-1</Years>"] {
            assert_eq!(rule(&format!("<Mode>GOVERNANCE</Mode>{bad}")), Err("InvalidArgument"), "{bad}");
        }
        assert_eq!(rule("<Mode>GOVERNANCE</Mode><Days>99999999999</Days>"), Err("InvalidArgument"));
    }

    #[test]
    fn missing_and_unknown_elements_are_malformed() {
        assert_eq!(read("<ObjectLockEnabled>Enabled</ObjectLockEnabled>"), Ok(None));
        for bad in [
            "",
            "<ObjectLockEnabled>Disabled</ObjectLockEnabled>",
            "<ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule/>",
        ] {
            assert_eq!(read(bad), Err("MalformedXML"), "{bad}");
        }
        let hold = "<Mode>GOVERNANCE</Mode><Days>1</Days><DefaultEventHold>ON</DefaultEventHold>";
        assert_eq!(rule(hold), Err("NotImplemented"));
        for bad in [
            "<Mode>GOVERNANCE</Mode>",
            "<Days>1</Days>",
            "<Mode>governance</Mode><Days>1</Days>",
            "<Mode>GOVERNANCE</Mode><Days>1</Days><Years>1</Years>",
            "<Mode>GOVERNANCE</Mode><Days>1</Days><Days>2</Days>",
            "<Mode>GOVERNANCE</Mode><Days>1.5</Days>",
            "<Mode>GOVERNANCE</Mode><Days/>",
        ] {
            assert_eq!(rule(bad), Err("MalformedXML"), "{bad}");
        }
    }
}
