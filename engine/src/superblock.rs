//! `superblock.json`: what a store is. Written when the store is made, and again when a program of a later format opens it
//! first; renamed into place.

use crate::error::{OpenContext, OpenError};
use crate::examine::StoreFacts;
use cairn_lmdb::UNMADE_MARKER;
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Format version that this program writes, and the latest that it reads. It reads all earlier ones:
/// 1 had no versions, uploads and settings of buckets; 2 had no directory of accounts.
pub const FORMAT_VERSION: u32 = 3;
/// The first format whose stores have a folder `identity`.
const IDENTITY_SINCE: u32 = 3;
const IDENTITY: &str = "identity";
/// Folders of the store whose environments others than the engine make: the audit trail, and the directory of accounts.
pub(crate) const MADE_BY_OTHERS: [&str; 2] = ["audit", IDENTITY];
const FILE: &str = "superblock.json";
/// Stands in the folder while a store is being made.
const MARKER: &str = "store.creating";

/// Random identity of a store; stands in every volume header and in every slice's metadata.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoreId(pub [u8; 16]);

impl StoreId {
    /// Lower-case hex.
    #[must_use]
    pub fn to_hex(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn from_hex(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        if digits.len() != 32 || !digits.is_ascii() {
            return None;
        }
        let mut id = [0u8; 16];
        for (byte, pair) in id.iter_mut().zip(digits.as_chunks::<2>().0) {
            *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Some(Self(id))
    }
}

/// The file's contents. Unknown fields are refused: a program that does not know them must not guess.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File1 {
    format_version: u32,
    store_id: String,
    slices: u16,
    /// HKDF-SHA-256 of the master key with the store id as salt: tells a wrong key without revealing the right one.
    master_key_check: String,
}

/// Just the version, to be read whatever else a later format has.
#[derive(Deserialize)]
struct VersionOnly {
    format_version: u32,
}

/// A store's fixed facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Superblock {
    pub(crate) store: StoreId,
    pub(crate) slices: u16,
}

fn key_check(master_key: &[u8], store: StoreId) -> String {
    let mut check = [0u8; 16];
    let hkdf = hkdf::Hkdf::<Sha256>::new(Some(&store.0), master_key);
    // 16 bytes are far below HKDF's limit, so this cannot fail; if it did, the check would be zeros on both sides.
    let _ = hkdf.expand(b"cairn master key check 1", &mut check);
    StoreId(check).to_hex()
}

/// Refuses a store of a later format. Touches nothing, so it comes before the lock is taken: whatever else is wrong
/// with the file is found under the lock.
pub(crate) fn refuse_later_format(folder: &Path) -> Result<(), OpenError> {
    let Ok(bytes) = std::fs::read(folder.join(FILE)) else { return Ok(()) };
    match serde_json::from_slice(&bytes) {
        Ok(VersionOnly { format_version: found }) if found > FORMAT_VERSION => {
            Err(OpenError::FormatTooNew { found, known: FORMAT_VERSION })
        }
        _ => Ok(()),
    }
}

/// Reads the superblock, and checks the master key; `None` when the folder holds no store yet.
pub(crate) fn read(folder: &Path, master_key: &[u8]) -> Result<Option<Superblock>, OpenError> {
    let Some((superblock, file)) = read_file(folder)? else { return Ok(None) };
    if key_check(master_key, superblock.store) != file.master_key_check {
        return Err(OpenError::WrongMasterKey);
    }
    if file.format_version < FORMAT_VERSION {
        if file.format_version < IDENTITY_SINCE {
            mark_unmade(folder, IDENTITY)?;
        }
        // Before anything of this format is written: from then on earlier programs refuse the store.
        write_file(folder, &File1 { format_version: FORMAT_VERSION, ..file })?;
    }
    // A cut right after the store was made may have brought the marker back. It must not outlive this: were the superblock
    // lost later, the marker would say that nothing of value is here.
    remove_marker(folder)?;
    Ok(Some(superblock))
}

