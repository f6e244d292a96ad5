//! Authentication and authorization of requests with `cairn_identity`.

use crate::access::public::PublicRequest;
use crate::errors::{S3Error, S3Result};
use crate::headers::copy_source::CopySource;
use crate::request::fields::Fields;
use crate::request::target::Target;
use cairn_http1::RequestHead;
use cairn_identity::policy::{Action, Decision, Permission, Resource};
use cairn_identity::{
    AuthError, Authentication, Authenticator, Credentials, Principal, RootAttempts, SignedRequest,
};
use cairn_model::Timestamp;
use std::net::IpAddr;

/// Authenticates a request by its signature. `bucket_in_host` is the bucket of a virtual-hosted request. The root credential is
/// refused unchecked if `root_attempts` says so.
///
/// # Errors
/// Those of `cairn_identity`.
pub(crate) fn authenticate<C: Credentials>(
    authenticator: &Authenticator<C>,
    head: &RequestHead,
    fields: Fields<'_>,
    bucket_in_host: Option<&str>,
    now: Timestamp,
    root_attempts: RootAttempts,
) -> Result<Authentication, AuthError> {
    let signed = SignedRequest {
        method: head.method().as_str(),
        path: head.path(),
        query: head.query(),
        headers: fields.headers(),
        bucket_in_host,
    };
    authenticator.authenticate_throttled(&signed, now, root_attempts)
}

/// An authenticated client: who it is, and where its requests come from.
#[derive(Clone, Copy)]
pub(crate) struct Requester<'a> {
    pub(crate) principal: &'a Principal,
    /// The address of the client, behind trusted proxies.
    pub(crate) address: IpAddr,
    /// Its request, if the rules of public access may allow it.
    pub(crate) public: Option<PublicRequest<'a>>,
}

impl<'a> Requester<'a> {
    /// Returns the client of an unsigned request.
    pub(crate) fn anybody(address: IpAddr, public: PublicRequest<'a>) -> Self {
        Self { principal: &Principal::Anonymous, address, public: Some(public) }
    }

    /// Decides by the policies of the client. What no policy allows or denies, a rule of public access may allow.
    fn decide(&self, action: Action, resource: Resource<'_>) -> Decision {
        match (self.principal.decide(action, resource, self.address), self.public) {
            (Decision::DeniedImplicitly, Some(public)) if public.is_allowed(action, resource) => {
                Decision::Allowed
            }
            (decided, _) => decided,
        }
    }
}

/// Checks that `client` may perform the required action on the bucket or object of `target`. Checked before the bucket is
/// looked up, so that a refusal reveals nothing about what exists.
///
/// # Errors
/// `AccessDenied`; never for root, which may do everything.
fn authorize(client: Requester<'_>, required: RequiredRights, target: &Target) -> S3Result<Permission> {
    let Some(action) = required.action else { return Ok(Permission::Full) };
    let (bucket, key) = (target.bucket_text(), target.key_text());
    let resource = if key.is_empty() { Resource::Bucket(bucket) } else { Resource::Object(bucket, key) };
    let decision = client.decide(action, resource);
    decision.permission(required.creates_object).map_err(|denied| S3Error::denied(action, resource, denied))
}

/// Checks that policies of `client` allow anything in the bucket of `target`, before a document is read that names the
/// objects of `action`.
///
/// # Errors
/// `AccessDenied`, which tells the client nothing about the bucket.
pub(crate) fn authorize_any(client: Requester<'_>, action: Action, target: &Target) -> S3Result<()> {
    let bucket = target.bucket_text();
    if client.principal.sees_bucket(bucket, client.address) {
        return Ok(());
    }
    Err(S3Error::denied(action, Resource::Bucket(bucket), Decision::DeniedImplicitly))
}

/// The rights that a request requires of its client's policies. The source of a copy and a bypass of retention have checks of
/// their own.
#[derive(Clone, Copy)]
pub(crate) struct RequiredRights {
    /// The action that must be allowed on the bucket or object.
    pub(crate) action: Option<Action>,
    /// Whether the request writes a new object or a part of one, so that a right to write absent objects is enough.
    pub(crate) creates_object: bool,
    /// Whether a condition reveals something about the stored object, which the client must then be allowed to read.
    pub(crate) reveals_stored_object: bool,
}

