//! Transactions over checked records.

use crate::environment::{Environment, Table};
use crate::readers::OpenRead;
use crate::{Error, Record, record};
use heed::{RoTxn, RwTxn, WithTls};
use std::ops::Bound;

/// Name of the table that holds the count and the hash of all other records.
pub(crate) const TOTALS_TABLE: &str = "totals";
const TOTALS_KEY: &[u8] = b"totals";

/// Number of records in an environment and the sum, modulo 2^64, of their checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Records in all tables but the one of the totals.
    pub records: u64,
    /// Sum of the checks of those records, modulo 2^64.
    pub hash: u64,
}

/// A snapshot of an environment. Stays on its thread; never held across an `.await`.
pub struct ReadTxn<'e> {
    pub(crate) txn: RoTxn<'e, WithTls>,
    pub(crate) _open: Option<OpenRead<'e>>,
}

fn get<'t>(txn: &'t RoTxn<'_>, table: Table, key: &[u8]) -> Result<Option<Record<'t>>, Error> {
    table.0.get(txn, key)?.map(|value| record::open(key, value)).transpose()
}

fn first_at_or_after<'t>(
    txn: &'t RoTxn<'_>,
    table: Table,
    key: &[u8],
) -> Result<Option<(&'t [u8], Record<'t>)>, Error> {
    let found = table.0.get_greater_than_or_equal_to(txn, key)?;
    found.map(|(key, value)| Ok((key, record::open(key, value)?))).transpose()
}

/// Records in order of their keys.
pub struct Scan<'t> {
    inner: heed::RoRange<'t, heed::types::Bytes, heed::types::Bytes>,
}

impl<'t> Iterator for Scan<'t> {
    type Item = Result<(&'t [u8], Record<'t>), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(match self.inner.next()? {
            Ok((key, value)) => record::open(key, value).map(|record| (key, record)),
            Err(error) => Err(error.into()),
        })
    }
}

/// Keys in order, their values unread: also those of records whose checks are wrong.
pub struct Keys<'t> {
    inner: heed::RoRange<'t, heed::types::Bytes, heed::types::DecodeIgnore>,
}

impl<'t> Iterator for Keys<'t> {
    type Item = Result<&'t [u8], Error>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.inner.next()?.map(|(key, ())| key).map_err(Error::from))
    }
}

/// Records in descending order of their keys, each key with its record or what is wrong with that.
pub struct ScanBack<'t> {
    inner: heed::RoRevRange<'t, heed::types::Bytes, heed::types::Bytes>,
}

impl<'t> Iterator for ScanBack<'t> {
    type Item = Result<(&'t [u8], Result<Record<'t>, Error>), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let item = self.inner.next()?;
        Some(item.map(|(key, value)| (key, record::open(key, value))).map_err(Error::from))
    }
}

fn scan<'t>(txn: &'t RoTxn<'_>, table: Table, from: &[u8]) -> Result<Scan<'t>, Error> {
    // LMDB has no empty keys and refuses to look for one.
    let first = if from.is_empty() { Bound::Unbounded } else { Bound::Included(from) };
    let bounds = (first, Bound::Unbounded);
    Ok(Scan { inner: table.0.range(txn, &bounds)? })
}

/// A stored record as a walk over a table meets it, whole or not.
#[derive(Debug)]
pub struct Entry<'t> {
    /// Its key.
    pub key: &'t [u8],
    /// The check as it is stored, right or wrong: what the totals sum up.
    pub stored_check: u64,
    /// The record, or why it is none.
    pub record: Result<Record<'t>, Error>,
}

/// Records in order of their keys, damaged ones among them.
pub struct Entries<'t> {
    inner: heed::RoRange<'t, heed::types::Bytes, heed::types::Bytes>,
}

impl<'t> Iterator for Entries<'t> {
    type Item = Result<Entry<'t>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.inner.next()?.map_err(Error::from).map(|(key, value)| Entry {
            key,
            stored_check: record::stored_check(value),
            record: record::open(key, value),
        }))
    }
}