/// Where the file is.
pub(crate) fn path(folder: &Path) -> PathBuf {
    folder.join(FILE)
}

/// Whether stores of a format have this folder of [`MADE_BY_OTHERS`] without a start of this program first.
pub(crate) fn has_folder(name: &str, format_version: u32) -> bool {
    name != IDENTITY || format_version >= IDENTITY_SINCE
}

/// What a store is, for tools that need no secrets of it; changes nothing. `None` when the folder holds no store.
pub(crate) fn identify(folder: &Path) -> Result<Option<Superblock>, OpenError> {
    Ok(read_file(folder)?.map(|(superblock, _)| superblock))
}

/// As [`identify`], with the version of the format.
pub(crate) fn facts(folder: &Path) -> Result<Option<StoreFacts>, OpenError> {
    let found = read_file(folder)?;
    Ok(found.map(|(Superblock { slices, .. }, File1 { format_version, .. })| StoreFacts {
        slices,
        format_version,
    }))
}

/// Refuses a master key that the store in the folder was not made with; changes nothing.
pub(crate) fn verify_key(folder: &Path, master_key: &[u8]) -> Result<(), OpenError> {
    match read_file(folder)? {
        Some((superblock, file)) if key_check(master_key, superblock.store) != file.master_key_check => {
            Err(OpenError::WrongMasterKey)
        }
        _ => Ok(()),
    }
}

fn read_file(folder: &Path) -> Result<Option<(Superblock, File1)>, OpenError> {
    let path = folder.join(FILE);
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return missing(folder),
        Err(error) => return Err(error).doing("reading", &path),
    };
    let damaged = |what: String| OpenError::Damaged { path: path.clone(), what };
    refuse_later_format(folder)?;
    let file: File1 = serde_json::from_slice(&bytes).map_err(|e| damaged(e.to_string()))?;
    let store =
        StoreId::from_hex(&file.store_id).ok_or_else(|| damaged("a store id that is none".to_owned()))?;
    if file.slices == 0 || file.slices > crate::limits::SLICES_MAX {
        return Err(damaged(format!("{} slices", file.slices)));
    }
    Ok(Some((Superblock { store, slices: file.slices }, file)))
}

/// Whether the file still says what it said when the store was opened; the reason when it does not.
pub(crate) fn examine(folder: &Path, superblock: Superblock) -> Result<(), String> {
    let bytes =
        std::fs::read(folder.join(FILE)).map_err(|error| format!("{FILE} cannot be read: {error}"))?;
    let file: File1 =
        serde_json::from_slice(&bytes).map_err(|error| format!("{FILE} is damaged: {error}"))?;
    let same = file.format_version == FORMAT_VERSION
        && StoreId::from_hex(&file.store_id) == Some(superblock.store)
        && file.slices == superblock.slices;
    if same { Ok(()) } else { Err(format!("{FILE} describes another store than the one that was opened")) }
}

/// Slices without a superblock: it was lost, and making a new store over them would lose everything. Only the marker of
/// a creation that never ended says otherwise.
fn missing(folder: &Path) -> Result<Option<(Superblock, File1)>, OpenError> {
    if folder.join("slices").exists() && !folder.join(MARKER).exists() {
        let what = "missing, but the folder holds slices of a store".to_owned();
        return Err(OpenError::Damaged { path: folder.join(FILE), what });
    }
    Ok(None)
}

/// Begins to make a store: marks the folder, and clears what an earlier attempt left that never ended.
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

/// Leaves the places of the environments that others make, each with a marker in it.
pub(crate) fn mark_all_unmade(folder: &Path) -> Result<(), OpenError> {
    MADE_BY_OTHERS.into_iter().try_for_each(|name| mark_unmade(folder, name))
}

