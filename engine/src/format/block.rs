//! Block checks: verify that a 64 KiB block is the one that was written.
//!
//! The check of a plain block is its CRC-64/NVME (8 bytes). The check of a sealed block is its GCM tag (16 bytes, `seal.rs`).
//! Up to 2 KiB of checks are stored in the payload's record. More are stored in table pages of one unit (4096 bytes) in extents
//! of their own:
//! ```text
//! offset  size   what
//! 0       4088   as many checks as fit: 511 CRCs (u64, little-endian), or 255 tags and 8 bytes of zeros. Page p begins with
//!                the check of block 511·p, or 255·p. Unused bytes are zero
//! 4088    8      CRC-64/NVME over payload id, page number p (u64, little-endian) and the first 4088 bytes
//! ```
//! The check of a page includes its payload and its number. So a page that was lost, torn or left over from another payload is
//! detected, and a ranged read of a huge object reads one page instead of the whole table.

use crate::format::extent::Extent;
use crate::format::payload_id::PayloadId;
use crate::format::seal::{PayloadKey, TAG_BYTES, Tag};
use crate::limits::{BLOCK_BYTES, UNIT_BYTES};
use cairn_model::u64_of;
use crc_fast::{CrcAlgorithm, Digest};
use std::io;

const PAGE_BYTES: usize = 4096;
const PAGE_BODY_BYTES: usize = PAGE_BYTES - CRC_BYTES;
const CRC_BYTES: usize = 8;
const _: () = assert!(PAGE_BYTES as u64 == UNIT_BYTES);

/// Returns the CRC-64/NVME of `bytes`.
#[must_use]
pub fn block_check(bytes: &[u8]) -> u64 {
    crc_fast::checksum(CrcAlgorithm::Crc64Nvme, bytes)
}

/// The check of one block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BlockCheck {
    /// CRC-64/NVME of a plain block.
    Crc64(u64),
    /// GCM tag of a sealed block.
    Tag(Tag),
}

impl BlockCheck {
    pub(crate) const fn kind(self) -> CheckKind {
        match self {
            Self::Crc64(_) => CheckKind::Crc64,
            Self::Tag(_) => CheckKind::Tag,
        }
    }
}

/// The kind of a payload's checks, which is the same for all of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CheckKind {
    /// See [`BlockCheck::Crc64`].
    Crc64,
    /// See [`BlockCheck::Tag`].
    Tag,
}

impl CheckKind {
    /// Returns the kind of the checks of a sealed or plain payload.
    pub(crate) const fn of(sealed: bool) -> Self {
        if sealed { Self::Tag } else { Self::Crc64 }
    }

    /// Returns the bytes of one check.
    pub(crate) const fn bytes(self) -> usize {
        match self {
            Self::Crc64 => CRC_BYTES,
            Self::Tag => TAG_BYTES,
        }
    }

    /// Returns the number of checks in a table page.
    pub(crate) const fn per_page(self) -> usize {
        PAGE_BODY_BYTES / self.bytes()
    }

    /// Returns the number of table pages for the checks of `blocks` blocks.
    pub(crate) const fn table_pages(self, blocks: u64) -> u64 {
        blocks.div_ceil(u64_of(self.per_page()))
    }
}

/// The checks of consecutive blocks, encoded as in records and tables.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Checks {
    kind: CheckKind,
    packed: Vec<u8>,
}

impl Checks {
    pub(crate) const fn new(kind: CheckKind) -> Self {
        Self { kind, packed: Vec::new() }
    }

    /// Returns checks from their encoded form.
    ///
    /// # Panics
    /// If the length is not a multiple of the length of one check.
    pub(crate) fn from_packed(kind: CheckKind, packed: &[u8]) -> Self {
        assert!(packed.len().is_multiple_of(kind.bytes()), "encoded checks are whole");
        Self { kind, packed: packed.to_vec() }
    }

    pub(crate) const fn kind(&self) -> CheckKind {
        self.kind
    }

    /// Returns the encoded form.
    pub(crate) fn packed(&self) -> &[u8] {
        &self.packed
    }