impl ReadTxn<'_> {
    /// Number of the last transaction that this snapshot holds.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.txn.id() as u64
    }

    /// All records behind the key `after`, or all, in order. A damaged record is an entry like any other.
    ///
    /// # Errors
    /// What LMDB answers; an error among the entries ends them.
    pub fn entries(&self, table: Table, after: Option<&[u8]>) -> Result<Entries<'_>, Error> {
        let first = after.map_or(Bound::Unbounded, Bound::Excluded);
        let bounds = (first, Bound::Unbounded);
        Ok(Entries { inner: table.0.range(&self.txn, &bounds)? })
    }

    /// The record of `key`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when its check is wrong, else what LMDB answers.
    pub fn get(&self, table: Table, key: &[u8]) -> Result<Option<Record<'_>>, Error> {
        get(&self.txn, table, key)
    }

    /// The first record whose key is `key` or greater.
    ///
    /// # Errors
    /// As [`ReadTxn::get`].
    pub fn first_at_or_after(&self, table: Table, key: &[u8]) -> Result<Option<(&[u8], Record<'_>)>, Error> {
        first_at_or_after(&self.txn, table, key)
    }

    /// All records from `from` on, in order.
    ///
    /// # Errors
    /// What LMDB answers.
    pub fn scan(&self, table: Table, from: &[u8]) -> Result<Scan<'_>, Error> {
        scan(&self.txn, table, from)
    }

    /// All keys from `from` on, in order.
    ///
    /// # Errors
    /// What LMDB answers.
    pub fn keys(&self, table: Table, from: &[u8]) -> Result<Keys<'_>, Error> {
        let first = if from.is_empty() { Bound::Unbounded } else { Bound::Included(from) };
        let bounds = (first, Bound::Unbounded);
        Ok(Keys { inner: table.0.remap_data_type::<heed::types::DecodeIgnore>().range(&self.txn, &bounds)? })
    }

    /// All records whose key is less than `before`, the greatest first. A damaged record does not end the scan.
    ///
    /// # Errors
    /// What LMDB answers.
    pub fn scan_back(&self, table: Table, before: &[u8]) -> Result<ScanBack<'_>, Error> {
        let bounds = (Bound::Unbounded, Bound::Excluded(before));
        Ok(ScanBack { inner: table.0.rev_range(&self.txn, &bounds)? })
    }

    /// Record count and hash as of this snapshot.
    ///
    /// # Errors
    /// As [`ReadTxn::get`].
    pub fn totals(&self, environment: &Environment) -> Result<Totals, Error> {
        read_totals(&self.txn, environment.totals)
    }
}

impl ReadTxn<'_> {
    /// Walks over all records of `tables`, checks each, and sums them up: what the totals should be.
    ///
    /// # Errors
    /// As [`ReadTxn::get`], for the first record whose check is wrong.
    pub fn count(&self, tables: &[Table]) -> Result<Totals, Error> {
        let mut totals = Totals::default();
        for table in tables {
            for item in table.0.iter(&self.txn)? {
                let (key, value) = item?;
                record::open(key, value)?;
                totals.records += 1;
                totals.hash = totals.hash.wrapping_add(record::stored_check(value));
            }
        }
        Ok(totals)
    }
}

fn read_totals(txn: &RoTxn<'_>, table: Table) -> Result<Totals, Error> {
    let Some(record) = get(txn, table, TOTALS_KEY)? else { return Ok(Totals::default()) };
    let corrupt = || Error::Corrupt { key: TOTALS_TABLE.to_owned(), what: "the totals have a wrong length" };
    let (records, rest) = record.body.split_first_chunk::<8>().ok_or_else(corrupt)?;
    let hash = rest.first_chunk::<8>().ok_or_else(corrupt)?;
    Ok(Totals { records: u64::from_le_bytes(*records), hash: u64::from_le_bytes(*hash) })
}

/// A set of changes that becomes durable as a whole, or not at all.
pub struct WriteTxn<'e> {
    txn: RwTxn<'e>,
    totals_table: Table,
    totals: Totals,
    scratch: Vec<u8>,
    changed: bool,
}

impl<'e> WriteTxn<'e> {
    pub(crate) fn begin(environment: &'e Environment) -> Result<Self, Error> {
        let txn = environment.env.write_txn()?;
        let totals = read_totals(&txn, environment.totals)?;
        Ok(Self { txn, totals_table: environment.totals, totals, scratch: Vec::new(), changed: false })
    }

