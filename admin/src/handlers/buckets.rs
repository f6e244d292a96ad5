//! The routes of buckets: list, create, get, delete, versioning, quota.

use std::fmt;

use cairn_engine::{Bucket, BucketChange, BucketSettings, Cause, EngineError, Quota, Versioning};
use cairn_http1::iso8601_millis;
use http::StatusCode;
use serde::{Deserialize, Serialize};

use crate::call::Call;
use crate::error::AdminError;
use crate::limits::QUOTA_LIMIT_MAX;
use crate::reply::Reply;
use crate::request::names::bucket_name;

/// Versioning in requests and responses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum VersioningName {
    Unversioned,
    Enabled,
    Suspended,
}

impl From<Versioning> for VersioningName {
    fn from(versioning: Versioning) -> Self {
        match versioning {
            Versioning::Unversioned => Self::Unversioned,
            Versioning::Enabled => Self::Enabled,
            Versioning::Suspended => Self::Suspended,
        }
    }
}

/// Whether a dimension of a quota has a limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum QuotaMode {
    Limit,
    Unlimited,
}

impl QuotaMode {
    fn of(limit: Option<u64>) -> Self {
        if limit.is_some() { Self::Limit } else { Self::Unlimited }
    }

    /// Validates that mode and number agree, and returns the limit.
    fn limit(self, name: &str, number: Option<u64>) -> Result<Option<u64>, AdminError> {
        match (self, number) {
            (Self::Limit, Some(number)) if number <= QUOTA_LIMIT_MAX => Ok(Some(number)),
            (Self::Limit, Some(_)) => {
                Err(AdminError::invalid(format!("quota.{name}: the limit must be at most {QUOTA_LIMIT_MAX}")))
            }
            (Self::Unlimited, None) => Ok(None),
            (Self::Limit, None) => {
                Err(AdminError::invalid(format!("quota.{name}: the mode limit requires the field {name}")))
            }
            (Self::Unlimited, Some(_)) => Err(AdminError::invalid(format!(
                "quota.{name}: the mode unlimited does not allow the field {name}"
            ))),
        }
    }
}

/// The limit on bytes of current objects.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ByteQuota {
    mode: QuotaMode,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
}

/// The limit on the number of current objects.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ObjectQuota {
    mode: QuotaMode,
    #[serde(skip_serializing_if = "Option::is_none")]
    objects: Option<u64>,
}

/// Both dimensions of a quota (specification, "Quota").
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct QuotaBody {
    bytes: ByteQuota,
    objects: ObjectQuota,
}

impl From<Quota> for QuotaBody {
    fn from(quota: Quota) -> Self {
        let Quota { bytes, objects } = quota;
        Self {
            bytes: ByteQuota { mode: QuotaMode::of(bytes), bytes },
            objects: ObjectQuota { mode: QuotaMode::of(objects), objects },
        }
    }
}

#[derive(Serialize)]
struct UsageBody {
    bytes: u64,
    objects: u64,
}

/// Everything that a bucket contains. Versions include current objects.
#[derive(Serialize)]
struct ContentsBody {
    objects: u64,
    bytes: u64,
    versions: u64,
    version_bytes: u64,
    delete_markers: u64,
    multipart_uploads: u64,
    multipart_bytes: u64,
}

/// JSON form of a bucket.
#[derive(Serialize)]
struct BucketBody {
    name: String,
    created_at: String,
    versioning: VersioningName,
    object_lock: bool,
    quota: QuotaBody,
    usage: UsageBody,
}

impl From<&Bucket> for BucketBody {
    fn from(bucket: &Bucket) -> Self {
        let (settings, usage) = (bucket.settings(), bucket.usage());
        Self {
            name: bucket.name.to_string(),
            created_at: iso8601_millis(bucket.created_at.0),
            versioning: settings.versioning.into(),
            object_lock: settings.object_lock,
            quota: settings.quota.into(),
            usage: UsageBody { bytes: usage.bytes, objects: usage.objects },
        }
    }
}

#[derive(Serialize)]
struct BucketList {
    buckets: Vec<BucketBody>,
}

