//! The routes of a bucket's object lock: its default retention.
//!
//! Whether a bucket has object lock is decided when it is created.

use cairn_api::{ObjectLock, SetObjectLock};
use cairn_engine::{BucketChange, DefaultRetention, RetentionMode, RetentionPeriod};
use http::StatusCode;

use crate::call::Call;
use crate::error::AdminError;
use crate::reply::Reply;

/// Returns the name of a mode in bodies.
pub(crate) const fn mode_name(mode: RetentionMode) -> cairn_api::RetentionMode {
    match mode {
        RetentionMode::Governance => cairn_api::RetentionMode::Governance,
        RetentionMode::Compliance => cairn_api::RetentionMode::Compliance,
    }
}

/// Returns the mode of a name.
pub(crate) const fn mode_of(name: cairn_api::RetentionMode) -> RetentionMode {
    match name {
        cairn_api::RetentionMode::Governance => RetentionMode::Governance,
        cairn_api::RetentionMode::Compliance => RetentionMode::Compliance,
    }
}

fn retention_body(retention: DefaultRetention) -> cairn_api::DefaultRetention {
    let (days, years) = match retention.period {
        RetentionPeriod::Days(days) => (Some(days), None),
        RetentionPeriod::Years(years) => (None, Some(years)),
    };
    cairn_api::DefaultRetention { mode: mode_name(retention.mode), days, years }
}

/// Validates a default retention.
pub(crate) fn checked(body: &cairn_api::DefaultRetention) -> Result<DefaultRetention, AdminError> {
    let positive = |name: &str, number: u32, max: u32| {
        if (1..=max).contains(&number) {
            return Ok(number);
        }
        Err(AdminError::invalid(format!("default_retention.{name}: must be 1 to {max}")))
    };
    let period = match (body.days, body.years) {
        (Some(days), None) => RetentionPeriod::Days(positive("days", days, RetentionPeriod::DAYS_MAX)?),
        (None, Some(years)) => RetentionPeriod::Years(positive("years", years, RetentionPeriod::YEARS_MAX)?),
        _ => return Err(AdminError::invalid("default_retention: either days or years is required")),
    };
    Ok(DefaultRetention { mode: mode_of(body.mode), period })
}

/// `GET /api/v1/buckets/{bucket}/object-lock`.
pub(crate) async fn get(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let settings = call.bucket()?.settings();
    let default_retention = settings.default_retention.map(retention_body);
    Reply::json(StatusCode::OK, &ObjectLock { object_lock: settings.object_lock, default_retention })
}

/// `PUT /api/v1/buckets/{bucket}/object-lock`: for versions that are written from now on.
pub(crate) async fn set(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let bucket = call.bucket()?;
    let request: SetObjectLock = call.json().await?;
    let retention = request.default_retention.as_ref().map(checked).transpose()?;
    if !bucket.settings().object_lock {
        return Err(AdminError::ObjectLockNotEnabled);
    }
    call.store()?.change_bucket(&bucket, BucketChange::DefaultRetention(retention)).await?;
    let detail = retention.map_or_else(
        || "without default retention".to_owned(),
        |retention| format!("default retention {retention}"),
    );
    let body = ObjectLock { object_lock: true, default_retention: retention.map(retention_body) };
    Ok(Reply::json(StatusCode::OK, &body)?.detail(detail))
}

#[cfg(test)]
mod tests {
    use super::{SetObjectLock, checked};
    use cairn_engine::{DefaultRetention, RetentionMode, RetentionPeriod};

    fn read(text: &str) -> Result<Option<DefaultRetention>, String> {
        let request: SetObjectLock = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let checked = request.default_retention.as_ref().map(checked).transpose();
        checked.map_err(|error| error.message())
    }

    #[test]
    fn default_retention_has_a_mode_and_one_period_or_is_null() {
        assert_eq!(read(r#"{"default_retention": null}"#), Ok(None));
        let expected = |mode, period| Ok(Some(DefaultRetention { mode, period }));
        assert_eq!(
            read(r#"{"default_retention": {"mode": "GOVERNANCE", "days": 36500}}"#),
            expected(RetentionMode::Governance, RetentionPeriod::Days(36_500))
        );
        assert_eq!(
            read(r#"{"default_retention": {"mode": "COMPLIANCE", "years": 100}}"#),
            expected(RetentionMode::Compliance, RetentionPeriod::Years(100))
        );
        for (text, said) in [
            ("{}", "missing field"),
            (r#"{"default_retention": {"mode": "GOVERNANCE"}}"#, "either days or years"),
            (
                r#"{"default_retention": {"mode": "GOVERNANCE", "days": 1, "years": 1}}"#,
                "either days or years",
            ),
            (r#"{"default_retention": {"mode": "GOVERNANCE", "days": 0}}"#, "1 to 36500"),
            (r#"{"default_retention": {"mode": "GOVERNANCE", "days": 36501}}"#, "1 to 36500"),
            (r#"{"default_retention": {"mode": "GOVERNANCE", "years": 101}}"#, "1 to 100"),
            (r#"{"default_retention": {"mode": "governance", "days": 1}}"#, "unknown variant"),
        ] {
            let refused = read(text).expect_err(text);
            assert!(refused.contains(said), "{text}: {refused}");
        }
    }
}
