//! Who asks, and whether they may: the glue between requests, `cairn_identity` and operations.

use crate::copy_source::CopySource;
use crate::errors::S3Result;
use crate::fields::Fields;
use crate::operations::Handler;
use cairn_http1::RequestHead;
use cairn_identity::{Authentication, Authenticator, Credentials, Principal, SignedRequest};
use cairn_model::Timestamp;

/// Proves who signed a request.
///
/// # Errors
/// What `cairn_identity` refuses, with AWS's codes.
pub(crate) fn authenticate<C: Credentials>(
    authenticator: &Authenticator<C>,
    head: &RequestHead,
    fields: Fields<'_>,
    now: Timestamp,
) -> S3Result<Authentication> {
    let signed = SignedRequest {
        method: head.method().as_str(),
        path: head.path(),
        query: head.query(),
        headers: fields.headers(),
    };
    Ok(authenticator.authenticate(&signed, now)?)
}

/// Decides whether `principal` may read what a copy is made of, apart from whether it may write the copy. Decided before the
/// source is looked up.
///
/// # Errors
/// `AccessDenied`; never for root, who may do everything.
pub(crate) fn authorize_copy_source(principal: &Principal, _source: &CopySource) -> S3Result<()> {
    match principal {
        Principal::Root => Ok(()),
    }
}

/// Decides whether `principal` may carry out `handler`. Decided before the bucket is looked up, so that a refusal
/// tells nothing about what exists.
///
/// # Errors
/// `AccessDenied`; never for root, who may do everything.
pub(crate) fn authorize(principal: &Principal, _handler: Handler) -> S3Result<()> {
    match principal {
        Principal::Root => Ok(()),
    }
}
