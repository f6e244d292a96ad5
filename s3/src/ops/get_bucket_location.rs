//! GetBucketLocation: the location that the bucket was created with, or empty, as for AWS's us-east-1.
//!
//! Source: API Reference, GetBucketLocation.

use crate::call::Call;
use crate::errors::S3Result;
use crate::reply::Reply;
use crate::xml::writer::XmlWriter;

pub(crate) fn get_bucket_location(call: &Call<'_>) -> S3Result<Reply> {
    let bucket = call.bucket()?;
    let mut xml = XmlWriter::with_capacity(256);
    xml.open_root("LocationConstraint");
    if let Some(location) = &bucket.settings().location {
        xml.only_text(location);
    }
    xml.close("LocationConstraint");
    Ok(Reply::xml(xml))
}
