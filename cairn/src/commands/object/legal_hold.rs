//! `cairn object legal-hold`: puts a legal hold on a version, or takes it off.

use super::place::{Place, version_route};
use crate::choice::choice;
use crate::client::Request;
use crate::commands::macros::command;
use crate::failure::Outcome;

command! {
    /// Put a legal hold on a version, which cannot be deleted until it is taken off; `object stat` shows it.
    struct LegalHold("legal-hold") {
        /// the object, as <bucket>/<key>
        #[argh(positional)]
        object: Place,
        /// on or off
        #[argh(positional)]
        state: State,
        /// the version (default: the current one)
        #[argh(option, arg_name = "id")]
        version_id: Option<String>,
    }
}

choice! {
    /// The state of a legal hold.
    State = "on" | "off"
}

impl LegalHold {
    pub(super) fn run(&self) -> Outcome {
        let key = self.object.one()?;
        let legal_hold = self.state == State("on");
        let done = if legal_hold { "has a legal hold" } else { "has no legal hold" };
        let route = version_route(&self.object.bucket, "object-legal-hold", &key, self.version_id.as_deref());
        let request = Request::put(route).json(&cairn_api::LegalHold { legal_hold });
        self.client()?.change(&request, &format!("{}/{key} {done}", self.object.bucket))
    }
}
