//! A disk in memory with power cuts and planned failures.
//!
//! Flushed data and data that is only written are kept apart.
//!
//! Each file has a live image, which reads see, a durable image, and the ordered list of changes since its last flush. A flush
//! makes durable the writes that had *completed* when it began. Writes by executors complete after a few yields of the
//! executor. Names (creations, renames and removals) become durable with a flush of their folder. What a power cut leaves is
//! computed in `power_cut.rs`.
//!
//! Failures are planned with [`SimulatedDisk::plan`]. After a failed flush it stays unknown whether the data is durable,
//! whatever later flushes report: the Linux kernel reports a failed write-back once.

use super::{Random, Scheduler, SimulatedBuffer, StopPoint};
use cairn_model::usize_of;
use cairn_sync::Mutex;
use futures_lite::future::yield_now;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Bytes of a page of an image.
pub(super) const PAGE_BYTES: usize = 4096;
/// An executor yields fewer times than this during one read or write.
const YIELDS_BOUND: u64 = 6;

pub(super) type Page = Arc<[u8; PAGE_BYTES]>;
/// Pages by number; a missing page is zero. Snapshots share it until it is changed.
pub(super) type Image = Arc<BTreeMap<u64, Page>>;

/// A kind of operation that a planned failure applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// A read by an executor.
    Read,
    /// A write by an executor.
    Write,
    /// A flush of a file.
    Flush,
    /// Preallocation.
    Grow,
    /// Hole punching.
    Punch,
    /// A flush of the names in a folder.
    SyncFolder,
    /// A change of a file's times, which is a part of the test that a device must pass before a volume recovers.
    Touch,
}

/// The effect of a fault on an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It fails with this error number.
    Error(i32),
    /// It does half of the work and reports the shorter length.
    Short,
    /// It reports success too early: a flush does nothing, and a write completes only after the next flush. The engine's
    /// guarantees do not hold on such a disk. An engine that omits the operation behaves the same.
    Lie,
}

/// A planned failure: `times` operations fail after `skip` operations succeed.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// The operations that fail.
    pub operation: Operation,
    /// The number of them that succeed first.
    pub skip: u64,
    /// The number of failures.
    pub times: u64,
    /// The effect of a failure.
    pub effect: Effect,
}

/// A change of a file since its last flush.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Page { write: u64, number: u64, page: Page, state: WriteState },
    Length(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteState {
    InFlight,
    /// Reported as complete, but only complete after the next flush.
    ReportedEarly,
    Completed,
    /// A flush of the write failed.
    Unknown,
}

#[derive(Clone, Debug, Default)]
pub(super) struct FileState {
    pub(super) live: Image,
    pub(super) length: u64,
    pub(super) durable: Image,
    pub(super) durable_length: u64,
    pub(super) changes: Vec<Change>,
}

#[derive(Clone, Debug)]
pub(super) enum NameChange {
    Put(PathBuf, usize),
    Remove(PathBuf),
}

/// File numbers by path.
pub(super) type NameMap = BTreeMap<PathBuf, usize>;

#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    live: NameMap,
    pub(super) durable: NameMap,
    /// Since the last flush. The changes of one entry are atomic.
    pub(super) changes: Vec<Vec<NameChange>>,
}

#[derive(Debug)]
struct State {
    files: Vec<FileState>,
    names: Names,
    faults: Vec<Fault>,
    counts: HashMap<Operation, u64>,
    writes: u64,
    random: Random,
}

/// A disk in memory.
#[derive(Debug)]
pub struct SimulatedDisk {
    /// Paths are stored relative to it, so that a power cut can be opened in another folder.
    root: PathBuf,
    state: Mutex<State>,
    /// Stops the threads that flush.
    scheduler: OnceLock<Arc<Scheduler>>,
}

/// An open file of a simulated disk.
#[derive(Clone, Debug)]
pub(crate) struct SimulatedFile {
    disk: Arc<SimulatedDisk>,
    number: usize,
}

fn error(number: i32) -> io::Error {
    io::Error::from_raw_os_error(number)
}

fn page_number(offset: u64) -> u64 {
    offset / PAGE_BYTES as u64
}

impl SimulatedDisk {
    /// Returns an empty disk for a store in the data folder `root`. `seed` decides how long reads and writes take.
    #[must_use]
    pub fn new(root: &Path, seed: u64) -> Self {
        Self::holding(root, seed, Vec::new(), NameMap::new())
    }

