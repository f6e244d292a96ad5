//! Named tables of an environment.

use heed::types::Bytes;

/// Name of the table that holds the count and the hash of all other records.
pub(crate) const TOTALS_TABLE: &str = "totals";

/// A table in one data file of an environment.
pub(crate) type Database = heed::Database<Bytes, Bytes>;

/// A named table of an environment. Keys and values are bytes.
///
/// It is a number, because a table has a different handle in each data file that a compaction makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Table(pub(crate) u8);

impl Table {
    /// The table of totals, which every environment has.
    pub(crate) const TOTALS: Self = Self(0);

    /// Its bit in a set of tables. An environment has fewer than 64.
    pub(crate) const fn bit(self) -> u64 {
        1u64.unbounded_shl(self.0 as u32)
    }

    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}