    pub(crate) fn len(&self) -> usize {
        self.packed.len() / self.kind.bytes()
    }

    pub(crate) fn get(&self, number: usize) -> Option<BlockCheck> {
        let start = number.checked_mul(self.kind.bytes())?;
        let packed = self.packed.get(start..)?;
        match self.kind {
            CheckKind::Crc64 => {
                packed.first_chunk().map(|bytes| BlockCheck::Crc64(u64::from_le_bytes(*bytes)))
            }
            CheckKind::Tag => packed.first_chunk().map(|tag| BlockCheck::Tag(*tag)),
        }
    }

    /// Returns the checks of `range`. `None` if some of them are missing.
    pub(crate) fn range(&self, range: std::ops::Range<usize>) -> Option<Self> {
        let width = self.kind.bytes();
        let packed = self.packed.get(range.start.checked_mul(width)?..range.end.checked_mul(width)?)?;
        Some(Self::from_packed(self.kind, packed))
    }

    pub(crate) fn append(&mut self, other: &Self) {
        assert_eq!(self.kind, other.kind, "all checks of a payload are of one kind");
        self.packed.extend_from_slice(&other.packed);
    }

    fn push(&mut self, check: BlockCheck) {
        assert_eq!(self.kind, check.kind(), "all checks of a payload are of one kind");
        match check {
            BlockCheck::Crc64(check) => self.packed.extend_from_slice(&check.to_le_bytes()),
            BlockCheck::Tag(tag) => self.packed.extend_from_slice(&tag),
        }
    }
}

/// Computes the checks of the blocks in `payload`, beginning with block number `first`. With a key, seals the blocks in place.
///
/// # Errors
/// As [`PayloadKey::seal`].
pub(crate) fn protect(key: Option<&PayloadKey>, first: u64, payload: &mut [u8]) -> io::Result<Checks> {
    let mut checks = Checks::new(CheckKind::of(key.is_some()));
    for (number, block) in (first..).zip(payload.chunks_mut(BLOCK_BYTES)) {
        checks.push(protect_block(key, number, block)?);
    }
    Ok(checks)
}

/// Does the same as [`protect`] for one block, which may be empty.
///
/// # Errors
/// As [`PayloadKey::seal`].
pub(crate) fn protect_block(
    key: Option<&PayloadKey>,
    number: u64,
    block: &mut [u8],
) -> io::Result<BlockCheck> {
    match key {
        Some(key) => key.seal(number, block).map(BlockCheck::Tag),
        None => Ok(BlockCheck::Crc64(block_check(block))),
    }
}

/// Returns whether `block` is block `number` as it was written. Decrypts a sealed block in place.
///
/// If this returns `false`, nothing of the block may be used.
#[must_use]
pub(crate) fn accept(key: Option<&PayloadKey>, number: u64, block: &mut [u8], check: BlockCheck) -> bool {
    match (key, check) {
        (Some(key), BlockCheck::Tag(tag)) => key.open(number, block, &tag),
        (None, BlockCheck::Crc64(check)) => block_check(block) == check,
        _ => false,
    }
}

fn page_check(id: PayloadId, page: u64, checks: &[u8]) -> u64 {
    let mut digest = Digest::new(CrcAlgorithm::Crc64Nvme);
    digest.update(&id.0);
    digest.update(&page.to_le_bytes());
    digest.update(checks);
    digest.finalize()
}

/// Fills `out` with the check table of `checks`.
///
/// # Panics
/// If `out` does not have exactly the length of the table.
pub(crate) fn write_table(id: PayloadId, checks: &Checks, out: &mut [u8]) {
    let pages = checks.kind.table_pages(u64_of(checks.len()));
    assert_eq!(u64_of(out.len()), pages * UNIT_BYTES, "the table has the pages that its checks need");
    out.fill(0);
    let in_page = checks.kind.per_page() * checks.kind.bytes();
    for ((number, page), checks) in
        (0u64..).zip(out.chunks_exact_mut(PAGE_BYTES)).zip(checks.packed.chunks(in_page))
    {
        let (body, tail) = page.split_at_mut(PAGE_BODY_BYTES);
        body[..checks.len()].copy_from_slice(checks);
        tail.copy_from_slice(&page_check(id, number, body).to_le_bytes());
    }
}

