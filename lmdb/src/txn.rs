//! Transactions over records with checksums.

use crate::changed_keys::ChangedKey;
use crate::current::Handle;
use crate::environment::Environment;
use crate::error::Error;
use crate::generation::{Generation, begin_read};
use crate::iterators::{Entries, Keys, ReverseScan, Scan, Values};
use crate::log::commit::commit_after_log;
use crate::log::commit_log::CommitLog;
use crate::log::log_record::LoggedChanges;
use crate::lookups::{first_at_or_after, get, last_before, scan};
use crate::readers::{OpenRead, Readers};
use crate::record::{self, Record};
use crate::table::{Database, Table};
use crate::totals::{TOTALS_KEY, Totals};
use heed::{PutFlags, RoTxn, RwTxn, WithTls};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A snapshot of an environment. It stays on its thread and must not be held across an `.await`.
pub struct ReadTxn<'e> {
    /// Borrows from the generation of the handle, so it must be dropped first: fields are dropped in their order.
    pub(crate) txn: RoTxn<'e, WithTls>,
    pub(crate) handle: Arc<Handle>,
    /// The tables that existed when it began, one bit for each number.
    tables: u64,
    _open: OpenRead<'e>,
}

/// Extends the borrow of a generation to that of the transaction which keeps it open.
///
/// The caller stores the reference's borrower in one struct with an owner of the generation, and declares it before the owner.
fn borrow_for_transaction<'e>(generation: &Arc<Generation>) -> &'e Generation {
    #[expect(unsafe_code, reason = "a transaction owns the generation that it borrows from")]
    // SAFETY: the generation is in an Arc, so it does not move, and a transaction is dropped before its field that owns the
    // Arc. Neither is handed out.
    unsafe {
        &*Arc::as_ptr(generation)
    }
}

