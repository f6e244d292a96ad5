//! An admitted request as handlers see it: caller, path, query, body, and access to the store.

use cairn_engine::{Bucket, Cause, Engine, Origin, Store};
use cairn_http1::RequestHead;
use cairn_identity::directory::Directory;
use cairn_model::{BucketName, ObjectKey, VersionName};
use cairn_net::{CancelReason, RequestBody};
use cairn_observe::AuditLog;
use cairn_transfer::SmallBody;
use http::Method;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::future::{Future, pending};
use std::net::IpAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use crate::access::{AuditContext, Caller, NO_SESSION, ReadAudit};
use crate::context::AdminContext;
use crate::error::AdminError;
use crate::limits::BODY_BYTES_MAX;
use crate::operation::{MemberAccess, Operation};
use crate::reply::Reply;
use crate::request::body::{parse_json, read_body};
use crate::request::names::{bucket_name, decoded, object_key, version_name};
use crate::request::path::Segments;
use crate::request::query::Parameters;

mod links;
mod members;

/// The query parameter that names a version.
pub(crate) const VERSION_ID: &str = "version_id";

/// The body of a route that takes none.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoMembers {}

/// Answers reads that are part of a request, each as its own route does.
pub(crate) trait Reads {
    /// Answers a GET without a body. Session, rights and audit are those of its route.
    fn read<'a>(
        &'a self,
        head: &'a RequestHead,
        request_id: &'a str,
        client: IpAddr,
    ) -> Pin<Box<dyn Future<Output = Result<Reply, AdminError>> + 'a>>;
}

/// An admitted request.
pub(crate) struct Call<'a, 'b> {
    /// The state that the requests of this executor share.
    pub(crate) context: &'a AdminContext,
    /// The caller; `None` for operations without one.
    pub(crate) caller: Option<&'a Caller>,
    /// The properties of the request that audit records contain.
    pub(crate) audit: &'a AuditContext<'a>,
    /// The request's head.
    pub(crate) head: &'a RequestHead,
    /// Values of the variable segments of the path.
    pub(crate) segments: Segments<'a>,
    /// The query parameters, once they are checked.
    pub(crate) parameters: Parameters,
    /// The requirement of the operation for members.
    pub(crate) member_access: Option<MemberAccess>,
    /// Answers other reads of the same caller.
    pub(crate) reads: &'a dyn Reads,
    /// `None` in tests without a connection.
    pub(crate) body: Option<&'a mut RequestBody<'b>>,
}

impl Call<'_, '_> {
    /// Returns the engine of this executor.
    ///
    /// # Errors
    /// `NOT_READY` when no store is open.
    pub(crate) fn engine(&self) -> Result<&Rc<Engine>, AdminError> {
        Ok(&self.context.open()?.engine)
    }

    /// Returns the store.
    ///
    /// # Errors
    /// As [`Self::engine`].
    pub(crate) fn store(&self) -> Result<&Arc<Store>, AdminError> {
        Ok(self.engine()?.store())
    }

    /// Returns the directory of accounts.
    ///
    /// # Errors
    /// `NOT_READY` when no store is open.
    pub(crate) fn directory(&self) -> Result<&Arc<Directory>, AdminError> {
        Ok(&self.context.open()?.directory)
    }

    /// Returns the audit trail.
    ///
    /// # Errors
    /// `NOT_READY` when no store is open.
    pub(crate) fn audit_log(&self) -> Result<&Arc<AuditLog>, AdminError> {
        Ok(&self.context.open()?.audit)
    }

    /// Returns the caller.
    ///
    /// # Errors
    /// `UNAUTHENTICATED` for an operation without a caller.
    pub(crate) fn caller(&self) -> Result<&Caller, AdminError> {
        self.caller.ok_or(AdminError::Unauthenticated)
    }

    /// Returns who asks for the change, for its event.
    pub(crate) fn origin(&self, cause: Cause) -> Origin {
        let principal = self.caller.map_or("", |caller| &caller.principal).into();
        Origin { principal, request_id: self.audit.request_id.into(), cause }
    }

