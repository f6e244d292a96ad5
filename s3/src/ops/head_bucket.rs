//! HeadBucket. Source: API Reference, HeadBucket.

use crate::access::account;
use crate::call::Call;
use crate::compatibility::Compatibility;
use crate::errors::S3Result;
use crate::reply::Reply;
use cairn_http1::StatusCode;
use cairn_net::ResponseBody;

pub(crate) fn head_bucket(call: &Call<'_>) -> S3Result<Reply> {
    let bucket = call.bucket()?;
    let mut reply = Reply::empty(StatusCode::OK);
    reply.body = ResponseBody::Omitted { length: None };
    reply.head.header("x-amz-bucket-region", &*account::region_of(&bucket));
    if call.compatibility == Compatibility::Extended {
        reply.head.header("x-amz-bucket-arn", account::bucket_arn(bucket.name.as_str()));
        reply.head.header("x-amz-access-point-alias", "false");
    }
    reply.head.header("content-type", "application/xml");
    Ok(reply)
}