impl ReadTxn<'_> {
    /// Returns the number of the last transaction that this snapshot contains.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.handle.0.number_of(self.txn.id())
    }

    /// `None` if the table was absent when the transaction began, which LMDB cannot read in it.
    pub(crate) fn database(&self, table: Table) -> Option<&Database> {
        (self.tables & table.bit() != 0).then(|| self.handle.0.database(table))?
    }

    /// Begins to read a snapshot of the generation of `handle`.
    pub(crate) fn on<'r>(handle: Arc<Handle>, readers: &'r Readers) -> Result<ReadTxn<'r>, Error> {
        let tables = handle.0.opened_tables();
        let txn = begin_read(borrow_for_transaction(&handle.0))?;
        Ok(ReadTxn { txn, handle, tables, _open: readers.begin() })
    }

    /// Iterates over the stored values after the key `after`, or over all, without verifying them.
    pub(crate) fn values(&self, table: Table, after: Option<&[u8]>) -> Result<Values<'_>, Error> {
        let first = after.map_or(Bound::Unbounded, Bound::Excluded);
        let bounds = (first, Bound::Unbounded);
        let found = self.database(table).map(|table| table.range(&self.txn, &bounds)).transpose()?;
        Ok(found.into_iter().flatten())
    }

    /// Returns the stored value of a key, without verifying it.
    pub(crate) fn value(&self, table: Table, key: &[u8]) -> Result<Option<&[u8]>, Error> {
        Ok(self.database(table).map(|table| table.get(&self.txn, key)).transpose()?.flatten())
    }

    /// Iterates over the records after the key `after`, or over all. Damaged records are included.
    ///
    /// # Errors
    /// Those of LMDB. An error among the entries ends the iteration.
    pub fn entries(&self, table: Table, after: Option<&[u8]>) -> Result<Entries<'_>, Error> {
        let first = after.map_or(Bound::Unbounded, Bound::Excluded);
        let bounds = (first, Bound::Unbounded);
        Ok(Entries { inner: self.database(table).map(|table| table.range(&self.txn, &bounds)).transpose()? })
    }

    /// Returns the number of records in a table, without reading them.
    ///
    /// # Errors
    /// Those of LMDB.
    pub fn count(&self, table: Table) -> Result<u64, Error> {
        Ok(self.database(table).map(|table| table.len(&self.txn)).transpose()?.unwrap_or(0))
    }

    /// Returns the record of `key`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when its checksum is wrong; otherwise those of LMDB.
    pub fn get(&self, table: Table, key: &[u8]) -> Result<Option<Record<'_>>, Error> {
        get(&self.txn, self.database(table), key)
    }

    /// Returns the first record whose key is `key` or greater.
    ///
    /// # Errors
    /// As [`ReadTxn::get`].
    pub fn first_at_or_after(&self, table: Table, key: &[u8]) -> Result<Option<(&[u8], Record<'_>)>, Error> {
        first_at_or_after(&self.txn, self.database(table), key)
    }

    /// Returns the last record whose key is less than `key`.
    ///
    /// # Errors
    /// As [`ReadTxn::get`].
    pub fn last_before(&self, table: Table, key: &[u8]) -> Result<Option<(&[u8], Record<'_>)>, Error> {
        last_before(&self.txn, self.database(table), key)
    }

    /// Iterates over the records from the key `from` on.
    ///
    /// # Errors
    /// Those of LMDB.
    pub fn scan(&self, table: Table, from: &[u8]) -> Result<Scan<'_>, Error> {
        scan(&self.txn, self.database(table), from)
    }

    /// Iterates over the keys from `from` on.
    ///
    /// # Errors
    /// Those of LMDB.
    pub fn keys(&self, table: Table, from: &[u8]) -> Result<Keys<'_>, Error> {
        let first = if from.is_empty() { Bound::Unbounded } else { Bound::Included(from) };
        let bounds = (first, Bound::Unbounded);
        let keys_of =
            |table: &Database| table.remap_data_type::<heed::types::DecodeIgnore>().range(&self.txn, &bounds);
        Ok(Keys { inner: self.database(table).map(keys_of).transpose()? })
    }

    /// Iterates over the records whose key is less than `before`, the greatest first. A damaged record does not end the
    /// scan.
    ///
    /// # Errors
    /// Those of LMDB.
    pub fn scan_reverse(&self, table: Table, before: &[u8]) -> Result<ReverseScan<'_>, Error> {
        let bounds = (Bound::Unbounded, Bound::Excluded(before));
        let reversed = |table: &Database| table.rev_range(&self.txn, &bounds);
        Ok(ReverseScan { inner: self.database(table).map(reversed).transpose()? })
    }

    /// Returns the stored record count and hash of this snapshot.
    ///
    /// # Errors
    /// As [`ReadTxn::get`].
    pub fn totals(&self) -> Result<Totals, Error> {
        read_totals(&self.txn, self.database(Table::TOTALS))
    }

    /// Verifies all records of `tables` and computes their totals.
    ///
    /// # Errors
    /// As [`ReadTxn::get`], for the first record whose checksum is wrong.
    pub fn compute_totals(&self, tables: &[Table]) -> Result<Totals, Error> {
        let mut totals = Totals::default();
        for table in tables {
            for item in self.values(*table, None)? {
                let (key, value) = item?;
                record::decode(key, value)?;
                totals.add(value);
            }
        }
        Ok(totals)
    }
}

fn read_totals(txn: &RoTxn<'_>, table: Option<&Database>) -> Result<Totals, Error> {
    let record = get(txn, table, TOTALS_KEY)?;
    record.map_or(Ok(Totals::default()), |record| Totals::decode(record.body))
}

impl Environment {
    /// Begins to read a snapshot. The transaction belongs to this thread, which may have one per environment at a time.
    /// Do not hold it across an `.await`: pages freed meanwhile could not be reused.
    ///
    /// # Errors
    /// Those of LMDB, for example that all reader slots are in use.
    pub fn read(&self) -> Result<ReadTxn<'_>, Error> {
        ReadTxn::on(self.current.handle(), &self.readers)
    }

    /// Begins to write. Blocks while another thread writes. Only the environment's writer thread calls it.
    ///
    /// # Errors
    /// Those of LMDB; [`Error::Io`] after a compaction whose outcome on the device is unknown.
    pub fn write(&self) -> Result<WriteTxn<'_>, Error> {
        loop {
            if self.is_broken.load(Ordering::Acquire) {
                let what = "it is unknown whether the device holds a compaction: restart the service";
                return Err(Error::Io(std::io::Error::other(what)));
            }
            let mut txn = WriteTxn::on(self.current.get())?;
            // A compaction may have replaced the generation while this thread waited for the writer lock.
            if self.current.is(&txn.generation) {
                txn.environment = Some(self);
                txn.changed_keys = self.changed_keys.is_recording().then(Vec::new);
                txn.logged = self.log().map(CommitLog::begin);
                return Ok(txn);
            }
        }
    }
}

