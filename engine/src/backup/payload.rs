//! Reads payloads of a held store, and checks their blocks.

use crate::backup::error::{BackupError, Context as _};
use crate::backup::limits::PIECE_BYTES;
use crate::device::volume::volume_path;
use crate::format::block::{BlockCheck, CheckKind, Checks, block_check, read_table_page};
use crate::format::codec::{BlockChecks, Payload, VolumePayload};
use crate::format::extent::{Extent, blocks_for};
use crate::limits::{BLOCK_BYTES, UNIT_BYTES};
use cairn_model::usize_of;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// The volumes of one slice.
pub(super) struct Volumes {
    slice_folder: PathBuf,
    open: HashMap<u32, File>,
    buffer: Vec<u8>,
}

impl Volumes {
    pub(super) fn new(slice_folder: PathBuf) -> Self {
        Self { slice_folder, open: HashMap::new(), buffer: vec![0; PIECE_BYTES] }
    }

    fn file(&mut self, number: u32) -> Result<(&File, PathBuf), BackupError> {
        let path = volume_path(&self.slice_folder, number);
        let file = match self.open.entry(number) {
            Entry::Occupied(open) => open.into_mut(),
            Entry::Vacant(place) => place.insert(File::open(&path).doing("opening", &path)?),
        };
        Ok((file, path))
    }

    /// Hands over the bytes of extents in pieces. All pieces of an extent but the last hold whole blocks.
    fn read(
        &mut self,
        extents: &[Extent],
        take: &mut dyn FnMut(&[u8]) -> Result<(), BackupError>,
    ) -> Result<(), BackupError> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut read = || {
            for extent in extents {
                let (file, path) = self.file(extent.volume)?;
                let end = extent.offset() + extent.bytes();
                let mut at = extent.offset();
                while at < end {
                    let count = usize_of(end - at).min(buffer.len());
                    file.read_exact_at(&mut buffer[..count], at).doing("reading", &path)?;
                    take(&buffer[..count])?;
                    at += count as u64;
                }
                // The copy is read once. What clients read stays in the page cache of the service's own reads, which are direct.
                let length = std::num::NonZeroU64::new(extent.bytes());
                let _ = rustix::fs::fadvise(file, extent.offset(), length, rustix::fs::Advice::DontNeed);
            }
            Ok(())
        };
        let done = read();
        self.buffer = buffer;
        done
    }

    /// Hands over all bytes that a payload owns, and checks the blocks of one that is not sealed. Returns whether they are what
    /// was written; `true` for a sealed one, which cannot be checked without the master key.
    pub(super) fn read_payload(
        &mut self,
        payload: &Payload,
        volume: &VolumePayload,
        size: u64,
        take: &mut dyn FnMut(&[u8]) -> Result<(), BackupError>,
    ) -> Result<bool, BackupError> {
        if payload.sealed.is_some() {
            self.read(&volume.owned().collect::<Vec<_>>(), take)?;
            return Ok(true);
        }
        let mut table = Vec::new();
        let checks = match &volume.checks {
            BlockChecks::List(checks) => Some(checks.clone()),
            BlockChecks::Table(extents) => {
                self.read(extents, &mut |piece| {
                    table.extend_from_slice(piece);
                    Ok(())
                })?;
                checks_of_table(volume, size, &table)
            }
        };
        let mut check = BlockChecker { checks, number: 0, left: size, is_whole: true };
        self.read(&volume.extents, &mut |piece| {
            check.blocks(piece);
            take(piece)
        })?;
        if !table.is_empty() {
            take(&table)?;
        }
        Ok(check.is_whole && check.left == 0)
    }
}

/// Returns the checks in a table. `None` if a page of it is not what was written.
fn checks_of_table(volume: &VolumePayload, size: u64, table: &[u8]) -> Option<Checks> {
    let pages = CheckKind::Crc64.table_pages(blocks_for(size));
    let mut checks = Checks::new(CheckKind::Crc64);
    for (number, page) in (0..pages).zip(table.chunks_exact(usize_of(UNIT_BYTES))) {
        checks.append(&read_table_page(volume.id, number, page, CheckKind::Crc64)?);
    }
    Some(checks)
}

/// Checks the blocks of a payload in order.
struct BlockChecker {
    checks: Option<Checks>,
    number: u64,
    /// Bytes of the payload that are still to come.
    left: u64,
    is_whole: bool,
}

impl BlockChecker {
    fn blocks(&mut self, piece: &[u8]) {
        for block in piece.chunks(BLOCK_BYTES) {
            let length = block.len().min(usize_of(self.left));
            let check = self.checks.as_ref().and_then(|checks| checks.get(usize_of(self.number)));
            let found = block_check(&block[..length]);
            self.is_whole &= matches!(check, Some(BlockCheck::Crc64(written)) if written == found);
            self.number += 1;
            self.left -= length as u64;
        }
    }
}

/// Returns the numbers and lengths of the volumes of a slice.
pub(super) fn volumes_in(slice_folder: &Path) -> Result<Vec<(u32, u64)>, BackupError> {
    let folder = slice_folder.join("volumes");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&folder).doing("reading", &folder)? {
        let path = entry.doing("reading", &folder)?.path();
        if path.extension().is_some_and(|extension| extension == "vol")
            && let Some(number) = path.file_stem().and_then(|stem| stem.to_str()?.parse().ok())
        {
            found.push((number, std::fs::metadata(&path).doing("examining", &path)?.len()));
        }
    }
    found.sort_unstable();
    Ok(found)
}
