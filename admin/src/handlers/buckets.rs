//! The routes of buckets: list, create, get, delete, versioning, quota.

use std::fmt;

use cairn_api::{
    BucketContents, BucketList, BucketUse, ByteQuota, CreateBucket, ObjectQuota, QUOTA_LIMIT_MAX, QuotaMode,
    SetQuota, SetVersioning, VersioningState,
};
use cairn_engine::{Bucket, BucketChange, BucketSettings, Cause, EngineError, Quota, Versioning};
use cairn_http1::iso8601_millis;
use cairn_identity::policy::{Action, Decision, Resource};
use http::StatusCode;
use serde::Serialize;

use crate::call::Call;
use crate::error::AdminError;
use crate::reply::Reply;
use crate::request::names::bucket_name;

const fn versioning_state(versioning: Versioning) -> VersioningState {
    match versioning {
        Versioning::Unversioned => VersioningState::Unversioned,
        Versioning::Enabled => VersioningState::Enabled,
        Versioning::Suspended => VersioningState::Suspended,
    }
}

/// Validates that mode and number of a quota agree, and returns the limit.
pub(crate) fn limit(mode: QuotaMode, name: &str, number: Option<u64>) -> Result<Option<u64>, AdminError> {
    match (mode, number) {
        (QuotaMode::Limit, Some(number)) if number <= QUOTA_LIMIT_MAX => Ok(Some(number)),
        (QuotaMode::Limit, Some(_)) => {
            Err(AdminError::invalid(format!("quota.{name}: the limit must be at most {QUOTA_LIMIT_MAX}")))
        }
        (QuotaMode::Unlimited, None) => Ok(None),
        (QuotaMode::Limit, None) => {
            Err(AdminError::invalid(format!("quota.{name}: the mode limit requires the field {name}")))
        }
        (QuotaMode::Unlimited, Some(_)) => Err(AdminError::invalid(format!(
            "quota.{name}: the mode unlimited does not allow the field {name}"
        ))),
    }
}

fn quota_body(Quota { bytes, objects }: Quota) -> cairn_api::Quota {
    let mode = |limit: Option<u64>| if limit.is_some() { QuotaMode::Limit } else { QuotaMode::Unlimited };
    cairn_api::Quota {
        bytes: ByteQuota { mode: mode(bytes), bytes },
        objects: ObjectQuota { mode: mode(objects), objects },
    }
}

fn bucket_body(bucket: &Bucket) -> cairn_api::Bucket {
    let (settings, usage) = (bucket.settings(), bucket.usage());
    cairn_api::Bucket {
        name: bucket.name.to_string().into(),
        created_at: bucket.created_at.into(),
        versioning: versioning_state(settings.versioning),
        object_lock: settings.object_lock,
        quota: quota_body(settings.quota),
        usage: BucketUse { bytes: usage.bytes, objects: usage.objects },
    }
}

/// A bucket as members see it in their list: without its settings and usage.
#[derive(Serialize)]
struct OwnBucket<'b> {
    name: &'b str,
    created_at: String,
    /// Whether the objects may be listed. The console does not ask for what would be refused.
    may_list: bool,
}

#[derive(Serialize)]
struct OwnBuckets<'b> {
    buckets: Vec<OwnBucket<'b>>,
}

/// `GET /api/v1/buckets`. Members see those on which their policies allow something, as in the list of the S3 API.
pub(crate) async fn list(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    if let Some(rights) = call.member_rights()? {
        let (all, client) = (call.store()?.buckets(), Some(call.audit.client));
        let own = all.iter().filter(|bucket| rights.allows_something_on(bucket.name.as_str(), client));
        let own = own.map(|bucket| OwnBucket {
            name: bucket.name.as_str(),
            created_at: iso8601_millis(bucket.created_at.0),
            may_list: rights.decide(Action::ListBucket, Resource::Bucket(bucket.name.as_str()), client)
                == Decision::Allowed,
        });
        return Reply::json(StatusCode::OK, &OwnBuckets { buckets: own.collect() });
    }
    let buckets = call.store()?.buckets().iter().map(|bucket| bucket_body(bucket)).collect();
    Reply::json(StatusCode::OK, &BucketList { buckets })
}

