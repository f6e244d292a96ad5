//! GetBucketVersioning: empty for a bucket that never had versioning. Source: API Reference, GetBucketVersioning.

use crate::call::Call;
use crate::errors::S3Result;
use crate::reply::Reply;
use crate::xml::writer::XmlWriter;
use cairn_engine::Versioning;

pub(crate) fn get_bucket_versioning(call: &Call<'_>) -> S3Result<Reply> {
    let bucket = call.bucket()?;
    let mut xml = XmlWriter::with_capacity(256);
    xml.open_root("VersioningConfiguration");
    match bucket.versioning() {
        Versioning::Unversioned => {}
        Versioning::Enabled => xml.text("Status", "Enabled"),
        Versioning::Suspended => xml.text("Status", "Suspended"),
    }
    xml.close("VersioningConfiguration");
    Ok(Reply::xml(xml))
}
