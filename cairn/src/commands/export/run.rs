//! A run of an export: lists keys, exports several at a time, and writes the manifest in order.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use cairn_sync::Mutex;

use super::content::{Origin, Problem, interrupted};
use super::folder::Folder;
use super::listing::{Group, Groups, Listed, Version};
use super::manifest::{Line, Manifest};
use super::names::{Names, version_path};
use super::outcome::{Outcome, Sent};
use super::store::Store;
use crate::client::Client;
use crate::client::pages::{OBJECTS, Pages, VERSIONS};
use crate::failure::Failure;
use crate::output::print_error;
use crate::output::progress::Progress;
use crate::terminal::plain;

/// Failures that are shown. The others are in the file that lists them.
const SHOWN_MAX: u64 = 20;

/// The target of an export.
pub(super) enum Target<'a> {
    Folder(Folder),
    Store(Store<'a>),
}

/// The totals of an export.
#[derive(Default)]
pub(super) struct Totals {
    pub(super) exported: u64,
    pub(super) unchanged: u64,
    pub(super) markers: u64,
    pub(super) bytes: u64,
    pub(super) failed: u64,
    /// Versions whose locks the target does not keep.
    pub(super) locks: u64,
    /// Versions with other entity tags at the target.
    pub(super) tags: u64,
}

/// A run.
pub(super) struct Run<'a> {
    pub(super) client: &'a Client,
    pub(super) bucket: &'a str,
    pub(super) prefix: &'a str,
    pub(super) versions: bool,
    pub(super) workers: usize,
    pub(super) target: &'a Target<'a>,
    pub(super) stop: &'a AtomicBool,
}

/// A key with what is known of it before it is exported.
struct Task {
    group: Group,
    /// The path of its file.
    path: String,
    earlier: Vec<Line>,
}

