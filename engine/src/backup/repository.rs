//! A folder of backups: its packs, its backups, and its lock.

use crate::backup::error::{BackupError, Context as _};
use crate::backup::manifest::{BackupSummary, Contents, Header, NeededPack, VERSION, is_name};
use crate::backup::pack::{
    BlobId, Finished, Hash, Places, damage_path, index_path, pack_path, read_damage, read_index,
    remove_if_present, unfinished, write_damage, write_durably,
};
use crate::device::lock_file::lock_to_examine;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::{DirBuilder, File};
use std::io::ErrorKind;
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
    /// Pack of each blob that is not known to be damaged, and its place in the index.
    pub(super) blobs: Places,
    /// Blobs that are known to be damaged, with their packs.
    pub(super) damaged: HashSet<(u32, BlobId)>,
    /// The highest number that a pack has, also one without an index.
    last_pack: u32,
    /// Locked until this is dropped. `None` on a read-only file system without the lock's file.
    _lock: Option<File>,
}

impl BackupFolder {
    /// Opens a folder of backups.
    ///
    /// # Errors
    /// If `folder` is not a folder of backups, is in use, or cannot be read.
    pub fn open(folder: &Path) -> Result<Self, BackupError> {
        let path = folder.join(REPOSITORY_FILE);
        let text = match std::fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
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
            damaged: HashSet::new(),
            last_pack: 0,
            _lock: lock,
        };
        for number in opened.numbers_of("index")? {
            let damaged = read_damage(&opened.packs_folder(), number)?;
            opened.damaged.extend(damaged.into_iter().map(|id| (number, id)));
        }
        opened.load_packs()?;
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
        opened.remove_unfinished()?;
        Ok(opened)
    }

    /// Reads the indexes. One that is damaged is left out: its blobs are missing then.
    fn load_packs(&mut self) -> Result<(), BackupError> {
        self.packs.clear();
        self.blobs.clear();
        let (indexes, packs) = (self.numbers_of("index")?, self.numbers_of("pack")?);
        self.last_pack = indexes.iter().chain(&packs).copied().max().unwrap_or_default();
        for number in indexes {
            if let Ok((blobs, index_hash)) = read_index(&self.packs_folder(), number) {
                self.add_pack(Finished { number, blobs, index_hash });
            }
        }
        Ok(())
    }

    /// Replaces what is known of damage, for the next backup too. Fails if that cannot be written down.
    pub(super) fn note_damage(&mut self, damaged: HashSet<(u32, BlobId)>) -> Result<(), BackupError> {
        let before = std::mem::replace(&mut self.damaged, damaged);
        self.load_packs()?;
        for pack in self.packs.keys() {
            let of_pack = |all: &HashSet<(u32, BlobId)>| -> BTreeSet<BlobId> {
                all.iter().filter(|(number, _)| number == pack).map(|(_, id)| *id).collect()
            };
            let now = of_pack(&self.damaged);
            // What is known already needs no disk that can be written.
            if now != of_pack(&before) {
                write_damage(&self.packs_folder(), *pack, &now.into_iter().collect::<Vec<_>>())?;
            }
        }
        Ok(())
    }

    /// Removes packs without an index, which an interrupted backup has left.
    fn remove_unfinished(&self) -> Result<(), BackupError> {
        let mut left = self.numbers_of("pack")?;
        left.retain(|number| !self.packs.contains_key(number));
        if left.is_empty() {
            return Ok(());
        }
        // An index may also have been lost. What a backup needs may still be of use.
        for backup in self.backups()? {
            let Ok(contents) = self.contents(&backup) else { return Ok(()) };
            left.retain(|number| !contents.header.packs.iter().any(|needed| needed.number == *number));
        }
        left.into_iter().try_for_each(|number| self.remove_pack(number))
    }

    /// Removes a pack with its index.
    pub(super) fn remove_pack(&self, number: u32) -> Result<(), BackupError> {
        // The index first: a pack without one is removed by the next backup.
        [index_path, pack_path, damage_path]
            .into_iter()
            .try_for_each(|path_of| remove_if_present(&path_of(&self.packs_folder(), number)))
    }

    pub(super) fn packs_folder(&self) -> PathBuf {
        self.folder.join("packs")
    }

    pub(super) fn backup_path(&self, name: &str, extension: &str) -> PathBuf {
        self.folder.join("backups").join(format!("{name}.{extension}"))
    }

    /// Returns the number of the next pack.
    pub(super) const fn next_pack(&self) -> u32 {
        self.last_pack + 1
    }

    /// Notes a finished pack.
    pub(super) fn add_pack(&mut self, Finished { number, blobs, index_hash }: Finished) {
        self.packs.insert(number, index_hash);
        self.last_pack = self.last_pack.max(number);
        for (place, blob) in (0..).zip(blobs) {
            if !self.damaged.contains(&(number, blob.id)) {
                self.blobs.insert(blob.id, (number, place));
            }
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

    /// Returns the finished backups, oldest first, also those whose manifests cannot be read.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn backups(&self) -> Result<Vec<BackupSummary>, BackupError> {
        let folder = self.folder.join("backups");
        let mut backups = Vec::new();
        for entry in std::fs::read_dir(&folder).doing("reading", &folder)? {
            let path = entry.doing("reading", &folder)?.path();
            let Some(name) = path.file_stem().and_then(|stem| stem.to_str()) else { continue };
            if path.extension().is_some_and(|extension| extension == "json") && is_name(name) {
                let (proof, damage) = match self.read_manifest(name, &path) {
                    Ok(proof) => (proof, None),
                    Err(error) => (Value::Null, Some(error.to_string())),
                };
                let held_at = proof["payload"]["held_at"].as_str().unwrap_or_default().to_owned();
                backups.push(BackupSummary { name: name.to_owned(), held_at, proof, damage });
            }
        }
        backups.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(backups)
    }

    fn read_manifest(&self, name: &str, path: &Path) -> Result<Value, BackupError> {
        let text = std::fs::read(path).doing("reading", path)?;
        let proof: Value = serde_json::from_slice(&text).map_err(|error| {
            BackupError::damaged(path, format!("the manifest of this backup is damaged: {error}"))
        })?;
        let manifest = &proof["payload"];
        if manifest["backup"] != *name || manifest["store_id"] != *self.store_id {
            return Err(BackupError::damaged(path, "this is not the manifest of this backup"));
        }
        Ok(proof)
    }

    /// Returns a backup by its name, or the newest one.
    ///
    /// # Errors
    /// If there is no such backup, or its manifest cannot be read.
    pub fn backup(&self, name: Option<&str>) -> Result<BackupSummary, BackupError> {
        let mut backups = self.backups()?;
        let found = match name {
            Some(name) => backups.into_iter().find(|backup| backup.name == name),
            None => backups.pop(),
        };
        let found = found.ok_or_else(|| {
            let which = name.map_or_else(|| "no backup".to_owned(), |name| format!("no backup {name}"));
            BackupError(format!("{} has {which}", self.folder.display()))
        })?;
        match &found.damage {
            // Another one is not taken by itself: it shows an earlier moment than was asked for.
            Some(damage) => Err(BackupError(format!("{damage}: choose another backup by its name"))),
            None => Ok(found),
        }
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
        if let Some(damage) = &backup.damage {
            return Err(BackupError(damage.clone()));
        }
        if *backup.member("contents_sha256") != hex::encode(Sha256::digest(&bytes)) {
            return Err(BackupError::damaged(&path, "the list does not match the manifest"));
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
                None => {
                    let lost = read_index(&self.packs_folder(), *number).err();
                    return Err(lost.unwrap_or_else(|| BackupError::damaged(&path, "this index is missing")));
                }
                Some(hash) if hex::encode(hash) != *index => {
                    return Err(BackupError::damaged(&path, "this index is not the one of the backup"));
                }
                Some(_) => {}
            }
        }
        Ok(())
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

/// Locks the folder. On a read-only file system backups can be listed, verified and restored.
fn lock(folder: &Path) -> Result<Option<File>, BackupError> {
    let path = folder.join(LOCK_FILE);
    match lock_to_examine(&path) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            Err(BackupError(format!("another process is using {}", folder.display())))
        }
        locked => locked.doing("locking", &path),
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
