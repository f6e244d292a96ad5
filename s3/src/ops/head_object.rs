//! HeadObject: GetObject's head, ranges included. Source: API Reference, HeadObject.

use crate::call::Call;
use crate::errors::S3Result;
use crate::ops::object_answer::{ObjectAnswer, answer};
use crate::reply::Reply;
use crate::version;
use cairn_net::ResponseBody;

pub(crate) fn head_object(call: &Call<'_>) -> S3Result<Reply> {
    let (bucket, key) = call.object()?;
    let version = version::asked(call.query)?;
    let info = call.engine.head_object(&bucket, &key, version);
    let info = info.map_err(|error| version::read_error(error, version, call.head.method()))?;
    Ok(match answer(call, &bucket, &info)? {
        ObjectAnswer::NotModified { head } => Reply { head, body: ResponseBody::Omitted { length: None } },
        ObjectAnswer::Content { head, range } => {
            Reply { head, body: ResponseBody::Omitted { length: Some(range.end - range.start) } }
        }
    })
}
