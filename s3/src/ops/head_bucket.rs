//! HeadBucket. Source: API Reference, HeadBucket.

use crate::access::account::REGION;
use crate::call::Call;
use crate::errors::S3Result;
use crate::reply::Reply;
use cairn_http1::StatusCode;
use cairn_net::ResponseBody;

pub(crate) fn head_bucket(call: &Call<'_>) -> S3Result<Reply> {
    call.bucket()?;
    let mut reply = Reply::empty(StatusCode::OK);
    reply.body = ResponseBody::Omitted { length: None };
    reply.head.header("x-amz-bucket-region", REGION);
    reply.head.header("content-type", "application/xml");
    Ok(reply)
}
