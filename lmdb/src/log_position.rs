//! The position of a record in the log.

/// Random id of a log. Records of an earlier log in the same file have another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogId(pub(crate) [u8; 16]);

impl LogId {
    /// Returns a new id.
    pub(crate) fn random() -> std::io::Result<Self> {
        let mut id = [0; 16];
        getrandom::fill(&mut id).map_err(|error| std::io::Error::other(error.to_string()))?;
        Ok(Self(id))
    }
}

/// The place of a record: a record with this sequence is at this offset, or at the beginning of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// The first record of a log has the sequence 1.
    pub(crate) sequence: u64,
    /// Offset in the file in bytes, a multiple of [`crate::limits::LOG_BLOCK_BYTES`].
    pub(crate) offset: u64,
}

impl Position {
    /// The place of the first record.
    pub(crate) const FIRST: Self = Self { sequence: 1, offset: 0 };
}
