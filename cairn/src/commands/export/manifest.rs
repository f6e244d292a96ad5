//! The manifest of an export: a line of JSON for each version and delete marker, in order of keys, oldest first.
//!
//! It gets its name when the export is over. An earlier one is read beside, in the same order, to recognise what was exported.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{File, OpenOptions, remove_file, rename};
use std::io::{BufRead, BufReader, BufWriter, Error, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use cairn_api::{Retention, Tag};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::listing::{Listed, Version};
use crate::failure::{Failure, Outcome};

/// Longest line that is read. Keys, tags and metadata have some kilobytes.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// One line.
#[derive(Serialize, Deserialize, Default)]
pub(super) struct Line {
    pub(super) bucket: String,
    pub(super) key: String,
    /// The id that the version had; null if the bucket never had versioning.
    pub(super) version_id: Option<String>,
    pub(super) is_latest: bool,
    pub(super) delete_marker: bool,
    pub(super) last_modified: String,
    pub(super) size: u64,
    pub(super) etag: Option<String>,
    /// Those that a client declared, in Base64.
    #[serde(default)]
    pub(super) checksums: BTreeMap<String, String>,
    /// Of the content, in hexadecimal digits.
    pub(super) sha256: Option<String>,
    #[serde(default)]
    pub(super) content_type: Option<String>,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) metadata: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) tags: Vec<Tag>,
    /// Lengths of the parts, in order: how many have this length.
    #[serde(default)]
    pub(super) parts: Vec<Parts>,
    pub(super) retention: Option<Retention>,
    #[serde(default)]
    pub(super) legal_hold: bool,
    /// The file below the folder of the manifest.
    pub(super) file: Option<String>,
    /// The entity tag at the target, if it is another one.
    #[serde(default)]
    pub(super) target_etag: Option<String>,
    /// The version at the target, if it said it.
    pub(super) target_version_id: Option<String>,
}

/// Parts of the same length.
#[derive(Serialize, Deserialize)]
pub(super) struct Parts {
    count: u64,
    size: u64,
}

impl Line {
    /// Returns the line of a version; `None` for a delete marker.
    pub(super) fn of(bucket: &str, key: &str, listed: &Listed, version: Option<Version>) -> Self {
        let mut line = Self {
            bucket: bucket.to_owned(),
            key: key.to_owned(),
            version_id: listed.id.clone(),
            is_latest: listed.is_latest,
            delete_marker: listed.is_marker,
            last_modified: listed.last_modified.clone(),
            ..Self::default()
        };
        if let Some(Version { record, parts, .. }) = version {
            line.size = record.object.size;
            line.etag = Some(record.object.etag.to_string());
            line.checksums = record.checksums;
            line.content_type = Some(record.object.content_type);
            line.headers = record.headers;
            line.metadata = record.metadata;
            line.tags = record.tags;
            line.parts = parts.into_iter().map(|(count, size)| Parts { count, size }).collect();
            line.retention = record.object.retention;
            line.legal_hold = record.object.legal_hold;
        }
        line
    }
}

/// A manifest that is being written.
pub(super) struct Manifest {
    path: PathBuf,
    file: BufWriter<File>,
    /// The versions that could not be exported.
    failures: Option<BufWriter<File>>,
    earlier: Vec<Earlier>,
}

impl Manifest {
    /// Begins a manifest. One of another bucket in its place is refused.
    pub(super) fn create(path: &Path, bucket: &str) -> Result<Self, Failure> {
        let failed = |error: Error| not_written(path, &error);
        let (partial, interrupted) = (with(path, ".partial"), with(path, ".earlier"));
        if partial.exists() {
            // Of an export that was interrupted.
            rename(&partial, &interrupted).map_err(failed)?;
        }
        let mut earlier = Vec::new();
        for path in [path, &interrupted] {
            let Some(found) = Earlier::open(path).map_err(failed)? else { continue };
            if let Some(line) = &found.next
                && line.bucket != bucket
            {
                let text = format!(
                    "{} is that of the bucket {}: choose another folder, or --manifest",
                    path.display(),
                    crate::terminal::plain(&line.bucket)
                );
                return Err(text.into());
            }
            earlier.push(found);
        }
        let file = File::create(&partial).map_err(failed)?;
        Ok(Self { path: path.to_path_buf(), file: BufWriter::new(file), failures: None, earlier })
    }

