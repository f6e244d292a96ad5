//! One request as its handler sees it: path segments and query decoded, the body read within its limit.

use std::future::{Future, pending};

use cairn_engine::{Bucket, Engine};
use cairn_http1::{RequestHead, decode, query_pairs};
use cairn_model::{BucketName, ObjectKey};
use cairn_net::{Abandoned, BodyError, Drain, RequestBody};
use http::StatusCode;
use serde::de::DeserializeOwned;
use std::sync::Arc;

use crate::error::AdminError;
use crate::limits::BODY_BYTES_MAX;
use crate::routes::Segments;

/// A request that was let in.
pub(crate) struct Call<'r, 'b, 'c> {
    pub(crate) head: &'r RequestHead,
    pub(crate) segments: Segments<'r>,
    /// `None` when a head is tried without a connection.
    pub(crate) body: Option<&'b mut RequestBody<'c>>,
}

impl Call<'_, '_, '_> {
    /// The bucket that the path names.
    pub(crate) fn bucket(&self, engine: &Engine) -> Result<Arc<Bucket>, AdminError> {
        let text = decoded(self.segments.bucket)?;
        let name = BucketName::parse(&text).map_err(|error| AdminError::InvalidBucketName(error.rule))?;
        engine.store().bucket(&name).ok_or(AdminError::BucketNotFound)
    }

    /// The key that the path names.
    pub(crate) fn key(&self) -> Result<ObjectKey, AdminError> {
        let text = decoded(self.segments.key)?;
        ObjectKey::parse(&text).map_err(|_| AdminError::invalid("an object key has 1 to 1024 bytes of UTF-8"))
    }

    /// The value of the one query parameter that the route takes. Others are refused: a misspelt one must not be
    /// ignored in silence.
    pub(crate) fn only_parameter(&self, name: &str) -> Result<Option<String>, AdminError> {
        let mut value = None;
        for pair in query_pairs(self.head.query().unwrap_or_default()) {
            let (sent, text) = pair.map_err(|error| AdminError::invalid(error.to_string()))?;
            if sent != name || value.is_some() {
                let message = format!("the query takes {name} once and nothing else");
                return Err(AdminError::invalid(message));
            }
            value = Some(text.into_owned());
        }
        Ok(value)
    }

    /// No query parameter may be there.
    pub(crate) fn no_parameters(&self) -> Result<(), AdminError> {
        match self.head.query() {
            None | Some("") => Ok(()),
            Some(_) => Err(AdminError::invalid("the route takes no query parameters")),
        }
    }

    /// The body as JSON; the default when it is empty.
    pub(crate) async fn json<T: DeserializeOwned + Default>(&mut self) -> Result<T, AdminError> {
        let bytes = self.bytes().await?;
        if bytes.is_empty() {
            return Ok(T::default());
        }
        serde_json::from_slice(&bytes).map_err(|error| AdminError::invalid(format!("the body: {error}")))
    }

    /// There must be no body.
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
                Err(BodyError::TimedOut) => {
                    let message = "the request did not arrive in time".to_owned();
                    return Err(AdminError::Invalid(StatusCode::REQUEST_TIMEOUT, message));
                }
                Ok(_) | Err(_) => return Err(AdminError::invalid("the body could not be read to its end")),
            }
        }
        // Nothing is read of a body whose length is not declared; asking for more says so.
        if length == 0 && body.read(&mut [0]).await.is_err() {
            return Err(AdminError::invalid("the body must have a Content-Length"));
        }
        Ok(bytes)
    }

    /// Does `work` as long as somebody waits for it: it is dropped when the client goes or the service begins to stop.
    pub(crate) async fn while_wanted<T>(
        &self,
        drain: &Drain,
        work: impl Future<Output = Result<T, AdminError>>,
    ) -> Result<T, AdminError> {
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

fn decoded(text: &str) -> Result<std::borrow::Cow<'_, str>, AdminError> {
    decode(text).map_err(|error| AdminError::invalid(format!("the path: {error}")))
}