    /// Returns the value of the path segment `{name}`, decoded.
    ///
    /// # Errors
    /// `INVALID_REQUEST` for an invalid percent-encoding.
    pub(crate) fn segment(&self, name: &str) -> Result<Cow<'_, str>, AdminError> {
        let sent = self.segments.get(name).expect("handlers ask only for segments of their route's pattern");
        decoded(sent)
    }

    /// Returns the bucket name of the path.
    ///
    /// # Errors
    /// `INVALID_BUCKET_NAME`.
    pub(crate) fn bucket_name(&self) -> Result<BucketName, AdminError> {
        bucket_name(&self.segment("bucket")?)
    }

    /// Returns the bucket of the path.
    ///
    /// # Errors
    /// `INVALID_BUCKET_NAME`, `BUCKET_NOT_FOUND`.
    pub(crate) fn bucket(&self) -> Result<Arc<Bucket>, AdminError> {
        self.store()?.bucket(&self.bucket_name()?).ok_or(AdminError::BucketNotFound)
    }

    /// Returns the object key of the path.
    ///
    /// # Errors
    /// `INVALID_REQUEST`.
    pub(crate) fn key(&self) -> Result<ObjectKey, AdminError> {
        object_key(&self.segment("key")?)
    }

    /// Returns the version of the query parameter `version_id`.
    ///
    /// # Errors
    /// `INVALID_REQUEST`; `VERSION_NOT_FOUND` when no version can have this id.
    pub(crate) fn version(&self) -> Result<Option<VersionName>, AdminError> {
        self.parameters.text(VERSION_ID).map(version_name).transpose()
    }

    /// Returns the audit for reads that fail after the response has begun.
    pub(crate) fn read_audit(&self) -> ReadAudit {
        ReadAudit::new(self.audit, self.context.audit())
    }

    /// Checks query and body against what the operation accepts. Parses the query.
    ///
    /// # Errors
    /// `INVALID_REQUEST`, and those of [`Self::no_body`].
    pub(crate) async fn check(&mut self, operation: &Operation) -> Result<(), AdminError> {
        if let Some(declared) = operation.query {
            self.parameters = Parameters::parse(self.head.query(), declared)?;
        }
        if operation.request.is_none() && operation.method != Method::GET {
            self.no_body().await?;
        }
        Ok(())
    }

    /// Reads and parses the JSON body.
    ///
    /// # Errors
    /// `INVALID_REQUEST` when it is invalid; `PAYLOAD_TOO_LARGE`.
    pub(crate) async fn json<T: DeserializeOwned>(&mut self) -> Result<T, AdminError> {
        self.short_json(BODY_BYTES_MAX).await
    }

    /// Reads and parses a JSON body of at most `bytes_max` bytes.
    ///
    /// # Errors
    /// As [`Self::json`].
    pub(crate) async fn short_json<T: DeserializeOwned>(
        &mut self,
        bytes_max: usize,
    ) -> Result<T, AdminError> {
        let bytes = self.body_of(bytes_max).await?;
        parse_json(&bytes)
    }

    /// Reads and parses the JSON body. Returns the default when it is empty.
    ///
    /// # Errors
    /// As [`Self::json`].
    pub(crate) async fn optional_json<T: DeserializeOwned + Default>(&mut self) -> Result<T, AdminError> {
        let bytes = self.body_bytes().await?;
        if bytes.is_empty() {
            return Ok(T::default());
        }
        parse_json(&bytes)
    }

    /// Validates that there is no body. Some clients send an empty object with every request.
    ///
    /// # Errors
    /// `INVALID_REQUEST` when there is one.
    pub(crate) async fn no_body(&mut self) -> Result<(), AdminError> {
        let bytes = self.body_bytes().await?;
        if bytes.is_empty() || parse_json::<NoMembers>(&bytes).is_ok() {
            Ok(())
        } else {
            Err(AdminError::invalid("this route takes no request body"))
        }
    }

    /// Reads the body. Then checks that the caller's token or session is still valid.
    ///
    /// # Errors
    /// `PAYLOAD_TOO_LARGE`, errors of the connection, and those of [`Self::authenticate_again`].
    pub(crate) async fn body_bytes(&mut self) -> Result<SmallBody, AdminError> {
        self.body_of(BODY_BYTES_MAX).await
    }

    /// As [`Self::body_bytes`], for a body of at most `bytes_max` bytes.
    ///
    /// # Errors
    /// As [`Self::body_bytes`].
    pub(crate) async fn body_of(&mut self, bytes_max: usize) -> Result<SmallBody, AdminError> {
        let bytes = match self.body.as_deref_mut() {
            Some(body) => read_body(&self.context.open()?.engine, body, bytes_max).await?,
            None => SmallBody::default(),
        };
        self.authenticate_again()?;
        Ok(bytes)
    }

    /// Checks before a change is made, and after a wait, that the caller's token or session is still valid. Reading a body or
    /// copying an object can take hours. Meanwhile the token may be deleted or expire, and the session may end, and a member
    /// may lose rights.
    ///
    /// # Errors
    /// `UNAUTHENTICATED`; of members also `FORBIDDEN`.
    pub(crate) fn authenticate_again(&self) -> Result<(), AdminError> {
        let Some(Caller { token, .. }) = self.caller else { return Ok(()) };
        let directory = self.context.directory();
        if let Some(sessions) = &self.context.sessions {
            let is_active = sessions.is_active(self.head, directory);
            is_active.then_some(()).ok_or(AdminError::NoSession(NO_SESSION))?;
            return self.authorize_member();
        }
        match token {
            Some(token) if !self.directory()?.is_token_valid(*token) => Err(AdminError::Unauthenticated),
            _ => Ok(()),
        }
    }

    /// Runs `work`, which reads, as [`Self::until_disconnect`]. Then checks that the caller may still have the result.
    ///
    /// # Errors
    /// As [`Self::until_disconnect`] and [`Self::authenticate_again`].
    pub(crate) async fn wait_for_read<T>(
        &self,
        work: impl Future<Output = Result<T, AdminError>>,
    ) -> Result<T, AdminError> {
        let found = self.until_disconnect(work).await;
        self.authenticate_again()?;
        found
    }

    /// Runs `work` until it ends, the client disconnects, or the service begins to stop. Then `work` is dropped.
    ///
    /// # Errors
    /// Those of `work`; `CLIENT_GONE`; `NOT_READY` when the service is stopping.
    pub(crate) async fn until_disconnect<T>(
        &self,
        work: impl Future<Output = Result<T, AdminError>>,
    ) -> Result<T, AdminError> {
        let cancelled = async {
            match &self.body {
                Some(body) => Err(match body.cancelled(&self.context.drain).await {
                    CancelReason::ClientDisconnected => AdminError::ClientDisconnected,
                    CancelReason::Draining => AdminError::NotReady("the service is shutting down"),
                }),
                None => pending().await,
            }
        };
        // Checked first, so that nothing is done for a client that sends requests and does not wait.
        futures_lite::future::or(cancelled, work).await
    }
}
