//! The log of an open environment: appends records, and makes checkpoints.

use crate::current::Current;
use crate::error::Error;
use crate::flush_failures::FlushFailures;
use crate::generation::{Committed, Generation};
use crate::limits::{
    CHECKPOINT_AGE_MAX, LOG_BLOCK_BYTES, LOG_BUFFER_KEPT_BYTES, LOG_GROWTH_FREE_BYTES, WRITE_BACK_INTERVAL,
};
use crate::log::checkpoint_slot::Checkpoint;
use crate::log::faults::{LogFaults, LogFlaw, Moment};
use crate::log::log_file::LogFile;
use crate::log::log_record::LoggedChanges;
use crate::log::pin::Pin;
use crate::log::ring::Ring;
use crate::log_position::{LogId, Position};
use crate::meta_page::MetaFields;
use crate::totals::Totals;
use cairn_sync::{Condvar, Mutex, MutexGuard};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// Sizes of a commit log.
#[derive(Clone, Copy, Debug)]
pub struct LogOptions {
    /// Length up to which the log grows under load, in bytes; only whole blocks count. A single larger record makes it longer.
    pub bytes_max: u64,
    /// Bytes of records, or of new pages of the data file, after which a checkpoint is made.
    pub checkpoint_bytes: u64,
}

impl LogOptions {
    /// Returns the same sizes in whole blocks: direct I/O writes no others.
    pub(crate) fn in_blocks(self) -> Self {
        let block = LOG_BLOCK_BYTES as u64;
        Self { bytes_max: self.bytes_max - self.bytes_max % block, ..self }
    }
}

/// The counts of a commit log since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogStatus {
    /// Bytes of records since the last checkpoint. A start after a crash applies about as much.
    pub unsaved_bytes: u64,
    /// Checkpoints.
    pub checkpoints: u64,
    /// Transactions that waited for a checkpoint, because the log was full.
    pub waits: u64,
    /// Records that the opening applied again.
    pub replayed_records: u64,
}

/// Numbers that can be read while a device hangs. Those of bytes are changed only while the state is locked.
#[derive(Debug, Default)]
struct Counters {
    /// Bytes of all records since the log was opened.
    appended: AtomicU64,
    /// Of these, bytes that the last checkpoint made unnecessary.
    saved: AtomicU64,
    checkpoints: AtomicU64,
    waits: AtomicU64,
    has_failed: AtomicBool,
}

/// The last checkpoint.
#[derive(Debug)]
pub(crate) struct Saved {
    pub(crate) number: u64,
    pub(crate) next: Position,
    /// Keeps the pages of its snapshot. `None` only while the log has failed.
    pub(crate) pin: Option<Pin>,
}

#[derive(Debug)]
struct State {
    file: LogFile,
    id: LogId,
    ring: Ring,
    /// The position of the next record, if it fits.
    next: Position,
    /// Totals of the environment after the last record.
    totals: Option<Totals>,
    /// Bytes that the data file used at the last checkpoint.
    used_at_checkpoint: u64,
    /// The time when the oldest change that no checkpoint contains was appended.
    unsaved_since: Option<Instant>,
    /// Whether a record waits for room.
    wants_room: bool,
    /// Whether the file is being made longer. Then nobody else may do so.
    is_growing: bool,
    /// Whether the checkpointer must be woken.
    is_idle: bool,
    must_end: bool,
    /// The reason why nothing can be appended any more.
    failure: Option<String>,
    buffer: Vec<u8>,
}

/// A log, shared by the thread that writes and the one that makes checkpoints.
#[derive(Debug)]
pub(crate) struct CommitLog {
    folder: PathBuf,
    options: LogOptions,
    state: Mutex<State>,
    /// Notified when records were freed, and after a failure.
    room: Condvar,
    /// Notified when the checkpointer has something to do.
    work: Condvar,
    /// Locked while a checkpoint is made. Taken after LMDB's writer lock, if that is needed.
    saved: Mutex<Saved>,
    counters: Counters,
    replayed_records: u64,
    /// Those of the device, and how many there were when the log began. After a further one, the device may have lost pages of
    /// the data file that no checkpoint contains.
    flush_failures: FlushFailures,
    flush_failures_before: AtomicU64,
    pub(crate) faults: LogFaults,
}

