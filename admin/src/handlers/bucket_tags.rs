//! The routes of a bucket's tags: get, replace. PutBucketTagging stores the same tags, with the same limits.

use cairn_api::{BucketTags, Tag};
use cairn_engine::limits::BUCKET_TAGS_MAX;
use cairn_engine::{BucketChange, InvalidTags, Tags};
use http::StatusCode;

use crate::call::Call;
use crate::error::AdminError;
use crate::reply::Reply;

fn body_of(tags: &Tags) -> BucketTags {
    let tags = tags.iter().map(|(key, value)| Tag { key: key.to_owned(), value: value.to_owned() });
    BucketTags { tags: tags.collect() }
}

/// `GET /api/v1/buckets/{bucket}/tags`.
pub(crate) async fn get(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    Reply::json(StatusCode::OK, &body_of(&call.bucket()?.settings().tags))
}

/// `PUT /api/v1/buckets/{bucket}/tags`: replaces all tags. An empty list removes them.
pub(crate) async fn set(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let bucket = call.bucket()?;
    let BucketTags { tags } = call.json().await?;
    let pairs = tags.into_iter().map(|tag| (tag.key, tag.value)).collect();
    let tags = Tags::new(pairs, BUCKET_TAGS_MAX).map_err(refusal)?;
    let (body, detail) = (body_of(&tags), format!("{} tags", tags.len()));
    call.store()?.change_bucket(&bucket, BucketChange::Tags(tags)).await?;
    Ok(Reply::json(StatusCode::OK, &body)?.detail(detail))
}

fn refusal(error: InvalidTags) -> AdminError {
    AdminError::invalid(match error {
        InvalidTags::TooMany(max) => format!("tags: a bucket can have at most {max}"),
        InvalidTags::Key(key) => format!("tags: the key {key:?} is not valid in S3"),
        InvalidTags::Value { key, .. } => format!("tags: the value of {key:?} is not valid in S3"),
        InvalidTags::Duplicate(key) => format!("tags: the key {key:?} is given twice"),
    })
}
