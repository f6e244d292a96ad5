//! PutBucketCors: replaces the bucket's CORS rules. Source: API Reference, PutBucketCors.

use crate::body::read_document;
use crate::call::Call;
use crate::cors::configuration;
use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::reply::Reply;
use cairn_cors::CONFIGURATION_BYTES_MAX;
use cairn_engine::BucketChange;
use cairn_http1::StatusCode;
use cairn_model::u64_of;
use cairn_net::RequestBody;

pub(crate) async fn put_bucket_cors(call: &Call<'_>, body: &mut RequestBody<'_>) -> S3Result<Reply> {
    let bucket = call.bucket()?;
    if body.remaining() > u64_of(CONFIGURATION_BYTES_MAX) {
        let message = "The CORS configuration is longer than 64 KiB.";
        return Err(S3Error::with_message(ErrorCode::InvalidRequest, message));
    }
    let rules =
        configuration::read(&read_document(call, body, "CORSConfiguration").await?, call.compatibility)?;
    let change = BucketChange::Cors(Some(rules.encode()));
    call.engine.store().change_bucket(&bucket, change).await?;
    call.recording.describe(|| format!("{} rules", rules.rules().len()));
    Ok(Reply::empty(StatusCode::OK))
}
