//! GetObjectRetention. Source: API Reference, GetObjectRetention.

use crate::call::Call;
use crate::errors::{ErrorCode, S3Result};
use crate::headers::object_lock;
use crate::headers::version;
use crate::reply::Reply;
use crate::xml::writer::XmlWriter;
use cairn_engine::Retention;
use cairn_http1::iso8601_millis;

pub(crate) fn get_object_retention(call: &Call<'_>) -> S3Result<Reply> {
    let (bucket, key) = call.object()?;
    object_lock::require_object_lock(&bucket.settings())?;
    let version = version::requested(call.query)?;
    let info = call.engine.head_object(&bucket, &key, version);
    let info = info.map_err(|error| version::read_error(error, version, call.head.method()))?;
    let retention = info.lock.retention.ok_or(ErrorCode::NoSuchObjectLockConfiguration)?;
    Ok(Reply::xml(document(retention)))
}

/// Writes the document of a retention.
pub(crate) fn document(retention: Retention) -> XmlWriter {
    let mut xml = XmlWriter::with_capacity(256);
    xml.open_root("Retention");
    xml.text("Mode", retention.mode.name());
    xml.value("RetainUntilDate", iso8601_millis(retention.until.0));
    xml.close("Retention");
    xml
}