/// A record that was appended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Appended {
    /// The place of the next record.
    pub(crate) next: Position,
    offset: u64,
    log: LogId,
    /// Head of the ring, place and totals before it.
    before: (u64, Position, Option<Totals>),
}

/// The next step of the checkpointer.
pub(crate) enum Step {
    WriteBack,
    Checkpoint,
    End,
}

fn failed(what: &str) -> Error {
    Error::Io(io::Error::other(what.to_owned()))
}

impl CommitLog {
    /// Makes the log of an environment whose changes are all in the checkpoint `saved`. There were `flush_failures_before`
    /// failed flushes before the first of them was applied.
    pub(crate) fn new(
        folder: &Path,
        options: LogOptions,
        (file, id): (LogFile, LogId),
        (saved, replayed_records): (Saved, u64),
        (flush_failures, flush_failures_before): (&FlushFailures, u64),
        faults: LogFaults,
    ) -> Result<Self, Error> {
        let capacity = file.length().map_err(Error::Io)?;
        let next = saved.next;
        let state = State {
            ring: Ring::empty(capacity, next.offset.min(capacity)),
            file,
            id,
            next,
            totals: None,
            used_at_checkpoint: 0,
            unsaved_since: None,
            is_growing: false,
            wants_room: false,
            is_idle: false,
            must_end: false,
            failure: None,
            buffer: Vec::new(),
        };
        Ok(Self {
            folder: folder.to_owned(),
            options,
            state: Mutex::new(state),
            room: Condvar::new(),
            work: Condvar::new(),
            saved: Mutex::new(saved),
            counters: Counters::default(),
            replayed_records,
            flush_failures: flush_failures.clone(),
            flush_failures_before: AtomicU64::new(flush_failures_before),
            faults,
        })
    }

    /// Returns a buffer for the changes of a transaction.
    pub(crate) fn begin(&self) -> LoggedChanges {
        LoggedChanges::in_buffer(std::mem::take(&mut self.state.lock().buffer))
    }

    /// Writes the changes of a transaction as the next record. It is durable when this returns.
    ///
    /// Waits for a checkpoint if the log is full.
    ///
    /// # Errors
    /// [`Error::Full`] if the record is longer than the file and the disk is full: see [`Self::save_without_record`].
    /// [`Error::Io`] if the log has failed. Then nothing can be appended until the environment is rebuilt or opened again.
    pub(crate) fn append(&self, changes: LoggedChanges, totals: Totals) -> Result<Appended, Error> {
        let mut state = self.state.lock();
        let mut record = changes.complete(state.id, state.next.sequence, totals)?;
        let bytes = record.len() as u64;
        let (head, offset) = loop {
            if let Some(failure) = &state.failure {
                return Err(failed(failure));
            }
            let (head, sequence) = (state.ring.head(), state.next.sequence);
            if let Some(offset) = state.ring.place(sequence, bytes) {
                break (head, offset);
            }
            if bytes > state.ring.capacity && state.ring.can_extend() && !state.is_growing {
                let end = head + bytes;
                self.flush_failures.counted(state.file.extend(end)).map_err(heed::Error::Io)?;
                state.ring.capacity = end;
                continue;
            }
            // While the file grows, the end of that is waited for.
            state.wants_room = !state.is_growing;
            self.counters.waits.fetch_add(1, Ordering::Relaxed);
            self.work.notify_one();
            state = self.room.wait(state);
        };
        let before = (head, state.next, state.totals);
        let mut write = || {
            self.faults.pass(Moment::WritesRecord { offset, bytes: record.len() });
            if self.faults.has(LogFlaw::UnflushedRecord) {
                return Ok(());
            }
            self.flush_failures.counted(state.file.write(&record, offset))
        };
        // After an earlier failure there is no record, so the next start knows nothing of the refused change. Another flush may
        // also fail while the record is in the device's cache.
        let written = self.check_flushes().and_then(|()| write()).and_then(|()| self.check_flushes());
        if let Err(error) = written {
            self.fail(&mut state, format!("a record of the commit log could not be written: {error}"));
            return Err(Error::Io(error));
        }
        self.faults.pass(Moment::WroteRecord);
        let next = Position { sequence: state.next.sequence + 1, offset: offset + bytes };
        state.next = next;
        state.totals = Some(totals);
        self.counters.appended.fetch_add(bytes, Ordering::Relaxed);
        if state.unsaved_since.is_none() {
            state.unsaved_since = Some(Instant::now());
        }
        if std::mem::take(&mut state.is_idle) {
            self.work.notify_one();
        }
        if record.capacity() <= LOG_BUFFER_KEPT_BYTES {
            record.clear();
            state.buffer = record;
        }
        Ok(Appended { next, offset, log: state.id, before })
    }

