//! Compaction of an open environment, while others read and write.
//!
//! The records are copied in the order of tables and keys into a new data file, in steps. Each step begins a snapshot, brings
//! the keys up to date that were copied earlier and have changed since the last step, and copies the next records. Then it
//! commits. So after each step the copy has exactly the records of the step's snapshot, up to the last copied key.
//! Changes after that key need no record: a later step finds them. No snapshot lasts longer than a step, so the original
//! grows no more than it would otherwise.
//!
//! With a commit log, the commits of the copy are not flushed: its pages are handed to the device after each step, and it is
//! flushed as a whole before it gets the name. So others wait for few flushes of it.
//!
//! When all records are copied, further rounds bring the copy up to date, each with fewer changes than the one before. The
//! last round runs under the writer lock. Then the copy has the same records as the original, which the totals of both show.
//! It gets the name of the data file, the folder is flushed, and new transactions begin in the copy. Only then can others write
//! again. Transactions that are open stay in the original, whose space is freed when the last of them has ended.
//!
//! A crash before the rename leaves the original, and a folder that the next opening removes. A crash after it leaves the copy.
//! Nothing is written between the last round and the rename, so both have the same records. With a commit log, the copy has a
//! durable checkpoint before it gets the name, and the log continues from there.
//!
//! [`Environment::renew`] uses the same copy after a failed commit. What the device holds of the old file is unknown then. The
//! new one was written and flushed as a whole.

use crate::changed_keys::{ChangedKey, Recording};
use crate::compact::{Compaction, length, table_names};
use crate::current::Handle;
use crate::environment::{Environment, remove_folder};
use crate::error::Error;
use crate::generation::{DATA_FILE, Generation, Headroom, check_not_truncated};
use crate::limits::{
    CHANGED_STEP_BYTES, CLOSE_WAIT, COMPACTION_GAIN_MIN, COPY_STEP_BYTES, COPY_STEP_RECORDS,
    LAST_ROUND_KEYS_MAX, ROUNDS_MAX,
};
use crate::record;
use crate::steady_io::{continue_write_back, free_gradually};
use crate::table::Table;
use crate::totals::Totals;
use crate::txn::{Place, ReadTxn, WriteTxn};
use std::cell::Cell;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The options for compacting an open environment.
pub struct OpenCompactOptions<'o> {
    /// Bytes of space that the copy gets after its last page; see [`Environment::extend`].
    pub headroom_bytes: u64,
    /// Free bytes of the file system that the copy may use.
    pub available_bytes: u64,
    /// Called after each step with the number of bytes that were copied. The compaction ends when it returns `false`. It may
    /// sleep, to leave the device to others.
    pub proceed: &'o dyn Fn(CopyProgress) -> bool,
}

/// The progress of a compaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyProgress {
    /// Bytes of keys and values.
    pub copied_bytes: u64,
    /// Bytes of the pages in use when the compaction began. Approximately what is to be copied.
    pub expected_bytes: u64,
    /// The duration of the last step.
    pub step: Duration,
}

/// The result of a compaction of an open environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenCompaction {
    /// Sizes and the number of records.
    pub compaction: Compaction,
    /// The time for which writers had to wait for the replacement of the file. Zero if there was little to gain.
    pub pause: Duration,
}

impl Environment {
    /// Replaces the data file by a compact copy while others read and write. Blocks until the old file is closed.
    ///
    /// The calling thread must not have an open transaction.
    ///
    /// # Errors
    /// [`Error::CompactionRunning`], [`Error::NoSpaceForCopy`], [`Error::TooManyChanges`], [`Error::UnknownTable`],
    /// [`Error::Cancelled`] and [`Error::Corrupt`]: the environment is unchanged. [`Error::Io`] when the new name could
    /// not be flushed: then nothing can be written until the environment is opened again.
    pub fn compact(&self, options: &OpenCompactOptions<'_>) -> Result<OpenCompaction, Error> {
        let tables = self.try_lock_tables().ok_or(Error::CompactionRunning)?;
        self.refuse_unknown_tables(&tables)?;
        if self.compaction_need(options.headroom_bytes)?.is_none() {
            let bytes_before = length_of(&self.current.get().data)?;
            let records = self.read()?.totals()?.records;
            let compaction = Compaction { bytes_before, bytes_after: bytes_before, records };
            return Ok(OpenCompaction { compaction, pause: Duration::ZERO });
        }
        self.copy_and_replace(&tables, options)
    }

