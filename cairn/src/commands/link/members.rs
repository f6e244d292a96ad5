//! The members of requests that create or change a link, from options.

use serde_json::{Map, Value};

use crate::choice::choice;
use crate::client::Client;
use crate::failure::{Failure, Outcome};
use crate::moment::Deadline;

choice! {
    /// Whether browsers show the object of a link or download it.
    LinkDisposition = "inline" | "attachment"
}

/// Members of a request that creates or changes a link.
pub(super) struct Members(pub(super) Map<String, Value>);

impl Members {
    pub(super) fn new() -> Self {
        Self(Map::new())
    }

    /// Sets a member if there is a value.
    pub(super) fn set(&mut self, name: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.0.insert(name.to_owned(), value.into());
        }
    }

    /// Sets a member to null if it is removed.
    pub(super) fn remove(&mut self, name: &str, is_removed: bool) -> Result<(), Failure> {
        if is_removed && self.0.contains_key(name) {
            let message = format!("{} cannot be set and removed at the same time", name.replace('_', " "));
            return Err(Failure::WrongUsage(message));
        }
        self.set(name, is_removed.then_some(Value::Null));
        Ok(())
    }

    /// Sets the expiry. A duration counts from the time of the server.
    pub(super) fn expire(&mut self, client: &Client, expires: Option<&Deadline>) -> Outcome {
        let end = match expires {
            Some(end @ Deadline::In(_)) => Some(end.from(&client.server_now()?)),
            Some(Deadline::At(time)) => Some(time.clone()),
            None => None,
        };
        self.set("expires_at", end);
        Ok(())
    }

    /// Returns the members, of which a change needs at least one.
    pub(super) fn changes(self) -> Result<Map<String, Value>, Failure> {
        if self.0.is_empty() {
            return Err(Failure::WrongUsage("give at least one option that changes something".to_owned()));
        }
        Ok(self.0)
    }
}
