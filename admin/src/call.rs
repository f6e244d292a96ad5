//! One request as the handlers of routes see it: who asks, the path's names, the query, the body, the store.

use cairn_engine::{Bucket, Engine, Store};
use cairn_http1::{RequestHead, decode};
use cairn_identity::directory::Directory;
use cairn_model::{BucketName, ObjectKey, VersionName};
use cairn_net::{Abandoned, BodyError, Drain, RequestBody};
use http::StatusCode;
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::future::{Future, pending};
use std::rc::Rc;
use std::sync::Arc;

use crate::access::Caller;
use crate::audit::{ReadTrail, Trail};
use crate::error::AdminError;
use crate::limits::{BODY_BYTES_MAX, JSON_MESSAGE_BYTES_MAX};
use crate::query::Parameters;
use crate::routes::Segments;
use crate::service::AdminService;

/// A request that was let in.
pub(crate) struct Call<'a, 'b> {
    /// The plane on this executor.
    pub(crate) service: &'a AdminService,
    /// Who asks; `None` on routes that ask nobody.
    pub(crate) caller: Option<&'a Caller>,
    /// What the audit trail needs of the request.
    pub(crate) trail: &'a Trail<'a>,
    /// The request's head.
    pub(crate) head: &'a RequestHead,
    /// What the variable segments of its path stand for.
    pub(crate) segments: Segments<'a>,
    /// `None` when a head is tried without a connection.
    pub(crate) body: Option<&'a mut RequestBody<'b>>,
}

impl Call<'_, '_> {
    /// The engine of this executor.
    ///
    /// # Errors
    /// `NOT_READY` when there is no store to serve.
    pub(crate) fn engine(&self) -> Result<&Rc<Engine>, AdminError> {
        self.service.options.engine.as_ref().ok_or(AdminError::NotReady("the store is not open"))
    }

    /// The store.
    ///
    /// # Errors
    /// As [`Self::engine`].
    pub(crate) fn store(&self) -> Result<&Arc<Store>, AdminError> {
        Ok(self.engine()?.store())
    }

    /// The directory of accounts.
    ///
    /// # Errors
    /// `NOT_READY` when there is no store to serve.
    pub(crate) fn directory(&self) -> Result<&Arc<Directory>, AdminError> {
        self.service.options.directory.as_ref().ok_or(AdminError::NotReady("the store is not open"))
    }

    /// Who asks, on a route that lets nobody in who is not known.
    pub(crate) fn caller(&self) -> Result<&Caller, AdminError> {
        self.caller.ok_or(AdminError::Unauthenticated)
    }

