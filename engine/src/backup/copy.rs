//! Copies what is new in a held store into a folder.

use crate::backup::error::{BackupError, Context as _};
use crate::backup::limits::{DAMAGED_NAMED_MAX, PACK_BYTES, PAGE_BYTES, PIECE_BYTES};
use crate::backup::manifest::{Contents, StoredFile, StoredPayload, manifest};
use crate::backup::pack::{BlobId, PackWriter};
use crate::backup::payload::{Volumes, volumes_in};
use crate::backup::progress::Progress;
use crate::backup::repository::BackupFolder;
use crate::format::codec::Payload;
use crate::format::format_version::{FORMAT_VERSION, FORMAT_VERSION_MIN};
use crate::format::keys;
use crate::format::object_record::{Content, ObjectRecord};
use crate::format::part_record::PartRecord;
use crate::slice::tables::{Tables, open_environment};
use crate::store::hold_copy::HoldFile;
use cairn_lmdb::{Environment, FlushFailures, ReadTxn, Table};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use std::collections::HashSet;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// The folders of a held store.
#[derive(Clone, Debug)]
pub struct HeldFolders {
    /// The data folder.
    pub data_dir: PathBuf,
    /// The folder with the copy of the metadata.
    pub backup_dir: PathBuf,
    /// The id of the hold.
    pub hold_id: String,
}

impl HeldFolders {
    /// Returns the id of the store, in hex.
    ///
    /// # Errors
    /// If the copy of the metadata cannot be read, is not complete, or is that of another hold.
    pub fn store_id(&self) -> Result<String, BackupError> {
        Ok(self.description()?.store_id)
    }

    fn description(&self) -> Result<HoldFile, BackupError> {
        let held = HoldFile::read(&self.backup_dir).map_err(|error| BackupError(error.to_string()))?;
        let held = held.ok_or_else(|| BackupError::damaged(&self.backup_dir, "the store is not held"))?;
        if held.id != self.hold_id {
            let what = "this is the copy of another hold, or of another store";
            return Err(BackupError::damaged(&self.backup_dir, what));
        }
        Ok(held)
    }
}

/// A backup whose manifest is not written yet.
#[derive(Clone, Debug, Default)]
pub struct Copied {
    /// Its name.
    pub name: String,
    /// The manifest, for a signature.
    pub manifest: Map<String, Value>,
    /// Bytes of metadata and payloads that the backup has.
    pub bytes: u64,
    /// Bytes that were written to the folder.
    pub new_bytes: u64,
    /// Payloads that the backup has.
    pub payloads: u64,
    /// Payloads and records that are damaged in the store: where they are.
    pub damaged: Vec<String>,
    /// The number of damaged ones.
    pub damaged_count: u64,
}

/// Copies a held store. [`BackupFolder::commit`] finishes the backup.
///
/// # Errors
/// If the folder is full or fails, if the held store cannot be read, and if `progress` says to end.
pub fn copy_into(
    backups: &mut BackupFolder,
    held: &HeldFolders,
    progress: &mut Progress<'_>,
) -> Result<Copied, BackupError> {
    let description = held.description()?;
    let digits: String =
        description.held_at.chars().filter(|letter| !matches!(letter, '-' | ':' | '.')).collect();
    let name = format!("{digits}-{}", description.id.get(..8).unwrap_or_default());
    let mut copy = Copy {
        pack: None,
        in_pack: HashSet::new(),
        backups,
        contents: Contents::default(),
        copied: Copied { name: name.clone(), ..Copied::default() },
        expected: expected_bytes(held, &description)?,
        progress,
    };
    for file in &description.files {
        let mut source = held.backup_dir.join(&file.path);
        // A description can only name files of its own folder.
        if Path::new(&file.path).components().any(|part| !matches!(part, std::path::Component::Normal(_))) {
            source.clear();
        }
        copy.add_file(&file.path, &source, u64::MAX)?;
    }
    let metadata: Vec<_> = description.files.iter().filter_map(|file| slice_of(&file.path)).collect();
    if !(FORMAT_VERSION_MIN..=FORMAT_VERSION).contains(&description.format_version) {
        let what = format!(
            "its format version {} is unknown: use the program that runs it",
            description.format_version
        );
        return Err(BackupError::damaged(&held.backup_dir, what));
    }
    for slice in metadata {
        let folder = format!("slices/{slice:02}");
        copy.add_payloads(
            (slice, description.format_version),
            &held.backup_dir.join(&folder),
            &held.data_dir.join(&folder),
        )?;
    }
    copy.finish_pack()?;
    let Copy { backups, mut contents, mut copied, .. } = copy;
    contents.header.packs = backups.packs_of(&contents);
    contents.header.payloads = contents.payloads.len() as u64;
    let hash = backups.write_contents(&name, &contents)?;
    copied.payloads = contents.header.payloads;
    let figures = [
        ("files", contents.header.files.len() as u64),
        ("payloads", copied.payloads),
        ("bytes", copied.bytes),
        ("new_bytes", copied.new_bytes),
        ("damaged", copied.damaged_count),
    ];
    copied.manifest = manifest(&name, &description.held_at, description.format_version, hash, &figures);
    Ok(copied)
}

