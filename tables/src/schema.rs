//! Descriptions of small stores.

/// The schema of a small store: what distinguishes it from others.
#[derive(Clone, Copy, Debug)]
pub struct StoreSchema {
    /// The name in messages, for example `the audit trail`.
    pub name: &'static str,
    /// The effect of emptying the folder, for example `start a new trail`.
    pub fresh_start: &'static str,
    /// The effect of a full disk, for example `changes are refused`.
    pub without_space: &'static str,
    /// The effect of a failure, for example `nothing is recorded`.
    pub after_failure: &'static str,
    /// The table that holds the id of the object store.
    pub identity_table: &'static str,
    /// Address space of the LMDB map, in bytes.
    pub map_bytes: usize,
    /// Most tables that the environment can have.
    pub tables_max: u32,
    /// Largest environment whose records are compared with the totals when it is opened, in bytes. Reading 64 MiB takes half a
    /// second when nothing of it is in the page cache. 0 where records of the past must not prevent a start.
    pub compared_bytes_max: u64,
    /// The written space after the last page of the data file.
    pub headroom: Headroom,
}

/// Written space after the last page of the data file, in bytes.
///
/// LMDB cannot write a page beyond it when the disk is full. A transaction that fits into the headroom is therefore either
/// durable or refused.
#[derive(Clone, Copy, Debug)]
pub struct Headroom {
    /// The size to which the writer thread extends the file.
    pub target: u64,
    /// Below this, the writer thread extends the file.
    pub low: u64,
    /// Below this, additions are refused. It exceeds `changes` where changes must still be possible on a full disk.
    pub additions: u64,
    /// Below this, changes are refused: more than the largest transaction can dirty.
    pub changes: u64,
    /// Below this, removals are refused. It is less than `changes` where removals must be possible when nothing else is.
    pub removals: u64,
}

impl Headroom {
    /// Asserts the order of the limits.
    pub(crate) const fn assert_order(&self) {
        assert!(
            self.target >= self.low && self.low >= self.additions,
            "the file is extended before an addition is refused"
        );
        assert!(
            self.additions >= self.changes && self.changes >= self.removals,
            "additions are refused first"
        );
    }
}