/// Returns the checks in table page `number`. `None` if the page is not what was written.
pub(crate) fn read_table_page(id: PayloadId, number: u64, page: &[u8], kind: CheckKind) -> Option<Checks> {
    let (body, tail) = page.split_last_chunk::<CRC_BYTES>()?;
    if body.len() != PAGE_BODY_BYTES || u64::from_le_bytes(*tail) != page_check(id, number, body) {
        return None;
    }
    Some(Checks::from_packed(kind, body.get(..kind.per_page() * kind.bytes())?))
}

/// Returns volume and byte offset of unit number `unit` of the data in `extents`. `None` if it is beyond their end.
pub(crate) fn locate(extents: &[Extent], unit: u64) -> Option<(u32, u64)> {
    let mut before = 0u64;
    for extent in extents {
        let units = u64::from(extent.units);
        if unit < before + units {
            return Some((extent.volume, extent.offset() + (unit - before) * UNIT_BYTES));
        }
        before += units;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{BlockCheck, CheckKind, Checks, accept, locate, protect, read_table_page, write_table};
    use crate::format::extent::Extent;
    use crate::format::payload_id::PayloadId;

    #[test]
    fn page_of_another_payload_or_number_is_refused() {
        let mut checks = Checks::new(CheckKind::Crc64);
        (0..1000u64).for_each(|n| checks.push(BlockCheck::Crc64(n * 77)));
        assert_eq!(CheckKind::Crc64.table_pages(1000), 2);
        let mut table = vec![0u8; 8192];
        write_table(PayloadId([1; 16]), &checks, &mut table);
        let (first, second) = table.split_at(4096);
        let read =
            |id, number, page: &[u8]| read_table_page(PayloadId([id; 16]), number, page, CheckKind::Crc64);
        assert_eq!(read(1, 0, first), checks.range(0..511));
        let last = read(1, 1, second).expect("whole");
        assert_eq!(last.range(0..489), checks.range(511..1000));
        assert_eq!(last.get(488), Some(BlockCheck::Crc64(999 * 77)));
        assert!(read(1, 1, first).is_none());
        assert!(read(2, 0, first).is_none());
        for bit in (0..4096 * 8).step_by(97) {
            let mut bad = first.to_vec();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(read(1, 0, &bad).is_none());
        }
    }

    #[test]
    fn table_page_holds_255_tags() {
        let mut checks = Checks::new(CheckKind::Tag);
        (0..=255u8).for_each(|n| checks.push(BlockCheck::Tag([n; 16])));
        assert_eq!(CheckKind::Tag.table_pages(256), 2);
        let mut table = vec![0u8; 8192];
        write_table(PayloadId([1; 16]), &checks, &mut table);
        let (first, second) = table.split_at(4096);
        let read = |number, page| read_table_page(PayloadId([1; 16]), number, page, CheckKind::Tag);
        assert_eq!(read(0, first), checks.range(0..255));
        assert_eq!(read(1, second).expect("whole").get(0), Some(BlockCheck::Tag([255; 16])));
    }

    #[test]
    fn check_of_another_kind_is_refused() {
        let mut block = vec![3u8; 100];
        let checks = protect(None, 0, &mut block).expect("checks");
        let check = checks.get(0).expect("one");
        assert!(accept(None, 0, &mut block.clone(), check));
        assert!(!accept(None, 0, &mut block, BlockCheck::Tag([0; 16])));
    }

    #[test]
    fn units_are_located_across_extents() {
        let extents = [Extent { volume: 0, start: 10, units: 2 }, Extent { volume: 3, start: 1, units: 1 }];
        assert_eq!(locate(&extents, 1), Some((0, 11 * 4096)));
        assert_eq!(locate(&extents, 2), Some((3, 4096)));
        assert_eq!(locate(&extents, 3), None);
    }
}
