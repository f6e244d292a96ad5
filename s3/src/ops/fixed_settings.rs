//! Settings that every bucket has alike, and those that none has.
//!
//! Tools read them before they do anything else. The answers are true: what cannot be set here is answered as AWS answers
//! for a bucket where it is not set. Operations that would change a setting stay refused. Source: API Reference, the
//! actions of these names.

use crate::call::Call;
use crate::errors::{ErrorCode, S3Result};
use crate::reply::Reply;
use crate::xml::writer::XmlWriter;

/// Answers with a document whose elements hold texts or each other.
pub(super) fn fixed(
    call: &Call<'_>,
    root: &'static str,
    write: impl FnOnce(&mut XmlWriter),
) -> S3Result<Reply> {
    call.bucket()?;
    let mut xml = XmlWriter::with_capacity(512);
    xml.open_root(root);
    write(&mut xml);
    xml.close(root);
    Ok(Reply::xml(xml))
}

/// Answers that the bucket has no such setting.
fn none(call: &Call<'_>, code: ErrorCode) -> S3Result<Reply> {
    call.bucket()?;
    Err(code.into())
}

pub(crate) fn get_bucket_accelerate_configuration(call: &Call<'_>) -> S3Result<Reply> {
    fixed(call, "AccelerateConfiguration", |_| ())
}

pub(crate) fn get_bucket_logging(call: &Call<'_>) -> S3Result<Reply> {
    fixed(call, "BucketLoggingStatus", |_| ())
}

pub(crate) fn get_bucket_notification_configuration(call: &Call<'_>) -> S3Result<Reply> {
    fixed(call, "NotificationConfiguration", |_| ())
}

pub(crate) fn get_bucket_replication(call: &Call<'_>) -> S3Result<Reply> {
    none(call, ErrorCode::ReplicationConfigurationNotFoundError)
}

pub(crate) fn get_bucket_request_payment(call: &Call<'_>) -> S3Result<Reply> {
    fixed(call, "RequestPaymentConfiguration", |xml| xml.text("Payer", "BucketOwner"))
}

pub(crate) fn get_bucket_website(call: &Call<'_>) -> S3Result<Reply> {
    none(call, ErrorCode::NoSuchWebsiteConfiguration)
}
