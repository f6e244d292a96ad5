//! `cairn object legal-hold`: puts a legal hold on a version, or takes it off.

use std::str::FromStr;

use serde_json::json;

use super::place::{Place, version_route};
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

/// The wanted state of the legal hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    On,
    Off,
}

impl FromStr for State {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "on" => Ok(Self::On),
            "off" => Ok(Self::Off),
            _ => Err("expected on or off"),
        }
    }
}

impl LegalHold {
    pub(super) fn run(&self) -> Outcome {
        let key = self.object.one()?;
        let (legal_hold, done) = match self.state {
            State::On => (true, "has a legal hold"),
            State::Off => (false, "has no legal hold"),
        };
        let route = version_route(&self.object.bucket, "object-legal-hold", &key, self.version_id.as_deref());
        let request = Request::put(route).json(&json!({"legal_hold": legal_hold}));
        self.client()?.change(&request, &format!("{}/{key} {done}", self.object.bucket))
    }
}