/// A set of changes that becomes durable as a whole or not at all.
pub struct WriteTxn<'e> {
    /// Borrows from the generation, so it must be dropped first: fields are dropped in their order.
    txn: RwTxn<'e>,
    generation: Arc<Generation>,
    totals: Totals,
    scratch: Vec<u8>,
    changed: bool,
    /// `None` for a copy that nobody uses yet.
    environment: Option<&'e Environment>,
    /// The keys that were changed, if someone wants them.
    changed_keys: Option<Vec<ChangedKey>>,
    /// The changes, for the log that makes the transaction durable.
    logged: Option<LoggedChanges>,
}

/// The place of a written value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// After all other keys of the table. This fills the pages.
    End,
    Anywhere,
}

impl Place {
    const fn flags(self) -> PutFlags {
        match self {
            Self::End => PutFlags::APPEND,
            Self::Anywhere => PutFlags::empty(),
        }
    }
}

impl WriteTxn<'_> {
    /// Begins to write to a generation.
    pub(crate) fn on(generation: Arc<Generation>) -> Result<Self, Error> {
        let txn = borrow_for_transaction(&generation).env.write_txn()?;
        let totals = read_totals(&txn, generation.database(Table::TOTALS))?;
        Ok(Self {
            txn,
            generation,
            totals,
            scratch: Vec::new(),
            changed: false,
            environment: None,
            changed_keys: None,
            logged: None,
        })
    }

    fn database(&self, table: Table) -> Option<&Database> {
        self.generation.database(table)
    }

    /// A table that is written to. Nobody writes to an absent one.
    fn present(generation: &Generation, table: Table) -> &Database {
        generation.database(table).expect("a table is created before it is written to")
    }

    /// Notes that a key is changed. `value` is its stored value, or `None` if it was removed.
    fn note_change(&mut self, table: Table, key: &[u8], value: Option<&[u8]>) {
        self.changed = true;
        if let Some(logged) = &mut self.logged {
            let name = || self.generation.name_of(table);
            match value {
                Some(value) => logged.put(table, key, value, name),
                None => logged.remove(table, key, name),
            }
        }
        if let Some(keys) = &mut self.changed_keys {
            keys.push((table, key.into()));
        }
    }

    /// Writes a stored value of another generation as it is.
    pub(crate) fn copy(&mut self, table: Table, key: &[u8], value: &[u8], place: Place) -> Result<(), Error> {
        if place == Place::Anywhere {
            self.remove(table, key)?;
        }
        Self::present(&self.generation, table).put_with_flags(&mut self.txn, place.flags(), key, value)?;
        self.totals.add(value);
        self.note_change(table, key, Some(value));
        Ok(())
    }

    /// Returns the number that this transaction has once committed. A dropped transaction leaves its number to the
    /// next.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.generation.number_of(self.txn.id())
    }

    /// As [`ReadTxn::get`], including the changes of this transaction.
    ///
    /// # Errors
    /// As [`ReadTxn::get`].
    pub fn get(&self, table: Table, key: &[u8]) -> Result<Option<Record<'_>>, Error> {
        get(&self.txn, self.database(table), key)
    }

    /// As [`ReadTxn::first_at_or_after`], including the changes of this transaction.
    ///
    /// # Errors
    /// As [`ReadTxn::get`].
    pub fn first_at_or_after(&self, table: Table, key: &[u8]) -> Result<Option<(&[u8], Record<'_>)>, Error> {
        first_at_or_after(&self.txn, self.database(table), key)
    }

    /// As [`ReadTxn::last_before`], including the changes of this transaction.
    ///
    /// # Errors
    /// As [`ReadTxn::get`].
    pub fn last_before(&self, table: Table, key: &[u8]) -> Result<Option<(&[u8], Record<'_>)>, Error> {
        last_before(&self.txn, self.database(table), key)
    }

    /// As [`ReadTxn::scan`], including the changes of this transaction.
    ///
    /// # Errors
    /// As [`ReadTxn::scan`].
    pub fn scan(&self, table: Table, from: &[u8]) -> Result<Scan<'_>, Error> {
        scan(&self.txn, self.database(table), from)
    }

    /// Returns the first key that is `key` or greater, even if its record is damaged.
    ///
    /// # Errors
    /// Those of LMDB.
    pub fn first_key_at_or_after(&self, table: Table, key: &[u8]) -> Result<Option<&[u8]>, Error> {
        let Some(table) = self.database(table) else { return Ok(None) };
        Ok(table.get_greater_than_or_equal_to(&self.txn, key)?.map(|(key, _)| key))
    }

    /// As [`ReadTxn::count`], including the changes of this transaction.
    ///
    /// # Errors
    /// As [`ReadTxn::count`].
    pub fn count(&self, table: Table) -> Result<u64, Error> {
        Ok(self.database(table).map(|table| table.len(&self.txn)).transpose()?.unwrap_or(0))
    }

    /// Returns the record count and hash, including the changes of this transaction.
    #[must_use]
    pub const fn totals(&self) -> Totals {
        self.totals
    }

    /// Writes the record of `key`. Replaces an existing one.
    ///
    /// # Errors
    /// [`Error::Full`] when the file system or the map has no space. The transaction must then be dropped.
    pub fn put(
        &mut self,
        table: Table,
        key: &[u8],
        version: u8,
        body: &[u8],
        tail: &[u8],
    ) -> Result<(), Error> {
        if let Some(old) = Self::present(&self.generation, table).get(&self.txn, key)? {
            self.totals.subtract(old);
        }
        self.insert(table, key, version, body, tail)
    }

    /// Writes the record of a key that the caller knows to be absent.
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
        self.insert_at(Place::Anywhere, table, key, version, (body, tail))
    }

    /// Writes a record after all others of its table. This is cheaper, and it fills the pages.
    ///
    /// # Errors
    /// As [`WriteTxn::put`], and [`Error::Lmdb`] if the key is not greater than all others.
    pub fn append(&mut self, table: Table, key: &[u8], version: u8, body: &[u8]) -> Result<(), Error> {
        self.insert_at(Place::End, table, key, version, (body, &[]))
    }

    fn insert_at(
        &mut self,
        place: Place,
        table: Table,
        key: &[u8],
        version: u8,
        (body, tail): (&[u8], &[u8]),
    ) -> Result<(), Error> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let checksum = record::encode(&mut scratch, key, version, body, tail)?;
        let database = Self::present(&self.generation, table);
        database.put_with_flags(&mut self.txn, place.flags(), key, &scratch)?;
        self.totals.records += 1;
        self.totals.hash = self.totals.hash.wrapping_add(checksum);
        self.note_change(table, key, Some(&scratch));
        self.scratch = scratch;
        Ok(())
    }

    /// Removes the record of `key`. Returns whether it existed.
    ///
    /// # Errors
    /// As [`WriteTxn::put`].
    pub fn remove(&mut self, table: Table, key: &[u8]) -> Result<bool, Error> {
        let Some(database) = self.database(table) else { return Ok(false) };
        let Some(old) = database.get(&self.txn, key)? else { return Ok(false) };
        self.totals.subtract(old);
        Self::present(&self.generation, table).delete(&mut self.txn, key)?;
        self.note_change(table, key, None);
        Ok(true)
    }

    /// Returns whether anything was written.
    #[must_use]
    pub const fn changed(&self) -> bool {
        self.changed
    }

    /// Makes all changes durable, then visible. Blocks until the log was flushed, or without a log until LMDB has flushed the
    /// data file. Writes nothing when there are no changes.
    ///
    /// # Errors
    /// [`Error::Full`] or [`Error::Io`]. None of the changes has taken effect then.
    pub fn commit(mut self) -> Result<(), Error> {
        if !self.changed {
            self.txn.abort();
            return Ok(());
        }
        record::encode(&mut self.scratch, TOTALS_KEY, 1, &self.totals.encode(), &[])?;
        Self::present(&self.generation, Table::TOTALS).put(&mut self.txn, TOTALS_KEY, &self.scratch)?;
        let number = self.id();
        let Self { txn, generation, totals, environment, changed_keys, logged, .. } = self;
        let recorded = environment.zip(changed_keys).map(|(environment, keys)| {
            environment.changed_keys.append(number, keys);
            &environment.changed_keys
        });
        let log = environment.and_then(|environment| Some((environment.log()?, &*environment.current)));
        let committed = match log.zip(logged) {
            Some((log, logged)) => commit_after_log(&generation, txn, log, logged, totals),
            None => generation.commit(txn, None),
        };
        if committed.is_err() {
            recorded.inspect(|recorded| recorded.withdraw(number));
        }
        // A log counts those of its own.
        if let (Err(error @ Error::Io(_)), None, Some(environment)) = (&committed, log, environment) {
            environment.flush_failures().add(error);
        }
        committed
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
        let with_two = env.read().expect("reads").totals().expect("totals");
        assert_eq!(with_two.records, 2);
        let mut txn = env.write().expect("writes");
        txn.put(table, b"b", 1, b"3", b"").expect("puts");
        assert!(txn.remove(table, b"a").expect("removes"));
        assert!(!txn.remove(table, b"zz").expect("removes"));
        txn.put(table, b"a", 1, b"1", b"").expect("puts");
        txn.put(table, b"b", 1, b"2", b"").expect("puts");
        txn.commit().expect("commits");
        assert_eq!(env.read().expect("reads").totals().expect("totals"), with_two);
    }

    #[test]
    fn a_dropped_transaction_changes_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let env = open(folder.path());
        let table = env.table("t").expect("a table");
        let mut txn = env.write().expect("writes");
        txn.put(table, b"a", 1, b"1", b"").expect("puts");
        drop(txn);
        assert!(env.read().expect("reads").get(table, b"a").expect("reads").is_none());
    }

    #[test]
    fn a_reverse_scan_descends_from_before_its_bound() {
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
            let scan = txn.scan_reverse(table, bound).expect("scans");
            scan.map(|item| item.expect("an item").0.to_vec()).collect()
        };
        assert_eq!(before(b"c"), [b"b", b"a"]);
        assert_eq!(before(b"z"), [b"c", b"b", b"a"]);
        assert!(before(b"a").is_empty());
    }

    #[test]
    fn preallocated_space_is_used_and_survives_reopening() {
        let folder = tempfile::tempdir().expect("a folder");
        let env = open(folder.path());
        let table = env.table("t").expect("a table");
        env.extend(1 << 20).expect("extends");
        let (before, length) = (env.headroom(), env.current.get().env.real_disk_size().expect("measured"));
        assert!(before >= 1 << 20);
        let mut txn = env.write().expect("writes");
        for n in 0..1000u32 {
            txn.put(table, &n.to_be_bytes(), 1, &[7; 200], b"").expect("puts");
        }
        txn.commit().expect("commits");
        assert!(env.headroom() < before);
        assert_eq!(
            env.current.get().env.real_disk_size().expect("measured"),
            length,
            "the file did not grow"
        );
        env.close();
        let env = open(folder.path());
        let table = env.table("t").expect("a table");
        assert_eq!(env.read().expect("reads").compute_totals(&[table]).expect("whole").records, 1000);
    }

    #[test]
    fn a_truncated_file_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let env = open(folder.path());
        let table = env.table("t").expect("a table");
        let mut txn = env.write().expect("writes");
        for n in 0..2000u32 {
            txn.put(table, &n.to_be_bytes(), 1, &[7; 200], b"").expect("puts");
        }
        txn.commit().expect("commits");
        env.close();
        let file =
            std::fs::OpenOptions::new().write(true).open(folder.path().join("data.mdb")).expect("opens");
        file.set_len(40_960).expect("truncates");
        let options = EnvironmentOptions { map_bytes: 1 << 30, tables_max: 4 };
        let refused = Environment::open(folder.path(), options);
        assert!(matches!(refused, Err(Error::Truncated { .. })), "{refused:?}");
    }
}
