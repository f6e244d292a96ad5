//! Retention and legal hold of a version.
//!
//! `PUT /api/v1/buckets/{bucket}/object-retention/{key}` and `PUT …/object-legal-hold/{key}`, both with an optional
//! `version_id`. The engine decides whether the present retention allows a change, as for PutObjectRetention.

use cairn_api::{LegalHold, RetentionOfVersion, SetRetention};
use cairn_engine::{EngineError, Retention};
use cairn_http1::{iso8601_millis, parse_rfc3339_millis};
use cairn_model::{Clock, SystemClock, Timestamp};
use http::StatusCode;

use super::object_ref::ObjectRef;
use crate::call::Call;
use crate::error::AdminError;
use crate::handlers::object_lock::{mode_name, mode_of};
use crate::reply::Reply;

/// The reason why a retention stays as it is.
const NOT_SHORTENED: &str = "the retention of the version cannot be made shorter or weaker, or be removed: with COMPLIANCE not \
                             before it ends, with GOVERNANCE only with \"bypass_governance\": true";

/// Returns the body of a retention.
pub(crate) fn retention_body(retention: Retention) -> cairn_api::Retention {
    cairn_api::Retention { mode: mode_name(retention.mode), retain_until: retention.until.into() }
}

fn checked(body: &cairn_api::Retention, now: Timestamp) -> Result<Retention, AdminError> {
    let until = parse_rfc3339_millis(&body.retain_until).map(Timestamp);
    let until = until.filter(|until| *until <= Retention::UNTIL_MAX).ok_or_else(|| {
        AdminError::invalid("retention.retain_until: must be a time like 2030-01-31T12:00:00Z (RFC 3339)")
    })?;
    if until <= now {
        return Err(AdminError::invalid("retention.retain_until: must be in the future"));
    }
    Ok(Retention { mode: mode_of(body.mode), until })
}

/// Returns the version that a request names. Nothing in a bucket without object lock can be locked.
fn target(call: &Call<'_, '_>) -> Result<ObjectRef, AdminError> {
    let target = ObjectRef::of(call)?;
    if target.bucket.settings().object_lock { Ok(target) } else { Err(AdminError::ObjectLockNotEnabled) }
}

/// Describes a version for the audit trail.
fn of_version(target: &ObjectRef) -> String {
    target
        .version
        .map_or_else(|| "of the current version".to_owned(), |version| format!("of version {version}"))
}

/// `PUT …/object-retention/{key}`: sets or removes the retention of a version.
pub(crate) async fn set_retention(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let target = target(&call)?;
    let request: SetRetention = call.json().await?;
    let retention = request.retention.map(|body| checked(&body, SystemClock.now())).transpose()?;
    let bypass = request.bypass_governance;
    let (bucket, key, version) = (&target.bucket, &target.key, target.version);
    let set = call.engine()?.set_retention(bucket, key, version, retention, bypass).await;
    set.map_err(|error| match error {
        EngineError::ObjectLocked => AdminError::ObjectLocked(NOT_SHORTENED),
        error => target.source_error(error),
    })?;
    let what = retention.map_or_else(
        || "without retention".to_owned(),
        |set| format!("retention {} until {}", set.mode.name(), iso8601_millis(set.until.0)),
    );
    let with = if bypass { "; governance bypassed" } else { "" };
    let answer = RetentionOfVersion { retention: retention.map(retention_body) };
    Ok(Reply::json(StatusCode::OK, &answer)?.detail(format!("{what} {}{with}", of_version(&target))))
}

/// `PUT …/object-legal-hold/{key}`: puts a legal hold on a version, or takes it off.
pub(crate) async fn set_legal_hold(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let target = target(&call)?;
    let request: LegalHold = call.json().await?;
    let (bucket, key, version) = (&target.bucket, &target.key, target.version);
    let set = call.engine()?.set_legal_hold(bucket, key, version, request.legal_hold).await;
    set.map_err(|error| target.source_error(error))?;
    let what = if request.legal_hold { "legal hold set" } else { "legal hold lifted" };
    Ok(Reply::json(StatusCode::OK, &request)?.detail(format!("{what} {}", of_version(&target))))
}

#[cfg(test)]
mod tests {
    use super::{SetRetention, checked};
    use cairn_engine::{Retention, RetentionMode};
    use cairn_model::Timestamp;

    fn read(text: &str) -> Result<Option<Retention>, String> {
        let request: SetRetention = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let checked = request.retention.map(|body| checked(&body, Timestamp(1000))).transpose();
        checked.map_err(|error| error.message())
    }

    #[test]
    fn retention_ends_in_the_future_or_is_null() {
        assert_eq!(read(r#"{"retention": null}"#), Ok(None));
        let until = |text: &str| {
            read(&format!(r#"{{"retention": {{"mode": "GOVERNANCE", "retain_until": "{text}"}}}}"#))
        };
        let expected =
            |until| Ok(Some(Retention { mode: RetentionMode::Governance, until: Timestamp(until) }));
        assert_eq!(until("1970-01-01T00:00:01.001Z"), expected(1001));
        assert_eq!(until("1970-01-01T01:00:02+01:00"), expected(2000));
        for (text, said) in [
            ("1970-01-01T00:00:01Z", "in the future"),
            ("2030-01-01", "RFC 3339"),
            ("", "RFC 3339"),
            ("9999-12-31T23:59:59.9999Z", "RFC 3339"),
        ] {
            let refused = until(text).expect_err(text);
            assert!(refused.contains(said), "{text}: {refused}");
        }
        for text in [
            "{}",
            r#"{"retention": {"mode": "GOVERNANCE"}}"#,
            r#"{"retention": {"mode": "NONE", "retain_until": "2030-01-01T00:00:00Z"}}"#,
            r#"{"retention": null, "bypass": true}"#,
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
