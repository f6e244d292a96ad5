//! The superblock (`superblock.json`): identity, slices and format version of a store.
//!
//! The file is written when the store is created, and again when its format version is raised. It is written under another
//! name and renamed, so that it is always complete.

use crate::error::{OpenContext, OpenError};
use crate::format::format_version::{FORMAT_VERSION, FORMAT_VERSION_MIN};
use cairn_lmdb::UNMADE_MARKER;
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Folders of environments in the store that other crates create, each with the first format version whose stores have it: the
/// audit trail, the directory of accounts, webhooks, shares and embeds.
const FOREIGN_ENVIRONMENTS_SINCE: [(&str, u32); 4] =
    [("audit", 1), ("identity", 3), ("webhooks", 4), ("sharing", 5)];
/// The folders alone.
pub(crate) const FOREIGN_ENVIRONMENTS: [&str; 4] = {
    let [(audit, _), (identity, _), (webhooks, _), (sharing, _)] = FOREIGN_ENVIRONMENTS_SINCE;
    [audit, identity, webhooks, sharing]
};
const FILE: &str = "superblock.json";
/// Marks a folder in which a store is being created.
const MARKER: &str = "store.creating";

/// Random identity of a store. Every volume header and the metadata of every slice contain it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoreId(pub [u8; 16]);

impl StoreId {
    /// Returns the id in lower-case hex.
    #[must_use]
    pub fn to_hex(self) -> String {
        hex::encode(self.0)
    }

    fn from_hex(text: &str) -> Option<Self> {
        let mut id = [0; 16];
        hex::decode_to_slice(text, &mut id).ok()?;
        Some(Self(id))
    }
}

/// The contents of the file. Unknown fields are refused, because a program that does not know them must not guess.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SuperblockFile {
    format_version: u32,
    store_id: String,
    slices: u16,
    /// HKDF-SHA-256 of the master key with the store id as salt. It detects a wrong key without revealing the right one.
    master_key_check: String,
}

/// Only the version, which can be read from every later format.
#[derive(Deserialize)]
struct VersionOnly {
    format_version: u32,
}

/// Facts about a store that are known without opening it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoreFacts {
    /// Number of slices.
    pub slices: u16,
    /// Format version.
    pub format_version: u32,
}

/// The fixed facts of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Superblock {
    pub(crate) store: StoreId,
    pub(crate) slices: u16,
}

fn key_check(master_key: &[u8], store: StoreId) -> String {
    let mut check = [0u8; 16];
    let hkdf = hkdf::Hkdf::<Sha256>::new(Some(&store.0), master_key);
    hkdf.expand(b"cairn master key check 1", &mut check).expect("16 bytes are below HKDF's limit");
    StoreId(check).to_hex()
}

/// Refuses a store of a later format.
///
/// Changes nothing, so it can be called before the store is locked. Other faults of the file are found under the lock.
pub(crate) fn refuse_later_format(folder: &Path) -> Result<(), OpenError> {
    let Ok(bytes) = std::fs::read(folder.join(FILE)) else { return Ok(()) };
    match serde_json::from_slice(&bytes) {
        Ok(VersionOnly { format_version: found }) if found > FORMAT_VERSION => {
            Err(OpenError::FormatTooNew { found, known: FORMAT_VERSION })
        }
        _ => Ok(()),
    }
}

/// Reads the superblock and checks the master key. Returns it with the format version, or `None` if the folder holds no store
/// yet. The version stays what it is, and one that this program does not run is refused.
pub(crate) fn read(folder: &Path, master_key: &[u8]) -> Result<Option<(Superblock, u32)>, OpenError> {
    let Some((superblock, file)) = read_file(folder)? else { return Ok(None) };
    if key_check(master_key, superblock.store) != file.master_key_check {
        return Err(OpenError::WrongMasterKey);
    }
    if file.format_version < FORMAT_VERSION_MIN {
        let runs = (FORMAT_VERSION_MIN, FORMAT_VERSION);
        return Err(OpenError::FormatTooOld {
            found: file.format_version,
            runs,
            data_dir: folder.to_owned(),
        });
    }
    // A power cut right after the creation may have restored the marker. It must be removed now: if the superblock were lost
    // later, the marker would say that the folder holds nothing of value.
    remove_marker(folder)?;
    Ok(Some((superblock, file.format_version)))
}

