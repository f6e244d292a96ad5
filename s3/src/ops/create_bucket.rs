//! CreateBucket. Source: API Reference, CreateBucket.
//!
//! Any location is accepted, because clients name the region that they sign for. It has no effect; the mode `extended`
//! returns it. Creating an existing bucket is a 409, whatever the configuration. The strict mode has no tags.

use crate::access::account;
use crate::body::declared;
use crate::body::digests::BodyDigests;
use crate::body::read_xml_body;
use crate::call::Call;
use crate::compatibility::Compatibility;
use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::headers::{object_lock, tagging};
use crate::reply::Reply;
use crate::xml::reader::Element;
use cairn_engine::limits::BUCKET_TAGS_MAX;
use cairn_engine::{BucketSettings, Cause, Tags, Versioning};
use cairn_http1::StatusCode;
use cairn_net::RequestBody;

/// Longest location in bytes. AWS's longest region name has 14 characters.
const LOCATION_BYTES_MAX: usize = 64;

pub(crate) async fn create_bucket(call: &Call<'_>, body: &mut RequestBody<'_>) -> S3Result<Reply> {
    let name = call.target.bucket()?;
    let mut settings = settings(call)?;
    let declared = declared::from_request(call.fields, call.authentication.payload)?;
    if call.engine.store().bucket(&name).is_some() {
        return Err(ErrorCode::BucketAlreadyOwnedByYou.into());
    }
    if let Some(configuration) = read_xml_body(call, body, BodyDigests::new(declared)).await? {
        let location = check_configuration(&configuration)?;
        if call.compatibility == Compatibility::Extended {
            settings.location = location.map(Into::into);
        }
        settings.tags = tags(&configuration, call.compatibility)?;
    }
    let has_object_lock = settings.object_lock;
    call.engine.store().create_bucket(&name, settings, call.origin(Cause::Request)).await?;
    if has_object_lock {
        call.recording.describe(|| "with object lock".to_owned());
    }
    let mut reply = Reply::empty(StatusCode::OK);
    reply.head.header("location", format!("/{name}"));
    if call.compatibility == Compatibility::Extended {
        reply.head.header("x-amz-bucket-arn", account::bucket_arn(name.as_str()));
    }
    Ok(reply)
}

/// Returns the settings of the new bucket. Object lock requires versions: a bucket with it always has versioning.
fn settings(call: &Call<'_>) -> S3Result<BucketSettings> {
    let object_lock = object_lock::bucket_lock(call.fields)?;
    let versioning = if object_lock { Versioning::Enabled } else { Versioning::Unversioned };
    Ok(BucketSettings { versioning, object_lock, ..BucketSettings::default() })
}

/// Checks the configuration, and returns the location that it names.
fn check_configuration(configuration: &Element) -> S3Result<Option<&str>> {
    if configuration.name() != "CreateBucketConfiguration" {
        return Err(ErrorCode::MalformedXML.into());
    }
    for (element, message) in [
        (
            "Location",
            "Directory buckets are not implemented: create a general purpose bucket without Location.",
        ),
        ("Bucket", "Directory buckets are not implemented: create a general purpose bucket without Bucket."),
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
    Ok(Some(location).filter(|location| !location.is_empty()))
}

/// Returns the tags of the new bucket.
fn tags(configuration: &Element, mode: Compatibility) -> S3Result<Tags> {
    match (configuration.only_child("Tags")?, mode) {
        (None, _) => Ok(Tags::default()),
        (Some(_), Compatibility::Strict) => {
            Err(S3Error::not_implemented("Bucket tags are not implemented: create the bucket without Tags."))
        }
        (Some(set), Compatibility::Extended) => {
            tagging::from_element(set, BUCKET_TAGS_MAX, "Bucket tag count")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{check_configuration, tags};
    use crate::compatibility::Compatibility;
    use crate::xml::reader::parse;

    fn status(body: &str) -> Option<u16> {
        check_configuration(&parse(body.as_bytes()).expect(body)).err().map(|error| error.status())
    }

    #[test]
    fn any_location_is_accepted() {
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
            ("<LocationConstraint>a b</LocationConstraint>", 400),
        ] {
            let body = format!("<CreateBucketConfiguration>{inner}</CreateBucketConfiguration>");
            assert_eq!(status(&body), Some(expected), "{inner}");
        }
        assert_eq!(status("<Delete/>"), Some(400));
    }

    #[test]
    fn tags_belong_to_the_extended_mode() {
        let found = |inner: &str, mode| {
            let body = format!("<CreateBucketConfiguration>{inner}</CreateBucketConfiguration>");
            tags(&parse(body.as_bytes()).expect(inner), mode)
                .map(|tags| tags.len())
                .map_err(|error| error.status())
        };
        let one = "<Tags><Tag><Key>owner</Key><Value>me</Value></Tag></Tags>";
        assert_eq!(found("", Compatibility::Strict), Ok(0));
        assert_eq!(found(one, Compatibility::Strict), Err(501));
        assert_eq!(found(one, Compatibility::Extended), Ok(1));
        assert_eq!(found("<Tags><Tag/></Tags>", Compatibility::Extended), Err(400));
    }
}
