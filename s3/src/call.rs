//! An authenticated and authorized request, as operations see it.

use crate::access::account;
use crate::access::audit::AuditContext;
use crate::access::auth::{self, Requester, RequiredRights};
use crate::access::public::PublicRequest;
use crate::access::recording::Recording;
use crate::compatibility::Compatibility;
use crate::errors::{ErrorCode, S3Result};
use crate::forms::Form;
use crate::headers::object_lock;
use crate::request::fields::Fields;
use crate::request::query::Query;
use crate::request::sosapi::{self, SystemObject};
use crate::request::target::Target;
use cairn_engine::{Bucket, BucketSettings, Cause, Engine, Origin, WriteCondition};
use cairn_http1::{RequestHead, encode_path};
use cairn_identity::policy::Permission;
use cairn_identity::{Authentication, Authenticator, Credentials, Principal};
use cairn_model::{ObjectKey, Timestamp};
use cairn_net::Request;
use cairn_observe::AuditLog;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

thread_local! {
    /// The principal of the root credential, shared by the events of an executor.
    static ROOT_PRINCIPAL: Arc<str> = Principal::Root.to_string().into();
}

/// The input of an operation.
pub(crate) struct Call<'a> {
    /// The engine of this executor.
    pub(crate) engine: &'a Rc<Engine>,
    /// Looks the client up again before a change.
    pub(crate) authenticator: &'a Rc<Authenticator<Box<dyn Credentials>>>,
    /// The rights that the request requires of its client's policies.
    pub(crate) required: RequiredRights,
    /// The request, if the rules of public access may allow it.
    pub(crate) public: Option<PublicRequest<'a>>,
    /// Whether the rules of public access have an effect.
    pub(crate) public_access: bool,
    /// The permission that the client's policies give the request. A change of them while the body is received changes it.
    pub(crate) permission: Cell<Permission>,
    /// The compatibility mode: how much of S3 is implemented.
    pub(crate) compatibility: Compatibility,
    /// Whether the server answers the objects of the Smart Object Storage API itself.
    pub(crate) has_system_objects: bool,
    /// The audit trail that records a failure while the response is sent.
    pub(crate) audit: &'a Arc<AuditLog>,
    /// The audit record of the request, if there is one.
    pub(crate) recording: &'a Recording,
    /// The request.
    pub(crate) request: &'a Request,
    /// The operation's name.
    pub(crate) operation: &'static str,
    /// The request's head.
    pub(crate) head: &'a RequestHead,
    /// The request's header fields.
    pub(crate) fields: Fields<'a>,
    /// The request's decoded query.
    pub(crate) query: &'a Query<'a>,
    /// The bucket and key that the path names.
    pub(crate) target: &'a Target,
    /// The client's identity, and the body digest that it signed.
    pub(crate) authentication: &'a Authentication,
    /// The form, if the request is one. Then `fields` are those of the form, and `target` is the object that it names.
    pub(crate) form: Option<&'a Form>,
    /// The time at which the request was authenticated.
    pub(crate) now: Timestamp,
}

