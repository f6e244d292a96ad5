//! `cairn object rm`: deletes objects.

use cairn_api::{NamedVersion, Versioning, VersioningState};

use super::place::{Place, Selection, count, for_each_page, version_route};
use crate::client::{Request, read};
use crate::commands::deletion::delete_all;
use crate::commands::macros::command;
use crate::commands::parallel::Batch;
use crate::commands::resources::BUCKETS;
use crate::failure::{Failure, Outcome};
use crate::output::confirmation::confirm;
use crate::output::progress::Progress;
use crate::quantity::{bytes_text, counted};
use crate::terminal::plain;

command! {
    /// Delete an object, or the objects that match a pattern. A bucket with versioning keeps their versions and gets delete
    /// markers. Several objects need a confirmation.
    struct Remove("rm") {
        /// the object, as <bucket>/<key>, or <bucket>/<pattern>
        #[argh(positional)]
        object: Place,
        /// delete the objects whose keys begin with the key
        #[argh(switch)]
        recursive: bool,
        /// delete this version permanently
        #[argh(option, arg_name = "id")]
        version_id: Option<String>,
        /// do not ask for a confirmation
        #[argh(switch)]
        yes: bool,
    }
}

impl Remove {
    pub(super) fn run(&self) -> Outcome {
        let client = self.client()?;
        let bucket = &self.object.bucket;
        let (prefix, pattern) = match self.object.selection(self.recursive)? {
            Selection::One(key) => {
                let version = self.version_id.as_deref();
                let name = if version.is_some() { "object-versions" } else { "object" };
                let path = version_route(bucket, name, &key, version);
                let kind = version.map_or_else(String::new, |version| format!(", version {version},"));
                return client.change(&Request::delete(path), &format!("{bucket}/{key}{kind} was deleted"));
            }
            Selection::Many { prefix, pattern } => (prefix, pattern),
        };
        if self.version_id.is_some() {
            return Err(Failure::WrongUsage("--version-id needs one object".to_owned()));
        }
        let pattern = pattern.as_ref();
        let Versioning { versioning } =
            read(&client.call(&Request::get(BUCKETS.path_of(bucket) + "/versioning"))?)?;
        let (objects, bytes) = count(&client, bucket, &prefix, pattern)?;
        if objects > 0 {
            let kept = if versioning == VersioningState::Unversioned {
                "permanently: the bucket keeps no versions"
            } else {
                "by adding delete markers: the bucket keeps versions"
            };
            let place = plain(&format!("{bucket}/{}", self.object.key));
            let size = bytes_text(bytes);
            confirm(
                &format!("This deletes {} ({size}) of {place} {kept}.", counted(objects, "object")),
                bucket,
                self.yes,
            )?;
        }
        let (progress, mut batch) = (Progress::count(objects), Batch::default());
        for_each_page(&client, bucket, &prefix, pattern, |found| {
            let objects = found.into_iter().map(|one| NamedVersion { key: one.key, version_id: None });
            delete_all(&client, bucket, objects.collect(), &mut batch, &progress).map(drop)
        })?;
        drop(progress);
        batch.print(&client, "deleted", None)?;
        batch.result("object", "deleted")
    }
}
