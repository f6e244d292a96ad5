//! A pack of blobs, and the index that names them.
//!
//! ```text
//! index: 8 "CAIRNIX1", then for each blob, in the order of the pack:
//!        16 id, u64 offset, u64 length (little-endian), 32 SHA-256 of the blob;
//!        then the SHA-256 of everything before
//! ```

use crate::backup::error::{BackupError, Context as _};
use cairn_lmdb::write_back;
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 8] = b"CAIRNIX1";
const ENTRY_BYTES: usize = 64;
const HASH_BYTES: usize = 32;
/// Bytes that are collected before they are written.
const BUFFER_BYTES: usize = 1 << 20;

/// Name of a blob: that of a page, or of a payload.
pub(super) type BlobId = [u8; 16];
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
