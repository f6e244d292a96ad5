//! The folder that a salvage writes: contents, and the lists of what was found and of what is lost.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use cairn_engine::{ContentError, SalvageLoss, SalvageTarget, SalvagedVersion, WriteContent};

use super::file_name::{other_name, path_of};
use super::lines::{loss_of, of_loss, of_version};

/// Bytes of a content that are written at once.
const BUFFER_BYTES: usize = 1 << 20;
/// Names that are tried for a file. Two keys share one only if a check of 64 bits collides.
const NAMES_MAX: u32 = 1000;
const OBJECTS: &str = "objects";
const PARTIAL: &str = "partial";

/// The counts of written files, bytes and losses.
#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) files: u64,
    pub(super) bytes: u64,
    pub(super) delete_markers: u64,
    pub(super) uncertain: u64,
    pub(super) lost: u64,
}

/// The folder.
pub(super) struct SalvageFolder {
    path: PathBuf,
    manifest: BufWriter<File>,
    damaged: BufWriter<File>,
    counts: Counts,
}

impl SalvageFolder {
    /// Creates the folder, which may exist if it is empty.
    pub(super) fn create(path: &Path) -> Result<Self, String> {
        let failed = |error: io::Error| format!("{}: {error}", path.display());
        fs::create_dir_all(path).map_err(failed)?;
        if fs::read_dir(path).map_err(failed)?.next().is_some() {
            return Err(format!("{} is not empty: choose a new folder", path.display()));
        }
        fs::create_dir(path.join(OBJECTS)).map_err(failed)?;
        let list = |name| File::create_new(path.join(name)).map(BufWriter::new).map_err(failed);
        let (manifest, damaged) = (list("manifest.jsonl")?, list("damaged.jsonl")?);
        Ok(Self { path: path.to_owned(), manifest, damaged, counts: Counts::default() })
    }

    /// Makes everything durable.
    pub(super) fn finish(mut self) -> Result<Counts, String> {
        let done = self.manifest.flush().and_then(|()| self.damaged.flush()).and_then(|()| {
            rustix::fs::syncfs(File::open(&self.path)?)?;
            Ok(())
        });
        done.map_err(|error| format!("{}: {error}", self.path.display()))?;
        Ok(self.counts)
    }

    /// Gives a complete content its name. Returns the path below the folder.
    fn keep(&self, partial: &Path, version: &SalvagedVersion) -> io::Result<String> {
        let suffix = if version.is_latest {
            String::new()
        } else {
            format!(".version-{}", version.info.version_name())
        };
        let own = path_of(&version.key).join("/");
        let names =
            std::iter::once(own).chain((0..NAMES_MAX).map(|attempt| other_name(&version.key, attempt)));
        let mut refused = io::Error::from(io::ErrorKind::AlreadyExists);
        for name in names {
            let below = format!("{OBJECTS}/{}/{name}{suffix}", version.bucket);
            let path = self.path.join(&below);
            let made = path.parent().map_or(Ok(()), fs::create_dir_all);
            // Unlike a rename, this replaces nothing.
            match made.and_then(|()| fs::hard_link(partial, &path)) {
                Ok(()) => {
                    fs::remove_file(partial)?;
                    return Ok(below);
                }
                // A key is the folder of another one, or too long: it gets another name.
                Err(error) if is_about_the_name(&error) => refused = error,
                Err(error) => return Err(error),
            }
        }
        Err(refused)
    }
}

fn is_about_the_name(error: &io::Error) -> bool {
    use io::ErrorKind::{AlreadyExists, InvalidFilename, IsADirectory, NotADirectory};
    matches!(error.kind(), AlreadyExists | NotADirectory | IsADirectory | InvalidFilename)
}

fn write_line(list: &mut BufWriter<File>, line: &serde_json::Value) -> io::Result<()> {
    writeln!(list, "{line}")
}

impl SalvageTarget for SalvageFolder {
    fn version(&mut self, version: &SalvagedVersion, content: &mut WriteContent<'_>) -> io::Result<()> {
        self.counts.uncertain += u64::from(!version.is_certain);
        if version.is_delete_marker {
            self.counts.delete_markers += 1;
            return write_line(&mut self.manifest, &of_version(version, None));
        }
        let partial = self.path.join(PARTIAL);
        let mut out = BufWriter::with_capacity(BUFFER_BYTES, File::create(&partial)?);
        match content(&mut out) {
            Ok(()) => {}
            Err(ContentError::Target(error)) => return Err(error),
            Err(ContentError::Damaged(reason)) => {
                drop(out);
                fs::remove_file(&partial)?;
                return self.loss(loss_of(version, reason));
            }
        }
        out.flush()?;
        drop(out);
        let file = self.keep(&partial, version)?;
        self.counts.files += 1;
        self.counts.bytes += version.info.size;
        write_line(&mut self.manifest, &of_version(version, Some(&file)))
    }

    fn loss(&mut self, loss: SalvageLoss) -> io::Result<()> {
        self.counts.lost += 1;
        write_line(&mut self.damaged, &of_loss(&loss))
    }
}