    /// Takes the last record back, because LMDB did not commit its transaction.
    ///
    /// # Errors
    /// [`Error::Io`]: the next start may apply it. Nothing can be appended any more.
    pub(crate) fn withdraw(&self, appended: Appended) -> Result<(), Error> {
        let mut state = self.state.lock();
        if (state.id, state.next) != (appended.log, appended.next) {
            // A new log has begun, without this record.
            return Ok(());
        }
        let (head, next, totals) = appended.before;
        state.ring.take_back(head);
        state.next = next;
        state.totals = totals;
        let overwritten = state.file.write(&[0; LOG_BLOCK_BYTES], appended.offset);
        if let Err(error) = self.flush_failures.counted(overwritten) {
            self.fail(&mut state, format!("a record of the commit log could not be taken back: {error}"));
            return Err(Error::Io(error));
        }
        Ok(())
    }

    fn fail(&self, state: &mut State, failure: String) {
        state.failure.get_or_insert(failure);
        self.counters.has_failed.store(true, Ordering::Release);
        // Nobody waits any more.
        state.wants_room = false;
        self.room.notify_all();
    }

    /// Refuses all further records, because it is unknown what the device holds of the data file.
    pub(crate) fn fail_with(&self, error: &Error) {
        self.fail(&mut self.state.lock(), error.to_string());
    }

    /// Checks that no flush of the device has failed since the log began: also not one of another file.
    pub(crate) fn check_flushes(&self) -> io::Result<()> {
        self.flush_failures.check_none_since(self.flush_failures_before.load(Ordering::SeqCst))
    }

    /// Returns why nothing can be appended, if so.
    pub(crate) fn failure(&self) -> Option<String> {
        // The state is locked while a record is written, and a device may hang.
        let has_failed = self.counters.has_failed.load(Ordering::Acquire);
        has_failed.then(|| self.state.lock().failure.clone()).flatten()
    }

    fn unsaved_bytes(&self) -> u64 {
        let Counters { appended, saved, .. } = &self.counters;
        // Without the lock, a checkpoint may come in between.
        appended.load(Ordering::Relaxed).saturating_sub(saved.load(Ordering::Relaxed))
    }

    /// Returns what the log has done since it was opened.
    pub(crate) fn status(&self) -> LogStatus {
        LogStatus {
            unsaved_bytes: self.unsaved_bytes(),
            checkpoints: self.counters.checkpoints.load(Ordering::Relaxed),
            waits: self.counters.waits.load(Ordering::Relaxed),
            replayed_records: self.replayed_records,
        }
    }

