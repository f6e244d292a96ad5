//! The totals of an environment: number and additive hash of its records.
//!
//! ```text
//! body, version 1 (integers little-endian)
//! offset  size  what
//! 0       8     number of records in all other tables
//! 8       8     sum of their checksums, modulo 2^64
//! ```

use crate::error::Error;
use crate::record;
use crate::table::TOTALS_TABLE;

/// The only key of the table of totals.
pub(crate) const TOTALS_KEY: &[u8] = b"totals";

/// The number of records in an environment and the sum of their checksums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Records in all tables except the table of totals.
    pub records: u64,
    /// Sum of the checksums of those records, modulo 2^64.
    pub hash: u64,
}

impl Totals {
    /// Counts a stored value.
    pub(crate) fn add(&mut self, value: &[u8]) {
        self.records += 1;
        self.hash = self.hash.wrapping_add(record::stored_checksum(value));
    }

    /// Discounts a stored value that is removed or replaced.
    pub(crate) fn subtract(&mut self, value: &[u8]) {
        self.records -= 1;
        self.hash = self.hash.wrapping_sub(record::stored_checksum(value));
    }

    /// Returns the body of the record.
    pub(crate) fn encode(self) -> [u8; 16] {
        let mut body = [0; 16];
        body[..8].copy_from_slice(&self.records.to_le_bytes());
        body[8..].copy_from_slice(&self.hash.to_le_bytes());
        body
    }

    /// Decodes the body of the record.
    pub(crate) fn decode(body: &[u8]) -> Result<Self, Error> {
        let corrupt =
            || Error::Corrupt { key: TOTALS_TABLE.to_owned(), what: "the totals have the wrong length" };
        let (records, rest) = body.split_first_chunk::<8>().ok_or_else(corrupt)?;
        let hash = rest.first_chunk::<8>().ok_or_else(corrupt)?;
        Ok(Self { records: u64::from_le_bytes(*records), hash: u64::from_le_bytes(*hash) })
    }
}
