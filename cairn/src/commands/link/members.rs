//! The members of requests that create or change a link, from options.

use cairn_api::Time;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::choice::choice;
use crate::client::resource::Resource;
use crate::client::{Client, Request, changed};
use crate::failure::{Failure, Outcome};
use crate::moment::Deadline;

choice! {
    /// The disposition of a link: browsers show its object or download it.
    LinkDisposition = "inline" | "attachment"
}

impl LinkDisposition {
    /// Returns it as the API names it.
    pub(super) fn body(self) -> cairn_api::Disposition {
        self.0.into()
    }
}

/// Returns when a link expires. A duration counts from the time of the server.
pub(super) fn expiry(client: &Client, expires: Option<&Deadline>) -> Result<Option<Time>, Failure> {
    let end = match expires {
        Some(end @ Deadline::In(_)) => Some(end.from(&client.server_now()?)),
        Some(Deadline::At(time)) => Some(time.clone()),
        None => None,
    };
    Ok(end.map(Into::into))
}

/// Returns a member that is set, removed or neither; both is wrong usage. `name` names it in the message.
pub(super) fn removable<T>(
    name: &str,
    value: Option<T>,
    is_removed: bool,
) -> Result<Option<Option<T>>, Failure> {
    if value.is_some() && is_removed {
        let message = format!("{name} cannot be set and removed at the same time");
        return Err(Failure::WrongUsage(message));
    }
    Ok(changed(value, is_removed))
}

/// Changes a link, and prints it. At least one member must change.
pub(super) fn update<T: DeserializeOwned>(
    kind: &Resource<T>,
    client: &Client,
    id: &str,
    changes: &impl Serialize,
) -> Outcome {
    let changes = json!(changes);
    if changes == json!({}) {
        return Err(Failure::WrongUsage("give at least one option that changes something".to_owned()));
    }
    kind.print(client, &Request::patch(kind.path_of(id)).json(&changes))
}
