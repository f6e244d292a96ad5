//! A folder of backups: its packs, its backups, and its lock.

use crate::backup::error::{BackupError, Context as _};
use crate::backup::manifest::{BackupSummary, Contents, Header, NeededPack, VERSION};
use crate::backup::pack::{
    Blob, BlobId, Finished, Hash, index_path, pack_path, read_index, unfinished, write_durably,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

const REPOSITORY_FILE: &str = "repository.json";
const LOCK_FILE: &str = "lock";
/// The folders that are made before [`REPOSITORY_FILE`].
const PARTS: [&str; 2] = ["packs", "backups"];

/// An open folder of backups. No other process can write to it meanwhile.
#[derive(Debug)]
pub struct BackupFolder {
    folder: PathBuf,
    /// Id of the store in hex.
    pub(super) store_id: String,
    /// Hash of the index of each pack.
    pub(super) packs: BTreeMap<u32, Hash>,
    /// Pack of each blob, and its place in the index.
    pub(super) blobs: HashMap<BlobId, (u32, u32)>,
    /// Locked until this is dropped.
    _lock: File,
}

impl BackupFolder {
    /// Opens a folder of backups.
    ///
    /// # Errors
    /// If it is none, is in use, or is damaged.
    pub fn open(folder: &Path) -> Result<Self, BackupError> {
        let path = folder.join(REPOSITORY_FILE);
        let text = match std::fs::read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(BackupError(format!("{} is no folder of backups", folder.display())));
            }
            read => read.doing("reading", &path)?,
        };
        let about: Value =
            serde_json::from_slice(&text).map_err(|error| BackupError::damaged(&path, error))?;
        if about["version"] != VERSION {
            return Err(BackupError::damaged(&path, "it was written by another version of the program"));
        }
        let store_id = about["store_id"].as_str().unwrap_or_default().to_owned();
        let lock = lock(folder)?;
        let mut opened = Self {
            folder: folder.to_owned(),
            store_id,
            packs: BTreeMap::new(),
            blobs: HashMap::new(),
            _lock: lock,
        };
        for number in opened.numbers_of("index")? {
            let (blobs, index_hash) = read_index(&opened.packs_folder(), number)?;
            opened.add_pack(Finished { number, blobs, index_hash });
        }
        Ok(opened)
    }

    /// Opens a folder of backups of this store, or makes one of an empty or missing folder. Goes on with one that was interrupted
    /// while it was made, and removes what an interrupted backup has left.
    ///
    /// # Errors
    /// As [`Self::open`], if the folder has other files, and if it has backups of another store.
    pub fn open_or_create(folder: &Path, store_id: &str) -> Result<Self, BackupError> {
        let path = folder.join(REPOSITORY_FILE);
        if !path.exists() {
            if has_other_files(folder) {
                let what = "has other files: choose an empty folder";
                return Err(BackupError(format!("{} {what}", folder.display())));
            }
            for part in PARTS {
                let part = folder.join(part);
                DirBuilder::new().recursive(true).mode(0o700).create(&part).doing("creating", &part)?;
            }
            let about = json!({"version": VERSION, "store_id": store_id});
            write_durably(&path, format!("{about}\n").as_bytes())?;
        }
        let opened = Self::open(folder)?;
        if opened.store_id != store_id {
            let what = "has backups of another store: choose another folder";
            return Err(BackupError(format!("{} {what}", folder.display())));
        }
        for number in opened.numbers_of("pack")? {
            if !opened.packs.contains_key(&number) {
                let path = pack_path(&opened.packs_folder(), number);
                std::fs::remove_file(&path).doing("removing", &path)?;
            }
        }
        Ok(opened)
    }

    pub(super) fn packs_folder(&self) -> PathBuf {
        self.folder.join("packs")
    }

    pub(super) fn backup_path(&self, name: &str, extension: &str) -> PathBuf {
        self.folder.join("backups").join(format!("{name}.{extension}"))
    }

    /// Returns the number of the next pack.
    pub(super) fn next_pack(&self) -> u32 {
        self.packs.last_key_value().map_or(1, |(last, _)| last + 1)
    }

    /// Notes a finished pack.
    pub(super) fn add_pack(&mut self, Finished { number, blobs, index_hash }: Finished) {
        self.packs.insert(number, index_hash);
        for (place, blob) in (0..).zip(blobs) {
            self.blobs.insert(blob.id, (number, place));
        }
    }

    fn numbers_of(&self, extension: &str) -> Result<Vec<u32>, BackupError> {
        let folder = self.packs_folder();
        let mut numbers = Vec::new();
        for entry in std::fs::read_dir(&folder).doing("reading", &folder)? {
            let path = entry.doing("reading", &folder)?.path();
            if path.extension().is_some_and(|found| found == extension)
                && let Some(number) = path.file_stem().and_then(|stem| stem.to_str()?.parse().ok())
            {
                numbers.push(number);
            }
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Returns the finished backups, oldest first.
    ///
    /// # Errors
    /// If one of the manifests cannot be read.
    pub fn backups(&self) -> Result<Vec<BackupSummary>, BackupError> {
        let folder = self.folder.join("backups");
        let mut backups = Vec::new();
        for entry in std::fs::read_dir(&folder).doing("reading", &folder)? {
            let path = entry.doing("reading", &folder)?.path();
            let Some(name) = path.file_stem().and_then(|stem| stem.to_str()) else { continue };
            if path.extension().is_some_and(|extension| extension == "json") {
                let text = std::fs::read(&path).doing("reading", &path)?;
                let proof: Value =
                    serde_json::from_slice(&text).map_err(|error| BackupError::damaged(&path, error))?;
                let held_at = proof["payload"]["held_at"].as_str().unwrap_or_default().to_owned();
                backups.push(BackupSummary { name: name.to_owned(), held_at, proof });
            }
        }
        backups.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(backups)
    }

    /// Returns a backup by its name, or the newest one.
    ///
    /// # Errors
    /// If there is none.
    pub fn backup(&self, name: Option<&str>) -> Result<BackupSummary, BackupError> {
        let mut backups = self.backups()?;
        let found = match name {
            Some(name) => backups.into_iter().find(|backup| backup.name == name),
            None => backups.pop(),
        };
        found.ok_or_else(|| {
            let which = name.map_or_else(|| "no backup".to_owned(), |name| format!("no backup {name}"));
            BackupError(format!("{} has {which}", self.folder.display()))
        })
    }

    /// Writes the list of a backup. Its hash is part of the manifest.
    pub(super) fn write_contents(&self, name: &str, contents: &Contents) -> Result<Hash, BackupError> {
        let bytes = contents.encode();
        write_durably(&self.backup_path(name, "contents"), &bytes)?;
        Ok(Sha256::digest(&bytes).into())
    }

    /// Reads the list of a backup, and compares it with the manifest.
    pub(super) fn contents(&self, backup: &BackupSummary) -> Result<Contents, BackupError> {
        let path = self.backup_path(&backup.name, "contents");
        let bytes = std::fs::read(&path).doing("reading", &path)?;
        if *backup.member("contents_sha256") != hex::encode(Sha256::digest(&bytes)) {
            return Err(BackupError::damaged(&path, "the list does not match the manifest"));
        }
        if *backup.member("backup") != *backup.name || *backup.member("store_id") != *self.store_id {
            return Err(BackupError::damaged(&path, "the manifest is that of another backup"));
        }
        Contents::decode(&path, &bytes)
    }

    /// Finishes a backup: writes its signed manifest.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn commit(&self, name: &str, proof: &Value) -> Result<(), BackupError> {
        write_durably(&self.backup_path(name, "json"), format!("{proof:#}\n").as_bytes())
    }

    /// Returns the packs that these blobs need.
    pub(super) fn packs_of(&self, contents: &Contents) -> Vec<NeededPack> {
        let numbers: HashSet<u32> =
            contents.blobs().filter_map(|id| self.blobs.get(&id)).map(|(pack, _)| *pack).collect();
        let mut needed: Vec<_> = numbers
            .into_iter()
            .map(|number| NeededPack { number, index: hex::encode(self.packs[&number]) })
            .collect();
        needed.sort_unstable_by_key(|pack| pack.number);
        needed
    }

    /// Compares the indexes of the packs that a backup needs with its list.
    pub(super) fn check_packs(&self, header: &Header) -> Result<(), BackupError> {
        for NeededPack { number, index } in &header.packs {
            let path = index_path(&self.packs_folder(), *number);
            match self.packs.get(number) {
                None => return Err(BackupError::damaged(&path, "this index is missing")),
                Some(hash) if hex::encode(hash) != *index => {
                    return Err(BackupError::damaged(&path, "this index is not the one of the backup"));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }
}

/// Finds blobs in packs. Keeps the last index and the last pack.
pub(super) struct BlobReader<'f> {
    backups: &'f BackupFolder,
    open: Option<(u32, File, Vec<Blob>)>,
}

impl<'f> BlobReader<'f> {
    pub(super) const fn new(backups: &'f BackupFolder) -> Self {
        Self { backups, open: None }
    }

    /// Returns the place of a blob: its pack's number and its number in the pack. Blobs are read fastest in this order.
    pub(super) fn place(&self, id: &BlobId) -> Option<(u32, u32)> {
        self.backups.blobs.get(id).copied()
    }

    /// Returns the pack that holds a blob, and what the index says about it.
    pub(super) fn find(&mut self, id: &BlobId) -> Result<Option<(&File, Blob)>, BackupError> {
        let Some((number, place)) = self.place(id) else { return Ok(None) };
        let folder = self.backups.packs_folder();
        if self.open.as_ref().is_none_or(|(open, ..)| *open != number) {
            let path = pack_path(&folder, number);
            let file = File::open(&path).doing("opening", &path)?;
            self.open = Some((number, file, read_index(&folder, number)?.0));
        }
        let (_, file, blobs) = self.open.as_ref().expect("it was opened");
        let blob = usize::try_from(place).ok().and_then(|place| blobs.get(place));
        Ok(blob.filter(|blob| blob.id == *id).map(|blob| (file, *blob)))
    }
}

/// Returns whether a folder has more than what is left of one that was interrupted while it was made.
fn has_other_files(folder: &Path) -> bool {
    let Ok(mut entries) = std::fs::read_dir(folder) else { return false };
    let (parts, unfinished) =
        (PARTS.map(|part| folder.join(part)), unfinished(&folder.join(REPOSITORY_FILE)));
    let is_empty = |path: &Path| std::fs::read_dir(path).is_ok_and(|mut inside| inside.next().is_none());
    entries.any(|entry| {
        let Ok(path) = entry.map(|entry| entry.path()) else { return true };
        path != unfinished && !(parts.contains(&path) && is_empty(&path))
    })
}

fn lock(folder: &Path) -> Result<File, BackupError> {
    let path = folder.join(LOCK_FILE);
    let file = File::options().create(true).truncate(false).write(true).open(&path);
    let file = file.doing("opening", &path)?;
    match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => {
            Err(BackupError(format!("another process is using {}", folder.display())))
        }
        Err(error) => Err(std::io::Error::from(error)).doing("locking", &path),
    }
}

#[cfg(test)]
mod tests {
    use super::BackupFolder;
    use std::fs::{create_dir, write};

    /// `cairn backup to` was killed while it made the folder, and every later run refused the folder.
    #[test]
    fn a_folder_that_was_interrupted_while_it_was_made_is_completed() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = |name| folder.path().join(name);
        create_dir(place("packs")).expect("a folder");
        create_dir(place("backups")).expect("a folder");
        write(place("repository.new"), "{").expect("written");
        let open = || BackupFolder::open_or_create(folder.path(), "store").map(drop);
        assert!(open().is_ok() && open().is_ok());
    }

    #[test]
    fn a_folder_with_other_files_is_refused() {
        for name in ["packs/one", "photo.jpg", "repository.old"] {
            let folder = tempfile::tempdir().expect("a folder");
            create_dir(folder.path().join("packs")).expect("a folder");
            write(folder.path().join(name), "").expect("written");
            let refused = BackupFolder::open_or_create(folder.path(), "store").map(drop).expect_err(name);
            assert!(refused.to_string().contains("has other files"), "{refused}");
        }
    }
}
