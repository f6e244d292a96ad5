//! GetObjectTagging: the tags of a version, also if there are none. Source: API Reference, GetObjectTagging.

use crate::call::Call;
use crate::errors::S3Result;
use crate::headers::{tagging, version};
use crate::reply::Reply;

pub(crate) fn get_object_tagging(call: &Call<'_>) -> S3Result<Reply> {
    let (bucket, key) = call.object()?;
    let version = version::requested(call.query)?;
    let info = call.engine.head_object(&bucket, &key, version);
    let info = info.map_err(|error| version::subresource_error(error, version, call.head.method()))?;
    let mut reply = Reply::xml(tagging::document(&info.attributes.tags));
    version::write_id(&mut reply.head, &bucket, info.version_name());
    Ok(reply)
}