    /// Makes a checkpoint of the newest snapshot. Blocks while the data file is flushed.
    pub(crate) fn checkpoint(&self, current: &Current) -> Result<(), Error> {
        let mut saved = self.saved.lock();
        let made = self.save(&mut saved, &current.get());
        if let Err(error) = &made {
            self.fail_with(error);
        }
        made
    }

    /// Makes a transaction without a record durable, by a checkpoint. LMDB has committed it while the log had this id, and
    /// nothing was committed since.
    ///
    /// # Errors
    /// [`Error::Io`]: the next start does not know the transaction. Nothing can be appended any more, or the data file was
    /// rebuilt without it.
    pub(crate) fn save_without_record(
        &self,
        id: LogId,
        current: &Current,
        totals: Totals,
    ) -> Result<(), Error> {
        self.checkpoint(current)?;
        let mut state = self.state.lock();
        if state.id != id {
            return Err(failed("the data file was rebuilt without the transaction"));
        }
        state.totals = Some(totals);
        Ok(())
    }

    /// Makes the checkpoint with which an open environment begins: of the snapshot that `saved` has pinned.
    ///
    /// Until it is durable, the records are needed from the earlier checkpoint on. So none may be appended before.
    pub(crate) fn save_opened(&self, generation: &Arc<Generation>) -> Result<(), Error> {
        let mut saved = self.saved.lock();
        if !self.faults.has(LogFlaw::NoFlush) {
            self.faults.pass(Moment::FlushesData);
            self.flush_failures.counted(generation.data.sync_all()).map_err(heed::Error::Io)?;
            self.check_flushes().map_err(Error::Io)?;
            self.faults.pass(Moment::FlushedData);
        }
        let Committed { meta, next } = saved.pin.as_ref().expect("an opening pins its snapshot").snapshot;
        let log = self.state.lock().id;
        saved.number += 1;
        let checkpoint = Checkpoint { is_active: true, number: saved.number, log, next, meta };
        self.write_checkpoint(&checkpoint, &generation.data)?;
        // The other copy may be one whose log was given up.
        self.flush_failures.counted(generation.data.sync_data()).map_err(Error::Io)?;
        self.check_flushes().map_err(Error::Io)?;
        self.free(0, generation.used(), next);
        Ok(())
    }

