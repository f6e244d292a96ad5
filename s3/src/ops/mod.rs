//! The operations that are built, one file each, and the step from a table row to its code.

mod abort_multipart_upload;
mod complete_multipart_upload;
mod copy_object;
mod create_bucket;
mod create_multipart_upload;
mod delete_bucket;
mod delete_bucket_cors;
mod delete_object;
mod get_bucket_cors;
mod get_bucket_location;
mod get_bucket_versioning;
mod get_object;
mod get_object_legal_hold;
pub(crate) mod get_object_lock_configuration;
pub(crate) mod get_object_retention;
mod head_bucket;
mod head_object;
mod list_buckets;
pub(crate) mod list_multipart_uploads;
pub(crate) mod list_object_versions;
pub(crate) mod list_objects_v2;
mod list_page;
mod list_parts;
mod names;
mod object_answer;
mod put_bucket_cors;
mod put_bucket_versioning;
mod put_object;
pub(crate) mod put_object_legal_hold;
pub(crate) mod put_object_lock_configuration;
pub(crate) mod put_object_retention;
mod upload_part;

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
        Handler::GetBucketVersioning => get_bucket_versioning::get_bucket_versioning(call),
        Handler::PutBucketVersioning => put_bucket_versioning::put_bucket_versioning(call, body).await,
        Handler::ListObjectVersions => list_object_versions::list_object_versions(call),
        Handler::GetObjectLockConfiguration => {
            get_object_lock_configuration::get_object_lock_configuration(call)
        }
        Handler::PutObjectLockConfiguration => {
            put_object_lock_configuration::put_object_lock_configuration(call, body).await
        }
        Handler::GetObjectRetention => get_object_retention::get_object_retention(call),
        Handler::PutObjectRetention => put_object_retention::put_object_retention(call, body).await,
        Handler::GetObjectLegalHold => get_object_legal_hold::get_object_legal_hold(call),
        Handler::PutObjectLegalHold => put_object_legal_hold::put_object_legal_hold(call, body).await,
        Handler::GetBucketCors => get_bucket_cors::get_bucket_cors(call),
        Handler::PutBucketCors => put_bucket_cors::put_bucket_cors(call, body).await,
        Handler::DeleteBucketCors => delete_bucket_cors::delete_bucket_cors(call).await,
        Handler::CopyObject => copy_object::copy_object(call).await,
        Handler::CreateMultipartUpload => create_multipart_upload::create_multipart_upload(call).await,
        Handler::UploadPart => upload_part::upload_part(call, body).await,
        Handler::ListParts => list_parts::list_parts(call),
        Handler::CompleteMultipartUpload => {
            complete_multipart_upload::complete_multipart_upload(call, body).await
        }
        Handler::AbortMultipartUpload => abort_multipart_upload::abort_multipart_upload(call).await,
        Handler::ListMultipartUploads => list_multipart_uploads::list_multipart_uploads(call).await,
    }
}
