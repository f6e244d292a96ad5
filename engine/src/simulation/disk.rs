//! A disk in memory that keeps what was flushed apart from what was only written.
//!
//! Each file has a live image, which reads see, a durable image, and between them the changes since the last flush, in
//! order. A flush takes over the writes that had *completed* when it began; writes that executors begin complete a few
//! turns of their executor later. Names (creations, renames, removals) are durable after a flush of the folder.
//!
//! A power cut ([`DiskSnapshot::cut`]) takes the durable images and a seeded subset of the changes since: each write
//! wholly, not at all, or torn at sectors of 512 bytes; of lengths and of names the first so many, as a journal keeps
//! them. After a failed flush what it should have made durable stays in doubt for good, whatever later flushes say, as the
//! kernel has it. Failures are planned with [`SimulatedDisk::plan`].

use crate::simulation::Random;
use crate::simulation::stage::{Point, Stage};
use futures_lite::future::yield_now;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

const PAGE_BYTES: usize = 4096;
const SECTOR_BYTES: usize = 512;
/// Turns of its executor that a read or write takes at most.
const TURNS_MAX: u64 = 6;

type Page = Arc<[u8; PAGE_BYTES]>;
/// Pages by number; what is missing is zero. Shared between snapshots until it is changed.
type Image = Arc<BTreeMap<u64, Page>>;

/// What a planned failure strikes.
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
    /// Giving a part of a file back.
    Punch,
    /// A flush of a folder's names.
    SyncFolder,
}

/// How an operation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// With this error number.
    Error(i32),
    /// It does half of what it was asked for, and says so.
    Short,
    /// It reports success too early: a flush or a flush of names has done nothing, a write completes only after the next
    /// flush. No disk that the engine's promises hold on does this; an engine that left the operation out would look the
    /// same.
    Lie,
}

/// A planned failure: strikes `times` operations after letting `skip` pass.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// Which operations.
    pub operation: Operation,
    /// How many go well first.
    pub skip: u64,
    /// How many fail.
    pub times: u64,
    /// How.
    pub effect: Effect,
}

/// Which changes since the last flush a power cut leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Every one.
    All,
    /// None.
    Nothing,
    /// A subset that follows from the seed.
    Torn(u64),
}