/// Checks that `client` has the required rights.
///
/// # Errors
/// Those of [`authorize`].
pub(crate) fn authorize_request(
    client: Requester<'_>,
    required: RequiredRights,
    target: &Target,
) -> S3Result<Permission> {
    let permission = authorize(client, required, target)?;
    if required.reveals_stored_object {
        authorize_condition(client, target)?;
    }
    Ok(permission)
}

/// Checks before a change is made that the client may still make it. Reading a body or copying an object can take hours, and
/// a credential may be revoked meanwhile. `check` authorizes the principal with its present rights; it is called only if an
/// account, a credential or a policy has changed since the request was authenticated. Returns what `check` returns, or else
/// `before`, the permission of the time when the request was authenticated.
///
/// # Errors
/// `InvalidAccessKeyId` if the credential was deleted or disabled; errors of `check`.
pub(crate) fn authorize_again<C: Credentials>(
    authenticator: &Authenticator<C>,
    authentication: &Authentication,
    before: Permission,
    check: impl FnOnce(&Principal) -> S3Result<Permission>,
) -> S3Result<Permission> {
    changed_principal(authenticator, authentication)?.map_or(Ok(before), |principal| check(&principal))
}

/// Returns the principal with its present rights, if an account, a credential or a policy has changed since the request
/// was authenticated.
///
/// # Errors
/// `InvalidAccessKeyId` if the credential was deleted or disabled.
pub(crate) fn changed_principal<C: Credentials>(
    authenticator: &Authenticator<C>,
    authentication: &Authentication,
) -> S3Result<Option<Principal>> {
    authenticator.changed_principal(authentication).map_err(|revoked| {
        S3Error::from(revoked).denied_as("it was revoked while the request was in progress")
    })
}

/// Checks that `client` may make a write depend on the stored object. The response reveals whether the condition
/// holds, so it requires the right to read the object (AWS: "Conditional requests", "How to perform conditional
/// writes"). Checked before anything is looked up.
///
/// # Errors
/// Those of [`authorize`].
fn authorize_condition(client: Requester<'_>, target: &Target) -> S3Result<()> {
    require(client, Action::GetObject, Resource::Object(target.bucket_text(), target.key_text()))
}

/// Checks that `client` may read the source of a copy. Checked before the source is looked up.
///
/// # Errors
/// Those of [`authorize`].
pub(crate) fn authorize_copy_source(client: Requester<'_>, source: &CopySource) -> S3Result<()> {
    let resource = Resource::Object(source.bucket.as_str(), source.key.as_str());
    require(client, Action::GetObject, resource).map_err(|error| source.named(error))
}

/// Checks that `client` may bypass governance retention in `bucket`.
///
/// # Errors
/// Those of [`authorize`].
pub(crate) fn authorize_bypass(client: Requester<'_>, bucket: &str) -> S3Result<()> {
    require(client, Action::ManageBucket, Resource::Bucket(bucket))
}

/// Hides a missing key or version in `bucket`: it is 404 for clients that may list the bucket, and 403 for others
/// (AWS: GetObject, "Permissions"). The others still learn that they cannot read anything there, but not whether there
/// was a key, a delete marker or a version.
///
/// Errors about the source of a copy pass unchanged: [`hide_missing_source`] has handled them.
pub(crate) fn hide_missing(client: Requester<'_>, bucket: &str, error: S3Error) -> S3Error {
    if error.is_about_source() { error } else { hide(client, bucket, error) }
}

fn hide(client: Requester<'_>, bucket: &str, error: S3Error) -> S3Error {
    if !matches!(error.code(), "NoSuchKey" | "NoSuchVersion") {
        return error;
    }
    match require(client, Action::ListBucket, Resource::Bucket(bucket)) {
        Ok(()) => error,
        Err(denied) => denied.hiding_missing(),
    }
}

/// Hides a missing source of a copy, as [`hide_missing`].
pub(crate) fn hide_missing_source(client: Requester<'_>, source: &CopySource, error: S3Error) -> S3Error {
    let shown = hide(client, source.bucket.as_str(), error);
    if shown.hides_missing() { source.named(shown) } else { shown }
}

/// Checks that an action is allowed without a restriction.
fn require(client: Requester<'_>, action: Action, resource: Resource<'_>) -> S3Result<()> {
    match client.decide(action, resource) {
        Decision::Allowed => Ok(()),
        denied => Err(S3Error::denied(action, resource, denied)),
    }
}
