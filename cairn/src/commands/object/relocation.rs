//! Copies and moves of objects to a key or a folder.

use cairn_api::ObjectEntry;
use cairn_model::Glob;
use serde_json::Value;

use super::place::{Place, below, count, for_each_page};
use crate::client::Client;
use crate::commands::parallel::Batch;
use crate::failure::{Failure, Outcome};
use crate::output::progress::Progress;

/// A relocation of objects: source and destination.
pub(super) struct Relocation<'r> {
    client: &'r Client,
    source: &'r Place,
    destination: &'r Place,
    /// The action that was done, in the past tense: `copied`.
    done: &'static str,
    /// The key of the destination, or the folder.
    folder: String,
}

impl<'r> Relocation<'r> {
    pub(super) fn new(
        client: &'r Client,
        source: &'r Place,
        destination: &'r Place,
        done: &'static str,
    ) -> Result<Self, Failure> {
        let folder = destination.destination()?;
        Ok(Self { client, source, destination, done, folder })
    }

    fn is_folder(&self) -> bool {
        self.folder.is_empty() || self.folder.ends_with('/')
    }

    /// Returns the folder for several objects.
    ///
    /// # Errors
    /// If the destination is a key.
    pub(super) fn folder(&self) -> Result<&str, Failure> {
        if self.is_folder() {
            return Ok(&self.folder);
        }
        let text = "several objects need a folder as destination: a bucket, or a key that ends in a slash";
        Err(Failure::WrongUsage(text.to_owned()))
    }

    /// Sends one object, and prints its record. `send` gets its key and its new key.
    pub(super) fn one(&self, key: &str, send: impl FnOnce(&str, &str) -> Result<Value, Failure>) -> Outcome {
        let name = key.rsplit('/').next().unwrap_or(key);
        let to = if self.is_folder() { format!("{}{name}", self.folder) } else { self.folder.clone() };
        let record = send(key, &to)?;
        let done =
            format!("{}/{key} was {} to {}/{to}\n", self.source.bucket, self.done, self.destination.bucket);
        self.client.print(&record, || crate::terminal::lines(&done))
    }

    /// Sends the objects below a prefix, or those that match a pattern, into the folder, and prints how many.
    pub(super) fn several(
        &self,
        prefix: &str,
        pattern: Option<&Glob>,
        send: impl Fn(&str, &str) -> Outcome + Sync,
    ) -> Outcome {
        let folder = self.folder()?;
        let bucket = &self.source.bucket;
        let (objects, _) = count(self.client, bucket, prefix, pattern)?;
        let (progress, mut batch) = (Progress::count(objects), Batch::default());
        for_each_page(self.client, bucket, prefix, pattern, |found| {
            let name = |one: &ObjectEntry| format!("{bucket}/{}", one.key);
            batch.run(&found, name, |one| {
                progress.add(1);
                send(&one.key, &format!("{folder}{}", below(prefix, &one.key)))
            })
        })?;
        drop(progress);
        batch.print(self.client, self.done, None)?;
        batch.result("object", self.done)
    }
}
