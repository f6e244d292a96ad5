//! GetBucketCors: the configuration as it was put. Source: API Reference, GetBucketCors.

use crate::call::Call;
use crate::cors::configuration;
use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::reply::Reply;
use cairn_cors::Rules;

pub(crate) fn get_bucket_cors(call: &Call<'_>) -> S3Result<Reply> {
    let settings = call.bucket()?.settings();
    let stored = settings.cors.as_deref().ok_or(ErrorCode::NoSuchCORSConfiguration)?;
    let rules = Rules::decode(stored).ok_or_else(|| S3Error::internal("the CORS rules cannot be read"))?;
    Ok(Reply::xml(configuration::document(&rules)))
}
