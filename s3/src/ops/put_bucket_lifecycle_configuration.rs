//! PutBucketLifecycleConfiguration: replaces the bucket's rules. Source: API Reference, PutBucketLifecycleConfiguration.

use crate::body::read_document;
use crate::call::Call;
use crate::errors::S3Result;
use crate::lifecycle::{self, reading};
use crate::reply::Reply;
use cairn_engine::{BucketChange, LifecycleChange};
use cairn_http1::StatusCode;
use cairn_net::RequestBody;

pub(crate) async fn put_bucket_lifecycle_configuration(
    call: &Call<'_>,
    body: &mut RequestBody<'_>,
) -> S3Result<Reply> {
    let bucket = call.bucket()?;
    lifecycle::check_minimum_size(call.fields)?;
    let document = read_document(call, body, reading::DOCUMENT).await?;
    let rules = reading::read(&document, call.now)?;
    let count = rules.len();
    let change = BucketChange::Lifecycle(LifecycleChange::ReplaceAll(rules));
    call.engine.store().change_bucket(&bucket, change).await?;
    call.recording.describe(|| format!("{count} rules"));
    let mut reply = Reply::empty(StatusCode::OK);
    lifecycle::write_minimum_size(&mut reply.head);
    Ok(reply)
}
