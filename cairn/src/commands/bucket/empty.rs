//! `cairn bucket empty`: deletes all content of a bucket, also for `cairn bucket delete --force`.
//!
//! Versions that are not current go first. So no deletion makes an older version current, which a quota could refuse.

use cairn_api::{BucketContents, NamedVersion, ObjectVersion, Upload};
use cairn_http1::{encode_path, encode_strict};
use serde_json::{Value, json};

use crate::client::pages::{Pages, UPLOADS, VERSIONS};
use crate::client::{Client, Request, read};
use crate::commands::deletion::delete_all;
use crate::commands::macros::command;
use crate::commands::parallel::Batch;
use crate::commands::resources::BUCKETS;
use crate::failure::{Failure, Outcome};
use crate::output::confirmation::confirm;
use crate::output::progress::Progress;
use crate::output::table::{Columns, record, text};
use crate::quantity::{bytes_text, counted, were};
use crate::terminal::plain;

command! {
    /// Delete all content of a bucket permanently: all versions, delete markers and unfinished uploads. What object lock
    /// protects is kept.
    struct Empty("empty") {
        /// the bucket's name
        #[argh(positional)]
        name: String,
        /// do not ask for a confirmation
        #[argh(switch)]
        yes: bool,
    }
}

const DELETED: Columns<Value> = &[
    ("versions deleted", |body| text(&body["deleted_versions"])),
    ("delete markers deleted", |body| text(&body["deleted_delete_markers"])),
    ("uploads aborted", |body| text(&body["aborted_uploads"])),
    ("refused", |body| text(&body["refused"])),
];

impl Empty {
    pub(super) fn run(&self) -> Outcome {
        let client = self.client()?;
        let emptied = empty(&client, &self.name, "deletes all content of", self.yes)?;
        client.print(&emptied.body, || record(DELETED, &emptied.body))?;
        emptied.result()
    }
}

/// The result of emptying a bucket.
pub(super) struct Emptied {
    pub(super) body: Value,
    refused: u64,
}

impl Emptied {
    /// Fails if anything was refused.
    pub(super) fn result(&self) -> Outcome {
        match self.refused {
            0 => Ok(()),
            refused => Err(format!(
                "not everything was deleted: {} refused\n  \
                 `cairn object stat --version-id <id>` shows the locks of a version; `cairn object legal-hold … off` and \
                 `cairn object retention … --none --bypass-governance` remove them, but not a compliance retention",
                were(refused, "deletion")
            )
            .into()),
        }
    }
}

/// Deletes the content of a bucket after a confirmation. `what` completes "This … the bucket".
pub(super) fn empty(client: &Client, name: &str, what: &str, is_confirmed: bool) -> Result<Emptied, Failure> {
    let BucketContents { objects, versions, version_bytes, delete_markers, multipart_uploads, .. } =
        read(&client.call(&Request::get(BUCKETS.path_of(name) + "/contents"))?)?;
    let total = versions.saturating_add(delete_markers).saturating_add(multipart_uploads);
    if total > 0 {
        let size = bytes_text(version_bytes);
        let name = plain(name);
        let text = format!(
            "This permanently {what} the bucket {name}: {} ({size}), {} and {}.",
            counted(versions, "version"),
            counted(delete_markers, "delete marker"),
            counted(multipart_uploads, "unfinished upload")
        );
        confirm(&text, &name, is_confirmed)?;
    }
    let has_older = versions.saturating_add(delete_markers) > objects;
    let mut deletion = Deletion { client, name, progress: Progress::count(total), batch: Batch::default() };
    let older = if has_older { deletion.versions(false)? } else { Deleted::default() };
    let current = deletion.versions(true)?;
    let aborted = deletion.uploads()?;
    let refused = deletion.batch.refused;
    let body = json!({
        "bucket": name,
        "deleted_versions": older.versions + current.versions,
        "deleted_delete_markers": older.markers + current.markers,
        "aborted_uploads": aborted,
        "refused": refused,
    });
    Ok(Emptied { body, refused })
}

/// The number of deleted versions and delete markers.
#[derive(Default)]
struct Deleted {
    versions: u64,
    markers: u64,
}

/// The deletion of a bucket's content.
struct Deletion<'c> {
    client: &'c Client,
    name: &'c str,
    progress: Progress,
    batch: Batch,
}

impl Deletion<'_> {
    /// Deletes the versions and delete markers that are current, or those that are not.
    fn versions(&mut self, is_current: bool) -> Result<Deleted, Failure> {
        let mut deleted = Deleted::default();
        let mut pages = Pages::of_bucket(self.client, VERSIONS, self.name, "", None);
        while let Some(mut found) = pages.next_entries::<ObjectVersion>()? {
            found.retain(|version| version.is_latest == is_current);
            let (markers, versions): (Vec<_>, Vec<_>) =
                found.into_iter().partition(|version| version.is_delete_marker);
            deleted.versions += self.delete(versions)?;
            deleted.markers += self.delete(markers)?;
        }
        Ok(deleted)
    }

    /// Aborts the unfinished uploads. Returns their number.
    fn uploads(&mut self) -> Result<u64, Failure> {
        let mut aborted = 0;
        let mut pages = Pages::of_bucket(self.client, UPLOADS, self.name, "", None);
        while let Some(found) = pages.next_entries::<Upload>()? {
            let before = self.batch.done;
            let shown = |upload: &Upload| format!("{}, {}", upload.key, upload.upload_id);
            self.batch.run(&found, shown, |upload| {
                self.progress.add(1);
                let (bucket, key) = (BUCKETS.path_of(self.name), encode_path(&*upload.key));
                let id = encode_strict(&*upload.upload_id);
                let path = format!("{bucket}/multipart-uploads/{key}?upload_id={id}");
                self.client.call(&Request::delete(path)).map(drop)
            })?;
            aborted += self.batch.done - before;
        }
        Ok(aborted)
    }

    /// Deletes these versions. Returns how many were deleted.
    fn delete(&mut self, versions: Vec<ObjectVersion>) -> Result<u64, Failure> {
        let named =
            |version: ObjectVersion| NamedVersion { key: version.key, version_id: Some(version.version_id) };
        let named = versions.into_iter().map(named).collect();
        delete_all(self.client, self.name, named, &mut self.batch, &self.progress)
    }
}
