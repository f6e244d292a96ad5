//! The meta pages of an LMDB data file, without LMDB.
//!
//! A transaction with number n is committed when its meta fields are written to page `n & 1`. LMDB begins with the page whose
//! number is greater. The fields are drawn after `MDB_meta` of LMDB's `mdb.c`. LMDB writes each meta page as a whole only when
//! it creates the file. Later it writes the fields alone.
//!
//! ```text
//! offset  size  field (integers in the byte order of the host)
//! 0       16    header of the page
//! 16      4     magic number, 0xBEEFC0DE
//! 20      4     version of LMDB's format
//! 24      8     address of the map, 0
//! 32      8     size of the map in bytes
//! 40      48    table of free pages; its first 4 bytes are the size of a page, its last 8 its root page
//! 88      48    table of named tables
//! 136     8     last used page
//! 144     8     number of the transaction
//! ```

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

/// The offset of the fields in a meta page.
const FIELDS_AT: u64 = 16;
/// Bytes of the fields.
pub(crate) const META_FIELD_BYTES: usize = 136;
/// Bytes of a data file that contain the fields of its first meta page.
pub(crate) const META_BYTES: usize = 16 + META_FIELD_BYTES;

const MAGIC: u32 = 0xBEEF_C0DE;
// Offsets within the fields.
const FORMAT_AT: usize = 4;
const FORMAT: u32 = 1;
const PAGE_SIZE_AT: usize = 24;
const MAIN_ROOT_AT: usize = 112;
const FREE_ROOT_AT: usize = 64;
const LAST_PAGE_AT: usize = 120;
const TRANSACTION_AT: usize = 128;

/// The fields of a meta page: the roots of one committed transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MetaFields(pub(crate) [u8; META_FIELD_BYTES]);

impl MetaFields {
    fn number<const N: usize>(&self, at: usize) -> [u8; N] {
        *self.0[at..].first_chunk::<N>().expect("the offsets are within the fields")
    }

    /// Returns LMDB's number of the transaction.
    pub(crate) fn transaction(&self) -> usize {
        usize::from_ne_bytes(self.number(TRANSACTION_AT))
    }

    /// Returns the number of the last used page.
    pub(crate) fn last_page(&self) -> u64 {
        u64::from_ne_bytes(self.number(LAST_PAGE_AT))
    }

    /// Returns the root of the table of free pages. `None` if there are none.
    pub(crate) fn free_root(&self) -> Option<u64> {
        Some(u64::from_ne_bytes(self.number(FREE_ROOT_AT))).filter(|root| *root != u64::MAX)
    }

    /// Returns the size of a page: that of the host on which the file was created.
    pub(crate) fn page_bytes(&self) -> u64 {
        u64::from(u32::from_ne_bytes(self.number(PAGE_SIZE_AT))).max(512)
    }

    /// Returns the bytes of a file that contains all used pages.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.last_page().saturating_add(1).saturating_mul(self.page_bytes())
    }

    /// Returns the root page of the table of tables. `None` if there are no tables.
    pub(crate) fn main_root(&self) -> Option<u64> {
        let root = u64::from_ne_bytes(self.number(MAIN_ROOT_AT));
        (root != u64::MAX).then_some(root)
    }

    /// Returns whether the fields can be those of a file with pages of this size.
    pub(crate) fn is_whole(&self, page_bytes: u64) -> bool {
        self.is_valid()
            && u32::from_ne_bytes(self.number(FORMAT_AT)) == FORMAT
            && self.page_bytes() == page_bytes
            && self.main_root().is_none_or(|root| root <= self.last_page())
    }

    fn is_valid(&self) -> bool {
        u32::from_ne_bytes(self.number(0)) == MAGIC
    }

    /// Reads the fields of meta page `page` (0 or 1) in a file with pages of `page_bytes` bytes.
    pub(crate) fn read(file: &File, page: u64, page_bytes: u64) -> io::Result<Self> {
        assert!(page < 2, "LMDB has two meta pages");
        let mut fields = [0; META_FIELD_BYTES];
        file.read_exact_at(&mut fields, page * page_bytes + FIELDS_AT)?;
        Ok(Self(fields))
    }

    /// Returns the size of the pages of a file.
    pub(crate) fn page_bytes_of(file: &File) -> io::Result<u64> {
        Ok(Self::read(file, 0, 0)?.page_bytes())
    }

    /// Reads the fields of the newer meta page. `None` if neither is one.
    pub(crate) fn newest(file: &File) -> io::Result<Option<Self>> {
        let first = Self::read(file, 0, 0)?;
        let second = Self::read(file, 1, first.page_bytes())?;
        Ok([first, second].into_iter().filter(Self::is_valid).max_by_key(Self::transaction))
    }

    /// Writes the fields to the meta page that has them. The caller flushes the file.
    pub(crate) fn write_again(&self, file: &File) -> io::Result<()> {
        file.write_all_at(&self.0, (self.transaction() as u64 & 1) * self.page_bytes() + FIELDS_AT)
    }

    /// Writes the fields to both meta pages, so that LMDB begins with this transaction. The caller flushes the file.
    pub(crate) fn restore(&self, file: &File) -> io::Result<()> {
        assert!(self.is_valid(), "only fields that were read from a meta page are restored");
        file.write_all_at(&self.0, FIELDS_AT)?;
        file.write_all_at(&self.0, self.page_bytes() + FIELDS_AT)
    }
}