/// Leaves a folder with a marker in it, which says that its environment is still to be made (`lmdb/src/owned.rs`). Without the
/// marker a missing one is damage, so it comes before the superblock. What a folder of this name holds stays.
fn mark_unmade(folder: &Path, name: &str) -> Result<(), OpenError> {
    let place = folder.join(name);
    std::fs::create_dir_all(&place).doing("creating", &place)?;
    let marker = place.join(UNMADE_MARKER);
    File::create(&marker).and_then(|file| file.sync_all()).doing("creating", &marker)?;
    sync_folder(&place)?;
    sync_folder(folder)
}

/// Writes the superblock of a new store, durably. It comes last: without it there is no store.
pub(crate) fn create(folder: &Path, master_key: &[u8], store: StoreId, slices: u16) -> Result<(), OpenError> {
    let file = File1 {
        format_version: FORMAT_VERSION,
        store_id: store.to_hex(),
        slices,
        master_key_check: key_check(master_key, store),
    };
    write_file(folder, &file)?;
    remove_marker(folder)
}

/// Puts a superblock in the place of what is there, durably and as a whole.
fn write_file(folder: &Path, file: &File1) -> Result<(), OpenError> {
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
    use super::{StoreId, begin_creation, create, read};
    use crate::error::OpenError;

    #[test]
    fn another_master_key_is_refused_and_nothing_reveals_it() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(read(folder.path(), b"key").expect("reads").is_none());
        begin_creation(folder.path()).expect("marks");
        std::fs::create_dir(folder.path().join("slices")).expect("a folder");
        assert!(read(folder.path(), b"key").expect("an unfinished creation").is_none());
        create(folder.path(), b"a key that is long enough to be one", StoreId([1; 16]), 4).expect("creates");
        let found =
            read(folder.path(), b"a key that is long enough to be one").expect("reads").expect("is there");
        assert_eq!((found.slices, found.store), (4, StoreId([1; 16])));
        assert!(matches!(read(folder.path(), b"another"), Err(OpenError::WrongMasterKey)));
        let text = std::fs::read_to_string(folder.path().join("superblock.json")).expect("reads");
        assert!(!text.contains("long enough"));
    }

    /// A power cut brought the marker of the creation back, and much later the superblock was lost: the marker that the
    /// starts in between had left standing made the next one clear the whole store.
    #[test]
    fn a_marker_does_not_outlive_the_next_start() {
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
    fn slices_without_a_superblock_are_never_made_anew() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("slices")).expect("a folder");
        assert!(matches!(read(folder.path(), b"k"), Err(OpenError::Damaged { .. })));
    }

    #[test]
    fn a_later_format_is_named_as_such() {
        let folder = tempfile::tempdir().expect("a folder");
        let later = r#"{"format_version": 4, "something": "else"}"#;
        std::fs::write(folder.path().join("superblock.json"), later).expect("writes");
        assert!(matches!(read(folder.path(), b"k"), Err(OpenError::FormatTooNew { found: 4, known: 3 })));
    }

    #[test]
    fn an_earlier_format_is_raised_when_the_right_key_opens_it_and_not_before() {
        let folder = tempfile::tempdir().expect("a folder");
        create(folder.path(), b"key", StoreId([1; 16]), 1).expect("creates");
        let path = folder.path().join("superblock.json");
        let now = std::fs::read_to_string(&path).expect("reads");
        let earlier = now.replace("\"format_version\": 3", "\"format_version\": 2");
        assert_ne!(now, earlier);
        std::fs::write(&path, &earlier).expect("writes");
        assert!(matches!(read(folder.path(), b"another"), Err(OpenError::WrongMasterKey)));
        assert_eq!(std::fs::read_to_string(&path).expect("reads"), earlier);
        let marker = folder.path().join("identity/unmade");
        assert!(!marker.exists());
        read(folder.path(), b"key").expect("reads").expect("is there");
        assert_eq!(std::fs::read_to_string(&path).expect("reads"), now);
        // Its directory of accounts is to be made once, and missing it afterwards is damage.
        assert!(marker.exists());
        std::fs::remove_file(&marker).expect("removes");
        read(folder.path(), b"key").expect("reads").expect("is there");
        assert!(!marker.exists());
    }
}
