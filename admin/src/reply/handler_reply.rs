//! The reply of a handler: status, headers, body and audit record.

use cairn_identity::directory::Outcome;
use cairn_net::ResponseBody;
use http::StatusCode;
use serde::Serialize;

use crate::error::AdminError;

/// The reply of a handler, with the contents of its audit record.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: ResponseBody,
    pub(crate) record: ChangeRecord,
}

/// Contents of the audit record of a completed change.
#[derive(Default, Debug, PartialEq, Eq)]
pub(crate) struct ChangeRecord {
    /// Nothing was changed, so nothing is recorded.
    pub(crate) is_without_change: bool,
    /// The changed resource, if the path does not name it.
    pub(crate) resource: Option<String>,
    /// Details for people. Never a secret.
    pub(crate) detail: String,
}

pub(crate) const JSON: &str = "application/json";

impl Reply {
    /// Returns a reply with a JSON body.
    pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Result<Self, AdminError> {
        let body = serde_json::to_vec(body).map_err(|error| {
            tracing::error!(target: "service", %error, "a response could not be serialized as JSON");
            AdminError::Internal
        })?;
        Ok(Self::bytes(status, JSON, body))
    }

    /// Returns a reply with a body of another type.
    pub(crate) fn bytes(status: StatusCode, content_type: &str, body: Vec<u8>) -> Self {
        let headers = vec![("content-type", content_type.to_owned())];
        Self { status, headers, body: ResponseBody::Full(body), record: ChangeRecord::default() }
    }

    /// Returns the whole JSON body, of at most `bytes_max` bytes. Lists are made page by page.
    ///
    /// # Errors
    /// `INVALID_REQUEST` if the body is longer or is not JSON.
    pub(crate) async fn json_body(self, bytes_max: usize) -> Result<Vec<u8>, AdminError> {
        let is_json = self.headers.iter().any(|(name, value)| *name == "content-type" && value == JSON);
        let mut body = Vec::new();
        match self.body {
            ResponseBody::Full(whole) if is_json => body = whole,
            ResponseBody::Chunked { mut source } if is_json => {
                while let Some(chunk) = source.next().await.map_err(|_| AdminError::Internal)? {
                    body.extend_from_slice((*chunk).as_ref());
                    if body.len() > bytes_max {
                        break;
                    }
                }
            }
            _ => return Err(AdminError::invalid("this answer is not JSON: ask for it by itself")),
        }
        if body.len() > bytes_max {
            return Err(AdminError::invalid("the answer is too large here: ask for it by itself"));
        }
        Ok(body)
    }

    /// Returns a reply with status 204 and no body.
    pub(crate) fn no_content() -> Self {
        let (status, body) = (StatusCode::NO_CONTENT, ResponseBody::Empty);
        Self { status, headers: Vec::new(), body, record: ChangeRecord::default() }
    }

    /// Adds a header.
    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Sets the resource of the audit record, for a route whose path does not name it.
    pub(crate) fn resource(mut self, resource: impl Into<String>) -> Self {
        self.record.resource = Some(resource.into());
        self
    }

    /// Sets the detail of the audit record.
    pub(crate) fn detail(mut self, detail: impl Into<String>) -> Self {
        self.record.detail = detail.into();
        self
    }

    /// Applies the outcome of a change of the directory: an unchanged directory is not recorded.
    pub(crate) fn with_outcome(self, outcome: Outcome) -> Self {
        match outcome {
            Outcome::Changed => self,
            Outcome::Unchanged => self.without_change(),
        }
    }

    /// Marks that nothing was changed.
    pub(crate) fn without_change(mut self) -> Self {
        self.record.is_without_change = true;
        self
    }
}
