//! Restores a backup into a new data folder.
//!
//! Files and payloads get the places that they had, so the metadata need no change. Every blob is compared with its SHA-256
//! while it is copied.
//!
//! The folder of slices is made first and the superblock is written last. In between the folder is no store, and a start makes
//! no new one of it. A mount point is never empty, so folders that no store has may be there: `lost+found`, or one with what was
//! there before.

use crate::backup::error::{BackupError, Context as _};
use crate::backup::limits::{DAMAGED_NAMED_MAX, PAGE_BYTES};
use crate::backup::manifest::{BackupSummary, Contents, StoredFile, StoredPayload};
use crate::backup::pack::{BlobId, sync_parent};
use crate::backup::places::{BlobReader, places_of};
use crate::backup::progress::Progress;
use crate::backup::repository::BackupFolder;
use crate::device::volume::volume_path;
use crate::format::superblock::FOREIGN_ENVIRONMENTS;
use crate::store::data_folder::{LOCK_FILE, lock};
use crate::store::hold_copy::BACKUP_FOLDER;
use cairn_model::usize_of;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::{DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _};
use std::path::{Component, Path};

const SUPERBLOCK: &str = "superblock.json";
const SLICES: &str = "slices";

/// The result of a restoration.
#[derive(Clone, Debug, Default)]
pub struct Restored {
    /// Files of the data folder.
    pub files: u64,
    /// Payloads in volumes.
    pub payloads: u64,
    /// Bytes that were written.
    pub bytes: u64,
    /// Payloads that are damaged in the backup, by their ids in hex. Their objects cannot be read.
    pub damaged: Vec<String>,
    /// The number of damaged ones.
    pub damaged_count: u64,
}

/// Restores a backup into `data_dir`, which must be empty or missing, or have nothing but folders that no store has.
///
/// # Errors
/// If the folder has other entries, or a server is using it, if a page of metadata is damaged, if the disk is full, and if
/// `progress` says to end. The folder is no store then.
pub fn restore(
    backups: &BackupFolder,
    backup: &BackupSummary,
    data_dir: &Path,
    progress: &mut Progress<'_>,
) -> Result<Restored, BackupError> {
    refuse_other_entries(data_dir)?;
    let contents = backups.contents(backup)?;
    let places = places_of(backups, &contents.header)?;
    make_folder(data_dir)?;
    let _lock = lock(data_dir).map_err(|error| BackupError(error.to_string()))?;
    // Not recursive, so it fails if a server was faster.
    let slices = data_dir.join(SLICES);
    DirBuilder::new().mode(0o700).create(&slices).doing("creating", &slices)?;
    sync_parent(&slices).doing("flushing", data_dir)?;
    let expected = PAGE_BYTES as u64 * contents.pages.len() as u64
        + contents.payloads.iter().map(StoredPayload::bytes).sum::<u64>();
    let mut restoration = Restoration {
        data_dir,
        blobs: BlobReader::new(backups, &places),
        restored: Restored::default(),
        expected,
        progress,
    };
    restoration.write_files(&contents)?;
    restoration.write_payloads(contents)?;
    Ok(restoration.restored)
}

struct Restoration<'r, 'p> {
    data_dir: &'r Path,
    blobs: BlobReader<'r>,
    restored: Restored,
    expected: u64,
    progress: &'r mut Progress<'p>,
}

impl Restoration<'_, '_> {
    fn advance(&mut self, bytes: u64) -> Result<(), BackupError> {
        self.restored.bytes += bytes;
        if (self.progress)(self.restored.bytes, self.expected) {
            Ok(())
        } else {
            let what = "the restoration was interrupted: remove what it has written before the next one";
            Err(BackupError(what.to_owned()))
        }
    }

    /// Writes all files but the superblock, with their pages in the order of the packs.
    fn write_files(&mut self, contents: &Contents) -> Result<(), BackupError> {
        let mut next = 0;
        for file in &contents.header.files {
            let count = usize_of(file.pages);
            let pages = contents.pages.get(next..next + count).unwrap_or_default();
            next += count;
            if file.path != SUPERBLOCK {
                self.write_file(file, pages)?;
            }
        }
        Ok(())
    }

    fn write_file(&mut self, stored: &StoredFile, pages: &[BlobId]) -> Result<(), BackupError> {
        let is_plain = Path::new(&stored.path).components().all(|part| matches!(part, Component::Normal(_)));
        if !is_plain {
            return Err(BackupError(format!("{:?} is no file of a data folder", stored.path)));
        }
        let path = self.data_dir.join(&stored.path);
        make_folder(path.parent().unwrap_or(self.data_dir))?;
        let file = File::create_new(&path).doing("creating", &path)?;
        file.set_len(stored.bytes).doing("extending", &path)?;
        let mut placed: Vec<(BlobId, u64)> =
            pages.iter().zip(0..).map(|(id, number)| (*id, number * PAGE_BYTES as u64)).collect();
        placed.sort_unstable_by_key(|(id, _)| self.blobs.place(id));
        let mut page = Vec::new();
        for (id, at) in placed {
            page.clear();
            let is_whole = self.blobs.read(&id, &mut |piece| {
                page.extend_from_slice(piece);
                Ok(())
            })?;
            if !is_whole || page.len() > PAGE_BYTES {
                let what = "a page of it is missing or damaged in the backup: restore another backup";
                return Err(BackupError(format!("{}: {what}", stored.path)));
            }
            file.write_all_at(&page, at).doing("writing", &path)?;
            self.advance(page.len() as u64)?;
        }
        file.sync_all().and_then(|()| sync_parent(&path)).doing("flushing", &path)?;
        self.restored.files += 1;
        Ok(())
    }

