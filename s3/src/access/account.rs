//! The account that owns all buckets and objects: its ids, as clients see them, and its region.
//!
//! There are no AWS accounts here, but S3 responses name an owner, and clients may require one. The ids are the same on
//! every server, so that they survive a move to another one. Clients may sign for any region. The reported one is AWS's
//! default, which is written as an empty location.

use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::request::fields::Fields;
use crate::xml::writer::XmlWriter;
use cairn_engine::Bucket;
use std::borrow::Cow;

/// The canonical user id: the SHA-256 of `cairn:owner`, in AWS's format.
pub(crate) const OWNER_ID: &str = "a0e20527cac7119af3b58ee13f65dbf6dce679ad2f9700932e6b578f83bc0f34";
/// The owner's display name.
pub(crate) const OWNER_DISPLAY_NAME: &str = "cairn";
/// The account id, in AWS's format.
pub(crate) const ACCOUNT_ID: &str = "000000000000";
/// The region of every bucket that was created without a location.
pub(crate) const REGION: &str = "us-east-1";
/// The regions that ListBuckets may ask for: those of AWS in 2026 (AWS General Reference, "Amazon S3 endpoints").
const REGIONS: &str = "af-south-1 ap-east-1 ap-east-2 ap-northeast-1 ap-northeast-2 ap-northeast-3 ap-south-1 ap-south-2 \
                       ap-southeast-1 ap-southeast-2 ap-southeast-3 ap-southeast-4 ap-southeast-5 ap-southeast-6 \
                       ap-southeast-7 ca-central-1 ca-west-1 cn-north-1 cn-northwest-1 eu-central-1 eu-central-2 \
                       eu-north-1 eu-south-1 eu-south-2 eu-west-1 eu-west-2 eu-west-3 eusc-de-east-1 il-central-1 \
                       me-central-1 me-south-1 mx-central-1 sa-east-1 us-east-1 us-east-2 us-gov-east-1 us-gov-west-1 \
                       us-west-1 us-west-2";

/// Returns whether AWS has a region of this name.
pub(crate) fn is_region(name: &str) -> bool {
    REGIONS.split_ascii_whitespace().any(|region| region == name)
}

/// Returns the region of a bucket: its location.
pub(crate) fn region_of(bucket: &Bucket) -> Cow<'static, str> {
    match &bucket.settings().location {
        None => Cow::Borrowed(REGION),
        Some(location) => Cow::Owned(location.to_string()),
    }
}

/// Returns the Amazon Resource Name of a bucket.
pub(crate) fn bucket_arn(name: &str) -> String {
    format!("arn:aws:s3:::{name}")
}

/// Writes the `Owner` element.
pub(crate) fn write_owner(xml: &mut XmlWriter) {
    write_owner_as(xml, "Owner");
}

/// Writes the owner as another element, such as `Initiator`.
pub(crate) fn write_owner_as(xml: &mut XmlWriter, element: &'static str) {
    xml.open(element);
    xml.text("ID", OWNER_ID);
    xml.text("DisplayName", OWNER_DISPLAY_NAME);
    xml.close(element);
}

/// Checks `x-amz-expected-bucket-owner`, which may be the account id or the canonical user id.
///
/// # Errors
/// `AccessDenied` for any other account, `InvalidBucketOwnerAWSAccountID` for what is no id of one.
pub(crate) fn check_expected_owner(fields: Fields<'_>) -> S3Result<()> {
    check_owner(fields, "x-amz-expected-bucket-owner")
}

/// Checks the expected owner of the source bucket of a copy.
///
/// # Errors
/// As [`check_expected_owner`].
pub(crate) fn check_expected_source_owner(fields: Fields<'_>) -> S3Result<()> {
    check_owner(fields, "x-amz-source-expected-bucket-owner")
}

fn check_owner(fields: Fields<'_>, header: &str) -> S3Result<()> {
    match fields.amz(header) {
        None | Some(ACCOUNT_ID | OWNER_ID) => Ok(()),
        Some(id) if id.len() != ACCOUNT_ID.len() || !id.bytes().all(|byte| byte.is_ascii_digit()) => {
            Err(S3Error::with_message(
                ErrorCode::InvalidBucketOwnerAWSAccountID,
                format!(
                    "The value of the expected bucket owner parameter must be an AWS Account ID... [{id}]"
                ),
            ))
        }
        Some(_) => Err(S3Error::with_message(
            ErrorCode::AccessDenied,
            format!("Access Denied: the bucket belongs to another account than {header} names."),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::{OWNER_ID, check_expected_owner};
    use crate::request::fields::Fields;
    use crate::request::query::Query;
    use sha2::Digest as _;

    #[test]
    fn owner_id_is_the_documented_hash() {
        assert_eq!(hex::encode(sha2::Sha256::digest(b"cairn:owner")), OWNER_ID);
    }

    #[test]
    fn other_expected_owner_is_denied() {
        let query = Query::default();
        let no_account = Some("InvalidBucketOwnerAWSAccountID");
        for (owner, refusal) in [
            ("000000000000", None),
            (OWNER_ID, None),
            ("111122223333", Some("AccessDenied")),
            ("", no_account),
            ("0000", no_account),
            ("0000000000020", no_account),
            ("aa000000000$", no_account),
        ] {
            let headers: &[(&str, &[u8])] = &[("x-amz-expected-bucket-owner", owner.as_bytes())];
            let refused = check_expected_owner(Fields::new(headers, &query)).err();
            assert_eq!(refused.map(|error| error.code()), refusal, "{owner}");
        }
    }
}
