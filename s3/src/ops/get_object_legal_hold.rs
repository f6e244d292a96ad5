//! GetObjectLegalHold: `ON`, or `OFF` after it was lifted. Source: API Reference, GetObjectLegalHold.

use crate::call::Call;
use crate::errors::{ErrorCode, S3Result};
use crate::headers::object_lock::{self, hold_name};
use crate::headers::version;
use crate::reply::Reply;
use crate::xml::writer::XmlWriter;

pub(crate) fn get_object_legal_hold(call: &Call<'_>) -> S3Result<Reply> {
    let (bucket, key) = call.object()?;
    object_lock::require_object_lock(&bucket.settings())?;
    let version = version::requested(call.query)?;
    let info = call.engine.head_object(&bucket, &key, version);
    let info = info.map_err(|error| version::read_error(error, version, call.head.method()))?;
    let legal_hold = info.lock.legal_hold.ok_or(ErrorCode::NoSuchObjectLockConfiguration)?;
    let mut xml = XmlWriter::with_capacity(256);
    xml.open_root("LegalHold");
    xml.text("Status", hold_name(legal_hold));
    xml.close("LegalHold");
    Ok(Reply::xml(xml))
}