/// `GET /api/v1/buckets`.
pub(crate) async fn list(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    let buckets = call.store()?.buckets().iter().map(|bucket| BucketBody::from(&**bucket)).collect();
    Reply::json(StatusCode::OK, &BucketList { buckets })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CreateRequest {
    name: String,
    #[serde(default)]
    object_lock: bool,
}

/// `POST /api/v1/buckets`. Object lock enables versioning.
pub(crate) async fn create(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    let request: CreateRequest = call.json().await?;
    let name = bucket_name(&request.name)?;
    let settings = BucketSettings { object_lock: request.object_lock, ..BucketSettings::default() };
    let bucket = call.store()?.create_bucket(&name, settings, call.origin(Cause::Request)).await?;
    let detail = if request.object_lock { "with object lock" } else { "" };
    Ok(Reply::json(StatusCode::CREATED, &BucketBody::from(&*bucket))?.resource(name.as_str()).detail(detail))
}

/// `GET /api/v1/buckets/{bucket}`.
pub(crate) async fn get(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    Reply::json(StatusCode::OK, &BucketBody::from(&*call.bucket()?))
}

/// `GET /api/v1/buckets/{bucket}/contents`: from the counters that each commit keeps, at any size of the bucket.
pub(crate) async fn contents(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    let usage = call.bucket()?.usage();
    let contents = ContentsBody {
        objects: usage.objects,
        bytes: usage.bytes,
        versions: usage.versions,
        version_bytes: usage.version_bytes,
        delete_markers: usage.delete_markers,
        multipart_uploads: usage.uploads,
        multipart_bytes: usage.part_bytes,
    };
    Reply::json(StatusCode::OK, &contents)
}

/// `DELETE /api/v1/buckets/{bucket}`: only if the bucket is empty. Otherwise the error says what it holds.
pub(crate) async fn delete(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    call.no_body().await?;
    let bucket = call.bucket()?;
    match call.store()?.delete_bucket(&bucket.name, call.origin(Cause::Request)).await {
        Ok(()) => Ok(Reply::no_content()),
        Err(EngineError::BucketNotEmpty) => Err(AdminError::BucketNotEmpty(bucket.usage().to_string())),
        Err(error) => Err(error.into()),
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct VersioningBody {
    versioning: VersioningName,
}

/// `GET /api/v1/buckets/{bucket}/versioning`.
pub(crate) async fn versioning(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    let versioning = call.bucket()?.versioning().into();
    Reply::json(StatusCode::OK, &VersioningBody { versioning })
}

/// `PUT /api/v1/buckets/{bucket}/versioning`: versioning cannot be removed, only suspended.
pub(crate) async fn set_versioning(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    let bucket = call.bucket()?;
    let request: VersioningBody = call.json().await?;
    let versioning = match request.versioning {
        VersioningName::Enabled => Versioning::Enabled,
        VersioningName::Suspended => Versioning::Suspended,
        VersioningName::Unversioned => {
            return Err(AdminError::invalid("versioning must be Enabled or Suspended; it cannot be removed"));
        }
    };
    call.store()?.change_bucket(&bucket, BucketChange::Versioning(versioning)).await?;
    Ok(Reply::json(StatusCode::OK, &request)?.detail(format!("{:?}", request.versioning)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QuotaRequest {
    quota: QuotaBody,
}

/// Formats a limit for people.
struct Limit(Option<u64>);

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(limit) => limit.fmt(f),
            None => f.write_str("unlimited"),
        }
    }
}

/// `PUT /api/v1/buckets/{bucket}/quota`: replaces both limits.
pub(crate) async fn set_quota(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    let bucket = call.bucket()?;
    let QuotaRequest { quota: QuotaBody { bytes, objects } } = call.json().await?;
    let quota = Quota {
        bytes: bytes.mode.limit("bytes", bytes.bytes)?,
        objects: objects.mode.limit("objects", objects.objects)?,
    };
    call.store()?.change_bucket(&bucket, BucketChange::Quota(quota)).await?;
    let detail = format!("bytes: {}, objects: {}", Limit(quota.bytes), Limit(quota.objects));
    Ok(Reply::json(StatusCode::OK, &BucketBody::from(&*bucket))?.detail(detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quota_needs_both_limits_and_each_must_match_its_mode() {
        let read = |text: &str| serde_json::from_str::<QuotaRequest>(text).map(|request| request.quota);
        let quota =
            read(r#"{"quota": {"bytes": {"mode": "limit", "bytes": 5}, "objects": {"mode": "unlimited"}}}"#)
                .expect("both limits are present");
        assert_eq!(quota.bytes.mode.limit("bytes", quota.bytes.bytes), Ok(Some(5)));
        assert_eq!(quota.objects.mode.limit("objects", quota.objects.objects), Ok(None));
        assert!(QuotaMode::Limit.limit("bytes", Some(QUOTA_LIMIT_MAX + 1)).is_err());
        assert!(QuotaMode::Limit.limit("bytes", None).is_err());
        assert!(QuotaMode::Unlimited.limit("bytes", Some(0)).is_err());
        for wrong in [
            r#"{"quota": {"bytes": {"mode": "unlimited"}}}"#,
            r#"{"bytes": {"mode": "unlimited"}, "objects": {"mode": "unlimited"}}"#,
            r#"{"quota": {"bytes": {"mode": "none"}, "objects": {"mode": "unlimited"}}}"#,
            r#"{"quota": {"bytes": {"mode": "limit", "bytes": -1}, "objects": {"mode": "unlimited"}}}"#,
            r#"{"quota": {"bytes": {"mode": "limit", "limit": 1}, "objects": {"mode": "unlimited"}}}"#,
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
