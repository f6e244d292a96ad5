//! `PUT /api/v1/buckets/{bucket}/object-tags/{key}[?version_id=]`: replaces the tags of a version, in place.

use cairn_api::ObjectTags;
use cairn_engine::limits::OBJECT_TAGS_MAX;
use cairn_engine::{InvalidTags, Tags};
use http::StatusCode;

use super::object_ref::ObjectRef;
use crate::call::Call;
use crate::error::AdminError;
use crate::reply::Reply;

pub(crate) async fn set_tags(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let target = ObjectRef::of(&call)?;
    let request: ObjectTags = call.json().await?;
    let pairs = request.tags.iter().map(|tag| (tag.key.clone(), tag.value.clone())).collect();
    let tags = Tags::new(pairs, OBJECT_TAGS_MAX).map_err(|why| AdminError::invalid(message(why)))?;
    let set = call.engine()?.set_object_tags(&target.bucket, &target.key, target.version, tags).await;
    let version = set.map_err(|error| target.source_error(error))?;
    let detail = format!("{} tags of version {version}", request.tags.len());
    Ok(Reply::json(StatusCode::OK, &request)?.detail(detail))
}

fn message(why: InvalidTags) -> String {
    const ALLOWED: &str = "letters, digits, spaces and + - = . _ : / @";
    match why {
        InvalidTags::TooMany(most) => format!("tags: an object has at most {most}"),
        InvalidTags::Key(key) => {
            format!("tags: the key {key:?} must have 1 to 128 {ALLOWED}, and must not begin with aws:")
        }
        InvalidTags::Value { key, .. } => {
            format!("tags: the value of {key:?} must have at most 256 {ALLOWED}")
        }
        InvalidTags::Duplicate(key) => format!("tags: the key {key:?} occurs twice"),
    }
}
