//! One record of the log: the changes of one transaction.
//!
//! ```text
//! offset  size  content (integers little-endian)
//! 0       8     "CAIRNLOG"
//! 8       16    id of the log
//! 24      8     sequence, one more than that of the record before
//! 32      8     number of records in the environment after the transaction
//! 40      8     sum of their checksums, modulo 2^64
//! 48      4     format version, 1
//! 52      4     length of the body in bytes
//! 56      8     CRC-64/NVME of bytes 0 to 55 and of the body
//! 64      n     body
//! 64+n    ...   zeros up to a multiple of 4096
//! ```
//! The body lists the changes in their order. A change of a table that the record has not named yet is preceded by its name.
//!
//! ```text
//! size  content
//! 1     kind: 0 the name of a table follows, 1 put, 2 remove
//! 1     number that the record gives to the table
//! 2     length k of the key, or of the name
//! 4     length v of the value; 0 unless the kind is 1
//! k     key, or name
//! v     value, as it is stored
//! ```

use crate::error::Error;
use crate::limits::LOG_BLOCK_BYTES;
use crate::log_position::LogId;
use crate::table::Table;
use crate::totals::Totals;
use crc_fast::{CrcAlgorithm, Digest};

/// Bytes before the body.
pub(crate) const LOG_HEAD_BYTES: usize = 64;

const MAGIC: &[u8; 8] = b"CAIRNLOG";
const VERSION: u32 = 1;
const CHECK_AT: usize = 56;
const CHANGE_HEAD_BYTES: usize = 8;

const NAME: u8 = 0;
const PUT: u8 = 1;
const REMOVE: u8 = 2;

/// The changes of a transaction, in the form of a record's body.
#[derive(Debug, Default)]
pub(crate) struct LoggedChanges {
    /// Begins with room for the head.
    bytes: Vec<u8>,
    /// The tables that are named, one bit for each number.
    named: [u64; 4],
}

/// A change that one record makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoggedChange<'r> {
    /// Later changes call this table by its number.
    Name { table: u8, name: &'r str },
    /// The key has this stored value.
    Put { table: u8, key: &'r [u8], value: &'r [u8] },
    /// The key is removed.
    Remove { table: u8, key: &'r [u8] },
}

impl LoggedChanges {
    /// Begins a record in a buffer of an earlier one.
    pub(crate) fn in_buffer(mut bytes: Vec<u8>) -> Self {
        bytes.clear();
        bytes.resize(LOG_HEAD_BYTES, 0);
        Self { bytes, named: [0; 4] }
    }

    /// Adds that a key has this stored value.
    pub(crate) fn put(&mut self, table: Table, key: &[u8], value: &[u8], name: impl FnOnce() -> String) {
        self.add(PUT, table, key, value, name);
    }

    /// Adds that a key is removed.
    pub(crate) fn remove(&mut self, table: Table, key: &[u8], name: impl FnOnce() -> String) {
        self.add(REMOVE, table, key, &[], name);
    }

    fn add(&mut self, kind: u8, table: Table, key: &[u8], value: &[u8], name: impl FnOnce() -> String) {
        let (word, bit) = (usize::from(table.0 / 64), 1 << (table.0 % 64));
        if self.named[word] & bit == 0 {
            self.named[word] |= bit;
            self.write(NAME, table, name().as_bytes(), &[]);
        }
        self.write(kind, table, key, value);
    }

    fn write(&mut self, kind: u8, table: Table, key: &[u8], value: &[u8]) {
        let key_bytes = u16::try_from(key.len()).expect("LMDB's keys are shorter than 64 KiB");
        let value_bytes = u32::try_from(value.len()).expect("LMDB's values are shorter than 4 GiB");
        self.bytes.extend_from_slice(&[kind, table.0]);
        self.bytes.extend_from_slice(&key_bytes.to_le_bytes());
        self.bytes.extend_from_slice(&value_bytes.to_le_bytes());
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
    }

    /// Completes the record: writes its head, and fills the last block with zeros.
    ///
    /// # Errors
    /// [`Error::Full`] if the changes take 4 GiB or more.
    pub(crate) fn complete(mut self, log: LogId, sequence: u64, totals: Totals) -> Result<Vec<u8>, Error> {
        let body_bytes = u32::try_from(self.bytes.len() - LOG_HEAD_BYTES).map_err(|_| Error::Full)?;
        let (head, body) = self.bytes.split_at_mut(LOG_HEAD_BYTES);
        head[..8].copy_from_slice(MAGIC);
        head[8..24].copy_from_slice(&log.0);
        head[24..32].copy_from_slice(&sequence.to_le_bytes());
        head[32..40].copy_from_slice(&totals.records.to_le_bytes());
        head[40..48].copy_from_slice(&totals.hash.to_le_bytes());
        head[48..52].copy_from_slice(&VERSION.to_le_bytes());
        head[52..56].copy_from_slice(&body_bytes.to_le_bytes());
        let check = check(&head[..CHECK_AT], body);
        head[CHECK_AT..].copy_from_slice(&check.to_le_bytes());
        let padded = self.bytes.len().next_multiple_of(LOG_BLOCK_BYTES);
        self.bytes.resize(padded, 0);
        Ok(self.bytes)
    }
}

fn check(head: &[u8], body: &[u8]) -> u64 {
    let mut digest = Digest::new(CrcAlgorithm::Crc64Nvme);
    digest.update(head);
    digest.update(body);
    digest.finalize()
}

/// The head of a record. Only [`LogHead::body_of`] shows whether the record is whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogHead {
    pub(crate) sequence: u64,
    /// The totals of the environment after the transaction.
    pub(crate) totals: Totals,
    body_bytes: usize,
}