impl Call<'_> {
    /// Checks, when the body has been received, that the client may still do what the request asks for.
    ///
    /// # Errors
    /// Those of [`auth::authorize_again`].
    pub(crate) fn authorize_again(&self) -> S3Result<()> {
        let check = |principal: &Principal| {
            let client = Requester { principal, ..self.requester() };
            let permission = auth::authorize_request(client, self.required, self.target)?;
            let bypass = self.fields.amz(object_lock::BYPASS);
            if bypass.is_some_and(|text| text.eq_ignore_ascii_case("true")) {
                auth::authorize_bypass(client, self.target.bucket_text())?;
            }
            Ok(permission)
        };
        let before = self.permission.get();
        self.permission.set(auth::authorize_again(self.authenticator, self.authentication, before, check)?);
        Ok(())
    }

    /// Returns the object that the request names, if the server answers it itself.
    pub(crate) fn system_object(&self) -> Option<SystemObject> {
        SystemObject::of_key(self.target.key_text()).filter(|_| self.has_system_objects)
    }

    /// Refuses to change an object that the server answers itself.
    ///
    /// # Errors
    /// `InvalidRequest`.
    pub(crate) fn check_change(&self, target: &Target) -> S3Result<()> {
        sosapi::check_change(self.has_system_objects, target.key_text())
    }

    /// Returns the client.
    pub(crate) fn requester(&self) -> Requester<'_> {
        Requester {
            principal: &self.authentication.principal,
            address: self.request.client,
            public: self.public,
        }
    }

    /// Returns whether the policies of the client allow the request. Otherwise, only a rule of public access allows it.
    pub(crate) fn is_allowed_by_policy(&self) -> bool {
        let client = Requester { public: None, ..self.requester() };
        auth::authorize_request(client, self.required, self.target).is_ok()
    }

    /// Restricts the condition of a write to what the client may write.
    pub(crate) fn permitted(&self, condition: WriteCondition) -> WriteCondition {
        WriteCondition { must_be_absent: self.permission.get().must_be_absent(), ..condition }
    }

    /// Returns who asks for the change, for its event.
    pub(crate) fn origin(&self, cause: Cause) -> Origin {
        let principal = match &self.authentication.principal {
            Principal::Root => ROOT_PRINCIPAL.with(Arc::clone),
            Principal::Account(account) => Arc::clone(&account.audit_name),
            Principal::Anonymous => unreachable!("the public changes nothing"),
        };
        Origin { principal, request_id: self.request.id.as_str().into(), cause }
    }

    /// Returns the context of audit records, for a response that outlives the call.
    pub(crate) fn audit_context(&self) -> AuditContext {
        self.audit_context_of(self.target)
    }

    /// Returns the context of audit records about an object that the request's document names.
    pub(crate) fn audit_context_of(&self, target: &Target) -> AuditContext {
        let authentication = Some(self.authentication);
        AuditContext::new(self.audit, self.request, Some(target), authentication, self.operation)
    }

    /// Returns whether the request bypasses governance retention: it asks for it, and its principal may do so.
    ///
    /// # Errors
    /// `InvalidArgument` when the bucket has no object lock, or the header is neither `true` nor `false`;
    /// `AccessDenied` for a principal that may not manage the bucket, whether or not there is anything to bypass.
    pub(crate) fn bypasses_governance(&self, settings: &BucketSettings) -> S3Result<bool> {
        if !object_lock::asks_for_bypass(self.fields, settings)? {
            return Ok(false);
        }
        auth::authorize_bypass(self.requester(), self.target.bucket_text())?;
        Ok(true)
    }

    /// Returns the URL of an object, in the style of addressing that the request has.
    pub(crate) fn location(&self, bucket: &str, key: &ObjectKey) -> String {
        let host = self.head.header_str("host").unwrap_or_default();
        let scheme = if self.request.is_secure { "https" } else { "http" };
        let key = encode_path(key.as_bytes());
        if self.target.is_virtual_hosted() {
            format!("{scheme}://{host}/{key}")
        } else {
            format!("{scheme}://{host}/{bucket}/{key}")
        }
    }

    /// Looks up the bucket that the request names.
    ///
    /// # Errors
    /// `InvalidBucketName`, `NoSuchBucket`, or `AccessDenied` when the request expects another owner.
    pub(crate) fn bucket(&self) -> S3Result<Arc<Bucket>> {
        let name = self.target.bucket()?;
        account::check_expected_owner(self.fields)?;
        self.engine.store().bucket(&name).ok_or_else(|| ErrorCode::NoSuchBucket.into())
    }

    /// Looks up the bucket and checks the key that the request names. The key is checked after the bucket, as on AWS.
    ///
    /// # Errors
    /// Those of [`Self::bucket`], and `KeyTooLongError`.
    pub(crate) fn object(&self) -> S3Result<(Arc<Bucket>, ObjectKey)> {
        Ok((self.bucket()?, self.target.key()?))
    }
}