    /// Returns a disk on which these files and names are durable.
    pub(super) fn holding(root: &Path, seed: u64, files: Vec<FileState>, names: NameMap) -> Self {
        let names = Names { live: names.clone(), durable: names, changes: Vec::new() };
        let state = State {
            files,
            names,
            faults: Vec::new(),
            counts: HashMap::new(),
            writes: 0,
            random: Random::new(seed),
        };
        Self { root: root.to_owned(), state: Mutex::new(state), scheduler: OnceLock::new() }
    }

    fn relative(&self, path: &Path) -> PathBuf {
        path.strip_prefix(&self.root).unwrap_or(path).to_owned()
    }

    pub(super) fn set_scheduler(&self, scheduler: &Arc<Scheduler>) {
        self.scheduler.set(Arc::clone(scheduler)).expect("a disk has one scheduler");
    }

    fn stop_before_flush(&self) {
        if let Some(scheduler) = self.scheduler.get() {
            scheduler.reach(StopPoint::Flushing);
        }
    }

    /// Plans a failure.
    pub fn plan(&self, fault: Fault) {
        self.state.lock().faults.push(fault);
    }

    /// Drops all planned failures.
    pub fn clear_faults(&self) {
        self.state.lock().faults.clear();
    }

    /// The number of operations of this kind so far, failed ones included.
    #[must_use]
    pub fn count(&self, operation: Operation) -> u64 {
        self.state.lock().counts.get(&operation).copied().unwrap_or(0)
    }

    /// The files and names of this moment.
    pub(super) fn files_and_names(&self) -> (Vec<FileState>, Names) {
        let state = self.state.lock();
        (state.files.clone(), state.names.clone())
    }

    pub(crate) fn list(&self, folder: &Path) -> Vec<PathBuf> {
        let folder = self.relative(folder);
        let state = self.state.lock();
        let inside = state.names.live.keys().filter(|path| path.parent() == Some(&folder));
        inside.map(|path| self.root.join(path)).collect()
    }

    pub(crate) fn create(self: &Arc<Self>, path: &Path) -> io::Result<SimulatedFile> {
        let path = self.relative(path);
        let mut state = self.state.lock();
        if state.names.live.contains_key(&path) {
            return Err(error(libc::EEXIST));
        }
        let number = state.files.len();
        state.files.push(FileState::default());
        state.names.change(vec![NameChange::Put(path, number)]);
        Ok(SimulatedFile { disk: Arc::clone(self), number })
    }

    pub(crate) fn open(self: &Arc<Self>, path: &Path) -> io::Result<SimulatedFile> {
        let found = self.state.lock().names.live.get(&self.relative(path)).copied();
        let number = found.ok_or_else(|| error(libc::ENOENT))?;
        Ok(SimulatedFile { disk: Arc::clone(self), number })
    }

    pub(crate) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (from, to) = (self.relative(from), self.relative(to));
        let mut state = self.state.lock();
        let number = state.names.live.get(&from).copied().ok_or_else(|| error(libc::ENOENT))?;
        state.names.change(vec![NameChange::Remove(from), NameChange::Put(to, number)]);
        Ok(())
    }

    pub(crate) fn remove(&self, path: &Path) -> io::Result<()> {
        let path = self.relative(path);
        let mut state = self.state.lock();
        if !state.names.live.contains_key(&path) {
            return Err(error(libc::ENOENT));
        }
        state.names.change(vec![NameChange::Remove(path)]);
        Ok(())
    }

    /// Makes all names durable, those of other folders too.
    pub(crate) fn sync_folder(&self, _folder: &Path) -> io::Result<()> {
        self.stop_before_flush();
        let mut state = self.state.lock();
        match state.count_and_fail(Operation::SyncFolder) {
            Some(Effect::Lie) => return Ok(()),
            Some(Effect::Error(number)) => return Err(error(number)),
            Some(Effect::Short) | None => {}
        }
        state.names.durable = state.names.live.clone();
        state.names.changes.clear();
        Ok(())
    }
}

impl NameChange {
    pub(super) fn apply(&self, names: &mut NameMap) {
        match self {
            Self::Put(path, file) => drop(names.insert(path.clone(), *file)),
            Self::Remove(path) => drop(names.remove(path)),
        }
    }
}

impl Names {
    fn change(&mut self, change: Vec<NameChange>) {
        change.iter().for_each(|change| change.apply(&mut self.live));
        self.changes.push(change);
    }
}

impl State {
    fn file(&mut self, number: usize) -> &mut FileState {
        self.files.get_mut(number).expect("files are never dropped, only their names")
    }

