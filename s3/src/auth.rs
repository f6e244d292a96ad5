//! Who asks, and whether they may: the glue between requests, `cairn_identity` and operations.

use crate::conditions;
use crate::copy_source::CopySource;
use crate::errors::{S3Error, S3Result};
use crate::fields::Fields;
use crate::operations::Handler;
use crate::target::Target;
use cairn_http1::RequestHead;
use cairn_identity::policy::{Action, Decision, Resource};
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

/// Decides whether `principal` may carry out an operation that takes `action`. Decided before the bucket is looked up, so
/// that a refusal tells nothing about what exists.
///
/// # Errors
/// `AccessDenied`; never for root, who may do everything.
pub(crate) fn authorize(principal: &Principal, action: Option<Action>, target: &Target) -> S3Result<()> {
    let Some(action) = action else { return Ok(()) };
    let (bucket, key) = (target.bucket_text(), target.key_text());
    let resource = if key.is_empty() { Resource::Bucket(bucket) } else { Resource::Object(bucket, key) };
    require(principal, action, resource)
}

/// Decides whether `principal` may make a write depend on what is there: the answer tells whether it holds, and so it takes
/// the right to read the object (AWS: "Conditional requests", "How to perform conditional writes"). Decided before anything
/// is looked up.
///
/// # Errors
/// As [`authorize`].
pub(crate) fn authorize_condition(
    principal: &Principal,
    handler: Handler,
    fields: Fields<'_>,
    target: &Target,
) -> S3Result<()> {
    if !handler.takes_write_condition() || !conditions::asks_what_is_there(fields) {
        return Ok(());
    }
    require(principal, Action::GetObject, Resource::Object(target.bucket_text(), target.key_text()))
}

/// Decides whether `principal` may read what a copy is made of, apart from whether it may write the copy. Decided before the
/// source is looked up.
///
/// # Errors
/// As [`authorize`].
pub(crate) fn authorize_copy_source(principal: &Principal, source: &CopySource) -> S3Result<()> {
    let resource = Resource::Object(source.bucket.as_str(), source.key.as_str());
    require(principal, Action::GetObject, resource).map_err(|error| source.named(error))
}

/// Decides whether `principal` may bypass governance retention in `bucket`.
///
/// # Errors
/// As [`authorize`].
pub(crate) fn authorize_bypass(principal: &Principal, bucket: &str) -> S3Result<()> {
    require(principal, Action::ManageBucket, Resource::Bucket(bucket))
}

/// The error of a lookup in `bucket`, whichever operation it is of: what is missing is 404 to who may list the bucket, and 403
/// to others (AWS: GetObject, "Permissions"). They still learn that nothing is there that they could read; what they do not
/// learn is what of it was there, and that it is not another object which they may not read.
///
/// An error about the source of a copy has been judged by the source's bucket, in [`hide_missing_source`].
pub(crate) fn hide_missing(principal: &Principal, bucket: &str, error: S3Error) -> S3Error {
    if error.is_of_source() { error } else { hide(principal, bucket, error) }
}

fn hide(principal: &Principal, bucket: &str, error: S3Error) -> S3Error {
    if !matches!(error.code(), "NoSuchKey" | "NoSuchVersion") {
        return error;
    }
    match require(principal, Action::ListBucket, Resource::Bucket(bucket)) {
        Ok(()) => error,
        Err(denied) => denied.hiding_a_miss(),
    }
}

/// The same of what a copy is made of.
pub(crate) fn hide_missing_source(principal: &Principal, source: &CopySource, error: S3Error) -> S3Error {
    let shown = hide(principal, source.bucket.as_str(), error);
    if shown.hides_a_miss() { source.named(shown) } else { shown }
}

fn require(principal: &Principal, action: Action, resource: Resource<'_>) -> S3Result<()> {
    let what = match resource {
        Resource::Bucket(_) => "the bucket",
        Resource::Object(..) => "the object",
    };
    match principal.decide(action, resource) {
        Decision::Allowed => Ok(()),
        Decision::DeniedExplicitly => Err(S3Error::denied(format!("a policy denies {action} on {what}"))),
        Decision::DeniedImplicitly => Err(S3Error::denied(format!("no policy allows {action} on {what}"))),
    }
}