/// Returns the number of the slice whose metadata a path is.
fn slice_of(path: &str) -> Option<u16> {
    path.strip_prefix("slices/")?.strip_suffix("/meta/data.mdb")?.parse().ok()
}

/// Returns about how many bytes are to be looked at.
fn expected_bytes(held: &HeldFolders, description: &HoldFile) -> Result<u64, BackupError> {
    let mut bytes = description.files.iter().map(|file| file.bytes).sum();
    for slice in description.files.iter().filter_map(|file| slice_of(&file.path)) {
        for (_, length) in volumes_in(&held.data_dir.join(format!("slices/{slice:02}")))? {
            bytes += length;
        }
    }
    Ok(bytes)
}

/// A copy in progress.
struct Copy<'c, 'p> {
    backups: &'c mut BackupFolder,
    pack: Option<PackWriter>,
    /// The blobs of the pack.
    in_pack: HashSet<BlobId>,
    contents: Contents,
    copied: Copied,
    expected: u64,
    progress: &'c mut Progress<'p>,
}

impl Copy<'_, '_> {
    /// Adds the first `most` bytes of a file as pages.
    fn add_file(&mut self, path: &str, source: &Path, most: u64) -> Result<(), BackupError> {
        let file = File::open(source).doing("opening", source)?;
        let length = file.metadata().doing("examining", source)?.len();
        let mut from = file.take(most);
        let mut piece = Vec::with_capacity(PIECE_BYTES);
        let mut pages = 0;
        loop {
            piece.clear();
            let count = (&mut from).take(PIECE_BYTES as u64).read_to_end(&mut piece);
            if count.doing("reading", source)? == 0 {
                break;
            }
            for page in piece.chunks(PAGE_BYTES) {
                self.add_page(page)?;
                pages += 1;
            }
            self.advance(piece.len() as u64)?;
        }
        self.contents.header.files.push(StoredFile { path: path.to_owned(), bytes: length, pages });
        Ok(())
    }

    fn add_page(&mut self, page: &[u8]) -> Result<(), BackupError> {
        let hash = Sha256::digest(page);
        let id: BlobId = *hash.first_chunk().expect("a SHA-256 has 32 bytes");
        self.contents.pages.push(id);
        if self.is_known(&id) {
            return Ok(());
        }
        self.add_blob(id, |pack| Ok((pack.add(id, |take| take(page))?, true)))
    }

    /// Returns whether an earlier backup has a blob, or this one.
    fn is_known(&self, id: &BlobId) -> bool {
        self.backups.blobs.contains_key(id) || self.in_pack.contains(id)
    }

    /// Adds a blob to the pack. `add` returns its length, and whether it is what it should be.
    fn add_blob(
        &mut self,
        id: BlobId,
        add: impl FnOnce(&mut PackWriter) -> Result<(u64, bool), BackupError>,
    ) -> Result<(), BackupError> {
        let pack = match self.pack.take() {
            Some(pack) => self.pack.insert(pack),
            None => {
                let (folder, number) = (self.backups.packs_folder(), self.backups.next_pack());
                self.pack.insert(PackWriter::create(&folder, number)?)
            }
        };
        let (bytes, is_whole) = add(pack)?;
        self.copied.new_bytes += bytes;
        if is_whole {
            self.in_pack.insert(id);
        } else {
            // Missing in this backup. The next one tries again.
            pack.disown_last();
        }
        if pack.bytes >= PACK_BYTES {
            self.finish_pack()?;
        }
        Ok(())
    }

    fn finish_pack(&mut self) -> Result<(), BackupError> {
        if let Some(pack) = self.pack.take() {
            self.backups.add_pack(pack.finish()?);
            self.in_pack.clear();
        }
        Ok(())
    }

    /// Notes that so many bytes were looked at.
    fn advance(&mut self, bytes: u64) -> Result<(), BackupError> {
        self.copied.bytes += bytes;
        self.expected = self.expected.max(self.copied.bytes);
        if (self.progress)(self.copied.bytes, self.expected) {
            Ok(())
        } else {
            Err(BackupError("the backup was interrupted".to_owned()))
        }
    }