    /// Counts an operation; returns how it fails, if a failure is planned for it.
    fn count_and_fail(&mut self, operation: Operation) -> Option<Effect> {
        *self.counts.entry(operation).or_default() += 1;
        for fault in self.faults.iter_mut().filter(|fault| fault.operation == operation) {
            if fault.skip > 0 {
                fault.skip -= 1;
            } else if fault.times > 0 {
                fault.times -= 1;
                return Some(fault.effect);
            }
        }
        None
    }

    /// Begins a write of whole pages; returns its number.
    fn write(&mut self, file: usize, bytes: &[u8], offset: u64, write_state: WriteState) -> u64 {
        assert!(offset.is_multiple_of(PAGE_BYTES as u64), "direct I/O is aligned: {offset}");
        self.writes += 1;
        let write = self.writes;
        let file = self.file(file);
        let live = Arc::make_mut(&mut file.live);
        for (number, bytes) in (page_number(offset)..).zip(bytes.chunks(PAGE_BYTES)) {
            // Zeros on a page that was never written change nothing. So preallocated space takes no memory here.
            if !live.contains_key(&number) && bytes.iter().all(|byte| *byte == 0) {
                continue;
            }
            let mut page = [0; PAGE_BYTES];
            page[..bytes.len()].copy_from_slice(bytes);
            let page = Arc::new(page);
            live.insert(number, Arc::clone(&page));
            file.changes.push(Change::Page { write, number, page, state: write_state });
        }
        let end = offset + bytes.len() as u64;
        if end > file.length {
            file.length = end;
            file.changes.push(Change::Length(end));
        }
        write
    }
}

impl FileState {
    fn complete(&mut self, completed: u64) {
        for change in &mut self.changes {
            if let Change::Page { write, state, .. } = change
                && *write == completed
                && *state == WriteState::InFlight
            {
                *state = WriteState::Completed;
            }
        }
    }

    /// Makes the completed writes and the length durable.
    fn flush(&mut self) {
        let durable = Arc::make_mut(&mut self.durable);
        let mut left: Vec<Change> = Vec::new();
        for change in std::mem::take(&mut self.changes) {
            match change {
                Change::Page { number, page, state: WriteState::Completed, .. } => {
                    durable.insert(number, page);
                    // Earlier writes of the same page are overwritten.
                    left.retain(|change| !matches!(change, Change::Page { number: n, .. } if *n == number));
                }
                Change::Page { write, number, page, state: WriteState::ReportedEarly } => {
                    left.push(Change::Page { write, number, page, state: WriteState::Completed });
                }
                change @ Change::Page { .. } => left.push(change),
                Change::Length(_) => {}
            }
        }
        self.durable_length = self.length;
        self.changes = left;
    }

    /// Records that a flush failed: whether the completed writes are durable is unknown from now on.
    fn fail_flush(&mut self) {
        for change in &mut self.changes {
            if let Change::Page { state, .. } = change
                && *state == WriteState::Completed
            {
                *state = WriteState::Unknown;
            }
        }
    }

    fn set_length(&mut self, bytes: u64) {
        self.length = bytes;
        let live = Arc::make_mut(&mut self.live);
        live.split_off(&bytes.div_ceil(PAGE_BYTES as u64));
        self.changes.push(Change::Length(bytes));
    }
}

impl SimulatedFile {
    pub(crate) fn length(&self) -> u64 {
        self.disk.state.lock().file(self.number).length
    }

    /// Reads up to the end of the file.
    fn read_now(&self, offset: u64, bytes: usize) -> Vec<u8> {
        let mut state = self.disk.state.lock();
        let file = state.file(self.number);
        let end = (offset + bytes as u64).min(file.length);
        let mut read = Vec::with_capacity(bytes);
        let mut at = offset;
        while at < end {
            match file.live.get(&page_number(at)) {
                Some(page) => read.extend_from_slice(&page[..]),
                None => read.resize(read.len() + PAGE_BYTES, 0),
            }
            at += PAGE_BYTES as u64;
        }
        read.truncate(usize_of(end.saturating_sub(offset)));
        read
    }