impl LogHead {
    /// Reads the head at the beginning of `bytes`. `None` unless a record of this log begins there.
    pub(crate) fn decode(bytes: &[u8], log: LogId) -> Option<Self> {
        let head = bytes.first_chunk::<LOG_HEAD_BYTES>()?;
        let number = |at: usize| head[at..].first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes));
        if !head.starts_with(MAGIC) || head[8..24] != log.0 || head[48..52] != VERSION.to_le_bytes() {
            return None;
        }
        let body_bytes = u32::from_le_bytes(*head[52..].first_chunk()?) as usize;
        let totals = Totals { records: number(32)?, hash: number(40)? };
        Some(Self { sequence: number(24)?, totals, body_bytes })
    }

    /// Returns the bytes that the record takes in the file.
    pub(crate) const fn file_bytes(&self) -> usize {
        (LOG_HEAD_BYTES + self.body_bytes).next_multiple_of(LOG_BLOCK_BYTES)
    }

    /// Returns the body of the record that begins with this head. `None` if the record is torn.
    pub(crate) fn body_of<'r>(&self, record: &'r [u8]) -> Option<&'r [u8]> {
        let (head, rest) = record.split_at_checked(LOG_HEAD_BYTES)?;
        let body = rest.get(..self.body_bytes)?;
        let stored = u64::from_le_bytes(*head[CHECK_AT..].first_chunk()?);
        (stored == check(&head[..CHECK_AT], body)).then_some(body)
    }
}

/// Returns whether a record of any log begins here.
pub(crate) fn is_record(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// Iterates over the changes in the body of a record.
pub(crate) struct ChangesIn<'r>(pub(crate) &'r [u8]);

impl<'r> ChangesIn<'r> {
    fn decode_next(&mut self) -> Option<LoggedChange<'r>> {
        let (head, rest) = self.0.split_first_chunk::<CHANGE_HEAD_BYTES>()?;
        let [kind, table, k0, k1, v0, v1, v2, v3] = *head;
        let (key, rest) = rest.split_at_checked(u16::from_le_bytes([k0, k1]).into())?;
        let (value, rest) = rest.split_at_checked(u32::from_le_bytes([v0, v1, v2, v3]) as usize)?;
        self.0 = rest;
        match kind {
            NAME => Some(LoggedChange::Name { table, name: std::str::from_utf8(key).ok()? }),
            PUT => Some(LoggedChange::Put { table, key, value }),
            REMOVE => Some(LoggedChange::Remove { table, key }),
            _ => None,
        }
    }
}

