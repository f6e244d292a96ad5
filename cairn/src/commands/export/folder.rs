//! The folder that an export goes to: files with the content of versions.

use std::collections::BTreeSet;
use std::fs::{File, create_dir_all, metadata, read_dir, remove_file, rename};
use std::io::{Error, ErrorKind, Read, copy};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cairn_sync::Mutex;

use super::content::{Origin, Problem, interrupted};
use super::digests::{Digests, Hashed, Proof};
use super::listing::Version;
use super::manifest::{Line, sync_folder};
use crate::failure::Failure;

/// The folder of the files with content.
const OBJECTS: &str = "objects";
/// The folder of files that are being written.
const TEMPORARY: &str = "temporary";
/// Names that are one and the same where case makes no difference.
const PROBES: [&str; 2] = ["probe", "PROBE"];

/// A folder that is exported to.
pub(super) struct Folder {
    root: PathBuf,
    /// Held while the export runs.
    _lock: File,
    /// Number of the next temporary file.
    next: AtomicU64,
    /// Folders with new names.
    changed: Mutex<BTreeSet<PathBuf>>,
}

/// The result of writing a version to a folder.
pub(super) struct Written {
    pub(super) sha256: String,
    /// Bytes that were copied; `None` if the file was there.
    pub(super) copied: Option<u64>,
}