    pub(crate) fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        let read = self.read_now(offset, bytes.len());
        if read.len() < bytes.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.copy_from_slice(&read);
        Ok(())
    }

    #[expect(clippy::unnecessary_wraps, reason = "the signature is that of a file")]
    pub(crate) fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.disk.state.lock().write(self.number, bytes, offset, WriteState::Completed);
        Ok(())
    }

    /// Zeros a part of the file. Like a write, this is durable after the next flush and can be torn.
    pub(crate) fn punch(&self, offset: u64, bytes: u64) -> io::Result<()> {
        let mut state = self.disk.state.lock();
        if let Some(Effect::Error(number)) = state.count_and_fail(Operation::Punch) {
            return Err(error(number));
        }
        state.write(self.number, &vec![0; usize_of(bytes)], offset, WriteState::Completed);
        Ok(())
    }

    pub(crate) fn allocate(&self, to: u64) -> io::Result<()> {
        let mut state = self.disk.state.lock();
        let failure = match state.count_and_fail(Operation::Grow) {
            Some(Effect::Error(number)) => Some(number),
            Some(Effect::Short | Effect::Lie) | None => None,
        };
        let file = state.file(self.number);
        if let Some(number) = failure {
            // The kernel keeps what it could allocate before the failure.
            let unit = PAGE_BYTES as u64;
            file.length = file.length.max(u64::midpoint(file.length, to) / unit * unit);
            file.changes.push(Change::Length(file.length));
            return Err(error(number));
        }
        if to > file.length {
            file.length = to;
            file.changes.push(Change::Length(to));
        }
        Ok(())
    }

    #[expect(clippy::unnecessary_wraps, reason = "the signature is that of a file")]
    pub(crate) fn set_length(&self, bytes: u64) -> io::Result<()> {
        self.disk.state.lock().file(self.number).set_length(bytes);
        Ok(())
    }

    /// Changes the times of the file, which are not simulated.
    pub(crate) fn touch(&self) -> io::Result<()> {
        match self.disk.state.lock().count_and_fail(Operation::Touch) {
            Some(Effect::Error(number)) => Err(error(number)),
            Some(Effect::Short | Effect::Lie) | None => Ok(()),
        }
    }

    pub(crate) fn sync(&self) -> io::Result<()> {
        self.disk.stop_before_flush();
        let mut state = self.disk.state.lock();
        let effect = state.count_and_fail(Operation::Flush);
        let file = state.file(self.number);
        match effect {
            Some(Effect::Lie) => Ok(()),
            Some(Effect::Error(number)) => {
                file.fail_flush();
                Err(error(number))
            }
            Some(Effect::Short) | None => {
                file.flush();
                Ok(())
            }
        }
    }

    /// Returns a zeroed buffer for writes to this file, wrapped by `wrap`.
    pub(crate) fn buffer<T>(&self, bytes: usize, wrap: impl FnOnce(SimulatedBuffer) -> T) -> T {
        wrap(SimulatedBuffer::new(vec![0; bytes]))
    }

    /// Reads as an executor does: the read takes a few yields.
    pub(crate) async fn read(&self, offset: u64, bytes: usize) -> io::Result<SimulatedBuffer> {
        let (yields, effect) = {
            let mut state = self.disk.state.lock();
            (state.random.below(YIELDS_BOUND), state.count_and_fail(Operation::Read))
        };
        for _ in 0..yields {
            yield_now().await;
        }
        let bytes = match effect {
            Some(Effect::Error(number)) => return Err(error(number)),
            Some(Effect::Short) => bytes / 2,
            Some(Effect::Lie) | None => bytes,
        };
        Ok(SimulatedBuffer::new(self.read_now(offset, bytes)))
    }

    /// Writes as an executor does: the write is in flight during a few yields. Returns the number of bytes written.
    pub(crate) async fn write(&self, buffer: &SimulatedBuffer, offset: u64) -> io::Result<usize> {
        let bytes = buffer.bytes();
        let (yields, effect, write, count) = {
            let mut state = self.disk.state.lock();
            let (yields, effect) = (state.random.below(YIELDS_BOUND), state.count_and_fail(Operation::Write));
            let count = match effect {
                Some(Effect::Short | Effect::Error(_)) => bytes.len() / 2,
                Some(Effect::Lie) | None => bytes.len(),
            };
            let state_of_write =
                if effect == Some(Effect::Lie) { WriteState::ReportedEarly } else { WriteState::InFlight };
            (yields, effect, state.write(self.number, &bytes[..count], offset, state_of_write), count)
        };
        for _ in 0..yields {
            yield_now().await;
        }
        if let Some(Effect::Error(number)) = effect {
            return Err(error(number));
        }
        self.disk.state.lock().file(self.number).complete(write);
        Ok(count)
    }
}
