//! HeadObject: the head of GetObject, including ranges. Source: API Reference, HeadObject.

use crate::call::Call;
use crate::errors::S3Result;
use crate::headers::version;
use crate::ops::object_response::{ObjectResponse, object_response, write_part_checksum};
use crate::ops::system_objects::made_object;
use crate::reply::Reply;
use cairn_net::ResponseBody;

pub(crate) fn head_object(call: &Call<'_>) -> S3Result<Reply> {
    let (bucket, key) = call.object()?;
    let version = version::requested(call.query)?;
    let made = made_object(call, &bucket).map(|made| Ok(made.info));
    let info = made.unwrap_or_else(|| call.engine.head_object(&bucket, &key, version));
    let info = info.map_err(|error| version::read_error(error, version, call.head.method()))?;
    Ok(match object_response(call, &bucket, &info)? {
        ObjectResponse::NotModified { head } => Reply { head, body: ResponseBody::Omitted { length: None } },
        ObjectResponse::Content { mut head, range, part } => {
            if let Some(number) = part {
                write_part_checksum(call, &mut head, (&bucket, &key), info.version_name(), number)?;
            }
            Reply { head, body: ResponseBody::Omitted { length: Some(range.end - range.start) } }
        }
    })
}
