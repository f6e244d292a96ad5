//! HeadObject: GetObject's head, ranges included. Source: API Reference, HeadObject.

use crate::call::Call;
use crate::errors::S3Result;
use crate::ops::object_answer::{ObjectAnswer, answer};
use crate::reply::Reply;
use cairn_net::ResponseBody;

pub(crate) fn head_object(call: &Call<'_>) -> S3Result<Reply> {
    let (bucket, key) = call.object()?;
    let info = call.engine.head_object(&bucket, &key, None)?;
    Ok(match answer(call, &info)? {
        ObjectAnswer::NotModified { head } => Reply { head, body: ResponseBody::Omitted { length: None } },
        ObjectAnswer::Content { head, range } => {
            Reply { head, body: ResponseBody::Omitted { length: Some(range.end - range.start) } }
        }
    })
}
