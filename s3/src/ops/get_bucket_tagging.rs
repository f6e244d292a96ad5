//! GetBucketTagging: the tags of a bucket that has some. Source: API Reference, GetBucketTagging.

use crate::call::Call;
use crate::errors::{ErrorCode, S3Result};
use crate::headers::tagging;
use crate::reply::Reply;

pub(crate) fn get_bucket_tagging(call: &Call<'_>) -> S3Result<Reply> {
    let settings = call.bucket()?.settings();
    if settings.tags.is_empty() {
        return Err(ErrorCode::NoSuchTagSet.into());
    }
    Ok(Reply::xml(tagging::document(&settings.tags)))
}
