//! The routes of a bucket's object lock: its default retention.
//!
//! Whether a bucket has object lock is decided when it is created.

use cairn_engine::{BucketChange, BucketSettings, DefaultRetention, RetentionMode, RetentionPeriod};
use http::StatusCode;
use serde::{Deserialize, Serialize};

use crate::call::Call;
use crate::error::AdminError;
use crate::reply::Reply;
use crate::request::json::present;

/// A retention mode in requests and responses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum ModeName {
    #[serde(rename = "GOVERNANCE")]
    Governance,
    #[serde(rename = "COMPLIANCE")]
    Compliance,
}

impl From<RetentionMode> for ModeName {
    fn from(mode: RetentionMode) -> Self {
        match mode {
            RetentionMode::Governance => Self::Governance,
            RetentionMode::Compliance => Self::Compliance,
        }
    }
}

impl From<ModeName> for RetentionMode {
    fn from(mode: ModeName) -> Self {
        match mode {
            ModeName::Governance => Self::Governance,
            ModeName::Compliance => Self::Compliance,
        }
    }
}

/// The retention of versions that are written without one of their own: days or years, not both.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DefaultRetentionBody {
    mode: ModeName,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    days: Option<u32>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    years: Option<u32>,
}

impl From<DefaultRetention> for DefaultRetentionBody {
    fn from(retention: DefaultRetention) -> Self {
        let (days, years) = match retention.period {
            RetentionPeriod::Days(days) => (Some(days), None),
            RetentionPeriod::Years(years) => (None, Some(years)),
        };
        Self { mode: retention.mode.into(), days, years }
    }
}

impl DefaultRetentionBody {
    fn checked(&self) -> Result<DefaultRetention, AdminError> {
        let positive = |name: &str, number: u32, max: u32| {
            if (1..=max).contains(&number) {
                return Ok(number);
            }
            Err(AdminError::invalid(format!("default_retention.{name}: must be 1 to {max}")))
        };
        let period = match (self.days, self.years) {
            (Some(days), None) => RetentionPeriod::Days(positive("days", days, RetentionPeriod::DAYS_MAX)?),
            (None, Some(years)) => {
                RetentionPeriod::Years(positive("years", years, RetentionPeriod::YEARS_MAX)?)
            }
            _ => return Err(AdminError::invalid("default_retention: either days or years is required")),
        };
        Ok(DefaultRetention { mode: self.mode.into(), period })
    }
}

#[derive(Serialize)]
struct ObjectLockBody {
    object_lock: bool,
    default_retention: Option<DefaultRetentionBody>,
}

impl From<&BucketSettings> for ObjectLockBody {
    fn from(settings: &BucketSettings) -> Self {
        let default_retention = settings.default_retention.map(DefaultRetentionBody::from);
        Self { object_lock: settings.object_lock, default_retention }
    }
}

/// A request for another default retention. `default_retention` is required, and null removes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SetRequest {
    #[serde(deserialize_with = "Option::deserialize")]
    default_retention: Option<DefaultRetentionBody>,
}

/// `GET /api/v1/buckets/{bucket}/object-lock`.
pub(crate) async fn get(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    Reply::json(StatusCode::OK, &ObjectLockBody::from(&*call.bucket()?.settings()))
}

/// `PUT /api/v1/buckets/{bucket}/object-lock`: for versions that are written from now on.
pub(crate) async fn set(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    let bucket = call.bucket()?;
    let request: SetRequest = call.json().await?;
    let retention = request.default_retention.map(|body| body.checked()).transpose()?;
    if !bucket.settings().object_lock {
        return Err(AdminError::ObjectLockNotEnabled);
    }
    call.store()?.change_bucket(&bucket, BucketChange::DefaultRetention(retention)).await?;
    let detail = retention.map_or_else(
        || "without default retention".to_owned(),
        |retention| format!("default retention {retention}"),
    );
    let body = ObjectLockBody { object_lock: true, default_retention: retention.map(Into::into) };
    Ok(Reply::json(StatusCode::OK, &body)?.detail(detail))
}

#[cfg(test)]
mod tests {
    use super::SetRequest;
    use cairn_engine::{DefaultRetention, RetentionMode, RetentionPeriod};

    fn read(text: &str) -> Result<Option<DefaultRetention>, String> {
        let request: SetRequest = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let checked = request.default_retention.map(|body| body.checked()).transpose();
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
            (r#"{"default_retention": {"mode": "GOVERNANCE", "days": null, "years": 1}}"#, "invalid type"),
        ] {
            let refused = read(text).expect_err(text);
            assert!(refused.contains(said), "{text}: {refused}");
        }
    }
}