/// A change of a file since its last flush.
#[derive(Clone, Debug)]
enum Change {
    Page { write: u64, number: u64, page: Page, state: WriteState },
    Length(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriteState {
    UnderWay,
    /// Said to be complete, and is only after the next flush.
    Late,
    Completed,
    /// A flush of it failed.
    InDoubt,
}

#[derive(Clone, Debug, Default)]
struct FileState {
    live: Image,
    length: u64,
    durable: Image,
    durable_length: u64,
    changes: Vec<Change>,
}

#[derive(Clone, Debug)]
enum NameChange {
    Put(PathBuf, usize),
    Remove(PathBuf),
}

#[derive(Clone, Debug, Default)]
struct Names {
    live: BTreeMap<PathBuf, usize>,
    durable: BTreeMap<PathBuf, usize>,
    changes: Vec<Vec<NameChange>>,
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

/// See the file's first lines.
#[derive(Debug)]
pub struct SimulatedDisk {
    /// Paths are kept relative to it, so that a cut can be opened in another folder.
    root: PathBuf,
    state: Mutex<State>,
    /// Where the threads that flush are held first.
    stage: OnceLock<Arc<Stage>>,
}

/// What a disk held at one moment.
#[derive(Clone, Debug)]
pub struct DiskSnapshot {
    files: Vec<FileState>,
    names: Names,
}

/// An open file of a simulated disk.
#[derive(Clone, Debug)]
pub(crate) struct SimulatedFile {
    disk: Arc<SimulatedDisk>,
    number: usize,
}

fn apply(names: &mut BTreeMap<PathBuf, usize>, changes: &[NameChange]) {
    for change in changes {
        match change {
            NameChange::Put(path, file) => drop(names.insert(path.clone(), *file)),
            NameChange::Remove(path) => drop(names.remove(path)),
        }
    }
}

fn error(number: i32) -> io::Error {
    io::Error::from_raw_os_error(number)
}

fn page_number(offset: u64) -> u64 {
    offset / PAGE_BYTES as u64
}

impl SimulatedDisk {
    /// An empty disk for a store in the data folder `root`; `seed` decides how long reads and writes take.
    #[must_use]
    pub fn new(root: &Path, seed: u64) -> Self {
        Self::holding(root, seed, Vec::new(), BTreeMap::new())
    }

    fn holding(root: &Path, seed: u64, files: Vec<FileState>, names: BTreeMap<PathBuf, usize>) -> Self {
        let names = Names { live: names.clone(), durable: names, changes: Vec::new() };
        let state = State {
            files,
            names,
            faults: Vec::new(),
            counts: HashMap::new(),
            writes: 0,
            random: Random::new(seed),
        };
        Self { root: root.to_owned(), state: Mutex::new(state), stage: OnceLock::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn relative(&self, path: &Path) -> PathBuf {
        path.strip_prefix(&self.root).unwrap_or(path).to_owned()
    }

    pub(crate) fn set_stage(&self, stage: &Arc<Stage>) {
        let _ = self.stage.set(Arc::clone(stage));
    }

    fn reach_flush(&self) {
        if let Some(stage) = self.stage.get() {
            stage.reach(Point::Flushing);
        }
    }

    /// Plans a failure.
    pub fn plan(&self, fault: Fault) {
        self.lock().faults.push(fault);
    }

    /// Drops all planned failures.
    pub fn heal(&self) {
        self.lock().faults.clear();
    }

    /// How often an operation was asked for.
    #[must_use]
    pub fn count(&self, operation: Operation) -> u64 {
        self.lock().counts.get(&operation).copied().unwrap_or(0)
    }

    /// Pages written since the last flush of their file.
    #[must_use]
    pub fn unflushed(&self) -> usize {
        self.lock().files.iter().map(|file| file.changes.len()).sum()
    }

    /// Everything as it is now.
    #[must_use]
    pub fn snapshot(&self) -> DiskSnapshot {
        let state = self.lock();
        DiskSnapshot { files: state.files.clone(), names: state.names.clone() }
    }

    pub(crate) fn list(&self, folder: &Path) -> Vec<PathBuf> {
        let folder = self.relative(folder);
        let state = self.lock();
        let inside = state.names.live.keys().filter(|path| path.parent() == Some(&folder));
        inside.map(|path| self.root.join(path)).collect()
    }

    pub(crate) fn create(self: &Arc<Self>, path: &Path) -> io::Result<SimulatedFile> {
        let path = self.relative(path);
        let mut state = self.lock();
        if state.names.live.contains_key(&path) {
            return Err(error(libc::EEXIST));
        }
        let number = state.files.len();
        state.files.push(FileState::default());
        state.names.change(vec![NameChange::Put(path, number)]);
        Ok(SimulatedFile { disk: Arc::clone(self), number })
    }

    pub(crate) fn open(self: &Arc<Self>, path: &Path) -> io::Result<SimulatedFile> {
        let found = self.lock().names.live.get(&self.relative(path)).copied();
        let number = found.ok_or_else(|| error(libc::ENOENT))?;
        Ok(SimulatedFile { disk: Arc::clone(self), number })
    }

    pub(crate) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (from, to) = (self.relative(from), self.relative(to));
        let mut state = self.lock();
        let number = state.names.live.get(&from).copied().ok_or_else(|| error(libc::ENOENT))?;
        state.names.change(vec![NameChange::Remove(from), NameChange::Put(to, number)]);
        Ok(())
    }

    pub(crate) fn remove(&self, path: &Path) -> io::Result<()> {
        let path = self.relative(path);
        let mut state = self.lock();
        if !state.names.live.contains_key(&path) {
            return Err(error(libc::ENOENT));
        }
        state.names.change(vec![NameChange::Remove(path)]);
        Ok(())
    }

    pub(crate) fn sync_folder(&self, _folder: &Path) -> io::Result<()> {
        self.reach_flush();
        let mut state = self.lock();
        match state.strikes(Operation::SyncFolder) {
            Some(Effect::Lie) => return Ok(()),
            Some(Effect::Error(number)) => return Err(error(number)),
            Some(Effect::Short) | None => {}
        }
        state.names.durable = state.names.live.clone();
        state.names.changes.clear();
        Ok(())
    }
}

impl Names {
    fn change(&mut self, change: Vec<NameChange>) {
        apply(&mut self.live, &change);
        self.changes.push(change);
    }
}

impl State {
    /// Counts an operation; what a planned failure makes of it.
    fn strikes(&mut self, operation: Operation) -> Option<Effect> {
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

    /// Begins a write of whole pages; its number.
    fn write(&mut self, file: usize, bytes: &[u8], offset: u64, write_state: WriteState) -> u64 {
        self.writes += 1;
        let write = self.writes;
        let Some(file) = self.files.get_mut(file) else { return write };
        let live = Arc::make_mut(&mut file.live);
        for (number, bytes) in (page_number(offset)..).zip(bytes.chunks(PAGE_BYTES)) {
            // Zeros where nothing ever was change nothing: what is written ahead of need costs no memory.
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
                && *state == WriteState::UnderWay
            {
                *state = WriteState::Completed;
            }
        }
    }

    /// Takes over what has completed.
    fn flush(&mut self) {
        let durable = Arc::make_mut(&mut self.durable);
        let mut left: Vec<Change> = Vec::new();
        for change in std::mem::take(&mut self.changes) {
            match change {
                Change::Page { number, page, state: WriteState::Completed, .. } => {
                    durable.insert(number, page);
                    // What came before it to the same place is gone.
                    left.retain(|change| !matches!(change, Change::Page { number: n, .. } if *n == number));
                }
                Change::Page { write, number, page, state: WriteState::Late } => {
                    left.push(Change::Page { write, number, page, state: WriteState::Completed });
                }
                change @ Change::Page { .. } => left.push(change),
                Change::Length(_) => {}
            }
        }
        self.durable_length = self.length;
        self.changes = left;
    }

    /// A flush failed: whether the device holds what it was for, nobody will know.
    fn doubt(&mut self) {
        for change in &mut self.changes {
            if let Change::Page { state, .. } = change
                && *state == WriteState::Completed
            {
                *state = WriteState::InDoubt;
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
        self.disk.lock().files.get(self.number).map_or(0, |file| file.length)
    }

    /// Reads up to the end of the file.
    fn read(&self, offset: u64, bytes: usize) -> Vec<u8> {
        let state = self.disk.lock();
        let Some(file) = state.files.get(self.number) else { return Vec::new() };
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
        read.truncate(usize::try_from(end.saturating_sub(offset)).unwrap_or(0));
        read
    }

    pub(crate) fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        let read = self.read(offset, bytes.len());
        if read.len() < bytes.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.copy_from_slice(&read);
        Ok(())
    }

    #[expect(clippy::unnecessary_wraps, reason = "the signature is that of a file")]
    pub(crate) fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.disk.lock().write(self.number, bytes, offset, WriteState::Completed);
        Ok(())
    }

    /// Makes a part of the file zero: durable, like a write, with the next flush, and torn like one.
    pub(crate) fn punch(&self, offset: u64, bytes: u64) -> io::Result<()> {
        let mut state = self.disk.lock();
        if let Some(Effect::Error(number)) = state.strikes(Operation::Punch) {
            return Err(error(number));
        }
        let zeros = vec![0; usize::try_from(bytes).map_err(io::Error::other)?];
        state.write(self.number, &zeros, offset, WriteState::Completed);
        Ok(())
    }

    pub(crate) fn allocate(&self, to: u64) -> io::Result<()> {
        let mut state = self.disk.lock();
        let half_way = match state.strikes(Operation::Grow) {
            Some(Effect::Error(number)) => Some(number),
            Some(Effect::Short | Effect::Lie) | None => None,
        };
        let Some(file) = state.files.get_mut(self.number) else { return Err(error(libc::EBADF)) };
        if let Some(number) = half_way {
            // The kernel leaves what it could allocate before the failure.
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
        if let Some(file) = self.disk.lock().files.get_mut(self.number) {
            file.set_length(bytes);
        }
        Ok(())
    }

    pub(crate) fn sync(&self) -> io::Result<()> {
        self.disk.reach_flush();
        let mut state = self.disk.lock();
        let struck = state.strikes(Operation::Flush);
        let Some(file) = state.files.get_mut(self.number) else { return Err(error(libc::EBADF)) };
        match struck {
            Some(Effect::Lie) => Ok(()),
            Some(Effect::Error(number)) => {
                file.doubt();
                Err(error(number))
            }
            Some(Effect::Short) | None => {
                file.flush();
                Ok(())
            }
        }
    }

    /// Reads as an executor does: takes a few of its turns.
    pub(crate) async fn read_in_turn(&self, offset: u64, bytes: usize) -> io::Result<Vec<u8>> {
        let (turns, struck) = {
            let mut state = self.disk.lock();
            (state.random.below(TURNS_MAX), state.strikes(Operation::Read))
        };
        for _ in 0..turns {
            yield_now().await;
        }
        match struck {
            Some(Effect::Error(number)) => Err(error(number)),
            Some(Effect::Short) => Ok(self.read(offset, bytes / 2)),
            Some(Effect::Lie) | None => Ok(self.read(offset, bytes)),
        }
    }

    /// Writes as an executor does: what it writes is under way for a few of its turns. Returns the bytes written.
    pub(crate) async fn write_in_turn(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let (turns, struck, write, count) = {
            let mut state = self.disk.lock();
            let (turns, struck) = (state.random.below(TURNS_MAX), state.strikes(Operation::Write));
            let count = match struck {
                Some(Effect::Short | Effect::Error(_)) => bytes.len() / 2,
                Some(Effect::Lie) | None => bytes.len(),
            };
            let begun = if struck == Some(Effect::Lie) { WriteState::Late } else { WriteState::UnderWay };
            let done = bytes.get(..count).unwrap_or_default();
            (turns, struck, state.write(self.number, done, offset, begun), count)
        };
        for _ in 0..turns {
            yield_now().await;
        }
        if let Some(Effect::Error(number)) = struck {
            return Err(error(number));
        }
        if let Some(file) = self.disk.lock().files.get_mut(self.number) {
            file.complete(write);
        }
        Ok(count)
    }
}

impl DiskSnapshot {
    /// Whether anything has not been flushed: else all cuts are the same.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.names.changes.is_empty() && self.files.iter().all(|file| file.changes.is_empty())
    }

    /// The disk that a machine finds which lost power at this moment, for a store in the data folder `root`.
    #[must_use]
    pub fn cut(&self, root: &Path, kept: Kept) -> SimulatedDisk {
        let mut random = Random::new(if let Kept::Torn(seed) = kept { seed } else { 0 });
        let files = self.files.iter().map(|file| file.after_cut(kept, &mut random)).collect();
        let mut names = self.names.durable.clone();
        let first = kept_of(kept, self.names.changes.len(), &mut random);
        self.names.changes.iter().take(first).for_each(|change| apply(&mut names, change));
        SimulatedDisk::holding(root, random.next(), files, names)
    }
}

/// How many of `count` changes that a journal orders are kept.
fn kept_of(kept: Kept, count: usize, random: &mut Random) -> usize {
    match kept {
        Kept::All => count,
        Kept::Nothing => 0,
        Kept::Torn(_) => random.index(count + 1),
    }
}

impl FileState {
    fn after_cut(&self, kept: Kept, random: &mut Random) -> Self {
        let mut image = Arc::clone(&self.durable);
        let lengths: Vec<u64> = self.changes.iter().filter_map(Change::length).collect();
        let first = kept_of(kept, lengths.len(), random);
        let length = first.checked_sub(1).and_then(|last| lengths.get(last)).copied();
        let length = length.unwrap_or(self.durable_length);
        // One decision for each write, in their order.
        let mut fates: HashMap<u64, u64> = HashMap::new();
        for change in &self.changes {
            let Change::Page { write, number, page, .. } = change else { continue };
            let fate = *fates.entry(*write).or_insert_with(|| random.below(3));
            let sectors = match (kept, fate) {
                (Kept::All, _) | (Kept::Torn(_), 0) => u64::MAX,
                (Kept::Nothing, _) | (Kept::Torn(_), 1) => continue,
                (Kept::Torn(_), _) => random.next(),
            };
            let pages = Arc::make_mut(&mut image);
            let mut mixed = pages.get(number).map_or([0; PAGE_BYTES], |page| **page);
            let both = mixed.chunks_mut(SECTOR_BYTES).zip(page.chunks(SECTOR_BYTES));
            for (_, (old, new)) in both.enumerate().filter(|(sector, _)| sectors >> sector & 1 == 1) {
                old.copy_from_slice(new);
            }
            pages.insert(*number, Arc::new(mixed));
        }
        if image.last_key_value().is_some_and(|(last, _)| (last + 1) * PAGE_BYTES as u64 > length) {
            Arc::make_mut(&mut image).split_off(&length.div_ceil(PAGE_BYTES as u64));
        }
        Self { live: Arc::clone(&image), length, durable: image, durable_length: length, changes: Vec::new() }
    }
}

impl Change {
    fn length(&self) -> Option<u64> {
        if let Self::Length(bytes) = self { Some(*bytes) } else { None }
    }
}
