//! One LMDB environment: a folder with a data file that contains named tables.

use crate::changed_keys::ChangedKeys;
use crate::current::Current;
use crate::error::Error;
use crate::flush_failures::FlushFailures;
use crate::folder::flush_folder;
pub use crate::generation::EnvironmentOptions;
use crate::generation::{Committed, DATA_FILE, Generation, Headroom, check_not_truncated};
use crate::limits::LOG_BYTES_FIRST;
use crate::log::checkpoint_slot::Checkpoint;
use crate::log::checkpointer::Checkpointer;
use crate::log::commit_log::{CommitLog, LogOptions, LogStatus, Saved};
use crate::log::faults::{LogFaults, Moment};
use crate::log::log_file::{LogFile, remove_log};
use crate::log::pin::Pin;
use crate::log::recovery::{self, Restored};
use crate::log_position::{LogId, Position};
use crate::meta_page::META_BYTES;
use crate::page_cache::read_data_file;
use crate::readers::Readers;
use crate::table::{TOTALS_TABLE, Table};
use cairn_sync::{Mutex, MutexGuard};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Folder of an unfinished compact copy, in the environment's folder. A compaction of an open environment adds a number.
pub(crate) const COMPACTION_FOLDER: &str = "compact";

/// An open environment. Commits are durable: by LMDB's own flushes, or by a commit log.
#[derive(Debug)]
pub struct Environment {
    pub(crate) folder: PathBuf,
    pub(crate) options: EnvironmentOptions,
    /// Makes checkpoints of the log. Dropped before what it uses.
    checkpointer: Option<Checkpointer>,
    log: Option<Arc<CommitLog>>,
    pub(crate) current: Arc<Current>,
    /// Names of the tables, by their numbers. Locked for the whole of a compaction: it copies these tables.
    tables: Mutex<Vec<String>>,
    /// Held while the data file is extended, checked or replaced. Taken before the writer lock.
    pub(crate) file: Mutex<()>,
    pub(crate) readers: Readers,
    /// Slots of readers of ended processes that were cleared, including those at the opening.
    stale_readers: AtomicU64,
    pub(crate) changed_keys: ChangedKeys,
    /// Those of the device.
    flush_failures: Mutex<FlushFailures>,
    /// Set when it is unknown which data file the next start finds. Nothing can be written then.
    pub(crate) is_broken: AtomicBool,
    /// Compactions of this open environment, for the names of their folders.
    pub(crate) compactions: AtomicU64,
}

/// The result of recovering an environment with a log when it was opened.
pub(crate) struct Recovered {
    /// The checkpoint from which the records were applied.
    checkpoint: Checkpoint,
    /// The snapshot that contains all of them.
    pin: Pin,
    /// The number of applied records.
    replayed: u64,
}

impl Recovered {
    /// Applies the records of the log in `folder` to the snapshot of a checkpoint, with which the data file begins. Stops at
    /// the end of the log, or at the place `end`.
    ///
    /// # Errors
    /// As [`recovery::replay`].
    pub(crate) fn from_log(
        folder: &Path,
        generation: &Arc<Generation>,
        checkpoint: Checkpoint,
        end: Option<Position>,
    ) -> Result<Self, Error> {
        generation.leave_flushes_to_log(checkpoint.next)?;
        let kept = Pin::newest(generation)?;
        if end == Some(checkpoint.next) {
            // Its file may be missing.
            return Ok(Self { checkpoint, pin: kept, replayed: 0 });
        }
        let mut file = LogFile::open(folder).map_err(Error::Io)?;
        let replayed = recovery::replay(generation, &mut file, checkpoint.log, checkpoint.next, end)?;
        let is_changed = replayed.records > 0;
        let pin = if is_changed { Pin::newest(generation)? } else { kept };
        Ok(Self { checkpoint, pin, replayed: replayed.records })
    }

    /// Makes what was recovered durable without the log, which counts no more. From then on LMDB flushes each commit.
    pub(crate) fn give_log_up(self, generation: &Arc<Generation>) -> Result<(), Error> {
        generation.data.sync_all().map_err(Error::Io)?;
        let Committed { meta, next } = self.pin.snapshot;
        let number = self.checkpoint.number + 1;
        Checkpoint { number, next, meta, ..self.checkpoint }.give_up(&generation.data).map_err(Error::Io)?;
        drop(self.pin);
        generation.flush_commits()
    }
}

