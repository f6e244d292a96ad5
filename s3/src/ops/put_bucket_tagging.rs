//! PutBucketTagging: replaces the tags of a bucket. Source: API Reference, PutBucketTagging.

use crate::body::read_document;
use crate::call::Call;
use crate::errors::S3Result;
use crate::headers::tagging;
use crate::reply::Reply;
use cairn_engine::BucketChange;
use cairn_engine::limits::BUCKET_TAGS_MAX;
use cairn_http1::StatusCode;
use cairn_net::RequestBody;

pub(crate) async fn put_bucket_tagging(call: &Call<'_>, body: &mut RequestBody<'_>) -> S3Result<Reply> {
    let bucket = call.bucket()?;
    let document = read_document(call, body, tagging::DOCUMENT).await?;
    let tags = tagging::from_document(&document, BUCKET_TAGS_MAX, "Bucket tag count")?;
    let count = tags.len();
    call.engine.store().change_bucket(&bucket, BucketChange::Tags(tags)).await?;
    call.recording.describe(|| format!("{count} tags"));
    Ok(Reply::empty(StatusCode::NO_CONTENT))
}
