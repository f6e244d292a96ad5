//! Reads the payloads of a damaged store, and checks every block.

use super::target::ContentError;
use crate::device::volume::volume_path;
use crate::format::block::{BlockCheck, CheckKind, Checks, accept, locate, read_table_page};
use crate::format::codec::{BlockChecks, Payload, PayloadForm, VolumePayload};
use crate::format::extent::Extent;
use crate::format::seal::{KeyOwner, PayloadKey, WrappingKey};
use crate::limits::{BLOCK_BYTES, BLOCK_UNITS, UNIT_BYTES};
use cairn_model::{u64_of, usize_of};
use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// The volumes of a slice. Each is opened once, and only read.
pub(super) struct Volumes {
    folder: PathBuf,
    open: HashMap<u32, Option<File>>,
}

impl Volumes {
    pub(super) fn of(slice: &Path) -> Self {
        Self { folder: slice.to_owned(), open: HashMap::new() }
    }

    /// Reads bytes from unit `unit` of the extents on.
    fn read(&mut self, extents: &[Extent], unit: u64, bytes: usize) -> Result<Vec<u8>, String> {
        let (volume, offset) = locate(extents, unit).ok_or("its extents are too short")?;
        let path = volume_path(&self.folder, volume);
        let file = self.open.entry(volume).or_insert_with(|| File::open(&path).ok());
        let file = file.as_ref().ok_or_else(|| format!("volume {volume} is missing"))?;
        let mut read = vec![0; bytes];
        let failed = |error| format!("volume {volume} cannot be read at byte {offset}: {error}");
        file.read_exact_at(&mut read, offset).map_err(failed)?;
        Ok(read)
    }
}

/// A payload, and what is needed to open it.
pub(super) struct StoredContent<'c> {
    pub(super) payload: &'c Payload,
    pub(super) size: u64,
    pub(super) owner: KeyOwner<'c>,
    /// The keys that may have wrapped its data key. Empty without a master key.
    pub(super) wrapping: &'c [WrappingKey],
    /// Bytes of an inline payload, if they could be read.
    pub(super) inline: Option<Vec<u8>>,
}

impl StoredContent<'_> {
    /// Writes the payload.
    pub(super) fn write(self, volumes: &mut Volumes, out: &mut dyn Write) -> Result<(), ContentError> {
        let key = self.key().map_err(ContentError::Damaged)?;
        let (key, size) = (key.as_ref(), self.size);
        match &self.payload.form {
            PayloadForm::Inline { check } => {
                let bytes = self.inline.ok_or("it cannot be read".to_owned());
                let bytes = bytes.and_then(|bytes| checked(key, 0, bytes, *check));
                out.write_all(&bytes.map_err(ContentError::Damaged)?).map_err(ContentError::Target)
            }
            PayloadForm::Volume(payload) => write_blocks(payload, size, key, volumes, out),
        }
    }

    fn key(&self) -> Result<Option<PayloadKey>, String> {
        let Some(wrapped) = &self.payload.sealed else { return Ok(None) };
        if self.wrapping.is_empty() {
            return Err("it is encrypted, and the master key or the id of the store is unknown".to_owned());
        }
        let key = self.wrapping.iter().find_map(|wrapping| wrapping.unwrap(wrapped, self.owner));
        key.map(Some).ok_or_else(|| "it is encrypted with another master key".to_owned())
    }
}

fn checked(
    key: Option<&PayloadKey>,
    number: u64,
    mut block: Vec<u8>,
    check: BlockCheck,
) -> Result<Vec<u8>, String> {
    if accept(key, number, &mut block, check) { Ok(block) } else { Err(format!("block {number} is damaged")) }
}

fn write_blocks(
    payload: &VolumePayload,
    size: u64,
    key: Option<&PayloadKey>,
    volumes: &mut Volumes,
    out: &mut dyn Write,
) -> Result<(), ContentError> {
    let kind = CheckKind::of(key.is_some());
    let mut table: Option<(u64, Checks)> = None;
    for number in 0..size.div_ceil(u64_of(BLOCK_BYTES)) {
        let start = number * u64_of(BLOCK_BYTES);
        let bytes = usize_of((size - start).min(u64_of(BLOCK_BYTES)));
        let block = check_of(payload, number, kind, &mut table, volumes).and_then(|check| {
            let block = volumes.read(&payload.extents, number * BLOCK_UNITS, bytes)?;
            checked(key, number, block, check)
        });
        out.write_all(&block.map_err(ContentError::Damaged)?).map_err(ContentError::Target)?;
    }
    Ok(())
}

/// Returns the check of a block, from the record or from its page of the check table, which is kept in `table`.
fn check_of(
    payload: &VolumePayload,
    number: u64,
    kind: CheckKind,
    table: &mut Option<(u64, Checks)>,
    volumes: &mut Volumes,
) -> Result<BlockCheck, String> {
    let missing = || format!("the check of block {number} is missing");
    let extents = match &payload.checks {
        BlockChecks::List(checks) => return checks.get(usize_of(number)).ok_or_else(missing),
        BlockChecks::Table(extents) => extents,
    };
    let per_page = u64_of(kind.per_page());
    let page = number / per_page;
    if table.as_ref().is_none_or(|(known, _)| *known != page) {
        let bytes = volumes.read(extents, page, usize_of(UNIT_BYTES))?;
        let checks = read_table_page(payload.id, page, &bytes, kind);
        *table = Some((page, checks.ok_or_else(|| format!("page {page} of the check table is damaged"))?));
    }
    let checks = table.as_ref().and_then(|(_, checks)| checks.get(usize_of(number % per_page)));
    checks.ok_or_else(missing)
}