    fn save(&self, saved: &mut Saved, generation: &Arc<Generation>) -> Result<(), Error> {
        let (id, appended) = {
            let state = self.state.lock();
            if let Some(failure) = &state.failure {
                return Err(failed(failure));
            }
            (state.id, self.counters.appended.load(Ordering::Relaxed))
        };
        let pin = Pin::newest(generation)?;
        let Committed { mut meta, next } = pin.snapshot;
        let is_saved = |earlier: &Pin| (earlier.snapshot.meta, earlier.snapshot.next) == (meta, next);
        if saved.pin.as_ref().is_some_and(is_saved) {
            self.free(appended, generation.used(), saved.next);
            return Ok(());
        }
        if self.faults.has(LogFlaw::EarlyRelease) {
            saved.pin = None;
            self.faults.pass(Moment::ReleasedEarly);
        }
        if let Some(earlier) = saved.pin.as_ref().filter(|_| self.faults.has(LogFlaw::EarlierRoots)) {
            meta = earlier.snapshot.meta;
        }
        if self.faults.has(LogFlaw::EarlyFree) {
            self.free(appended, generation.used(), next);
            self.faults.pass(Moment::ReleasedEarly);
        }
        if !self.faults.has(LogFlaw::NoFlush) {
            self.faults.pass(Moment::FlushesData);
            self.flush_failures.counted(generation.data.sync_data()).map_err(Error::Io)?;
            self.check_flushes().map_err(Error::Io)?;
            self.faults.pass(Moment::FlushedData);
        }
        let checkpoint = Checkpoint { is_active: true, number: saved.number + 1, log: id, next, meta };
        self.write_checkpoint(&checkpoint, &generation.data)?;
        // Before the records are freed, which the earlier checkpoint needs.
        self.check_flushes().map_err(Error::Io)?;
        *saved = Saved { number: checkpoint.number, next, pin: Some(pin) };
        self.free(appended, generation.used(), next);
        self.counters.checkpoints.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Writes both copies of a checkpoint. The first is durable when this returns. The second is flushed with the data file
    /// before the next checkpoint.
    fn write_checkpoint(&self, checkpoint: &Checkpoint, data: &File) -> Result<(), Error> {
        let write = || {
            checkpoint.write(data, 1)?;
            self.faults.pass(Moment::WroteCheckpoint);
            self.flush_failures.counted(data.sync_data())?;
            self.faults.pass(Moment::FlushedCheckpoint);
            checkpoint.write(data, 0)
        };
        write().map_err(Error::Io)
    }

    /// Frees the records that a checkpoint has made unnecessary: those before `next`.
    fn free(&self, appended: u64, used: u64, next: Position) {
        let mut state = self.state.lock();
        state.ring.free_before(next.sequence);
        self.counters.saved.store(appended, Ordering::Relaxed);
        state.used_at_checkpoint = used;
        state.unsaved_since = (next != state.next).then(Instant::now);
        state.wants_room = false;
        self.room.notify_all();
    }

    /// Waits until the checkpointer has something to do.
    pub(crate) fn next_step(&self, used: impl FnOnce() -> u64) -> Step {
        let mut state = self.state.lock();
        while !state.must_end
            && !state.wants_room
            && (state.unsaved_since.is_none() || state.failure.is_some())
        {
            state.is_idle = true;
            state = self.work.wait(state);
        }
        state.is_idle = false;
        if !state.must_end && !state.wants_room {
            state = self.work.wait_timeout(state, WRITE_BACK_INTERVAL);
        }
        if state.must_end {
            return Step::End;
        }
        let bytes_max = self.options.checkpoint_bytes.min(state.ring.capacity / 2);
        let is_due = state.wants_room
            || self.unsaved_bytes() >= bytes_max
            || used().saturating_sub(state.used_at_checkpoint) >= self.options.checkpoint_bytes
            || state.unsaved_since.is_some_and(|since| since.elapsed() >= CHECKPOINT_AGE_MAX);
        if is_due { Step::Checkpoint } else { Step::WriteBack }
    }

    /// Ends the checkpointer.
    pub(crate) fn end(&self) {
        self.state.lock().must_end = true;
        self.work.notify_all();
    }

    /// Makes the file longer if half of it is used and it may grow. A failure leaves it as it is.
    pub(crate) fn grow(&self) {
        let capacity = {
            let mut state = self.state.lock();
            let (capacity, used) = (state.ring.capacity, self.unsaved_bytes());
            if used < capacity / 4 || capacity >= self.options.bytes_max {
                return;
            }
            state.is_growing = true;
            capacity
        };
        let grown = self.grow_from(capacity);
        let mut state = self.state.lock();
        state.is_growing = false;
        if let Some(capacity) = grown {
            state.ring.capacity = capacity;
        }
        self.room.notify_all();
    }

    /// Makes the file longer. Returns its new length.
    fn grow_from(&self, capacity: u64) -> Option<u64> {
        let wanted = (capacity * 2).min(self.options.bytes_max);
        let has_room = rustix::fs::statvfs(&self.folder)
            .is_ok_and(|stat| stat.f_bavail.saturating_mul(stat.f_frsize) >= LOG_GROWTH_FREE_BYTES);
        if !has_room {
            return None;
        }
        // A file of its own, so that records can be written meanwhile.
        let extend = |mut file: LogFile| self.flush_failures.counted(file.extend(wanted));
        LogFile::open(&self.folder).and_then(extend).ok().map(|()| wanted)
    }

    /// Locks the last checkpoint, so that none is made until the guard is dropped.
    pub(crate) fn lock_saved(&self) -> MutexGuard<'_, Saved> {
        self.saved.lock()
    }