    /// Adds the volumes of a slice: their headers, and the payloads that the copied metadata name.
    fn add_payloads(
        &mut self,
        (slice, format_version): (u16, u32),
        metadata: &Path,
        data: &Path,
    ) -> Result<(), BackupError> {
        for (number, _) in volumes_in(data)? {
            let path = format!("slices/{slice:02}/volumes/{number:06}.vol");
            let source = data.join("volumes").join(format!("{number:06}.vol"));
            self.add_file(&path, &source, PAGE_BYTES as u64)?;
        }
        let failed = |error: &dyn std::fmt::Display| BackupError::damaged(metadata, error);
        let (environment, tables) =
            open_environment(metadata, (None, &FlushFailures::default()), format_version)
                .map_err(|error| failed(&error))?;
        let done = self.add_payloads_of(slice, &environment, &tables, data);
        environment.close();
        done
    }

    fn add_payloads_of(
        &mut self,
        slice: u16,
        environment: &Environment,
        tables: &Tables,
        data: &Path,
    ) -> Result<(), BackupError> {
        let read = environment.read().map_err(|error| BackupError(error.to_string()))?;
        let mut volumes = Volumes::new(data.to_owned());
        for (table, payload_of) in
            [(tables.objects, payload_of_object as PayloadOf), (tables.parts, payload_of_part)]
        {
            self.add_payloads_in(slice, &read, table, payload_of, &mut volumes)?;
        }
        Ok(())
    }

    fn add_payloads_in(
        &mut self,
        slice: u16,
        read: &ReadTxn<'_>,
        table: Table,
        payload_of: PayloadOf,
        volumes: &mut Volumes,
    ) -> Result<(), BackupError> {
        let failed = |error: cairn_lmdb::Error| BackupError(error.to_string());
        for entry in read.entries(table, None).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let decoded = entry.record.map_err(|error| error.to_string());
            let decoded = decoded.and_then(|record| {
                payload_of(entry.key, record.version, record.body).map_err(|error| error.to_string())
            });
            match decoded {
                Ok(Some((payload, size))) => self.add_payload(slice, entry.key, &payload, size, volumes)?,
                Ok(None) => {}
                Err(what) => self.note_damage(slice, entry.key, &what),
            }
        }
        Ok(())
    }

    fn add_payload(
        &mut self,
        slice: u16,
        key: &[u8],
        payload: &Payload,
        size: u64,
        volumes: &mut Volumes,
    ) -> Result<(), BackupError> {
        let Some(volume) = payload.volume() else { return Ok(()) };
        let stored = StoredPayload { id: volume.id.0, slice, extents: volume.owned().collect() };
        let bytes = stored.bytes();
        self.contents.payloads.push(stored);
        if !self.is_known(&volume.id.0) {
            let mut is_whole = true;
            self.add_blob(volume.id.0, |pack| {
                let bytes = pack.add(volume.id.0, |take| {
                    is_whole = volumes.read_payload(payload, volume, size, take)?;
                    Ok(())
                })?;
                Ok((bytes, is_whole))
            })?;
            if !is_whole {
                self.note_damage(slice, key, "a block is not what was written");
            }
        }
        self.advance(bytes)
    }

    /// Notes that something is damaged in the store. The backup goes on: the rest is worth all the more.
    fn note_damage(&mut self, slice: u16, key: &[u8], what: &str) {
        self.copied.damaged_count += 1;
        if self.copied.damaged.len() < DAMAGED_NAMED_MAX {
            let named = keys::decode(key).map(|(_, key, _)| key);
            let named =
                named.or_else(|| keys::decode_upload(keys::decode_part(key)?.0).map(|(_, key, _)| key));
            let named = named.map_or_else(
                || "a record with an unknown key".to_owned(),
                |key| format!("key {:?}", String::from_utf8_lossy(&key)),
            );
            self.copied.damaged.push(format!("slice {slice}, {named}: {what}"));
        }
    }
}

/// Returns the payload of a record with its size, if it has one of its own.
type PayloadOf = fn(&[u8], u8, &[u8]) -> Result<Option<(Payload, u64)>, crate::error::EngineError>;

fn payload_of_object(
    _: &[u8],
    version: u8,
    body: &[u8],
) -> Result<Option<(Payload, u64)>, crate::error::EngineError> {
    let record = ObjectRecord::decode(version, body)?;
    Ok(match record.content {
        Content::Payload(payload) => Some((payload, record.info.size)),
        Content::Parts { .. } | Content::DeleteMarker => None,
    })
}

fn payload_of_part(
    key: &[u8],
    version: u8,
    body: &[u8],
) -> Result<Option<(Payload, u64)>, crate::error::EngineError> {
    let number = keys::decode_part(key).map_or(0, |(_, number)| number);
    let record = PartRecord::decode(version, body, number)?;
    Ok(Some((record.payload, record.info.size)))
}
