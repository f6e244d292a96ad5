//! Sends the changes of an import, and notes what the server refuses.

use serde_json::Value;

use super::loss::{Loss, is_about_all};
use crate::client::{Client, Request};
use crate::failure::{Failure, Outcome};

/// One run of a command.
pub(super) struct Changes<'c> {
    pub(super) client: &'c Client,
    /// Whether nothing is to be changed.
    pub(super) is_dry: bool,
    pub(super) losses: Vec<Loss>,
}

impl Changes<'_> {
    /// Sends a change, unless this is a dry run. Returns the response.
    pub(super) fn change(&self, request: &Request) -> Result<Option<Value>, Failure> {
        if self.is_dry { Ok(None) } else { self.client.call(request).map(Some) }
    }

    /// Notes what the server refused.
    ///
    /// # Errors
    /// The refusal, if it is not about this item alone.
    pub(super) fn refuse(&mut self, kind: &'static str, name: &str, failure: Failure) -> Outcome {
        if is_about_all(&failure) {
            return Err(failure);
        }
        let reason = failure.message().lines().next().unwrap_or_default();
        self.lose(kind, name, reason);
        Ok(())
    }

    pub(super) fn lose(&mut self, kind: &'static str, name: &str, reason: impl Into<String>) {
        self.losses.push(Loss::new(kind, name, reason));
    }
}
