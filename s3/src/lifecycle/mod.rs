//! Lifecycle configurations of S3, mapped onto the rules of the bucket.
//!
//! Source: "Managing the lifecycle of objects" (AWS). The engine knows what rules do; this folder knows their XML.

pub(crate) mod reading;
pub(crate) mod writing;

use crate::errors::{S3Error, S3Result};
use crate::request::fields::Fields;
use cairn_http1::ResponseHead;

/// From which size on objects change their storage class by default. None does here, but Terraform waits for the header.
const MINIMUM_SIZE_HEADER: &str = "x-amz-transition-default-minimum-object-size";
const MINIMUM_SIZE: &str = "all_storage_classes_128K";

/// Checks that the request asks for AWS's default, if for anything.
///
/// # Errors
/// `InvalidRequest`.
pub(crate) fn check_minimum_size(fields: Fields<'_>) -> S3Result<()> {
    match fields.amz(MINIMUM_SIZE_HEADER) {
        None | Some(MINIMUM_SIZE) => Ok(()),
        Some(_) => Err(S3Error::invalid_request(
            "There are no transitions to other storage classes here: omit x-amz-transition-default-minimum-object-size, \
             or send all_storage_classes_128K.",
        )),
    }
}

/// Writes AWS's default into a response.
pub(crate) fn write_minimum_size(head: &mut ResponseHead) {
    head.header(MINIMUM_SIZE_HEADER, MINIMUM_SIZE);
}