    /// Number that this transaction has when it is committed; one that is dropped leaves it to the next.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.txn.id() as u64
    }

    /// As [`ReadTxn::get`], with the changes of this transaction.
    ///
    /// # Errors
    /// As [`ReadTxn::get`].
    pub fn get(&self, table: Table, key: &[u8]) -> Result<Option<Record<'_>>, Error> {
        get(&self.txn, table, key)
    }

    /// As [`ReadTxn::first_at_or_after`], with the changes of this transaction.
    ///
    /// # Errors
    /// As [`ReadTxn::get`].
    pub fn first_at_or_after(&self, table: Table, key: &[u8]) -> Result<Option<(&[u8], Record<'_>)>, Error> {
        first_at_or_after(&self.txn, table, key)
    }

    /// As [`ReadTxn::scan`], with the changes of this transaction.
    ///
    /// # Errors
    /// As [`ReadTxn::scan`].
    pub fn scan(&self, table: Table, from: &[u8]) -> Result<Scan<'_>, Error> {
        scan(&self.txn, table, from)
    }

    /// The first key that is `key` or greater, whatever its record is like.
    ///
    /// # Errors
    /// What LMDB answers.
    pub fn first_key_at_or_after(&self, table: Table, key: &[u8]) -> Result<Option<&[u8]>, Error> {
        Ok(table.0.get_greater_than_or_equal_to(&self.txn, key)?.map(|(key, _)| key))
    }

    /// Record count and hash with the changes of this transaction.
    #[must_use]
    pub const fn totals(&self) -> Totals {
        self.totals
    }

    /// Writes the record of `key`, replacing one that is there.
    ///
    /// # Errors
    /// [`Error::Full`] when the file system or the map has no space: the transaction must then be dropped.
    pub fn put(
        &mut self,
        table: Table,
        key: &[u8],
        version: u8,
        body: &[u8],
        tail: &[u8],
    ) -> Result<(), Error> {
        if let Some(old) = table.0.get(&self.txn, key)? {
            self.totals.records -= 1;
            self.totals.hash = self.totals.hash.wrapping_sub(record::stored_check(old));
        }
        self.insert(table, key, version, body, tail)
    }

    /// Writes the record of a key that the caller knows to be absent: a version that was never there before.
    ///
    /// # Errors
    /// As [`WriteTxn::put`].
    pub fn insert(
        &mut self,
        table: Table,
        key: &[u8],
        version: u8,
        body: &[u8],
        tail: &[u8],
    ) -> Result<(), Error> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let check = record::seal(&mut scratch, key, version, body, tail)?;
        table.0.put(&mut self.txn, key, &scratch)?;
        self.scratch = scratch;
        self.totals.records += 1;
        self.totals.hash = self.totals.hash.wrapping_add(check);
        self.changed = true;
        Ok(())
    }

    /// Removes the record of `key`; says whether there was one.
    ///
    /// # Errors
    /// As [`WriteTxn::put`].
    pub fn remove(&mut self, table: Table, key: &[u8]) -> Result<bool, Error> {
        let Some(old) = table.0.get(&self.txn, key)? else { return Ok(false) };
        let check = record::stored_check(old);
        table.0.delete(&mut self.txn, key)?;
        self.totals.records -= 1;
        self.totals.hash = self.totals.hash.wrapping_sub(check);
        self.changed = true;
        Ok(true)
    }

    /// Whether anything was written.
    #[must_use]
    pub const fn changed(&self) -> bool {
        self.changed
    }

    /// Makes all changes durable: returns after LMDB's flushes. Without changes, nothing is written.
    ///
    /// # Errors
    /// [`Error::Full`] or [`Error::Io`]: nothing of the transaction has happened.
    pub fn commit(mut self) -> Result<(), Error> {
        if !self.changed {
            self.txn.abort();
            return Ok(());
        }
        let mut body = [0u8; 16];
        body[..8].copy_from_slice(&self.totals.records.to_le_bytes());
        body[8..].copy_from_slice(&self.totals.hash.to_le_bytes());
        record::seal(&mut self.scratch, TOTALS_KEY, 1, &body, &[])?;
        self.totals_table.0.put(&mut self.txn, TOTALS_KEY, &self.scratch)?;
        Ok(self.txn.commit()?)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Environment, EnvironmentOptions, Error};

    fn open(folder: &std::path::Path) -> Environment {
        Environment::open(folder, EnvironmentOptions { map_bytes: 1 << 30, tables_max: 4 }).expect("opens")
    }

    #[test]
    fn totals_follow_every_change() {
        let folder = tempfile::tempdir().expect("a folder");
        let env = open(folder.path());
        let table = env.table("t").expect("a table");
        let mut txn = env.write().expect("writes");
        txn.put(table, b"a", 1, b"1", b"").expect("puts");
        txn.put(table, b"b", 1, b"2", b"").expect("puts");
        txn.commit().expect("commits");
        let with_two = env.read().expect("reads").totals(&env).expect("totals");
        assert_eq!(with_two.records, 2);
        let mut txn = env.write().expect("writes");
        txn.put(table, b"b", 1, b"3", b"").expect("puts");
        assert!(txn.remove(table, b"a").expect("removes"));
        assert!(!txn.remove(table, b"zz").expect("removes"));
        txn.put(table, b"a", 1, b"1", b"").expect("puts");
        txn.put(table, b"b", 1, b"2", b"").expect("puts");
        txn.commit().expect("commits");
        assert_eq!(env.read().expect("reads").totals(&env).expect("totals"), with_two);
    }

    #[test]
    fn a_dropped_transaction_leaves_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let env = open(folder.path());
        let table = env.table("t").expect("a table");
        let mut txn = env.write().expect("writes");
        txn.put(table, b"a", 1, b"1", b"").expect("puts");
        drop(txn);
        assert!(env.read().expect("reads").get(table, b"a").expect("reads").is_none());
    }

    #[test]
    fn a_scan_back_gives_what_lies_before_its_bound_in_descending_order() {
        let folder = tempfile::tempdir().expect("a folder");
        let env = open(folder.path());
        let table = env.table("t").expect("a table");
        let mut txn = env.write().expect("writes");
        for key in [b"a", b"b", b"c"] {
            txn.put(table, key, 1, b"body", b"").expect("puts");
        }
        txn.commit().expect("commits");
        let txn = env.read().expect("reads");
        let before = |bound: &[u8]| -> Vec<Vec<u8>> {
            let scan = txn.scan_back(table, bound).expect("scans");
            scan.map(|item| item.expect("an item").0.to_vec()).collect()
        };
        assert_eq!(before(b"c"), [b"b", b"a"]);
        assert_eq!(before(b"z"), [b"c", b"b", b"a"]);
        assert!(before(b"a").is_empty());
    }

    #[test]
    fn space_written_ahead_is_used_and_survives_a_reopening() {
        let folder = tempfile::tempdir().expect("a folder");
        let env = open(folder.path());
        let table = env.table("t").expect("a table");
        env.extend(1 << 20).expect("extends");
        let (before, length) = (env.headroom(), env.env.real_disk_size().expect("measured"));
        assert!(before >= 1 << 20);
        let mut txn = env.write().expect("writes");
        for n in 0..1000u32 {
            txn.put(table, &n.to_be_bytes(), 1, &[7; 200], b"").expect("puts");
        }
        txn.commit().expect("commits");
        assert!(env.headroom() < before);
        assert_eq!(env.env.real_disk_size().expect("measured"), length, "the file did not grow");
        env.env.prepare_for_closing().wait();
        let env = open(folder.path());
        let table = env.table("t").expect("a table");
        assert_eq!(env.read().expect("reads").count(&[table]).expect("whole").records, 1000);
    }

    #[test]
    fn a_truncated_file_is_refused_instead_of_a_sigbus() {
        let folder = tempfile::tempdir().expect("a folder");
        let env = open(folder.path());
        let table = env.table("t").expect("a table");
        let mut txn = env.write().expect("writes");
        for n in 0..2000u32 {
            txn.put(table, &n.to_be_bytes(), 1, &[7; 200], b"").expect("puts");
        }
        txn.commit().expect("commits");
        env.env.prepare_for_closing().wait();
        let file =
            std::fs::OpenOptions::new().write(true).open(folder.path().join("data.mdb")).expect("opens");
        file.set_len(40_960).expect("truncates");
        let options = EnvironmentOptions { map_bytes: 1 << 30, tables_max: 4 };
        let refused = Environment::open(folder.path(), options);
        assert!(matches!(refused, Err(Error::Truncated { .. })), "{refused:?}");
    }
}
