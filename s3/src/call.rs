//! One authenticated and authorized request, as the operations see it.

use crate::account;
use crate::audit::RequestTrail;
use crate::errors::{ErrorCode, S3Result};
use crate::fields::Fields;
use crate::query::Query;
use crate::target::Target;
use cairn_engine::{Bucket, Engine};
use cairn_http1::RequestHead;
use cairn_identity::Authentication;
use cairn_model::{ObjectKey, Timestamp};
use cairn_net::Request;
use cairn_observe::AuditLog;
use std::rc::Rc;
use std::sync::Arc;

/// What an operation gets.
pub(crate) struct Call<'a> {
    /// The engine of this executor.
    pub(crate) engine: &'a Rc<Engine>,
    /// Where a response that fails on its way is recorded.
    pub(crate) audit: &'a Arc<AuditLog>,
    /// The request.
    pub(crate) request: &'a Request,
    /// The operation's name.
    pub(crate) operation: &'static str,
    /// The request's head.
    pub(crate) head: &'a RequestHead,
    /// Its header fields.
    pub(crate) fields: Fields<'a>,
    /// Its decoded query.
    pub(crate) query: &'a Query<'a>,
    /// The bucket and key that it names.
    pub(crate) target: &'a Target,
    /// Who asks, and what they said about the body.
    pub(crate) authentication: &'a Authentication,
    /// The time by which the request is judged.
    pub(crate) now: Timestamp,
}

impl Call<'_> {
    /// What a record of this request needs, for a response that outlives the call.
    pub(crate) fn trail(&self) -> RequestTrail {
        let authentication = Some(self.authentication);
        RequestTrail::new(self.audit, self.request, Some(self.target), authentication, self.operation)
    }

    /// The bucket that the request names.
    ///
    /// # Errors
    /// `InvalidBucketName`, `NoSuchBucket`, or `AccessDenied` when the request expects another owner.
    pub(crate) fn bucket(&self) -> S3Result<Arc<Bucket>> {
        let name = self.target.bucket()?;
        account::check_expected_owner(self.fields)?;
        self.engine.store().bucket(&name).ok_or_else(|| ErrorCode::NoSuchBucket.into())
    }

    /// The bucket and key that the request names. The key is judged after the bucket, as on AWS.
    ///
    /// # Errors
    /// As [`Self::bucket`], and `KeyTooLongError`.
    pub(crate) fn object(&self) -> S3Result<(Arc<Bucket>, ObjectKey)> {
        Ok((self.bucket()?, self.target.key()?))
    }
}