/// Raises the format version to the latest, durably. From then on earlier programs refuse the store. After a crash, the store
/// has the earlier version or the latest.
pub(crate) fn upgrade(folder: &Path) -> Result<(), OpenError> {
    let none = || OpenError::NoStore(folder.to_owned());
    let (_, file) = read_file(folder)?.ok_or_else(none)?;
    if file.format_version == FORMAT_VERSION {
        return Ok(());
    }
    for (name, since) in FOREIGN_ENVIRONMENTS_SINCE {
        if file.format_version < since {
            mark_unmade(folder, name)?;
        }
    }
    write_file(folder, &SuperblockFile { format_version: FORMAT_VERSION, ..file })
}

/// Returns the path of the file.
pub(crate) fn path(folder: &Path) -> PathBuf {
    folder.join(FILE)
}

/// Returns whether stores of a format version have this folder of [`FOREIGN_ENVIRONMENTS`] before an upgrade.
pub(crate) fn has_folder(name: &str, format_version: u32) -> bool {
    FOREIGN_ENVIRONMENTS_SINCE.iter().all(|(known, since)| *known != name || format_version >= *since)
}

/// Reads the superblock without the master key. Changes nothing. Returns `None` if the folder holds no store.
pub(crate) fn identify(folder: &Path) -> Result<Option<Superblock>, OpenError> {
    Ok(read_file(folder)?.map(|(superblock, _)| superblock))
}

/// Does the same as [`identify`], with the format version.
pub(crate) fn facts(folder: &Path) -> Result<Option<StoreFacts>, OpenError> {
    let found = read_file(folder)?;
    Ok(found.map(|(Superblock { slices, .. }, SuperblockFile { format_version, .. })| StoreFacts {
        slices,
        format_version,
    }))
}

/// Refuses a master key that is not the one of the store in the folder. Changes nothing.
pub(crate) fn verify_key(folder: &Path, master_key: &[u8]) -> Result<(), OpenError> {
    match read_file(folder)? {
        Some((superblock, file)) if key_check(master_key, superblock.store) != file.master_key_check => {
            Err(OpenError::WrongMasterKey)
        }
        _ => Ok(()),
    }
}

fn read_file(folder: &Path) -> Result<Option<(Superblock, SuperblockFile)>, OpenError> {
    let path = folder.join(FILE);
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return missing(folder),
        Err(error) => return Err(error).doing("reading", &path),
    };
    let damaged = |what: String| OpenError::Damaged { path: path.clone(), what };
    refuse_later_format(folder)?;
    let file: SuperblockFile = serde_json::from_slice(&bytes).map_err(|e| damaged(e.to_string()))?;
    let store =
        StoreId::from_hex(&file.store_id).ok_or_else(|| damaged("the store id is invalid".to_owned()))?;
    if file.slices == 0 || file.slices > crate::limits::SLICES_MAX {
        return Err(damaged(format!("{} slices", file.slices)));
    }
    Ok(Some((Superblock { store, slices: file.slices }, file)))
}

/// Checks that the file still describes the store that was opened, and its format version. The error says what is wrong.
pub(crate) fn inspect(folder: &Path, superblock: Superblock, format_version: u32) -> Result<(), String> {
    let bytes =
        std::fs::read(folder.join(FILE)).map_err(|error| format!("{FILE} cannot be read: {error}"))?;
    let file: SuperblockFile =
        serde_json::from_slice(&bytes).map_err(|error| format!("{FILE} is damaged: {error}"))?;
    let same = file.format_version == format_version
        && StoreId::from_hex(&file.store_id) == Some(superblock.store)
        && file.slices == superblock.slices;
    if same { Ok(()) } else { Err(format!("{FILE} describes another store than the one that was opened")) }
}

