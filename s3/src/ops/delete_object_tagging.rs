//! DeleteObjectTagging: removes all tags of a version. Source: API Reference, DeleteObjectTagging.

use crate::call::Call;
use crate::errors::S3Result;
use crate::ops::put_object_tagging::set_tags;
use crate::reply::Reply;
use cairn_engine::Tags;
use cairn_http1::StatusCode;

pub(crate) async fn delete_object_tagging(call: &Call<'_>) -> S3Result<Reply> {
    set_tags(call, Tags::default(), StatusCode::NO_CONTENT).await
}