    /// Returns the lines of a key in earlier manifests. Keys must be given in order.
    pub(super) fn earlier(&mut self, key: &str) -> Vec<Line> {
        self.earlier.iter_mut().flat_map(|earlier| earlier.take(key)).collect()
    }

    pub(super) fn add(&mut self, line: &Line) -> Outcome {
        write(&mut self.file, line).map_err(|error| not_written(&self.path, &error))
    }

    /// Notes a version that could not be exported.
    pub(super) fn add_failure(&mut self, key: &str, listed: &Listed, why: &str) -> Outcome {
        let path = failures_path(&self.path);
        let failed = |error: Error| not_written(&path, &error);
        let file = match &mut self.failures {
            Some(file) => file,
            none => none.insert(BufWriter::new(File::create(&path).map_err(failed)?)),
        };
        write(file, &json!({"key": key, "version_id": listed.id, "error": why})).map_err(failed)
    }

    /// Makes what was written so far durable.
    pub(super) fn sync(&mut self) -> Outcome {
        let synced = self.file.flush().and_then(|()| self.file.get_ref().sync_data());
        synced.map_err(|error| not_written(&self.path, &error))
    }

    /// Gives the manifest its name.
    pub(super) fn finish(mut self) -> Outcome {
        self.sync()?;
        let failures = failures_path(&self.path);
        let ended = match &mut self.failures {
            Some(file) => file.flush(),
            None => removed(&failures),
        };
        let ended = ended
            .and_then(|()| rename(with(&self.path, ".partial"), &self.path))
            .and_then(|()| removed(&with(&self.path, ".earlier")))
            .and_then(|()| sync_folder(self.path.parent()));
        ended.map_err(|error| not_written(&self.path, &error))
    }
}

/// Makes the names in a folder durable.
pub(super) fn sync_folder(folder: Option<&Path>) -> Result<(), Error> {
    let folder = folder.filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    OpenOptions::new().read(true).open(folder)?.sync_all()
}

/// Returns the file that lists what could not be exported.
pub(super) fn failures_path(manifest: &Path) -> PathBuf {
    with(manifest, ".failed")
}

fn with(path: &Path, ending: &str) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

fn removed(path: &Path) -> Result<(), Error> {
    match remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn write(file: &mut impl Write, line: &impl Serialize) -> Result<(), Error> {
    serde_json::to_writer(&mut *file, line)?;
    file.write_all(b"\n")
}

fn not_written(path: &Path, error: &Error) -> Failure {
    format!("{} could not be written: {error}", path.display()).into()
}

/// An earlier manifest that is read beside the list.
struct Earlier {
    reader: BufReader<File>,
    /// The line that was read ahead.
    next: Option<Line>,
}

impl Earlier {
    fn open(path: &Path) -> Result<Option<Self>, Error> {
        match File::open(path) {
            Ok(file) => {
                let mut earlier = Self { reader: BufReader::new(file), next: None };
                earlier.advance();
                Ok(Some(earlier))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads the next line. What is no manifest ends it: then nothing is recognised.
    fn advance(&mut self) {
        let mut text = Vec::new();
        let read = self.reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut text);
        self.next = read.ok().and_then(|_| serde_json::from_slice(&text).ok());
    }

    fn take(&mut self, key: &str) -> Vec<Line> {
        let mut found = Vec::new();
        while self.next.as_ref().is_some_and(|line| line.key.as_str() <= key) {
            found.extend(self.next.take().filter(|line| line.key == key));
            self.advance();
        }
        found
    }
}
