//! GetObjectLegalHold: `ON`, or `OFF` once it was lifted. Source: API Reference, GetObjectLegalHold.

use crate::call::Call;
use crate::errors::{ErrorCode, S3Result};
use crate::lock_headers::{self, hold_name};
use crate::reply::Reply;
use crate::version;
use crate::xml::writer::XmlWriter;

pub(crate) fn get_object_legal_hold(call: &Call<'_>) -> S3Result<Reply> {
    let (bucket, key) = call.object()?;
    lock_headers::require_object_lock(&bucket.settings())?;
    let version = version::asked(call.query)?;
    let info = call.engine.head_object(&bucket, &key, version);
    let info = info.map_err(|error| version::read_error(error, version, call.head.method()))?;
    let legal_hold = info.lock.legal_hold.ok_or(ErrorCode::NoSuchObjectLockConfiguration)?;
    let mut xml = XmlWriter::with_capacity(256);
    xml.open_root("LegalHold");
    xml.text("Status", hold_name(legal_hold));
    xml.close("LegalHold");
    Ok(Reply::xml(xml))
}