impl Environment {
    /// Opens the environment in the folder `path`, which must exist. LMDB flushes each commit. What a commit log holds is
    /// applied first, and the log is removed.
    ///
    /// # Errors
    /// [`Error::Truncated`] when the data file ends before its last used page; [`Error::DamagedLog`]; otherwise those of LMDB.
    pub fn open(path: &Path, options: EnvironmentOptions) -> Result<Self, Error> {
        let (generation, recovered, _) = Self::open_generation(path, options, &LogFaults::default())?;
        if let Some(recovered) = recovered {
            recovered.give_log_up(&generation)?;
        }
        remove_log(path).map_err(Error::Io)?;
        Self::with(path, options, generation)
    }

    /// Counts the failed flushes of this environment together with those of other files on the device.
    pub fn count_in(&self, flush_failures: &FlushFailures) {
        *self.flush_failures.lock() = flush_failures.clone();
    }

    /// Opens the environment in the folder `path`, which must exist. A commit log makes commits durable. `flush_failures` are
    /// those of the device: after a further one, nothing more is written until [`Environment::renew`] or the next opening.
    ///
    /// # Errors
    /// As [`Environment::open`], and [`Error::Io`] if the log cannot be created.
    pub fn open_with_log(
        path: &Path,
        options: EnvironmentOptions,
        log: LogOptions,
        flush_failures: &FlushFailures,
    ) -> Result<Self, Error> {
        let mut environment = Self::open_log(path, options, log, flush_failures, LogFaults::default())?;
        let log = environment.log.as_ref().expect("it was opened with a log");
        environment.checkpointer = Some(Checkpointer::start(log, &environment.current)?);
        Ok(environment)
    }

    /// As [`Environment::open_with_log`], without the thread that makes checkpoints.
    pub(crate) fn open_log(
        path: &Path,
        options: EnvironmentOptions,
        log: LogOptions,
        flush_failures: &FlushFailures,
        faults: LogFaults,
    ) -> Result<Self, Error> {
        let log = log.in_blocks();
        let failures_before = flush_failures.count();
        let (generation, recovered, number) = Self::open_generation(path, options, &faults)?;
        let (mut is_saved, mut replayed_records) = (false, 0);
        let (file, id, saved) = match recovered {
            Some(Recovered { checkpoint, pin, replayed }) => {
                is_saved = replayed == 0;
                replayed_records = replayed;
                let saved = Saved { number: checkpoint.number, next: pin.snapshot.next, pin: Some(pin) };
                (LogFile::open(path).map_err(Error::Io)?, checkpoint.log, saved)
            }
            None => {
                // One that was given up may be left.
                remove_log(path).map_err(Error::Io)?;
                let file =
                    LogFile::create(path, LOG_BYTES_FIRST.min(log.bytes_max)).map_err(heed::Error::Io)?;
                generation.leave_flushes_to_log(Position::FIRST)?;
                let pin = Pin::newest(&generation)?;
                let saved = Saved { number, next: Position::FIRST, pin: Some(pin) };
                (file, LogId::random().map_err(Error::Io)?, saved)
            }
        };
        let log = Arc::new(CommitLog::new(
            path,
            log,
            (file, id),
            (saved, replayed_records),
            (flush_failures, failures_before),
            faults,
        )?);
        if !is_saved {
            log.save_opened(&generation)?;
        }
        let mut environment = Self::with(path, options, generation)?;
        environment.count_in(flush_failures);
        environment.log = Some(log);
        Ok(environment)
    }

    /// Opens the data file of a folder. If it has a checkpoint, applies what its log holds. Also returns the number of the last
    /// checkpoint.
    fn open_generation(
        path: &Path,
        options: EnvironmentOptions,
        faults: &LogFaults,
    ) -> Result<(Arc<Generation>, Option<Recovered>, u64), Error> {
        remove_unfinished_compactions(path)?;
        let Restored { checkpoint, number } = recovery::restore(path, faults)?;
        check_not_truncated(path)?;
        let generation = Arc::new(Generation::open(path, options)?);
        let Some(checkpoint) = checkpoint else { return Ok((generation, None, number)) };
        let recovered = Recovered::from_log(path, &generation, checkpoint, None)?;
        faults.pass(Moment::Committed);
        Ok((generation, Some(recovered), number))
    }

    fn with(path: &Path, options: EnvironmentOptions, generation: Arc<Generation>) -> Result<Self, Error> {
        let stale_readers = AtomicU64::new(generation.env.clear_stale_readers()? as u64);
        Ok(Self {
            folder: path.to_owned(),
            options,
            checkpointer: None,
            log: None,
            current: Arc::new(Current::new(generation)),
            tables: Mutex::new(vec![TOTALS_TABLE.to_owned()]),
            file: Mutex::new(()),
            readers: Readers::new(),
            stale_readers,
            changed_keys: ChangedKeys::default(),
            flush_failures: Mutex::default(),
            is_broken: AtomicBool::new(false),
            compactions: AtomicU64::new(0),
        })
    }

