//! PutObjectTagging: replaces the tags of a version. Source: API Reference, PutObjectTagging.

use crate::body::read_document;
use crate::call::Call;
use crate::errors::S3Result;
use crate::headers::{tagging, version};
use crate::reply::Reply;
use cairn_engine::Tags;
use cairn_engine::limits::OBJECT_TAGS_MAX;
use cairn_http1::StatusCode;
use cairn_net::RequestBody;

pub(crate) async fn put_object_tagging(call: &Call<'_>, body: &mut RequestBody<'_>) -> S3Result<Reply> {
    call.object()?;
    let document = read_document(call, body, tagging::DOCUMENT).await?;
    let tags = tagging::from_document(&document, OBJECT_TAGS_MAX, "Object tags")?;
    set_tags(call, tags, StatusCode::OK).await
}

/// Replaces the tags of the version that the request names.
pub(super) async fn set_tags(call: &Call<'_>, tags: Tags, status: StatusCode) -> S3Result<Reply> {
    let (bucket, key) = call.object()?;
    let version = version::requested(call.query)?;
    let count = tags.len();
    let tagged = call.engine.set_object_tags(&bucket, &key, version, tags).await;
    let tagged = tagged.map_err(|error| version::subresource_error(error, version, call.head.method()))?;
    call.recording.describe(|| format!("{count} tags"));
    let mut reply = Reply::empty(status);
    version::write_id(&mut reply.head, &bucket, tagged);
    Ok(reply)
}
