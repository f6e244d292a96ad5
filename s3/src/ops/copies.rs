//! Shared code of CopyObject and UploadPartCopy: the source, the rights of the client, and the end of its connection.

use crate::access::account;
use crate::access::auth::{self, Requester, RequiredRights};
use crate::call::Call;
use crate::compatibility::Compatibility;
use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::headers::copy_source::CopySource;
use crate::reply::Reply;
use crate::reply::slow_response::{self, Work};
use crate::request::target::Target;
use cairn_engine::{Bucket, ObjectInfo, Versioning};
use cairn_http1::{BodyFraming, ResponseHead};
use cairn_identity::policy::Permission;
use cairn_identity::{Authentication, Authenticator, Credentials};
use cairn_net::RequestBody;
use std::future::Future;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

/// The header that names the copied version.
const SOURCE_VERSION_HEADER: &str = "x-amz-copy-source-version-id";

/// Refuses a body: the content is that of the source.
///
/// # Errors
/// `InvalidRequest`.
pub(crate) fn refuse_body(call: &Call<'_>) -> S3Result<()> {
    if matches!(call.head.framing(), BodyFraming::Length(1..)) {
        let message = format!("{} takes no body: its content is that of the copy source.", call.operation);
        return Err(S3Error::with_message(ErrorCode::InvalidRequest, message));
    }
    Ok(())
}

/// Looks up the bucket of the source, after checking that the client may read the source.
///
/// # Errors
/// `AccessDenied`, `NoSuchBucket` about the source.
pub(crate) fn source_bucket(call: &Call<'_>, source: &CopySource) -> S3Result<Arc<Bucket>> {
    auth::authorize_copy_source(call.requester(), source)?;
    account::check_expected_source_owner(call.fields)?;
    let found = call.engine.store().bucket(&source.bucket);
    found.ok_or_else(|| source.named(ErrorCode::NoSuchBucket.into()))
}

/// Returns the version of the source, as the response names it. `None` if the bucket of the source has no versions, and in the
/// mode `extended`, as on AWS, for a `null` version that the request does not name.
pub(crate) fn source_version(
    call: &Call<'_>,
    bucket: &Bucket,
    info: &ObjectInfo,
    source: &CopySource,
) -> Option<String> {
    let is_hidden = info.is_null && source.version.is_none() && call.compatibility == Compatibility::Extended;
    (bucket.versioning() != Versioning::Unversioned && !is_hidden).then(|| info.version_name().to_string())
}

/// Names the version of the source in a response.
pub(crate) fn write_source_version(head: &mut ResponseHead, version: Option<String>) {
    if let Some(version) = version {
        head.header(SOURCE_VERSION_HEADER, version);
    }
}

/// The rights of a copy, which are checked again before its commit.
pub(crate) struct Rights {
    authenticator: Rc<Authenticator<Box<dyn Credentials>>>,
    authentication: Authentication,
    target: Target,
    source: CopySource,
    required: RequiredRights,
    permission: Permission,
    address: IpAddr,
}

impl Rights {
    pub(crate) fn new(call: &Call<'_>, source: CopySource) -> Self {
        Self {
            authenticator: Rc::clone(call.authenticator),
            authentication: call.authentication.clone(),
            target: call.target.clone(),
            source,
            required: call.required,
            permission: call.permission.get(),
            address: call.request.client,
        }
    }

    /// # Errors
    /// Those of [`auth::authorize_again`].
    pub(crate) fn check_again(&self) -> S3Result<Permission> {
        auth::authorize_again(&self.authenticator, &self.authentication, self.permission, |principal| {
            let client = Requester { principal, address: self.address, public: None };
            let permission = auth::authorize_request(client, self.required, &self.target)?;
            auth::authorize_copy_source(client, &self.source)?;
            Ok(permission)
        })
    }
}

/// Responds with the result of `work`, slowly if it takes long. It ends when the client disconnects. `source_version` is
/// named in a head that is sent early.
///
/// # Errors
/// Those of `work`, if it finishes in time.
pub(crate) async fn respond(
    call: &Call<'_>,
    body: &RequestBody<'_>,
    source_version: Option<String>,
    work: impl Future<Output = S3Result<Reply>> + 'static,
) -> S3Result<Reply> {
    let address = call.request.client;
    let (principal, bucket) = (call.authentication.principal.clone(), call.target.bucket_text().to_owned());
    // The service does not see the error of a slow response, so missing keys are hidden here.
    let work: Work = Box::pin(async move {
        let client = Requester { principal: &principal, address, public: None };
        work.await.map_err(|error| auth::hide_missing(client, &bucket, error))
    });
    let response = slow_response::respond(call, work, |head| write_source_version(head, source_version));
    // Checked first, so that nothing is copied for a client that sends requests and does not wait.
    let disconnected = async {
        body.disconnected().await;
        Err(ErrorCode::ClientDisconnected.into())
    };
    futures_lite::future::or(disconnected, response).await
}