/// Refuses a folder with slices but without a superblock: the superblock was lost, and a new store would overwrite everything.
/// Only the marker of an unfinished creation shows that there is nothing to lose.
fn missing(folder: &Path) -> Result<Option<(Superblock, SuperblockFile)>, OpenError> {
    if folder.join("slices").exists() && !folder.join(MARKER).exists() {
        let what = "missing, but the folder holds slices of a store (if `cairn backup restore` was interrupted here, remove what \
                    it has written and restore again)"
            .to_owned();
        return Err(OpenError::Damaged { path: folder.join(FILE), what });
    }
    Ok(None)
}

/// Begins the creation of a store: marks the folder, and removes what an unfinished creation has left.
pub(crate) fn begin_creation(folder: &Path) -> Result<(), OpenError> {
    let marker = folder.join(MARKER);
    File::create(&marker).and_then(|file| file.sync_all()).doing("creating", &marker)?;
    sync_folder(folder)?;
    for left in ["slices", "control"].map(|name| folder.join(name)) {
        match std::fs::remove_dir_all(&left) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(error).doing("clearing", &left);
            }
            _ => {}
        }
    }
    Ok(())
}

/// Creates the folders of the environments that other crates create, each with a marker.
pub(crate) fn mark_all_unmade(folder: &Path) -> Result<(), OpenError> {
    FOREIGN_ENVIRONMENTS.into_iter().try_for_each(|name| mark_unmade(folder, name))
}

/// Creates a folder with a marker, which says that its environment has not been created yet (`lmdb/src/store_identity.rs`).
///
/// Without the marker, a missing environment is damage. So the marker is written before the superblock. Existing files in the
/// folder are kept.
fn mark_unmade(folder: &Path, name: &str) -> Result<(), OpenError> {
    let environment = folder.join(name);
    std::fs::create_dir_all(&environment).doing("creating", &environment)?;
    let marker = environment.join(UNMADE_MARKER);
    File::create(&marker).and_then(|file| file.sync_all()).doing("creating", &marker)?;
    sync_folder(&environment)?;
    sync_folder(folder)
}

/// Writes the superblock of a new store, durably. This is the last step of the creation: without it there is no store.
pub(crate) fn create(folder: &Path, master_key: &[u8], store: StoreId, slices: u16) -> Result<(), OpenError> {
    let file = SuperblockFile {
        format_version: FORMAT_VERSION,
        store_id: store.to_hex(),
        slices,
        master_key_check: key_check(master_key, store),
    };
    write_file(folder, &file)?;
    remove_marker(folder)
}

/// Replaces the superblock, durably and atomically.
fn write_file(folder: &Path, file: &SuperblockFile) -> Result<(), OpenError> {
    let (path, temporary) = (folder.join(FILE), folder.join("superblock.json.new"));
    let text = serde_json::to_string_pretty(file)
        .map_err(|e| OpenError::Damaged { path: path.clone(), what: e.to_string() })?;
    let mut out = File::create(&temporary).doing("creating", &temporary)?;
    out.write_all(text.as_bytes()).doing("writing", &temporary)?;
    out.sync_all().doing("flushing", &temporary)?;
    std::fs::rename(&temporary, &path).doing("renaming", &temporary)?;
    sync_folder(folder)
}

fn remove_marker(folder: &Path) -> Result<(), OpenError> {
    let marker = folder.join(MARKER);
    match std::fs::remove_file(&marker) {
        Ok(()) => sync_folder(folder),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).doing("removing", &marker),
    }
}

/// Makes the names in a folder durable.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), OpenError> {
    File::open(folder).and_then(|file| file.sync_all()).doing("flushing", folder)
}

#[cfg(test)]
mod tests {
    use super::{StoreId, begin_creation, create, read, upgrade};
    use crate::error::OpenError;
    use crate::format::format_version::FORMAT_VERSION;