    /// Closes the environment, so that it can be opened again or its file be replaced. Without this, it is closed some
    /// time after its last owner has dropped it.
    ///
    /// With a log, a last checkpoint is made, so that the next opening has nothing to apply.
    pub fn close(mut self) {
        // The next opening applies what a failed checkpoint does not contain.
        let _ = self.checkpoint();
        drop(self.checkpointer.take());
        if let Some(log) = self.log.take() {
            log.lock_saved().pin = None;
        }
        if let Some(current) = Arc::into_inner(self.current) {
            drop(Generation::close(current.into_generation()));
        }
    }

    /// Returns the failed flushes of the device.
    pub(crate) fn flush_failures(&self) -> FlushFailures {
        self.flush_failures.lock().clone()
    }

    /// Returns the log that makes commits durable, if there is one.
    pub(crate) fn log(&self) -> Option<&CommitLog> {
        self.log.as_deref()
    }

    /// Returns the commit log for an observer of it, which must not keep it.
    #[cfg(test)]
    pub(crate) fn downgraded_log(&self) -> std::sync::Weak<CommitLog> {
        self.log.as_ref().map(Arc::downgrade).unwrap_or_default()
    }

    /// Returns whether a commit log makes commits durable.
    #[must_use]
    pub const fn has_log(&self) -> bool {
        self.log.is_some()
    }

    /// Makes a checkpoint of the log. Does nothing without one. Blocks while the data file is flushed.
    ///
    /// # Errors
    /// [`Error::Io`]: nothing more can be written.
    pub fn checkpoint(&self) -> Result<(), Error> {
        self.log().map_or(Ok(()), |log| log.checkpoint(&self.current))
    }

    /// Returns what the commit log has done since the environment was opened. Without one, nothing.
    #[must_use]
    pub fn log_status(&self) -> LogStatus {
        self.log().map(CommitLog::status).unwrap_or_default()
    }

    /// Returns why nothing can be written until [`Environment::renew`] or the next opening, if the log has failed, or a flush
    /// of the device.
    #[must_use]
    pub fn log_failure(&self) -> Option<String> {
        let log = self.log()?;
        log.check_flushes().err().map(|error| error.to_string()).or_else(|| log.failure())
    }

    /// Returns the age of this process's oldest open read transaction. Pages freed since it began cannot be reused.
    #[must_use]
    pub fn oldest_read_age(&self) -> Option<Duration> {
        self.readers.oldest()
    }

    /// Clears the slots of readers whose processes have ended, which would retain freed pages forever. Returns how many
    /// were cleared since the environment was opened.
    ///
    /// # Errors
    /// Those of LMDB.
    pub fn clear_stale_readers(&self) -> Result<u64, Error> {
        let cleared = self.current.get().env.clear_stale_readers()? as u64;
        Ok(self.stale_readers.fetch_add(cleared, Ordering::Relaxed) + cleared)
    }

    /// Returns how many slots of ended readers were cleared since the environment was opened, including at its opening.
    #[must_use]
    pub fn stale_readers(&self) -> u64 {
        self.stale_readers.load(Ordering::Relaxed)
    }

    /// Checks that the folder `path` contains a data file that is not empty. Call it before opening an environment that
    /// must already exist, because opening would create a new one.
    ///
    /// # Errors
    /// [`Error::Io`] when the data file is missing, [`Error::Truncated`] when it is empty.
    pub fn check_exists(path: &Path) -> Result<(), Error> {
        let found = std::fs::metadata(path.join(DATA_FILE)).map_err(Error::Io)?.len();
        if found == 0 { Err(Error::Truncated { expected: META_BYTES as u64, found }) } else { Ok(()) }
    }

    /// Returns the bytes of the data file after its last used page. A commit can use this space without an allocation of the
    /// file system.
    #[must_use]
    pub fn headroom(&self) -> u64 {
        self.current.get().headroom()
    }

    /// Checks that the data file is still the one that was opened and contains all pages in use. A read of a page that
    /// was cut off would kill the process with SIGBUS.
    ///
    /// # Errors
    /// [`Error::Truncated`]; [`Error::Io`] when the file is missing, was replaced or cannot be queried.
    pub fn check_file(&self) -> Result<(), Error> {
        use std::os::unix::fs::MetadataExt as _;
        let _name_stays = self.lock_file();
        let generation = self.current.get();
        // Before the length: a commit in between makes both greater.
        let expected = generation.used();
        let open = generation.data.metadata().map_err(Error::Io)?;
        let named = std::fs::metadata(self.folder.join(DATA_FILE)).map_err(Error::Io)?;
        if (open.dev(), open.ino()) != (named.dev(), named.ino()) {
            return Err(Error::Io(std::io::Error::other("the data file was replaced")));
        }
        let found = open.len();
        if expected > found { Err(Error::Truncated { expected, found }) } else { Ok(()) }
    }

