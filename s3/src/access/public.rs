//! Public access: what the rules of a bucket allow anybody to do.
//!
//! A rule allows GET and HEAD of the current objects below a prefix, and perhaps their list. Nothing else is ever public.
//! Rules also allow signed requests, unless a policy of the account denies them. The table of operations says which may be
//! allowed by a rule.

use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::request::fields::Fields;
use crate::request::query::Query;
use crate::request::target::Target;
use cairn_engine::{PublicAccess, Store};
use cairn_http1::{Method, RequestHead};
use cairn_identity::policy::{Action, Resource};
use cairn_model::BucketName;
use std::sync::Arc;

/// The remedy while the rules have no effect.
pub(crate) const ENABLE_PUBLIC_ACCESS: &str =
    "public access is disabled on this server; set auth.public_access_enabled = true";
/// The canned ACL that lets everybody read.
const PUBLIC_READ: &str = "public-read";
/// Names of the parameters that override headers of a response begin so.
const RESPONSE_OVERRIDES: &str = "response-";

/// A request that the rules of public access may allow.
#[derive(Clone, Copy)]
pub(crate) struct PublicRequest<'a> {
    store: &'a Store,
    /// The key that it reads, or the prefix that it lists.
    subject: &'a str,
}

impl<'a> PublicRequest<'a> {
    /// Returns the request of an operation that rules may allow, unless it names a version: rules are about current objects.
    pub(crate) fn new(store: &'a Store, target: &'a Target, query: &'a Query<'_>) -> Option<Self> {
        if query.get("versionId").is_some() {
            return None;
        }
        let subject = match target.key_text() {
            "" => query.get("prefix").unwrap_or_default(),
            key => key,
        };
        Some(Self { store, subject })
    }

    /// Returns whether a rule allows the action. A list of keys is allowed where the subject of the request may be listed.
    pub(crate) fn is_allowed(&self, action: Action, resource: Resource<'_>) -> bool {
        let (Resource::Bucket(bucket) | Resource::Object(bucket, _)) = resource;
        let Some(access) = access_of(self.store, bucket) else { return false };
        match (action, resource) {
            (Action::GetObject, Resource::Object(_, key)) => access.may_read(key),
            (Action::ListBucket, Resource::Bucket(_)) => access.may_list(self.subject),
            _ => false,
        }
    }
}

/// Returns the public access of the bucket of this name, if there is such a bucket and something was set.
fn access_of(store: &Store, bucket: &str) -> Option<Arc<PublicAccess>> {
    store.bucket(&BucketName::parse(bucket).ok()?)?.public_access()
}

/// Refuses parameters that an unsigned request may not have: a link that anybody makes could let a browser take content for
/// another type (API Reference, GetObject).
///
/// # Errors
/// `InvalidRequest`.
pub(crate) fn check_parameters(query: &Query<'_>) -> S3Result<()> {
    if query.iter().any(|(name, _)| name.starts_with(RESPONSE_OVERRIDES)) {
        let message = "Request specific response headers cannot be used for anonymous GET requests.";
        return Err(S3Error::with_message(ErrorCode::InvalidRequest, message));
    }
    Ok(())
}

/// Returns whether a request has no signature in its head, and is not a form, whose signature is in its body.
pub(crate) fn is_unsigned(head: &RequestHead) -> bool {
    let has_signature = |query: &str| query.contains("Signature=");
    matches!(*head.method(), Method::GET | Method::HEAD)
        && head.header("authorization").is_none()
        && !head.query().is_some_and(has_signature)
}

/// The refusal of `public-read`. It has nothing that the client sent: people paste its command into a shell, and keys may be
/// secret.
const NOT_PUBLIC: &str = "The bucket does not allow ACLs: grant access with the policies of service accounts. public-read is \
                          accepted for new objects with keys that everybody may read; `cairn public set <bucket> <prefix>` \
                          makes a rule.";

/// Checks the canned ACL `public-read`: it is accepted for a new object that a rule lets everybody read, because it asks for
/// nothing more.
///
/// # Errors
/// `AccessControlListNotSupported`, naming the command that makes a rule.
pub(crate) fn check_acl(
    store: &Store,
    fields: Fields<'_>,
    creates_object: bool,
    target: &Target,
) -> S3Result<()> {
    if fields.amz("x-amz-acl") != Some(PUBLIC_READ) {
        return Ok(());
    }
    let access = access_of(store, target.bucket_text());
    if creates_object && access.is_some_and(|access| access.may_read(target.key_text())) {
        return Ok(());
    }
    Err(S3Error::with_message(ErrorCode::AccessControlListNotSupported, NOT_PUBLIC))
}
