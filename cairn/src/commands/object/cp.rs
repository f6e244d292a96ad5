//! `cairn object cp`: copies objects on the server.

use cairn_api::CopyObject;
use serde_json::Value;

use super::place::{Place, Selection, route};
use super::relocation::Relocation;
use crate::client::{Client, Request};
use crate::commands::macros::command;
use crate::failure::{Failure, Outcome};

command! {
    /// Copy an object, or the objects that match a pattern, within the server. Locks are not copied.
    struct Copy("cp") {
        /// the object, as <bucket>/<key>, or <bucket>/<pattern>
        #[argh(positional)]
        source: Place,
        /// the object, as <bucket>/<key>; a bucket, or a key that ends in a slash, is a folder
        #[argh(positional)]
        destination: Place,
        /// copy the objects whose keys begin with the source
        #[argh(switch)]
        recursive: bool,
        /// the version of the source (default: the current one)
        #[argh(option, arg_name = "id")]
        version_id: Option<String>,
        /// keep objects that the destination already has: their copies are refused
        #[argh(switch)]
        if_absent: bool,
    }
}

impl Copy {
    pub(super) fn run(&self) -> Outcome {
        let client = self.client()?;
        let relocation = Relocation::new(&client, &self.source, &self.destination, "copied")?;
        match self.source.selection(self.recursive)? {
            Selection::One(key) => relocation.one(&key, |key, to| self.copy(&client, key, to)),
            Selection::Many { .. } if self.version_id.is_some() => {
                Err(Failure::WrongUsage("--version-id needs one object".to_owned()))
            }
            Selection::Many { prefix, pattern } => {
                relocation.several(&prefix, pattern.as_ref(), |key, to| self.copy(&client, key, to).map(drop))
            }
        }
    }

    fn copy(&self, client: &Client, key: &str, to: &str) -> Result<Value, Failure> {
        let body = CopyObject {
            destination_bucket: self.destination.bucket.clone().into(),
            destination_key: to.to_owned().into(),
            version_id: self.version_id.clone().map(Into::into),
            if_absent: self.if_absent,
        };
        client.call(&Request::post(route(&self.source.bucket, "object-copy", key)).json(&body).long_running())
    }
}