    /// Returns the bytes up to the end of the last used page. Pages in between may be free.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.current.get().used()
    }

    /// Reads the used part of the data file, so that later reads find it in the kernel's page cache. After each piece of 1 MiB,
    /// `goes_on` is asked whether to continue. Returns how many bytes were read.
    ///
    /// # Errors
    /// Those of opening and reading the file.
    pub fn read_into_page_cache(&self, goes_on: impl FnMut() -> bool) -> std::io::Result<u64> {
        read_data_file(&self.folder, self.used(), goes_on)
    }

    /// Makes the data file longer until there are `bytes` bytes of headroom. They are durable when it returns.
    ///
    /// LMDB accepts a file that is longer than it needs. Without a log, zeros are written: a commit into space that was
    /// written before needs no journal commit of the file system, which is most of the cost of a small durable commit.
    /// With a log, the space is only reserved.
    ///
    /// Any thread without a write transaction may call this. Each piece is written under LMDB's writer lock and after
    /// the file's current end, so it can never overwrite the pages of a commit.
    ///
    /// # Errors
    /// [`Error::Full`] or [`Error::Io`]. The file may have grown and remains valid.
    pub fn extend(&self, bytes: u64) -> Result<(), Error> {
        let _one_at_a_time = self.lock_file();
        let failures_before = self.flush_failures().count();
        let headroom = Headroom::with_log(self.has_log());
        let extended = self.current.get().extend(bytes, headroom, &self.flush_failures());
        let has_flush_failed = self.flush_failures().count() != failures_before;
        if let (Err(error), true, Some(log)) = (&extended, has_flush_failed, self.log()) {
            // The kernel reports a failed write-back once. The flush of the next checkpoint would succeed.
            log.fail_with(error);
        }
        extended
    }

    /// Opens the table `name`, or creates it when it is missing. Waits for the end of a compaction.
    ///
    /// # Errors
    /// Those of LMDB.
    pub fn table(&self, name: &str) -> Result<Table, Error> {
        let mut tables = self.lock_tables();
        let number = tables.iter().position(|known| known == name).unwrap_or(tables.len());
        let table = Table(u8::try_from(number).map_err(|_| Error::Lmdb("too many tables".to_owned()))?);
        if number == tables.len() {
            self.current.get().open_table(table, name)?;
            tables.push(name.to_owned());
        }
        Ok(table)
    }

    /// Returns the names of the opened tables. No other table can be opened while they are held.
    pub(crate) fn lock_tables(&self) -> MutexGuard<'_, Vec<String>> {
        self.tables.lock()
    }

    /// Returns the names of the opened tables, unless a compaction holds them.
    pub(crate) fn try_lock_tables(&self) -> Option<MutexGuard<'_, Vec<String>>> {
        self.tables.try_lock()
    }

    /// Creates a folder for a copy.
    pub(crate) fn make_folder(&self) -> Result<PathBuf, Error> {
        let number = self.compactions.fetch_add(1, Ordering::Relaxed) + 1;
        let folder = self.folder.join(format!("{COMPACTION_FOLDER}-{number}"));
        remove_folder(&folder)?;
        std::fs::create_dir(&folder).map_err(Error::Io)?;
        Ok(folder)
    }

    /// Gives a copy in `folder` the name of the data file. Returns whether the name is durable, if the copy has it.
    pub(crate) fn replace_data_file(&self, folder: &Path) -> Result<std::io::Result<()>, Error> {
        let pass = |moment| {
            if let Some(log) = self.log() {
                log.faults.pass(moment);
            }
        };
        pass(Moment::ReplacesData);
        std::fs::rename(folder.join(DATA_FILE), self.folder.join(DATA_FILE)).map_err(Error::Io)?;
        pass(Moment::ReplacedData);
        let flushed = flush_folder(&self.folder);
        pass(Moment::FlushedFolder);
        Ok(flushed)
    }

    pub(crate) fn lock_file(&self) -> MutexGuard<'_, ()> {
        self.file.lock()
    }
}

/// Removes the folders that interrupted compactions left.
pub(crate) fn remove_unfinished_compactions(folder: &Path) -> Result<(), Error> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(Error::Io)?,
    };
    for entry in entries {
        let name = entry.map_err(Error::Io)?.file_name();
        if name.to_str().is_some_and(|name| name.starts_with(COMPACTION_FOLDER)) {
            remove_folder(&folder.join(name))?;
        }
    }
    Ok(())
}

/// Removes a folder with its files. It may be missing.
pub(crate) fn remove_folder(folder: &Path) -> Result<(), Error> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::Io(error)),
        _ => Ok(()),
    }
}
