//! `cairn object cp`: copies objects on the server.

use cairn_api::{CopyObject, ObjectEntry};
use serde_json::Value;

use super::place::{Place, Selection, below, count, for_each_page, route};
use crate::client::{Client, Request};
use crate::commands::macros::command;
use crate::commands::parallel::Batch;
use crate::failure::{Failure, Outcome};
use crate::output::progress::Progress;

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
        let folder = self.destination.destination()?;
        let is_folder = folder.is_empty() || folder.ends_with('/');
        match self.source.selection(self.recursive)? {
            Selection::One(key) => {
                let name = key.rsplit('/').next().unwrap_or(&key);
                let to = if is_folder { format!("{folder}{name}") } else { folder };
                let record = self.copy(&client, &key, &to)?;
                let done =
                    format!("{}/{key} was copied to {}/{to}\n", self.source.bucket, self.destination.bucket);
                client.print(&record, || crate::terminal::lines(&done))
            }
            Selection::Many { prefix, pattern } => {
                if self.version_id.is_some() {
                    return Err(Failure::WrongUsage("--version-id needs one object".to_owned()));
                }
                if !is_folder {
                    let text = "several objects need a folder as destination: a bucket, or a key that ends in a slash";
                    return Err(Failure::WrongUsage(text.to_owned()));
                }
                let (bucket, pattern) = (&self.source.bucket, pattern.as_ref());
                let (objects, _) = count(&client, bucket, &prefix, pattern)?;
                let (progress, mut batch) = (Progress::count(objects), Batch::default());
                for_each_page(&client, bucket, &prefix, pattern, |found| {
                    let name = |one: &ObjectEntry| format!("{bucket}/{}", one.key);
                    batch.run(&found, name, |one| {
                        progress.add(1);
                        self.copy(&client, &one.key, &format!("{folder}{}", below(&prefix, &one.key)))
                            .map(drop)
                    })
                })?;
                drop(progress);
                batch.print(&client, "copied", None)?;
                batch.result("object", "copied")
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