impl Run<'_> {
    /// Exports everything.
    ///
    /// # Errors
    /// The reason why the command cannot go on. What was exported is recognised by the next one.
    pub(super) fn run(&self, manifest: &mut Manifest) -> Result<Totals, Failure> {
        let (mut totals, mut names) = (Totals::default(), Names::new(self.folders_that_are_keys()?));
        let mut groups = Groups::new(self.client, self.bucket, self.prefix, self.versions);
        let progress = Progress::bytes(0);
        loop {
            let batch = groups.next_batch()?;
            if batch.is_empty() {
                return Ok(totals);
            }
            let mut tasks = Vec::with_capacity(batch.len());
            for group in batch {
                let (path, earlier) = (names.path_of(&group.key), manifest.earlier(&group.key));
                if let Target::Folder(folder) = self.target {
                    folder.make_way(&path)?;
                }
                tasks.push(Task { group, path, earlier });
            }
            let done = self.export(&tasks)?;
            if let Target::Folder(folder) = self.target {
                folder.sync()?;
            }
            for (task, outcomes) in tasks.into_iter().zip(done) {
                self.note(manifest, &mut totals, &progress, task, outcomes)?;
            }
            manifest.sync()?;
        }
    }

    /// Returns the keys that are folders of the prefix, in order. They are not listed, and have files.
    fn folders_that_are_keys(&self) -> Result<Vec<String>, Failure> {
        let list = if self.versions { VERSIONS } else { OBJECTS };
        let mut found = Vec::new();
        for (end, _) in self.prefix.match_indices('/').filter(|(end, _)| *end > 0) {
            let folder = &self.prefix[..end];
            let mut pages =
                Pages::of_bucket(self.client, list, self.bucket, folder, None).with("limit", Some("1"));
            let page = pages.next_page()?.unwrap_or_default();
            if page[list.member][0]["key"] == folder {
                found.push(folder.to_owned());
            }
        }
        Ok(found)
    }

    /// Exports keys, several at a time. Returns what became of their versions, in order.
    fn export(&self, tasks: &[Task]) -> Result<Vec<Vec<Outcome>>, Failure> {
        let next = AtomicUsize::new(0);
        let done: Mutex<Vec<Option<Vec<Outcome>>>> = Mutex::new(tasks.iter().map(|_| None).collect());
        let failure: Mutex<Option<Failure>> = Mutex::new(None);
        let has_failed = || failure.lock().is_some();
        let worker = || {
            while !has_failed() {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(task) = tasks.get(index) else { break };
                let exported =
                    if self.stop.load(Ordering::Relaxed) { Err(interrupted()) } else { self.one(task) };
                match exported {
                    Ok(outcomes) => {
                        done.lock()[index] = Some(outcomes);
                    }
                    Err(found) => {
                        failure.lock().get_or_insert(found);
                    }
                }
            }
        };
        thread::scope(|scope| {
            for _ in 1..self.workers.min(tasks.len()) {
                scope.spawn(worker);
            }
            worker();
        });
        if let Some(failure) = failure.into_inner() {
            return Err(failure);
        }
        Ok(done.into_inner().into_iter().flatten().collect())
    }

    /// Exports one key.
    fn one(&self, task: &Task) -> Result<Vec<Outcome>, Failure> {
        let origin = Origin { client: self.client, bucket: self.bucket, stop: self.stop };
        match self.target {
            Target::Store(store) => store.export(&origin, &task.group, &task.earlier),
            Target::Folder(folder) => {
                let versions = task.group.versions.iter();
                versions.map(|listed| write(folder, &origin, task, listed)).collect()
            }
        }
    }

    /// Counts what became of a key, and adds its lines to the manifest.
    fn note(
        &self,
        manifest: &mut Manifest,
        totals: &mut Totals,
        progress: &Progress,
        task: Task,
        outcomes: Vec<Outcome>,
    ) -> Result<(), Failure> {
        let Task { group: Group { key, versions }, path, mut earlier } = task;
        for (listed, outcome) in versions.iter().zip(outcomes) {
            let mut line;
            match outcome {
                Outcome::Failed(why) => {
                    totals.failed += 1;
                    if totals.failed <= SHOWN_MAX {
                        let id = listed.id.as_deref().map(|id| format!(" ({id})")).unwrap_or_default();
                        print_error(&format!(
                            "cairn: {}/{}{id}: {}\n",
                            self.bucket,
                            plain(&key),
                            plain(&why)
                        ));
                    }
                    manifest.add_failure(&key, listed, &why)?;
                    continue;
                }
                Outcome::Marker(version) => {
                    totals.markers += 1;
                    line = Line::of(self.bucket, &key, listed, None);
                    line.target_version_id = version;
                }
                Outcome::Exported(version, sent) => {
                    match sent.copied {
                        Some(bytes) => {
                            totals.exported += 1;
                            totals.bytes += bytes;
                            progress.add(bytes);
                        }
                        None => totals.unchanged += 1,
                    }
                    totals.locks += u64::from(sent.is_lock_lost);
                    totals.tags += u64::from(sent.other_tag.is_some());
                    line = Line::of(self.bucket, &key, listed, Some(*version));
                    line.sha256 = sent.sha256;
                    line.target_version_id = sent.target_version;
                    line.target_etag = sent.other_tag;
                    if let Target::Folder(_) = self.target {
                        line.file = Some(file_of(&path, listed));
                    }
                }
            }
            // What was there before, and is described in an earlier manifest.
            let is_same =
                |earlier: &&mut Line| earlier.version_id == line.version_id && earlier.etag == line.etag;
            if let Some(earlier) = earlier.iter_mut().find(is_same) {
                line.sha256 = line.sha256.or_else(|| earlier.sha256.take());
                line.target_version_id = line.target_version_id.or_else(|| earlier.target_version_id.take());
                line.target_etag = line.target_etag.or_else(|| earlier.target_etag.take());
            }
            manifest.add(&line)?;
        }
        Ok(())
    }
}

/// Returns the file of a version: its own name for the current object, and one beside it for others.
fn file_of(path: &str, listed: &Listed) -> String {
    let id = listed.id.as_deref().filter(|_| !listed.is_latest);
    Folder::file(&id.map_or_else(|| path.to_owned(), |id| version_path(path, id)))
}

/// Writes one version into a folder.
fn write(folder: &Folder, origin: &Origin<'_>, task: &Task, listed: &Listed) -> Result<Outcome, Failure> {
    if listed.is_marker {
        return Ok(Outcome::Marker(None));
    }
    let written = Version::of(origin.client, origin.bucket, &task.group.key, listed)
        .map_err(Problem::from)
        .and_then(|version| {
            let file = file_of(&task.path, listed);
            let written = folder.write(origin, &version, &file, &task.earlier)?;
            let (sha256, copied) = (Some(written.sha256), written.copied);
            Ok(Outcome::Exported(Box::new(version), Sent { sha256, copied, ..Sent::default() }))
        });
    match written {
        Ok(outcome) => Ok(outcome),
        Err(Problem::Version(why) | Problem::Busy(why)) => Ok(Outcome::Failed(why)),
        Err(Problem::Command(failure)) => Err(failure),
    }
}
