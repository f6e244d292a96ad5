//! `cairn object mv`: moves objects on the server.

use cairn_api::MoveObject;
use serde_json::Value;

use super::place::{Place, Selection, route};
use super::relocation::Relocation;
use crate::client::{Client, Request};
use crate::commands::macros::command;
use crate::failure::{Failure, Outcome};

command! {
    /// Move an object, or the objects that match a pattern, within the server. Each is copied and then deleted; a bucket with
    /// versioning keeps its versions at the old key. Can be repeated after an interruption.
    struct Move("mv") {
        /// the object, as <bucket>/<key>, or <bucket>/<pattern>
        #[argh(positional)]
        source: Place,
        /// the object, as <bucket>/<key>; a bucket, or a key that ends in a slash, is a folder
        #[argh(positional)]
        destination: Place,
        /// move the objects whose keys begin with the source
        #[argh(switch)]
        recursive: bool,
        /// keep objects that the destination already has: their moves are refused
        #[argh(switch)]
        if_absent: bool,
    }
}

impl Move {
    pub(super) fn run(&self) -> Outcome {
        let client = self.client()?;
        let relocation = Relocation::new(&client, &self.source, &self.destination, "moved")?;
        let (prefix, pattern) = match self.source.selection(self.recursive)? {
            Selection::One(key) => return relocation.one(&key, |key, to| self.send(&client, key, to)),
            Selection::Many { prefix, pattern } => (prefix, pattern),
        };
        let pattern = pattern.as_ref();
        // The list could reach what was moved, and move it again.
        let is_selected = |key: &str| {
            self.source.bucket == self.destination.bucket
                && key.starts_with(&prefix)
                && pattern.is_none_or(|pattern| pattern.matches(key))
        };
        if pattern.is_none() && is_selected(relocation.folder()?) {
            let text = "the destination must not be below the source";
            return Err(Failure::WrongUsage(text.to_owned()));
        }
        relocation.several(&prefix, pattern, |key, to| {
            if is_selected(to) {
                return Err(format!("its destination {to} would be moved again").into());
            }
            self.send(&client, key, to).map(drop)
        })
    }

    fn send(&self, client: &Client, key: &str, to: &str) -> Result<Value, Failure> {
        let body = MoveObject {
            destination_bucket: self.destination.bucket.clone().into(),
            destination_key: to.to_owned().into(),
            if_absent: self.if_absent,
        };
        client.call(&Request::post(route(&self.source.bucket, "object-move", key)).json(&body).long_running())
    }
}