    /// Returns the bytes that a compact copy with this headroom takes, or `None` when there is little to gain.
    ///
    /// # Errors
    /// Those of LMDB and the file system.
    pub fn compaction_need(&self, headroom_bytes: u64) -> Result<Option<u64>, Error> {
        let generation = self.current.get();
        let needed = generation.live_bytes()?.saturating_add(headroom_bytes);
        let gain = length_of(&generation.data)?.saturating_sub(needed);
        Ok((gain >= COMPACTION_GAIN_MIN).then_some(needed))
    }

    /// Replaces the data file by a new copy after a failed commit, so that writers can continue. The caller ensures that
    /// nothing is written until then.
    ///
    /// After a failed flush, the kernel may have dropped pages that it could not write, and LMDB may refuse every
    /// transaction. The last acknowledged state is intact: its pages were flushed, and the failed transaction did not
    /// overwrite any of them. So the file is opened again at that state and copied into a new file. Nothing of the failed
    /// transaction becomes part of it.
    ///
    /// # Errors
    /// As [`Environment::compact`]. [`Error::Io`] also when the file does not show the last acknowledged state, or while the
    /// device still fails.
    pub fn renew(&self, options: &OpenCompactOptions<'_>) -> Result<OpenCompaction, Error> {
        let tables = self.try_lock_tables().ok_or(Error::CompactionRunning)?;
        if let Some(log) = self.log() {
            let (earlier, rebuilt) = self.rebuild(log, &tables, options)?;
            retire(earlier)?;
            return Ok(rebuilt);
        }
        let folder = self.make_folder()?;
        let reopened = self.open_again(&folder, &tables);
        // The data file has its own name too.
        remove_folder(&folder)?;
        retire(reopened?)?;
        self.copy_and_replace(&tables, options)
    }

    /// Opens the data file a second time, under another name, checks that it shows the last acknowledged state, and lets new
    /// transactions begin there. Returns the earlier generation.
    fn open_again(&self, folder: &Path, tables: &[String]) -> Result<Arc<Generation>, Error> {
        let _name_stays = self.lock_file();
        let earlier = self.current.get();
        // Waits for a commit in progress. Fails if LMDB refuses every transaction after a failure; then there is none.
        let _writers_wait = earlier.env.write_txn();
        check_not_truncated(&self.folder)?;
        std::fs::hard_link(self.folder.join(DATA_FILE), folder.join(DATA_FILE)).map_err(Error::Io)?;
        let reopened = Generation::open(folder, self.options)?;
        reopened.open_tables_of(&earlier, tables)?;
        if reopened.last_committed() != earlier.last_committed() {
            let what = "the data file shows a change that failed: restart the service";
            return Err(Error::Io(io::Error::other(what)));
        }
        reopened.continue_numbers_from(earlier.last_number());
        Ok(self.current.replace(Arc::new(reopened)))
    }

    /// A table of a later version of the program would be missing in the copy.
    fn refuse_unknown_tables(&self, tables: &[String]) -> Result<(), Error> {
        let found = table_names(&self.current.get(), &self.read()?)?;
        let unknown = found.into_iter().find(|name| !tables.contains(name));
        unknown.map_or(Ok(()), |name| Err(Error::UnknownTable(name)))
    }

    fn copy_and_replace(
        &self,
        tables: &[String],
        options: &OpenCompactOptions<'_>,
    ) -> Result<OpenCompaction, Error> {
        let original = self.current.get();
        let bytes_before = length_of(&original.data)?;
        let expected_bytes = original.live_bytes()?;
        let needed = expected_bytes.saturating_add(options.headroom_bytes);
        drop(original);
        if needed > options.available_bytes {
            return Err(Error::NoSpaceForCopy { needed, available: options.available_bytes });
        }
        let folder = self.make_folder()?;
        let replaced = self.copy_to(&folder, tables, expected_bytes, options);
        // The copy has the name of the original now, or is not needed.
        let removed = remove_folder(&folder);
        let (earlier, totals, pause) = replaced?;
        removed?;
        let bytes_after = length(&self.folder)?;
        retire(earlier)?;
        let compaction = Compaction { bytes_before, bytes_after, records: totals.records };
        Ok(OpenCompaction { compaction, pause })
    }

    fn copy_to(
        &self,
        folder: &Path,
        tables: &[String],
        expected_bytes: u64,
        options: &OpenCompactOptions<'_>,
    ) -> Result<(Arc<Generation>, Totals, Duration), Error> {
        let flush_failures = self.flush_failures().count();
        let copy = Generation::open(folder, self.options)?;
        copy.open_tables_of(&self.current.get(), tables)?;
        if self.has_log() {
            copy.leave_commits_unflushed()?;
        }
        let recording = self.changed_keys.record();
        // Waits for a transaction in progress: the writer lock is free only between transactions.
        drop(self.write()?);
        let progress = CopyProgress { expected_bytes, ..CopyProgress::default() };
        let cursor = Cursor { table: Table(1), last: None, tables: tables.len() };
        let (copy, waited) = (Arc::new(copy), Cell::default());
        let mut copying =
            Copying { environment: self, copy, recording, cursor, progress, waited, flush_failures, options };
        while !copying.cursor.is_at_end() {
            copying.step()?;
        }
        copying.verify()?;
        let headroom = Headroom::with_log(self.has_log());
        copying.copy.extend(options.headroom_bytes, headroom, &self.flush_failures())?;
        copying.replace(folder)
    }
}