    /// Writes the payloads in the order of the packs, then the superblock.
    fn write_payloads(&mut self, contents: Contents) -> Result<(), BackupError> {
        let Contents { header, pages, mut payloads } = contents;
        payloads.sort_unstable_by_key(|payload| self.blobs.place(&payload.id));
        let mut volumes = HashMap::new();
        for payload in &payloads {
            self.write_payload(payload, &mut volumes)?;
        }
        for ((slice, number), file) in volumes {
            let path = volume_path(&self.data_dir.join(format!("slices/{slice:02}")), number);
            file.sync_all().doing("flushing", &path)?;
        }
        let before = header.files.iter().take_while(|file| file.path != SUPERBLOCK);
        let first = usize_of(before.map(|file| file.pages).sum());
        let superblock = header.files.iter().find(|file| file.path == SUPERBLOCK);
        let superblock = superblock.ok_or_else(|| BackupError("the backup has no superblock".to_owned()))?;
        let pages = pages.get(first..first + usize_of(superblock.pages)).unwrap_or_default();
        self.write_file(superblock, pages)?;
        for folder in [SLICES, "."] {
            let path = self.data_dir.join(folder);
            File::open(&path).and_then(|folder| folder.sync_all()).doing("flushing", &path)?;
        }
        Ok(())
    }

    fn write_payload(
        &mut self,
        payload: &StoredPayload,
        volumes: &mut HashMap<(u16, u32), File>,
    ) -> Result<(), BackupError> {
        let slice = payload.slice;
        let path_of = |volume| volume_path(&self.data_dir.join(format!("slices/{slice:02}")), volume);
        for extent in &payload.extents {
            if let Entry::Vacant(place) = volumes.entry((slice, extent.volume)) {
                let path = path_of(extent.volume);
                place.insert(File::options().write(true).open(&path).doing("opening", &path)?);
            }
        }
        // Volume, offset and length of what is still to be written.
        let mut runs = payload.extents.iter().map(|extent| (extent.volume, extent.offset(), extent.bytes()));
        let mut run = runs.next();
        let is_whole = self.blobs.read(&payload.id, &mut |mut piece| {
            while !piece.is_empty() {
                let Some((volume, at, left)) = &mut run else { break };
                let (now, rest) = piece.split_at(piece.len().min(usize_of(*left)));
                let written = volumes[&(slice, *volume)].write_all_at(now, *at);
                if written.is_err() {
                    written.doing("writing", &path_of(*volume))?;
                }
                let count = now.len() as u64;
                (*at, *left, piece) = (*at + count, *left - count, rest);
                if *left == 0 {
                    run = runs.next();
                }
            }
            Ok(())
        })?;
        if !is_whole || run.is_some() {
            self.restored.damaged_count += 1;
            if self.restored.damaged.len() < DAMAGED_NAMED_MAX {
                self.restored.damaged.push(hex::encode(payload.id));
            }
        }
        self.restored.payloads += 1;
        self.advance(payload.bytes())
    }
}

/// Refuses a folder with files, or with folders that a store has. Those of a killed restoration, too: they have no superblock.
fn refuse_other_entries(data_dir: &Path) -> Result<(), BackupError> {
    let entries = match std::fs::read_dir(data_dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries.doing("reading", data_dir)?,
    };
    let own = [SLICES, "control", BACKUP_FOLDER].into_iter().chain(FOREIGN_ENVIRONMENTS);
    for entry in entries {
        let entry = entry.doing("reading", data_dir)?;
        let name = entry.file_name();
        let is_other_folder = entry.file_type().doing("examining", &entry.path())?.is_dir()
            && own.clone().all(|folder| folder != name);
        // A start that was refused leaves this file. Whether a server uses it is seen later.
        if !is_other_folder && name != LOCK_FILE {
            let may_be_unfinished = data_dir.join(SLICES).is_dir() && !data_dir.join(SUPERBLOCK).exists();
            let (folder, name) = (data_dir.display(), name.display());
            // A damaged store may look the same.
            let hint = if may_be_unfinished {
                " (if `cairn backup restore` was interrupted here, remove what it has written)"
            } else {
                ""
            };
            let what = "choose an empty folder, or move everything into one folder in it";
            return Err(BackupError(format!("{folder} has files, such as {name}: {what}{hint}")));
        }
    }
    Ok(())
}

fn make_folder(folder: &Path) -> Result<(), BackupError> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder).doing("creating", folder)
}