    /// Stores a durable checkpoint in a copy of the data file that is about to replace it. The copy is flushed as a whole.
    ///
    /// The caller holds the writer lock, the copy has all changes, and `saved` is locked until the file is replaced.
    pub(crate) fn prepare_copy(
        &self,
        saved: &Saved,
        copy: &Generation,
        next: Position,
    ) -> Result<Checkpoint, Error> {
        self.prepare(saved, copy, self.state.lock().id, next)
    }

    fn prepare(
        &self,
        saved: &Saved,
        copy: &Generation,
        log: LogId,
        next: Position,
    ) -> Result<Checkpoint, Error> {
        let meta = MetaFields::newest(&copy.data).map_err(Error::Io)?;
        let meta = meta.ok_or_else(|| Error::Lmdb("the copy has no meta page".to_owned()))?;
        assert_eq!(meta.transaction(), copy.last_committed(), "nobody writes to the copy");
        let checkpoint = Checkpoint { is_active: true, number: saved.number + 1, log, next, meta };
        // Nothing of the file counts before it gets its name, so the order of these writes does not matter.
        let written = [0, 1].into_iter().try_for_each(|page| checkpoint.write(&copy.data, page));
        if !self.faults.has(LogFlaw::UnflushedCopy) {
            let flushed = written.and_then(|()| self.flush_failures.counted(copy.data.sync_all()));
            flushed.map_err(Error::Io)?;
            self.faults.pass(Moment::FlushedCopy);
        }
        Ok(checkpoint)
    }

    /// Continues with a copy that has replaced the data file. The caller holds the copy's writer lock, so that nobody writes to
    /// it before its snapshot is pinned.
    pub(crate) fn continue_with(&self, saved: &mut Saved, copy: &Arc<Generation>, checkpoint: &Checkpoint) {
        let pinned = copy.leave_flushes_to_log(checkpoint.next).and_then(|()| Pin::newest(copy));
        *saved = Saved { number: checkpoint.number, next: checkpoint.next, pin: None };
        match pinned {
            Ok(pin) => {
                saved.pin = Some(pin);
                let appended = self.counters.appended.load(Ordering::Relaxed);
                self.free(appended, copy.used(), checkpoint.next);
            }
            Err(error) => self.fail_with(&error),
        }
    }

    /// Returns the log's id, the place after the last record, and the totals after it, if there is one.
    pub(crate) fn appended(&self) -> (LogId, Position, Option<Totals>) {
        let state = self.state.lock();
        (state.id, state.next, state.totals)
    }

    /// Stores a durable checkpoint in a rebuilt data file, with the id of a new log. The earlier records then count no more.
    pub(crate) fn prepare_rebuilt(&self, saved: &Saved, copy: &Generation) -> Result<Checkpoint, Error> {
        self.prepare(saved, copy, LogId::random().map_err(Error::Io)?, Position::FIRST)
    }

    /// Begins a new log after a failure, with a rebuilt data file. There were `flush_failures` failed flushes before the first
    /// of its pages was written.
    pub(crate) fn restart_with(
        &self,
        saved: &mut Saved,
        copy: &Arc<Generation>,
        checkpoint: &Checkpoint,
        flush_failures: u64,
    ) {
        self.flush_failures_before.store(flush_failures, Ordering::SeqCst);
        {
            let mut state = self.state.lock();
            state.id = checkpoint.log;
            state.next = checkpoint.next;
            state.totals = None;
            state.ring = Ring::empty(state.ring.capacity, checkpoint.next.offset);
            // Without its thread, nobody would make room.
            if !state.must_end {
                state.failure = None;
                self.counters.has_failed.store(false, Ordering::Release);
            }
        }
        self.continue_with(saved, copy, checkpoint);
    }
}