/// The place up to which records were copied.
struct Cursor {
    table: Table,
    /// The last key of `table` that was copied.
    last: Option<Box<[u8]>>,
    /// Number of tables.
    tables: usize,
}

impl Cursor {
    fn is_at_end(&self) -> bool {
        self.table.index() >= self.tables
    }

    /// Returns whether a key, present or not, is among those that were copied.
    fn has_passed(&self, table: Table, key: &[u8]) -> bool {
        table.index() < self.table.index()
            || (table == self.table && self.last.as_deref().is_some_and(|last| key <= last))
    }
}

/// A copy in progress.
struct Copying<'c> {
    environment: &'c Environment,
    copy: Arc<Generation>,
    recording: Recording<'c>,
    cursor: Cursor,
    progress: CopyProgress,
    /// Time for which the current step has waited for the device.
    waited: Cell<Duration>,
    /// Failed flushes of the device before the copy began.
    flush_failures: u64,
    options: &'c OpenCompactOptions<'c>,
}

impl Copying<'_> {
    /// Brings the copy up to date with a snapshot and copies the next records of it.
    fn step(&mut self) -> Result<(), Error> {
        let began = Instant::now();
        let read = self.environment.read()?;
        let changed = self.recording.take_up_to(read.id())?;
        let mut write = self.bring_up_to_date(&read, changed)?;
        let (mut bytes, mut records) = (0, 0);
        while !self.cursor.is_at_end() && bytes < COPY_STEP_BYTES && records < COPY_STEP_RECORDS {
            let table = self.cursor.table;
            let mut values = read.values(table, self.cursor.last.as_deref())?;
            loop {
                let Some(item) = values.next() else {
                    self.cursor.table = Table(table.0 + 1);
                    self.cursor.last = None;
                    break;
                };
                let (key, value) = item?;
                record::decode(key, value)?;
                write.copy(table, key, value, Place::End)?;
                bytes += key.len() + value.len();
                records += 1;
                if bytes >= COPY_STEP_BYTES || records >= COPY_STEP_RECORDS {
                    self.cursor.last = Some(key.into());
                    break;
                }
            }
        }
        drop(read);
        self.commit(write)?;
        self.progress.copied_bytes += bytes as u64;
        self.proceed(began)
    }

    /// Reports the progress since `began`, and checks whether the compaction should end. Waiting for the device is no work: if
    /// the caller rested for it, a busy environment would change faster than the copy can follow.
    fn proceed(&mut self, began: Instant) -> Result<(), Error> {
        self.progress.step = began.elapsed().saturating_sub(self.waited.take());
        if (self.options.proceed)(self.progress) { Ok(()) } else { Err(Error::Cancelled) }
    }

    /// Commits to the copy, and hands that to the device when it has written the commit before: what is handed to it at once
    /// delays the commits of others.
    fn commit(&self, write: WriteTxn<'_>) -> Result<(), Error> {
        write.commit()?;
        let began = Instant::now();
        continue_write_back(&self.copy.data).map_err(heed::Error::Io)?;
        self.waited.set(self.waited.get() + began.elapsed());
        Ok(())
    }

    /// Copies the present values of changed keys, as far as they were copied before. Returns the last transaction, which is not
    /// committed: many changes take several.
    fn bring_up_to_date(
        &self,
        read: &ReadTxn<'_>,
        mut changed: Vec<ChangedKey>,
    ) -> Result<WriteTxn<'static>, Error> {
        changed.retain(|(table, key)| *table != Table::TOTALS && self.cursor.has_passed(*table, key));
        changed.sort_unstable();
        changed.dedup();
        let mut write = WriteTxn::on(Arc::clone(&self.copy))?;
        let mut bytes = 0;
        for (table, key) in &changed {
            if bytes >= CHANGED_STEP_BYTES {
                self.commit(write)?;
                write = WriteTxn::on(Arc::clone(&self.copy))?;
                bytes = 0;
            }
            match read.value(*table, key)? {
                Some(value) => {
                    record::decode(key, value)?;
                    write.copy(*table, key, value, Place::Anywhere)?;
                    bytes += key.len() + value.len();
                }
                None => drop(write.remove(*table, key)?),
            }
        }
        Ok(write)
    }

    /// Brings the copy up to date with a new snapshot.
    fn round(&self) -> Result<(), Error> {
        let read = self.environment.read()?;
        let changed = self.recording.take_up_to(read.id())?;
        self.commit(self.bring_up_to_date(&read, changed)?)
    }

    /// Reads the copy back and checks its records and totals. Follows the changes meanwhile.
    fn verify(&mut self) -> Result<(), Error> {
        let readers = crate::readers::Readers::new();
        let handle = Arc::new(Handle(Arc::clone(&self.copy)));
        let read = ReadTxn::on(handle, &readers)?;
        let mut counted = Totals::default();
        let mut began = Instant::now();
        for table in (1..self.cursor.tables).map(|number| Table(u8::try_from(number).unwrap_or(u8::MAX))) {
            for item in read.values(table, None)? {
                let (key, value) = item?;
                record::decode(key, value)?;
                counted.add(value);
                if counted.records % COPY_STEP_RECORDS as u64 == 0 {
                    self.round()?;
                    self.proceed(began)?;
                    began = Instant::now();
                }
            }
        }
        if counted == read.totals()? { Ok(()) } else { Err(differs()) }
    }

    /// Brings the copy up to date with the last change, gives it the name of the data file, and lets new transactions begin
    /// in it. Returns the earlier generation, the totals, and how long writers waited.
    fn replace(&mut self, folder: &Path) -> Result<(Arc<Generation>, Totals, Duration), Error> {
        let environment = self.environment;
        let _name_stays = environment.lock_file();
        for _ in 0..ROUNDS_MAX {
            self.round()?;
            let writers_wait = environment.write()?;
            let began = Instant::now();
            let read = environment.read()?;
            let changed = self.recording.take_up_to(read.id())?;
            if changed.len() > LAST_ROUND_KEYS_MAX {
                drop(writers_wait);
                self.commit(self.bring_up_to_date(&read, changed)?)?;
                continue;
            }
            let write = self.bring_up_to_date(&read, changed)?;
            let totals = write.totals();
            write.commit()?;
            if read.totals()? != totals {
                return Err(differs());
            }
            self.copy.continue_numbers_from(read.id());
            let committed = read.handle.0.committed();
            drop(read);
            let mut with_log = None;
            if let Some(log) = environment.log() {
                let unknown = || Error::Io(io::Error::other("the roots of the last transaction are unknown"));
                let next = committed.ok_or_else(unknown)?.next;
                let saved = log.lock_saved();
                let checkpoint = log.prepare_copy(&saved, &self.copy, next)?;
                with_log = Some((log, saved, checkpoint));
            }
            let failures = environment.flush_failures();
            failures.check_none_since(self.flush_failures).map_err(Error::Io)?;
            // Nobody can write to the copy before all threads read it.
            let copy_is_held = self.copy.env.write_txn()?;
            let named = environment.replace_data_file(folder)?;
            let flushed = named.and_then(|()| failures.check_none_since(self.flush_failures));
            if flushed.is_err() {
                // A power cut could bring the original back, without any change that follows.
                environment.is_broken.store(true, Ordering::Release);
            }
            let earlier = environment.current.replace(Arc::clone(&self.copy));
            if let Some((log, mut saved, checkpoint)) = with_log {
                log.continue_with(&mut saved, &self.copy, &checkpoint);
            }
            copy_is_held.abort();
            drop(writers_wait);
            let pause = began.elapsed();
            flushed.map_err(Error::Io)?;
            return Ok((earlier, totals, pause));
        }
        Err(Error::TooManyChanges)
    }
}

fn differs() -> Error {
    Error::Corrupt { key: "the compact copy".to_owned(), what: "its records differ from the totals" }
}

fn length_of(file: &File) -> Result<u64, Error> {
    Ok(file.metadata().map_err(Error::Io)?.len())
}

/// Waits until the last transaction of a replaced generation has ended, closes it, and frees the space of its file.
#[expect(clippy::disallowed_methods, reason = "compactions run on plain threads")]
fn retire(generation: Arc<Generation>) -> Result<(), Error> {
    let give_up = Instant::now() + CLOSE_WAIT;
    while Arc::strong_count(&generation) > 1 && Instant::now() < give_up {
        std::thread::sleep(Duration::from_millis(1));
    }
    // If a transaction is still open, its end closes the file.
    let Some(file) = Generation::close(generation) else { return Ok(()) };
    // A file that still has a name is not ours to shorten.
    if file.metadata().map_err(Error::Io)?.nlink() > 0 {
        return Ok(());
    }
    free_gradually(&file).map_err(Error::Io)
}

#[cfg(test)]
mod tests;
