//! The pages of a data file, read without a map.
//!
//! A page begins with 16 bytes: its number (8), zeros (2), flags (2), and where its free space begins and ends (2 each). Nodes
//! are found through the offsets (2 each) after that. A node is drawn after `MDB_node` of LMDB's `mdb.c`:
//!
//! ```text
//! offset  size  what
//! 0       4     leaf: bytes of the value; branch: the lower half of a page number
//! 4       2     leaf: flags; branch: the upper part of the page number
//! 6       2     bytes k of the key
//! 8       k     key
//! 8+k     ...   leaf: the value, or with flag 1 the number (8) of the page where it is, or with flag 2 the record of a table
//! ```
//! A value of its own pages begins after the head of the first one.

use crate::record::{self, RECORD_HEAD_BYTES, Record};
use std::fs::File;
use std::os::unix::fs::FileExt as _;

pub(crate) const PAGE_HEAD_BYTES: usize = 16;
const NODE_HEAD_BYTES: usize = 8;
const PAGE_NUMBER_BYTES: usize = 8;
const BRANCH: u16 = 1;
const LEAF: u16 = 2;
/// The flags that say what a page is.
const KINDS: u16 = 0x4f;
const BIG_DATA: u16 = 1;
const SUB_DATABASE: u16 = 2;
/// The offset of the root page's number in the record of a table.
const ROOT_AT: usize = 40;
const TABLE_RECORD_BYTES: usize = 48;
/// No key is longer, with LMDB's longer keys and pages of 4096 bytes.
const KEY_BYTES_MAX: usize = 2048;
/// The longest value that is looked at. Records of the store are far below.
const VALUE_BYTES_MAX: usize = 64 << 20;

/// The kind of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PageKind {
    Branch,
    Leaf,
}

/// A page that was read, as far as it can be used.
pub(crate) struct Page {
    pub(crate) number: u64,
    pub(crate) bytes: Vec<u8>,
}

/// A place of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ValuePlace {
    /// In the page with this number, at this offset.
    Within { page: u64, at: usize, length: usize },
    /// In pages of its own.
    Pages { first: u64, length: usize },
}

/// A node of a leaf.
pub(crate) struct LeafNode<'p> {
    pub(crate) key: &'p [u8],
    pub(crate) place: ValuePlace,
    pub(crate) is_table: bool,
}

impl LeafNode<'_> {
    fn bytes(&self) -> usize {
        let value = match self.place {
            ValuePlace::Within { length, .. } => length,
            ValuePlace::Pages { .. } => PAGE_NUMBER_BYTES,
        };
        NODE_HEAD_BYTES + self.key.len() + value
    }
}

impl Page {
    fn u16_at(&self, at: usize) -> Option<u16> {
        Some(u16::from_le_bytes(*self.bytes.get(at..)?.first_chunk()?))
    }

    fn u64_at(&self, at: usize) -> Option<u64> {
        Some(u64::from_le_bytes(*self.bytes.get(at..)?.first_chunk()?))
    }

    /// Returns what the page is, if its head is whole and its nodes fill its used space without gaps, as LMDB keeps them.
    pub(crate) fn kind(&self) -> Option<PageKind> {
        self.kind_of_head().filter(|kind| self.is_filled(*kind))
    }

    fn kind_of_head(&self) -> Option<PageKind> {
        let (lower, upper) = (usize::from(self.u16_at(12)?), usize::from(self.u16_at(14)?));
        let is_whole = self.u64_at(0)? == self.number
            && lower >= PAGE_HEAD_BYTES
            && lower.is_multiple_of(2)
            && lower <= upper
            && upper <= self.bytes.len();
        match self.u16_at(10)? & KINDS {
            BRANCH if is_whole => Some(PageKind::Branch),
            LEAF if is_whole => Some(PageKind::Leaf),
            _ => None,
        }
    }

    fn is_filled(&self, kind: PageKind) -> bool {
        let mut nodes = self.nodes();
        nodes.sort_unstable();
        let mut end = self.u16_at(14).map_or(0, usize::from);
        for node in nodes {
            let length = match kind {
                PageKind::Branch => self.key_of(node).map(|(_, end)| end - node),
                PageKind::Leaf => self.leaf_node(node).map(|leaf| leaf.bytes()),
            };
            match length {
                Some(length) if node == end => end += length.next_multiple_of(2),
                _ => return false,
            }
        }
        end == self.bytes.len()
    }