impl<'r> Iterator for ChangesIn<'r> {
    type Item = Result<LoggedChange<'r>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let decoded = self.decode_next();
        if decoded.is_none() {
            // Nothing after it can be read.
            self.0 = &[];
        }
        Some(decoded.ok_or_else(|| Error::DamagedLog("a change in it is invalid".to_owned())))
    }
}

#[cfg(test)]
mod tests {
    use super::{ChangesIn, LogHead, LoggedChange, LoggedChanges};
    use crate::log_position::LogId;
    use crate::table::Table;
    use crate::totals::Totals;

    const LOG: LogId = LogId([5; 16]);
    const TOTALS: Totals = Totals { records: 2, hash: 9 };

    fn record() -> Vec<u8> {
        let mut changes = LoggedChanges::in_buffer(vec![1; 100]);
        changes.put(Table(1), b"a", b"value", || "one".to_owned());
        changes.remove(Table(200), b"b", || "other".to_owned());
        changes.put(Table(1), b"c", b"", || unreachable!("it is named"));
        changes.complete(LOG, 7, TOTALS).expect("small")
    }

    #[test]
    fn changes_come_back_in_their_order_with_names_before_them() {
        let record = record();
        assert_eq!(record.len(), 4096);
        let head = LogHead::decode(&record, LOG).expect("a record");
        assert_eq!((head.sequence, head.totals, head.file_bytes()), (7, TOTALS, 4096));
        let body = head.body_of(&record).expect("whole");
        let changes: Vec<_> = ChangesIn(body).map(|change| change.expect("valid")).collect();
        let expected = [
            LoggedChange::Name { table: 1, name: "one" },
            LoggedChange::Put { table: 1, key: b"a", value: b"value" },
            LoggedChange::Name { table: 200, name: "other" },
            LoggedChange::Remove { table: 200, key: b"b" },
            LoggedChange::Put { table: 1, key: b"c", value: b"" },
        ];
        assert_eq!(changes, expected);
        assert!(LogHead::decode(&record, LogId([6; 16])).is_none(), "a record of another log");
    }

    #[test]
    fn a_record_with_any_flipped_bit_is_torn() {
        let record = record();
        let whole = |record: &[u8]| {
            LogHead::decode(record, LOG)
                .is_some_and(|head| head.sequence == 7 && head.body_of(record).is_some())
        };
        assert!(whole(&record));
        let used = 64 + 8 + 3 + 8 + 6 + 8 + 5 + 8 + 1 + 8 + 1;
        for bit in 0..used * 8 {
            let mut torn = record.clone();
            torn[bit / 8] ^= 1 << (bit % 8);
            assert!(!whole(&torn), "bit {bit}");
        }
        assert!(!whole(&record[..100]));
    }

    #[test]
    fn invalid_body_ends_with_an_error() {
        for body in [
            &[1, 1, 5, 0, 0, 0, 0, 0, 1][..],
            &[9, 1, 0, 0, 0, 0, 0, 0],
            &[0, 1, 1, 0, 0, 0, 0, 0, 0xff],
            &[1],
        ] {
            let mut changes = ChangesIn(body);
            assert!(changes.next().is_some_and(|change| change.is_err()), "{body:?}");
            assert!(changes.next().is_none());
        }
    }

    /// Golden bytes: a change here changes the on-disk format.
    #[test]
    fn the_format_of_a_record_does_not_change() {
        let mut changes = LoggedChanges::in_buffer(Vec::new());
        changes.put(Table(3), b"k", b"v", || "t".to_owned());
        let record = changes.complete(LOG, 1, TOTALS).expect("small");
        assert_eq!(&record[..8], b"CAIRNLOG");
        assert_eq!(record[8..24], [5; 16]);
        let numbers =
            [&1u64.to_le_bytes()[..], &2u64.to_le_bytes(), &9u64.to_le_bytes(), &[1, 0, 0, 0, 19, 0, 0, 0]];
        assert_eq!(record[24..56], numbers.concat());
        assert_eq!(&record[64..84], b"\0\x03\x01\0\0\0\0\0t\x01\x03\x01\0\x01\0\0\0kv\0");
    }
}