impl Folder {
    /// Takes a folder, which is created if it is missing. Removes what an interrupted export left.
    pub(super) fn new(root: &Path) -> Result<Self, Failure> {
        let failed = |error: Error| Failure::from(format!("{} cannot be used: {error}", root.display()));
        let temporary = root.join(TEMPORARY);
        create_dir_all(root.join(OBJECTS)).and_then(|()| create_dir_all(&temporary)).map_err(failed)?;
        let lock = File::create(temporary.join("lock")).map_err(failed)?;
        if lock.try_lock().is_err() {
            return Err(format!("another export writes into {}", root.display()).into());
        }
        for entry in read_dir(&temporary).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.file_name() != "lock" {
                remove_file(entry.path()).map_err(failed)?;
            }
        }
        let [probe, other] = PROBES.map(|name| temporary.join(name));
        File::create(&probe).map_err(failed)?;
        let is_case_sensitive = metadata(other).is_err();
        remove_file(probe).map_err(failed)?;
        if !is_case_sensitive {
            let text = "the file system does not tell a from A, so objects would overwrite each other: choose another one";
            return Err(format!("{}: {text}", root.display()).into());
        }
        Ok(Self { root: root.to_path_buf(), _lock: lock, next: AtomicU64::new(0), changed: Mutex::default() })
    }

    /// Renames a folder that is where a key gets its file: what an earlier export put there is below another name now.
    pub(super) fn make_way(&self, path: &str) -> Result<(), Failure> {
        let folder = self.root.join(OBJECTS).join(path);
        if !folder.is_dir() {
            return Ok(());
        }
        let other = self.root.join(OBJECTS).join(format!("{path}%d"));
        let renamed =
            if other.exists() { Err(ErrorKind::AlreadyExists.into()) } else { rename(&folder, &other) };
        renamed.map_err(|error: Error| {
            let text = format!("{} cannot be renamed to {}", folder.display(), other.display());
            Failure::from(format!("{text}: {error}"))
        })
    }

    /// Returns the name in the manifest of a file below the folder of objects.
    pub(super) fn file(path: &str) -> String {
        format!("{OBJECTS}/{path}")
    }

    /// Writes the content of a version into a file, unless it has it. `earlier` are lines of earlier manifests about the key.
    pub(super) fn write(
        &self,
        origin: &Origin<'_>,
        version: &Version,
        file: &str,
        earlier: &[Line],
    ) -> Result<Written, Problem> {
        let path = self.root.join(file);
        let failed = |error: Error| not_written(&path, &error);
        if let Some(sha256) = self.present(&path, version, file, earlier).map_err(failed)? {
            return Ok(Written { sha256, copied: None });
        }
        let temporary = self.root.join(TEMPORARY).join(self.next.fetch_add(1, Ordering::Relaxed).to_string());
        let written = self.download(origin, version, &temporary);
        let written = written.and_then(|digests| {
            if let Some(parent) = path.parent() {
                create_dir_all(parent).map_err(failed)?;
                self.note(parent);
            }
            rename(&temporary, &path).map_err(failed)?;
            Ok(Written { sha256: digests.sha256, copied: Some(version.size()) })
        });
        if written.is_err() {
            let _ = remove_file(&temporary);
        }
        written
    }

    /// Remembers a folder, and those above it, whose names must be made durable.
    fn note(&self, folder: &Path) {
        let mut changed = self.changed.lock();
        for folder in folder.ancestors().take_while(|folder| folder.starts_with(&self.root)) {
            if !changed.insert(folder.to_path_buf()) {
                break;
            }
        }
    }

    /// Makes the names of new files durable.
    pub(super) fn sync(&self) -> Result<(), Failure> {
        let changed = std::mem::take(&mut *self.changed.lock());
        for folder in changed {
            sync_folder(Some(&folder)).map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        Ok(())
    }

    /// Returns the SHA-256 of a file that has the content of a version; `None` if it has not.
    fn present(
        &self,
        path: &Path,
        version: &Version,
        file: &str,
        earlier: &[Line],
    ) -> Result<Option<String>, Error> {
        let Ok(found) = metadata(path) else { return Ok(None) };
        if !found.is_file() || found.len() != version.size() {
            return Ok(None);
        }
        let is_same = |line: &&Line| {
            line.file.as_deref() == Some(file)
                && line.version_id == version.id
                && line.etag.as_deref() == Some(version.etag())
                && line.last_modified == *version.record.object.last_modified
        };
        if found.modified()? == modified(version)
            && let Some(line) = earlier.iter().find(is_same)
            && let Some(sha256) = &line.sha256
        {
            return Ok(Some(sha256.clone()));
        }
        let opened = File::options().read(true).write(true).open(path)?;
        let mut content = Hashed::new(&opened, version);
        copy(&mut content, &mut std::io::sink())?;
        let digests = content.finish();
        if !matches!(digests.check(version), Ok(Proof::Etag | Proof::Checksum)) {
            return Ok(None);
        }
        opened.set_modified(modified(version))?;
        Ok(Some(digests.sha256))
    }

    /// Downloads a version into a temporary file. If nothing proves the content, it is read twice.
    fn download(&self, origin: &Origin<'_>, version: &Version, path: &Path) -> Result<Digests, Problem> {
        let failed = |error: Error| not_written(path, &error);
        let mut file = File::create(path).map_err(failed)?;
        let digests = transfer(origin, version, &mut file)?;
        if digests.check(version)? == Proof::Nothing
            && transfer(origin, version, &mut std::io::sink())? != digests
        {
            return Err(Problem::Version("the content arrives changed".to_owned()));
        }
        file.set_modified(modified(version)).and_then(|()| file.sync_all()).map_err(failed)?;
        Ok(digests)
    }
}

/// Copies the content of a version. Returns its digests.
fn transfer(
    origin: &Origin<'_>,
    version: &Version,
    to: &mut impl std::io::Write,
) -> Result<Digests, Problem> {
    let mut content = Hashed::new(origin.read(version, None)?, version);
    let copied = copy(&mut content.by_ref(), to);
    if origin.is_stopped() {
        return Err(Problem::Command(interrupted()));
    }
    match copied {
        Ok(size) if size == version.size() => Ok(content.finish()),
        Ok(_) => Err(Problem::Version("the content does not have its length".to_owned())),
        Err(error) if error.kind() == ErrorKind::StorageFull => {
            Err(Problem::Command(format!("the folder is full: {error}").into()))
        }
        Err(error) => Err(Problem::Version(format!("the content could not be copied: {error}"))),
    }
}

/// A full device ends the command: no other file could be written either.
fn not_written(path: &Path, error: &Error) -> Problem {
    let text = format!("{} cannot be written: {error}", path.display());
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::ReadOnlyFilesystem => {
            Problem::Command(text.into())
        }
        _ => Problem::Version(text),
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Nothing in it is needed any more.
        let _ = std::fs::remove_dir_all(self.root.join(TEMPORARY));
    }
}

fn modified(version: &Version) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(version.modified())
}
