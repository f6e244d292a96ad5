//! `x-amz-expiration`: when a lifecycle rule expires the object (API Reference, GetObject and PutObject). `x-amz-abort-date`
//! and `x-amz-abort-rule-id`: when one aborts the upload, and which (API Reference, CreateMultipartUpload and ListParts).

use cairn_engine::{Bucket, Store, Tags};
use cairn_http1::{ResponseHead, encode_strict, http_date};
use cairn_model::{ObjectKey, Timestamp};

const EXPIRATION_HEADER: &str = "x-amz-expiration";
const ABORT_DATE_HEADER: &str = "x-amz-abort-date";
const ABORT_RULE_HEADER: &str = "x-amz-abort-rule-id";

/// Writes the header, if an enabled rule of the bucket is about the current object of this key, which has these tags.
pub(crate) fn write_header(
    head: &mut ResponseHead,
    store: &Store,
    bucket: &Bucket,
    key: &ObjectKey,
    tags: &Tags,
    last_modified: Timestamp,
) {
    if let Some((due, rule)) = store.expiration_of(bucket, key.as_str(), tags, last_modified) {
        let (date, rule) = (http_date(due.seconds()), encode_strict(rule));
        let date = date.as_str();
        head.header(EXPIRATION_HEADER, format!("expiry-date=\"{date}\", rule-id=\"{rule}\""));
    }
}

/// Writes the headers, if an enabled rule of the bucket is about unfinished uploads of this key.
pub(crate) fn write_abort_headers(
    head: &mut ResponseHead,
    store: &Store,
    bucket: &Bucket,
    key: &ObjectKey,
    initiated: Timestamp,
) {
    if let Some((due, rule)) = store.abort_of(bucket, key.as_str(), initiated) {
        head.header(ABORT_DATE_HEADER, http_date(due.seconds()).as_str());
        head.header(ABORT_RULE_HEADER, encode_strict(rule));
    }
}
