//! `cairn object mv`: moves objects on the server.

use cairn_api::{MoveObject, ObjectEntry};
use serde_json::Value;

use super::place::{Place, Selection, below, count, for_each_page, route};
use crate::client::{Client, Request};
use crate::commands::macros::command;
use crate::commands::parallel::Batch;
use crate::failure::{Failure, Outcome};
use crate::output::progress::Progress;

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
        let folder = self.destination.destination()?;
        let is_folder = folder.is_empty() || folder.ends_with('/');
        let (prefix, pattern) = match self.source.selection(self.recursive)? {
            Selection::One(key) => {
                let name = key.rsplit('/').next().unwrap_or(&key);
                let to = if is_folder { format!("{folder}{name}") } else { folder };
                let record = self.send(&client, &key, &to)?;
                let done =
                    format!("{}/{key} was moved to {}/{to}\n", self.source.bucket, self.destination.bucket);
                return client.print(&record, || crate::terminal::lines(&done));
            }
            Selection::Many { prefix, pattern } => (prefix, pattern),
        };
        if !is_folder {
            let text =
                "several objects need a folder as destination: a bucket, or a key that ends in a slash";
            return Err(Failure::WrongUsage(text.to_owned()));
        }
        let (bucket, pattern) = (&self.source.bucket, pattern.as_ref());
        // The list could reach what was moved, and move it again.
        let is_selected = |key: &str| {
            *bucket == self.destination.bucket
                && key.starts_with(&prefix)
                && pattern.is_none_or(|pattern| pattern.matches(key))
        };
        if pattern.is_none() && is_selected(&folder) {
            let text = "the destination must not be below the source";
            return Err(Failure::WrongUsage(text.to_owned()));
        }
        let (objects, _) = count(&client, bucket, &prefix, pattern)?;
        let (progress, mut batch) = (Progress::count(objects), Batch::default());
        for_each_page(&client, bucket, &prefix, pattern, |found| {
            let name = |one: &ObjectEntry| format!("{bucket}/{}", one.key);
            batch.run(&found, name, |one| {
                progress.add(1);
                let to = format!("{folder}{}", below(&prefix, &one.key));
                if is_selected(&to) {
                    return Err(format!("its destination {to} would be moved again").into());
                }
                self.send(&client, &one.key, &to).map(drop)
            })
        })?;
        drop(progress);
        batch.print(&client, "moved", None)?;
        batch.result("object", "moved")
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
