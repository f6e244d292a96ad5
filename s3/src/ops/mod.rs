//! The operations that are built, one file each, and the step from a table row to its code.

mod create_bucket;
mod delete_bucket;
mod delete_object;
mod get_bucket_location;
mod get_object;
mod head_bucket;
mod head_object;
mod list_buckets;
pub(crate) mod list_objects_v2;
mod names;
mod object_answer;
mod put_object;

use crate::body::check_unused_body;
use crate::call::Call;
use crate::errors::S3Result;
use crate::operations::Handler;
use crate::reply::Reply;
use cairn_net::RequestBody;

/// Carries out an operation. Every body is compared with its signed digest: by the operation that takes it, or here,
/// before anything is changed.
///
/// # Errors
/// Each operation's own; nothing has been changed when one fails.
pub(crate) async fn carry_out(
    handler: Handler,
    call: &Call<'_>,
    body: &mut RequestBody<'_>,
) -> S3Result<Reply> {
    if !handler.takes_body() {
        check_unused_body(call.authentication.payload, body).await?;
    }
    match handler {
        Handler::ListBuckets => list_buckets::list_buckets(call),
        Handler::CreateBucket => create_bucket::create_bucket(call, body).await,
        Handler::HeadBucket => head_bucket::head_bucket(call),
        Handler::DeleteBucket => delete_bucket::delete_bucket(call).await,
        Handler::GetBucketLocation => get_bucket_location::get_bucket_location(call),
        Handler::ListObjectsV2 => list_objects_v2::list_objects_v2(call),
        Handler::PutObject => put_object::put_object(call, body).await,
        Handler::GetObject => get_object::get_object(call).await,
        Handler::HeadObject => head_object::head_object(call),
        Handler::DeleteObject => delete_object::delete_object(call).await,
    }
}
