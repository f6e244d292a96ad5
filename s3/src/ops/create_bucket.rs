//! CreateBucket. Source: API Reference, CreateBucket.
//!
//! Any location is accepted, for a client must be free to name the region that it signs for; the bucket is here all
//! the same. Creating a bucket that exists is a 409 whatever its configuration.

use crate::body::declared;
use crate::body::digests::BodyDigests;
use crate::body::read_xml_body;
use crate::call::Call;
use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::lock_headers;
use crate::reply::Reply;
use crate::xml::reader::Element;
use cairn_engine::{BucketSettings, Versioning};
use cairn_http1::StatusCode;
use cairn_net::RequestBody;

/// Longest location that is looked at; AWS's longest region name has 14 characters.
const LOCATION_BYTES_MAX: usize = 64;

pub(crate) async fn create_bucket(call: &Call<'_>, body: &mut RequestBody<'_>) -> S3Result<Reply> {
    let name = call.target.bucket()?;
    let settings = settings(call)?;
    let declared = declared::from_request(call.fields, call.authentication.payload)?;
    if call.engine.store().bucket(&name).is_some() {
        return Err(ErrorCode::BucketAlreadyOwnedByYou.into());
    }
    if let Some(configuration) = read_xml_body(body, BodyDigests::new(declared)).await? {
        check_configuration(&configuration)?;
    }
    call.engine.store().create_bucket(&name, settings).await?;
    let mut reply = Reply::empty(StatusCode::OK);
    reply.head.header("location", format!("/{name}"));
    Ok(reply)
}

/// Object lock keeps versions: a bucket that has it has versioning from its beginning, and for good.
fn settings(call: &Call<'_>) -> S3Result<BucketSettings> {
    let object_lock = lock_headers::bucket_lock(call.fields)?;
    let versioning = if object_lock { Versioning::Enabled } else { Versioning::Unversioned };
    Ok(BucketSettings { versioning, object_lock, ..BucketSettings::default() })
}

fn check_configuration(configuration: &Element) -> S3Result<()> {
    if configuration.name() != "CreateBucketConfiguration" {
        return Err(ErrorCode::MalformedXML.into());
    }
    for (element, message) in [
        (
            "Location",
            "Directory buckets are not implemented: create a general purpose bucket without Location.",
        ),
        ("Bucket", "Directory buckets are not implemented: create a general purpose bucket without Bucket."),
        ("Tags", "Bucket tags are not implemented: create the bucket without Tags."),
    ] {
        if configuration.child(element).is_some() {
            return Err(S3Error::not_implemented(message));
        }
    }
    let location = configuration.child("LocationConstraint").map_or("", Element::text).trim();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if location.len() > LOCATION_BYTES_MAX || !location.bytes().all(plain) {
        return Err(S3Error::new(ErrorCode::InvalidLocationConstraint)
            .element("LocationConstraint", location.chars().take(LOCATION_BYTES_MAX).collect::<String>()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check_configuration;
    use crate::xml::reader::parse;

    fn status(body: &str) -> Option<u16> {
        check_configuration(&parse(body.as_bytes()).expect(body)).err().map(|error| error.status())
    }

    #[test]
    fn any_location_is_accepted_and_other_wishes_are_not() {
        for inner in
            ["", "<LocationConstraint>eu-west-1</LocationConstraint>", "<LocationConstraint/>", "<Unknown/>"]
        {
            assert_eq!(
                status(&format!("<CreateBucketConfiguration>{inner}</CreateBucketConfiguration>")),
                None
            );
        }
        for (inner, expected) in [
            ("<Location><Name>x</Name></Location>", 501),
            ("<Bucket><Type>Directory</Type></Bucket>", 501),
            ("<Tags><Tag/></Tags>", 501),
            ("<LocationConstraint>a b</LocationConstraint>", 400),
        ] {
            let body = format!("<CreateBucketConfiguration>{inner}</CreateBucketConfiguration>");
            assert_eq!(status(&body), Some(expected), "{inner}");
        }
        assert_eq!(status("<Delete/>"), Some(400));
    }
}