    /// What `{name}` of the path stands for, decoded.
    ///
    /// # Errors
    /// `INVALID_REQUEST` for a broken escape.
    pub(crate) fn segment(&self, name: &str) -> Result<Cow<'_, str>, AdminError> {
        let sent = self.segments.get(name).ok_or(AdminError::Internal)?;
        decode(sent).map_err(|error| AdminError::invalid(format!("the path: {error}")))
    }

    /// The name of the bucket that the path names.
    ///
    /// # Errors
    /// `INVALID_BUCKET_NAME`.
    pub(crate) fn bucket_name(&self) -> Result<BucketName, AdminError> {
        bucket_name(&self.segment("bucket")?)
    }

    /// The bucket that the path names.
    ///
    /// # Errors
    /// `INVALID_BUCKET_NAME`, `BUCKET_NOT_FOUND`.
    pub(crate) fn bucket(&self) -> Result<Arc<Bucket>, AdminError> {
        self.store()?.bucket(&self.bucket_name()?).ok_or(AdminError::BucketNotFound)
    }

    /// The key that the path names.
    ///
    /// # Errors
    /// `INVALID_REQUEST`.
    pub(crate) fn key(&self) -> Result<ObjectKey, AdminError> {
        object_key(&self.segment("key")?)
    }

    /// The version that the query's parameter `version_id` names, which is the only one it may have.
    ///
    /// # Errors
    /// `INVALID_REQUEST`; `VERSION_NOT_FOUND` for what is the id of no version.
    pub(crate) fn version(&self) -> Result<Option<VersionName>, AdminError> {
        const VERSION: &str = "version_id";
        self.parameters(&[VERSION])?.text(VERSION).map(version_name).transpose()
    }

    /// For what fails when the answer has begun.
    pub(crate) fn read_trail(&self) -> ReadTrail {
        ReadTrail::new(self.trail, self.service.options.audit.as_ref())
    }

    /// The query, which may have the `known` parameters only.
    ///
    /// # Errors
    /// `INVALID_REQUEST`.
    pub(crate) fn parameters(&self, known: &[&str]) -> Result<Parameters, AdminError> {
        Parameters::read(self.head.query(), known)
    }

    /// No query parameter may be there.
    ///
    /// # Errors
    /// `INVALID_REQUEST`.
    pub(crate) fn no_parameters(&self) -> Result<(), AdminError> {
        self.parameters(&[]).map(drop)
    }

    /// The body as JSON.
    ///
    /// # Errors
    /// `INVALID_REQUEST` when it is none of this form, `PAYLOAD_TOO_LARGE`.
    pub(crate) async fn json<T: DeserializeOwned>(&mut self) -> Result<T, AdminError> {
        let bytes = self.bytes().await?;
        parsed(&bytes)
    }

    /// The body as JSON; the default when it is empty.
    ///
    /// # Errors
    /// As [`Self::json`].
    pub(crate) async fn optional_json<T: DeserializeOwned + Default>(&mut self) -> Result<T, AdminError> {
        let bytes = self.bytes().await?;
        if bytes.is_empty() {
            return Ok(T::default());
        }
        parsed(&bytes)
    }

    /// There must be no body.
    ///
    /// # Errors
    /// `INVALID_REQUEST` when there is one.
    pub(crate) async fn no_body(&mut self) -> Result<(), AdminError> {
        if self.bytes().await?.is_empty() {
            Ok(())
        } else {
            Err(AdminError::invalid("the route takes no body"))
        }
    }

    async fn bytes(&mut self) -> Result<Vec<u8>, AdminError> {
        let Some(body) = self.body.as_deref_mut() else { return Ok(Vec::new()) };
        let length = usize::try_from(body.remaining()).unwrap_or(usize::MAX);
        if length > BODY_BYTES_MAX {
            let message = format!("the body has more than {BODY_BYTES_MAX} bytes");
            return Err(AdminError::Invalid(StatusCode::PAYLOAD_TOO_LARGE, message));
        }
        let mut bytes = vec![0; length];
        let mut read = 0;
        while let Some(rest) = bytes.get_mut(read..).filter(|rest| !rest.is_empty()) {
            match body.read(rest).await {
                Ok(count) if count > 0 => read += count,
                Err(error) => return Err(unread(&error)),
                Ok(_) => return Err(AdminError::invalid("the body could not be read to its end")),
            }
        }
        // Nothing is read of a body whose length is not declared; asking for more says so.
        if length == 0 && body.read(&mut [0]).await.is_err() {
            let message = "the body must have a Content-Length".to_owned();
            return Err(AdminError::Invalid(StatusCode::LENGTH_REQUIRED, message));
        }
        Ok(bytes)
    }

    /// Does `work` as long as somebody waits for it: it is dropped when the client goes or the service begins to stop.
    pub(crate) async fn while_wanted<T>(
        &self,
        work: impl Future<Output = Result<T, AdminError>>,
    ) -> Result<T, AdminError> {
        let drain: &Drain = &self.service.options.drain;
        let given_up = async {
            match &self.body {
                Some(body) => Err(match body.abandoned(drain).await {
                    Abandoned::ClientGone => AdminError::ClientGone,
                    Abandoned::Draining => AdminError::NotReady("the service is shutting down"),
                }),
                None => pending().await,
            }
        };
        futures_lite::future::or(work, given_up).await
    }
}

fn parsed<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, AdminError> {
    crate::json::parse(bytes).map_err(|error| {
        let text = error.to_string();
        let shown = &text[..text.floor_char_boundary(JSON_MESSAGE_BYTES_MAX)];
        let more = if shown.len() < text.len() { " …" } else { "" };
        AdminError::invalid(format!("the body: {shown}{more}"))
    })
}

/// What a body that could not be read is answered with.
pub(crate) fn unread(error: &BodyError) -> AdminError {
    match error {
        BodyError::TimedOut => {
            AdminError::Invalid(StatusCode::REQUEST_TIMEOUT, "the request did not arrive in time".to_owned())
        }
        _ => AdminError::invalid("the body could not be read to its end"),
    }
}

/// A bucket's name, checked.
///
/// # Errors
/// `INVALID_BUCKET_NAME`, with the rule that is broken.
pub(crate) fn bucket_name(text: &str) -> Result<BucketName, AdminError> {
    BucketName::parse(text).map_err(|error| AdminError::InvalidBucketName(error.rule))
}

/// A version's id.
///
/// # Errors
/// `INVALID_REQUEST` when there is none; `VERSION_NOT_FOUND` for what is the id of no version.
pub(crate) fn version_name(text: &str) -> Result<VersionName, AdminError> {
    if text.is_empty() {
        return Err(AdminError::invalid("version_id must not be empty"));
    }
    VersionName::parse(text).ok_or(AdminError::VersionNotFound)
}

/// An object's key, checked.
///
/// # Errors
/// `INVALID_REQUEST`.
pub(crate) fn object_key(text: &str) -> Result<ObjectKey, AdminError> {
    ObjectKey::parse(text).map_err(|_| AdminError::invalid("an object key has 1 to 1024 bytes of UTF-8"))
}
