//! A pack of blobs, and the index that names them.
//!
//! ```text
//! index: 8 "CAIRNIX1", then for each blob, in the order of the pack:
//!        16 id, u64 offset, u64 length (little-endian), 32 SHA-256 of the blob;
//!        then the SHA-256 of everything before
//! damage: 16 id of each blob whose bytes are not those of its hash
//! ```
//!
//! The list of damage is a note of the last verification, and nothing depends on it: what it has too little is found when it is
//! read, and what it has too much is copied once more.

use crate::backup::error::{BackupError, Context as _};
use crate::backup::limits::PIECE_BYTES;
use cairn_lmdb::write_back;
use cairn_model::usize_of;
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 8] = b"CAIRNIX1";
const ENTRY_BYTES: usize = 64;
const HASH_BYTES: usize = 32;
/// Bytes that are collected before they are written.
const BUFFER_BYTES: usize = 1 << 20;

/// Name of a blob: that of a page, or of a payload.
pub(super) type BlobId = [u8; 16];
/// Pack of each blob, and its place in the index.
pub(super) type Places = HashMap<BlobId, (u32, u32)>;
/// A SHA-256.
pub(super) type Hash = [u8; HASH_BYTES];

/// A blob of a pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Blob {
    pub(super) id: BlobId,
    pub(super) offset: u64,
    pub(super) length: u64,
    pub(super) hash: Hash,
}

impl Blob {
    /// Hands over the bytes in pieces. Returns whether they are what was written, which is known only at the end.
    pub(super) fn read(
        &self,
        pack: &File,
        take: &mut dyn FnMut(&[u8]) -> Result<(), BackupError>,
    ) -> Result<bool, BackupError> {
        let mut found = Sha256::new();
        let mut piece = vec![0; usize_of(self.length).min(PIECE_BYTES)];
        let mut at = 0;
        while at < self.length {
            let count = usize_of(self.length - at).min(piece.len());
            match pack.read_exact_at(&mut piece[..count], self.offset.saturating_add(at)) {
                Err(error) if is_damage(&error) => return Ok(false),
                read => read.doing("reading", Path::new("a pack"))?,
            }
            found.update(&piece[..count]);
            take(&piece[..count])?;
            at += count as u64;
        }
        Ok(Hash::from(found.finalize()) == self.hash)
    }
}

/// Returns whether an error of a read says that bytes are lost: the file is too short, or the device cannot read them.
fn is_damage(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::UnexpectedEof
        || error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error())
}

/// A pack that is being written.
pub(super) struct PackWriter {
    folder: PathBuf,
    path: PathBuf,
    number: u32,
    file: BufWriter<SteadyFile>,
    pub(super) bytes: u64,
    blobs: Vec<Blob>,
}

/// A file that is written back as it grows. The service may share its device, and must not wait for the flush of a whole pack.
struct SteadyFile {
    file: File,
    written: u64,
}

impl io::Write for SteadyFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        let begin = self.written;
        self.written += count as u64;
        if count > 0 {
            write_back(&self.file, begin..self.written)?;
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A finished pack.
pub(super) struct Finished {
    pub(super) number: u32,
    pub(super) blobs: Vec<Blob>,
    /// SHA-256 at the end of the index.
    pub(super) index_hash: Hash,
}

/// Returns the path of a pack.
pub(super) fn pack_path(folder: &Path, number: u32) -> PathBuf {
    folder.join(format!("{number:06}.pack"))
}

/// Returns the path of the index of a pack.
pub(super) fn index_path(folder: &Path, number: u32) -> PathBuf {
    folder.join(format!("{number:06}.index"))
}

/// Returns the path of the list of damage of a pack.
pub(super) fn damage_path(folder: &Path, number: u32) -> PathBuf {
    folder.join(format!("{number:06}.damaged"))
}

/// Opens a pack. `None` if it is missing.
pub(super) fn open_pack(folder: &Path, number: u32) -> Result<Option<File>, BackupError> {
    let path = pack_path(folder, number);
    match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some).doing("opening", &path),
    }
}

impl PackWriter {
    /// Creates a pack in the folder of packs.
    pub(super) fn create(folder: &Path, number: u32) -> Result<Self, BackupError> {
        let path = pack_path(folder, number);
        let file = File::create(&path).doing("creating", &path)?;
        let file = BufWriter::with_capacity(BUFFER_BYTES, SteadyFile { file, written: 0 });
        Ok(Self { folder: folder.to_owned(), path, number, file, bytes: 0, blobs: Vec::new() })
    }