    #[test]
    fn wrong_master_key_is_refused_and_the_right_one_is_not_stored() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(read(folder.path(), b"key").expect("reads").is_none());
        begin_creation(folder.path()).expect("marks");
        std::fs::create_dir(folder.path().join("slices")).expect("a folder");
        assert!(read(folder.path(), b"key").expect("an unfinished creation").is_none());
        create(folder.path(), b"a key that is long enough to be one", StoreId([1; 16]), 4).expect("creates");
        let found =
            read(folder.path(), b"a key that is long enough to be one").expect("reads").expect("is there");
        assert_eq!((found.0.slices, found.0.store, found.1), (4, StoreId([1; 16]), FORMAT_VERSION));
        assert!(matches!(read(folder.path(), b"another"), Err(OpenError::WrongMasterKey)));
        let text = std::fs::read_to_string(folder.path().join("superblock.json")).expect("reads");
        assert!(!text.contains("long enough"));
    }

    /// A power cut restored the marker of the creation, and the starts after it kept the marker. Much later the superblock was
    /// lost. Because of the marker, the next start cleared the whole store.
    #[test]
    fn marker_of_the_creation_is_removed_by_the_next_start() {
        let folder = tempfile::tempdir().expect("a folder");
        begin_creation(folder.path()).expect("marks");
        create(folder.path(), b"key", StoreId([1; 16]), 1).expect("creates");
        std::fs::write(folder.path().join(super::MARKER), b"").expect("writes");
        std::fs::create_dir(folder.path().join("slices")).expect("a folder");
        read(folder.path(), b"key").expect("reads").expect("is there");
        std::fs::remove_file(folder.path().join("superblock.json")).expect("removes");
        assert!(matches!(read(folder.path(), b"key"), Err(OpenError::Damaged { .. })));
    }

    #[test]
    fn slices_without_a_superblock_are_never_overwritten() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("slices")).expect("a folder");
        assert!(matches!(read(folder.path(), b"k"), Err(OpenError::Damaged { .. })));
    }

    #[test]
    fn later_format_is_refused_with_its_version() {
        let folder = tempfile::tempdir().expect("a folder");
        let later = r#"{"format_version": 12, "something": "else"}"#;
        std::fs::write(folder.path().join("superblock.json"), later).expect("writes");
        assert!(matches!(read(folder.path(), b"k"), Err(OpenError::FormatTooNew { found: 12, known: 11 })));
    }

    /// Replaces the version in the superblock of a new store. Returns the text before and after.
    fn age(folder: &std::path::Path, version: u32) -> (String, String) {
        create(folder, b"key", StoreId([1; 16]), 1).expect("creates");
        let path = folder.join("superblock.json");
        let now = std::fs::read_to_string(&path).expect("reads");
        let earlier = now.replace("\"format_version\": 11", &format!("\"format_version\": {version}"));
        assert_ne!(now, earlier);
        std::fs::write(&path, &earlier).expect("writes");
        (now, earlier)
    }

    /// The start of a new program raised the version, so the program of the day before could not be used again.
    #[test]
    fn earlier_format_is_raised_by_an_upgrade_only() {
        let folder = tempfile::tempdir().expect("a folder");
        let (now, earlier) = age(folder.path(), 10);
        let text = || std::fs::read_to_string(folder.path().join("superblock.json")).expect("reads");
        assert!(matches!(read(folder.path(), b"another"), Err(OpenError::WrongMasterKey)));
        assert_eq!(read(folder.path(), b"key").expect("reads").expect("is there").1, 10);
        assert_eq!(text(), earlier);
        upgrade(folder.path()).expect("upgrades");
        assert_eq!(text(), now);
        assert_eq!(read(folder.path(), b"key").expect("reads").expect("is there").1, FORMAT_VERSION);
        assert!(!folder.path().join("identity/unmade").exists());
    }

    #[test]
    fn version_that_is_too_old_to_run_gets_its_new_folders_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let (now, earlier) = age(folder.path(), 2);
        let text = || std::fs::read_to_string(folder.path().join("superblock.json")).expect("reads");
        let refused = read(folder.path(), b"key");
        assert!(matches!(refused, Err(OpenError::FormatTooOld { found: 2, .. })), "{refused:?}");
        let marker = folder.path().join("identity/unmade");
        assert!(text() == earlier && !marker.exists());
        upgrade(folder.path()).expect("upgrades");
        assert_eq!(text(), now);
        // The directory of accounts is created once. If it is missing afterwards, that is damage.
        assert!(marker.exists());
        std::fs::remove_file(&marker).expect("removes");
        upgrade(folder.path()).expect("nothing is left to do");
        assert!(!marker.exists());
    }
}
