//! GetObjectLockConfiguration. Source: API Reference, GetObjectLockConfiguration.

use crate::call::Call;
use crate::errors::{ErrorCode, S3Result};
use crate::reply::Reply;
use crate::xml::writer::XmlWriter;
use cairn_engine::{DefaultRetention, RetentionPeriod};

pub(crate) fn get_object_lock_configuration(call: &Call<'_>) -> S3Result<Reply> {
    let settings = call.bucket()?.settings();
    if !settings.object_lock {
        return Err(ErrorCode::ObjectLockConfigurationNotFoundError.into());
    }
    Ok(Reply::xml(document(settings.default_retention)))
}

/// Writes the configuration of a bucket with object lock.
pub(crate) fn document(retention: Option<DefaultRetention>) -> XmlWriter {
    let mut xml = XmlWriter::with_capacity(512);
    xml.open_root("ObjectLockConfiguration");
    xml.text("ObjectLockEnabled", "Enabled");
    if let Some(DefaultRetention { mode, period }) = retention {
        xml.open("Rule");
        xml.open("DefaultRetention");
        xml.text("Mode", mode.name());
        match period {
            RetentionPeriod::Days(days) => xml.value("Days", days),
            RetentionPeriod::Years(years) => xml.value("Years", years),
        }
        xml.close("DefaultRetention");
        xml.close("Rule");
    }
    xml.close("ObjectLockConfiguration");
    xml
}