    /// Adds a blob, whose bytes `write` hands over in pieces. If `write` fails, the pack is of no use.
    pub(super) fn add(
        &mut self,
        id: BlobId,
        write: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<(), BackupError>) -> Result<(), BackupError>,
    ) -> Result<u64, BackupError> {
        let (mut hash, mut length) = (Sha256::new(), 0);
        write(&mut |piece| {
            hash.update(piece);
            length += piece.len() as u64;
            self.file.write_all(piece).doing("writing", &self.path)
        })?;
        self.blobs.push(Blob { id, offset: self.bytes, length, hash: hash.finalize().into() });
        self.bytes += length;
        Ok(length)
    }

    /// Leaves the last blob out of the index: its bytes are not what they should be.
    pub(super) fn disown_last(&mut self) {
        self.blobs.pop();
    }

    /// Makes the pack durable, then writes its index.
    pub(super) fn finish(mut self) -> Result<Finished, BackupError> {
        self.file.flush().and_then(|()| self.file.get_ref().file.sync_all()).doing("flushing", &self.path)?;
        let mut index = MAGIC.to_vec();
        for blob in &self.blobs {
            index.extend_from_slice(&blob.id);
            index.extend_from_slice(&blob.offset.to_le_bytes());
            index.extend_from_slice(&blob.length.to_le_bytes());
            index.extend_from_slice(&blob.hash);
        }
        let index_hash: Hash = Sha256::digest(&index).into();
        index.extend_from_slice(&index_hash);
        write_durably(&index_path(&self.folder, self.number), &index)?;
        Ok(Finished { number: self.number, blobs: self.blobs, index_hash })
    }
}

/// Reads the index of a pack. Returns its blobs and its hash.
pub(super) fn read_index(folder: &Path, number: u32) -> Result<(Vec<Blob>, Hash), BackupError> {
    let path = index_path(folder, number);
    let bytes = std::fs::read(&path).doing("reading", &path)?;
    let damaged = || BackupError::damaged(&path, "the index of this pack is damaged");
    let (entries, hash) = bytes.split_last_chunk::<HASH_BYTES>().ok_or_else(damaged)?;
    let listed = entries.strip_prefix(MAGIC).ok_or_else(damaged)?;
    if Hash::from(Sha256::digest(entries)) != *hash || !listed.len().is_multiple_of(ENTRY_BYTES) {
        return Err(damaged());
    }
    let blobs = listed.as_chunks::<ENTRY_BYTES>().0.iter().map(|entry| {
        let number = |at: usize| entry[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let mut blob = Blob { id: [0; 16], offset: number(16), length: number(24), hash: [0; HASH_BYTES] };
        blob.id.copy_from_slice(&entry[..16]);
        blob.hash.copy_from_slice(&entry[32..]);
        blob
    });
    Ok((blobs.collect(), *hash))
}

/// Reads which blobs of a pack are known to be damaged.
pub(super) fn read_damage(folder: &Path, number: u32) -> Result<Vec<BlobId>, BackupError> {
    let path = damage_path(folder, number);
    match std::fs::read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        read => Ok(read.doing("reading", &path)?.as_chunks().0.to_vec()),
    }
}

/// Notes which blobs of a pack are damaged.
pub(super) fn write_damage(folder: &Path, number: u32, damaged: &[BlobId]) -> Result<(), BackupError> {
    let path = damage_path(folder, number);
    if damaged.is_empty() { remove_if_present(&path) } else { write_durably(&path, damaged.as_flattened()) }
}

/// Removes a file, if it is there.
pub(super) fn remove_if_present(path: &Path) -> Result<(), BackupError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.doing("removing", path),
    }
}

/// Writes a small file under another name, flushes it and gives it its name. Flushes the folder.
pub(super) fn write_durably(path: &Path, bytes: &[u8]) -> Result<(), BackupError> {
    let unfinished = unfinished(path);
    let write = || -> io::Result<()> {
        let mut file = File::create(&unfinished)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&unfinished, path)?;
        sync_parent(path)
    };
    write().doing("writing", path)
}

/// Returns the name of a file while it is written.
pub(super) fn unfinished(path: &Path) -> PathBuf {
    path.with_extension("new")
}

/// Flushes the folder of a file.
pub(super) fn sync_parent(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}
