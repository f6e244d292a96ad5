//! One authenticated and authorized request, as the operations see it.

use crate::account;
use crate::errors::{ErrorCode, S3Result};
use crate::fields::Fields;
use crate::query::Query;
use crate::target::Target;
use cairn_engine::{Bucket, Engine};
use cairn_http1::RequestHead;
use cairn_identity::Authentication;
use cairn_model::ObjectKey;
use std::rc::Rc;
use std::sync::Arc;

/// What an operation gets.
pub(crate) struct Call<'a> {
    /// The engine of this executor.
    pub(crate) engine: &'a Rc<Engine>,
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
}

impl Call<'_> {
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