/// `POST /api/v1/buckets`. Object lock enables versioning.
pub(crate) async fn create(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let request: CreateBucket = call.json().await?;
    let name = bucket_name(&request.name)?;
    let settings = BucketSettings { object_lock: request.object_lock, ..BucketSettings::default() };
    let bucket = call.store()?.create_bucket(&name, settings, call.origin(Cause::Request)).await?;
    let detail = if request.object_lock { "with object lock" } else { "" };
    Ok(Reply::json(StatusCode::CREATED, &bucket_body(&bucket))?.resource(name.as_str()).detail(detail))
}

/// `GET /api/v1/buckets/{bucket}`.
pub(crate) async fn get(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    Reply::json(StatusCode::OK, &bucket_body(&*call.bucket()?))
}

/// `GET /api/v1/buckets/{bucket}/contents`: from the counters that each commit keeps, at any size of the bucket.
pub(crate) async fn contents(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let usage = call.bucket()?.usage();
    let contents = BucketContents {
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
pub(crate) async fn delete(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let bucket = call.bucket()?;
    match call.store()?.delete_bucket(&bucket.name, call.origin(Cause::Request)).await {
        Ok(()) => Ok(Reply::no_content()),
        Err(EngineError::BucketNotEmpty) => Err(AdminError::BucketNotEmpty(bucket.usage().to_string())),
        Err(error) => Err(error.into()),
    }
}

/// `GET /api/v1/buckets/{bucket}/versioning`.
pub(crate) async fn versioning(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let versioning = versioning_state(call.bucket()?.versioning());
    Reply::json(StatusCode::OK, &cairn_api::Versioning { versioning })
}

/// `PUT /api/v1/buckets/{bucket}/versioning`: versioning cannot be removed, only suspended.
pub(crate) async fn set_versioning(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let bucket = call.bucket()?;
    let request: SetVersioning = call.json().await?;
    let versioning = match request.versioning {
        VersioningState::Enabled => Versioning::Enabled,
        VersioningState::Suspended => Versioning::Suspended,
        VersioningState::Unversioned => {
            return Err(AdminError::invalid("versioning must be Enabled or Suspended; it cannot be removed"));
        }
    };
    call.store()?.change_bucket(&bucket, BucketChange::Versioning(versioning)).await?;
    Ok(Reply::json(StatusCode::OK, &request)?.detail(format!("{:?}", request.versioning)))
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
    let bucket = call.bucket()?;
    let SetQuota { quota: cairn_api::Quota { bytes, objects } } = call.json().await?;
    let quota = Quota {
        bytes: limit(bytes.mode, "bytes", bytes.bytes)?,
        objects: limit(objects.mode, "objects", objects.objects)?,
    };
    call.store()?.change_bucket(&bucket, BucketChange::Quota(quota)).await?;
    let detail = format!("bytes: {}, objects: {}", Limit(quota.bytes), Limit(quota.objects));
    Ok(Reply::json(StatusCode::OK, &bucket_body(&bucket))?.detail(detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quota_needs_both_limits_and_each_must_match_its_mode() {
        let read = |text: &str| serde_json::from_str::<SetQuota>(text).map(|request| request.quota);
        let quota =
            read(r#"{"quota": {"bytes": {"mode": "limit", "bytes": 5}, "objects": {"mode": "unlimited"}}}"#)
                .expect("both limits are present");
        assert_eq!(limit(quota.bytes.mode, "bytes", quota.bytes.bytes), Ok(Some(5)));
        assert_eq!(limit(quota.objects.mode, "objects", quota.objects.objects), Ok(None));
        assert!(limit(QuotaMode::Limit, "bytes", Some(QUOTA_LIMIT_MAX + 1)).is_err());
        assert!(limit(QuotaMode::Limit, "bytes", None).is_err());
        assert!(limit(QuotaMode::Unlimited, "bytes", Some(0)).is_err());
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