    /// Returns whether nothing was ever written to the page.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.iter().all(|byte| *byte == 0)
    }

    /// Returns the offsets of all places where a node could begin.
    pub(crate) fn possible_nodes(&self) -> impl Iterator<Item = usize> + use<> {
        (PAGE_HEAD_BYTES..self.bytes.len().saturating_sub(NODE_HEAD_BYTES)).step_by(2)
    }

    /// Returns the offsets of the nodes. Only for pages with a whole head.
    pub(crate) fn nodes(&self) -> Vec<usize> {
        let end = self.u16_at(12).map_or(0, usize::from);
        let offsets = (PAGE_HEAD_BYTES..end).step_by(2).filter_map(|at| self.u16_at(at));
        offsets.map(usize::from).collect()
    }

    fn key_of(&self, node: usize) -> Option<(&[u8], usize)> {
        let length = usize::from(self.u16_at(node + 6)?);
        let start = node + NODE_HEAD_BYTES;
        Some((self.bytes.get(start..start + length)?, start + length)).filter(|_| length <= KEY_BYTES_MAX)
    }

    /// Returns key and child of a node of a branch.
    pub(crate) fn child(&self, node: usize) -> Option<(&[u8], u64)> {
        let (key, _) = self.key_of(node)?;
        let number = [self.u16_at(node)?, self.u16_at(node + 2)?, self.u16_at(node + 4)?];
        Some((key, number.into_iter().rev().fold(0, |high, part| high << 16 | u64::from(part))))
    }

    /// Returns a node of a leaf.
    pub(crate) fn leaf_node(&self, node: usize) -> Option<LeafNode<'_>> {
        let (key, at) = self.key_of(node)?;
        let length = usize::from(self.u16_at(node)?) | usize::from(self.u16_at(node + 2)?) << 16;
        let flags = self.u16_at(node + 4)?;
        if key.is_empty() || length > VALUE_BYTES_MAX {
            return None;
        }
        let place = if flags & BIG_DATA != 0 {
            ValuePlace::Pages { first: self.u64_at(at)?, length }
        } else {
            self.bytes.get(at..at + length)?;
            ValuePlace::Within { page: self.number, at, length }
        };
        Some(LeafNode { key, place, is_table: flags & SUB_DATABASE != 0 })
    }
}

/// A data file.
pub(crate) struct DataFile {
    file: File,
    pub(crate) page_bytes: usize,
    /// Number of pages that the file has room for.
    pub(crate) pages: u64,
}

impl DataFile {
    pub(crate) fn new(file: File, page_bytes: usize) -> std::io::Result<Self> {
        let pages = file.metadata()?.len().div_ceil(page_bytes as u64);
        Ok(Self { file, page_bytes, pages })
    }

    /// Reads a page. `None` if it is outside the file, or the device cannot read it.
    pub(crate) fn page(&self, number: u64) -> Option<Page> {
        let bytes = self.read(number, 0, self.page_bytes)?;
        Some(Page { number, bytes })
    }

    fn read(&self, page: u64, at: usize, length: usize) -> Option<Vec<u8>> {
        if page >= self.pages {
            return None;
        }
        let mut bytes = vec![0; length];
        let offset = page.checked_mul(self.page_bytes as u64)?.checked_add(at as u64)?;
        self.file.read_exact_at(&mut bytes, offset).ok()?;
        Some(bytes)
    }

    /// Reads the first `bytes` bytes of a value, or all of it.
    pub(crate) fn value(&self, place: ValuePlace, bytes: usize) -> Option<Vec<u8>> {
        match place {
            ValuePlace::Within { page, at, length } => self.read(page, at, length.min(bytes)),
            ValuePlace::Pages { first, length } => self.read(first, PAGE_HEAD_BYTES, length.min(bytes)),
        }
    }

    /// Reads the part of a stored value that its own check covers, if the check is right.
    pub(crate) fn checked(&self, key: &[u8], place: ValuePlace) -> Option<Vec<u8>> {
        let head = self.value(place, RECORD_HEAD_BYTES)?;
        let body = u32::from_le_bytes(*head.get(12..)?.first_chunk()?) as usize;
        let covered = RECORD_HEAD_BYTES.checked_add(body).filter(|length| *length <= place.length())?;
        let covered = self.value(place, covered)?;
        record::decode(key, &covered).is_ok().then_some(covered)
    }

    /// Returns the number of pages of a value outside its leaf, with the first one.
    pub(crate) fn pages_of(&self, place: ValuePlace) -> Option<(u64, u64)> {
        let ValuePlace::Pages { first, length } = place else { return None };
        Some((first, (PAGE_HEAD_BYTES + length).div_ceil(self.page_bytes) as u64))
    }

    /// Returns the root page of a table whose record is here. `None` for an empty table.
    pub(crate) fn root_at(&self, place: ValuePlace) -> Option<Option<u64>> {
        let stored = self.value(place, TABLE_RECORD_BYTES)?;
        let root = u64::from_le_bytes(*stored.get(ROOT_AT..)?.first_chunk()?);
        Some((root != u64::MAX).then_some(root))
    }
}

/// A set of pages of a file, one bit for each.
pub(crate) struct Pages(Vec<u64>);

impl Pages {
    pub(crate) fn of(file: &DataFile) -> Self {
        let words = usize::try_from(file.pages.div_ceil(64)).expect("a file has fewer than 2^64 pages");
        Self(vec![0; words])
    }

    pub(crate) const fn none() -> Self {
        Self(Vec::new())
    }

    pub(crate) fn has(&self, page: u64) -> bool {
        let word = usize::try_from(page / 64).ok().and_then(|word| self.0.get(word));
        word.is_some_and(|word| word >> (page % 64) & 1 == 1)
    }

    pub(crate) fn add(&mut self, page: u64) {
        if let Some(word) = usize::try_from(page / 64).ok().and_then(|word| self.0.get_mut(word)) {
            *word |= 1 << (page % 64);
        }
    }
}

impl ValuePlace {
    pub(crate) const fn length(self) -> usize {
        match self {
            Self::Within { length, .. } | Self::Pages { length, .. } => length,
        }
    }
}

/// Returns version and body of a value that [`DataFile::checked`] has returned.
pub(crate) fn record_of(covered: &[u8]) -> Record<'_> {
    Record { version: covered[8], body: &covered[RECORD_HEAD_BYTES..], tail: &[] }
}
