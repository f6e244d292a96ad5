//! GetBucketLifecycleConfiguration: the bucket's rules. Source: API Reference, GetBucketLifecycleConfiguration.

use crate::call::Call;
use crate::errors::{ErrorCode, S3Result};
use crate::lifecycle::{self, writing};
use crate::reply::Reply;

pub(crate) fn get_bucket_lifecycle_configuration(call: &Call<'_>) -> S3Result<Reply> {
    let settings = call.bucket()?.settings();
    let rules = settings.lifecycle.as_ref().ok_or(ErrorCode::NoSuchLifecycleConfiguration)?;
    let mut reply = Reply::xml(writing::document(rules.iter())?);
    lifecycle::write_minimum_size(&mut reply.head);
    Ok(reply)
}
