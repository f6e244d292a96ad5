//! Reading a payload: blocks from the cache or the device, each checked before anybody sees it.
//!
//! A reader pins its payload: an overwrite or a removal meanwhile neither changes nor tears what it reads. Blocks ahead
//! of the one being sent are already under way; neighbours that are missing in the cache are read together.

use crate::block::{CheckKind, Checks, accept, locate, read_table_page};
use crate::cache::Piece;
use crate::codec::{BlockChecks, VolumePayload};
use crate::disk;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::events::{FoundWhile, StoreEvent};
use crate::limits::{
    BLOCK_BYTES, BLOCK_UNITS, COPY_AHEAD_BLOCKS, COPY_RUN_BLOCKS, READ_AHEAD_BLOCKS, READ_RUN_BLOCKS,
    UNIT_BYTES,
};
use crate::object::ObjectInfo;
use crate::seal::PayloadKey;
use crate::slice::Slice;
use crate::space::Pin;
use cairn_model::VersionName;
use glommio::Task;
use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

/// An object opened for reading: its metadata, and its payload pinned until this is dropped.
pub struct OpenObject {
    /// Metadata of the version.
    pub info: ObjectInfo,
    /// The bytes that it was opened for.
    pub(crate) range: Range<u64>,
    pub(crate) purpose: Purpose,
    pub(crate) source: Source,
}

pub(crate) enum Source {
    Payload(PayloadSource),
    /// In order; those that the range lies in at least.
    Parts(Rc<Vec<OpenPart>>),
}

/// Where the bytes of one payload come from.
#[derive(Clone)]
pub(crate) enum PayloadSource {
    Inline(Vec<u8>),
    Volume(Rc<PinnedPayload>),
}

/// A part of an object opened for reading.
pub(crate) struct OpenPart {
    /// Where its bytes stand in the object.
    pub(crate) start: u64,
    pub(crate) size: u64,
    pub(crate) source: PayloadSource,
}

/// Why a payload is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// For a client: from the cache where it holds the block, which is filled; damage is counted and logged.
    Serve,
    /// To write them again: from the cache where it holds the block, which is not filled.
    Copy,
    /// To see what the device holds: the cache is neither asked nor filled, and whoever verifies reports the damage.
    Verify,
}

impl Purpose {
    /// Blocks that are under way ahead of the one in use, and blocks that one read fetches together.
    const fn depth(self) -> (u64, u64) {
        match self {
            Self::Serve | Self::Verify => (READ_AHEAD_BLOCKS, READ_RUN_BLOCKS),
            Self::Copy => (COPY_AHEAD_BLOCKS, COPY_RUN_BLOCKS),
        }
    }
}

/// A payload in volumes with all that reading it takes.
pub(crate) struct PinnedPayload {
    pub(crate) engine: Rc<Engine>,
    pub(crate) slice: Arc<Slice>,
    pub(crate) payload: VolumePayload,
    /// Opens the blocks of a sealed payload.
    pub(crate) key: Option<Box<PayloadKey>>,
    pub(crate) size: u64,
    /// Bucket and key, for the report when a block fails its check.
    pub(crate) object: Rc<str>,
    pub(crate) version: VersionName,
    /// Number of the part that the payload is, if it is one.
    pub(crate) part: Option<u16>,
    /// Of the whole object.
    pub(crate) _pin: Option<Rc<Pin>>,
}

/// A piece of a payload, checked.
#[derive(Clone, Debug)]
pub struct PayloadChunk {
    bytes: ChunkBytes,
    range: Range<usize>,
}

#[derive(Clone, Debug)]
enum ChunkBytes {
    /// A block, perhaps one that the cache holds too.
    Block(Arc<[u8]>),
    /// An inline payload, copied out of the metadata.
    Inline(Vec<u8>),
}

impl PayloadChunk {
    /// The bytes as a buffer of their own; not copied when they are a whole inline payload.
    #[must_use]
    pub fn into_vec(self) -> Vec<u8> {
        match self {
            Self { bytes: ChunkBytes::Inline(bytes), range } if range == (0..bytes.len()) => bytes,
            other => other.as_ref().to_vec(),
        }
    }
}

impl AsRef<[u8]> for PayloadChunk {
    fn as_ref(&self) -> &[u8] {
        let bytes: &[u8] = match &self.bytes {
            ChunkBytes::Block(block) => block,
            ChunkBytes::Inline(bytes) => bytes,
        };
        bytes.get(self.range.clone()).unwrap_or_default()
    }
}

/// Gives the pieces of a range in order.
pub struct PayloadReader(Form);

enum Form {
    Inline(Option<Vec<u8>>, Range<u64>),
    Volume(VolumeReader),
    Parts(PartsReader),
}

struct PartsReader {
    parts: Rc<Vec<OpenPart>>,
    range: Range<u64>,
    purpose: Purpose,
    /// The next part to begin.
    next: usize,
    /// The part that is being read, and the one behind it.
    begun: VecDeque<PayloadReader>,
}

struct VolumeReader {
    payload: Rc<PinnedPayload>,
    range: Range<u64>,
    purpose: Purpose,
    /// The next block to give, and the next to begin to read.
    next: u64,
    ahead: u64,
    end: u64,
    pending: VecDeque<Pending>,
}

enum Pending {
    Ready(Arc<[u8]>),
    Reading(Task<Result<Vec<Arc<[u8]>>, EngineError>>),
}

impl OpenObject {
    /// Begins to read the bytes that it was opened for.
    #[must_use]
    pub fn read(self) -> PayloadReader {
        let Self { range, purpose, source, .. } = self;
        match source {
            Source::Payload(source) => PayloadReader::of_payload(source, range, purpose),
            Source::Parts(parts) => {
                let next = parts.partition_point(|part| part.start + part.size <= range.start);
                let begun = VecDeque::new();
                PayloadReader(Form::Parts(PartsReader { parts, range, purpose, next, begun }))
            }
        }
    }

    /// Reads for a copy.
    pub(crate) fn copying(self) -> Self {
        Self { purpose: Purpose::Copy, ..self }
    }
}

impl PayloadReader {
    fn of_payload(source: PayloadSource, range: Range<u64>, purpose: Purpose) -> Self {
        Self(match source {
            PayloadSource::Inline(bytes) => Form::Inline(Some(bytes), range),
            PayloadSource::Volume(payload) => {
                let block = BLOCK_BYTES as u64;
                let (first, end) = (range.start / block, range.end.div_ceil(block));
                let end = if range.is_empty() { first } else { end };
                let pending = VecDeque::new();
                Form::Volume(VolumeReader {
                    payload,
                    range,
                    purpose,
                    next: first,
                    ahead: first,
                    end,
                    pending,
                })
            }
        })
    }

    /// The next piece; `None` at the end. Never gives a byte whose block has not been found right.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] or [`EngineError::Io`]; the reader is then at its end.
    pub async fn next(&mut self) -> Result<Option<PayloadChunk>, EngineError> {
        match &mut self.0 {
            Form::Inline(bytes, range) => {
                let Some(bytes) = bytes.take().filter(|_| !range.is_empty()) else { return Ok(None) };
                let start = usize::try_from(range.start).unwrap_or(bytes.len());
                let end = usize::try_from(range.end).unwrap_or(bytes.len());
                Ok(Some(PayloadChunk { bytes: ChunkBytes::Inline(bytes), range: start..end }))
            }
            Form::Volume(reader) => reader.next().await,
            // Parts have no parts.
            Form::Parts(parts) => Box::pin(parts.next()).await,
        }
    }
}

impl PartsReader {
    async fn next(&mut self) -> Result<Option<PayloadChunk>, EngineError> {
        loop {
            self.begin();
            let Some(part) = self.begun.front_mut() else { return Ok(None) };
            match part.next().await {
                Ok(None) => drop(self.begun.pop_front()),
                Ok(chunk) => return Ok(chunk),
                Err(error) => {
                    // Nothing may follow a piece that is missing.
                    self.begun.clear();
                    self.next = self.parts.len();
                    return Err(error);
                }
            }
        }
    }

    /// Has the next part at hand, and its first blocks read while the last ones of the part before are on their way.
    fn begin(&mut self) {
        while self.begun.len() < 2 {
            let Some(part) = self.parts.get(self.next).filter(|part| part.start < self.range.end) else {
                break;
            };
            let within = |at: u64| at.saturating_sub(part.start).min(part.size);
            let range = within(self.range.start)..within(self.range.end);
            self.begun.push_back(PayloadReader::of_payload(part.source.clone(), range, self.purpose));
            self.next += 1;
        }
        let mut readers = self.begun.iter_mut();
        if let (Some(PayloadReader(Form::Volume(first))), Some(PayloadReader(Form::Volume(second)))) =
            (readers.next(), readers.next())
            && first.ahead == first.end
            && second.ahead == second.next
        {
            second.read_ahead();
        }
    }
}

impl Drop for VolumeReader {
    fn drop(&mut self) {
        self.payload.engine.count_read_ahead(self.next, self.ahead);
    }
}

impl VolumeReader {
    async fn next(&mut self) -> Result<Option<PayloadChunk>, EngineError> {
        if self.next >= self.end {
            return Ok(None);
        }
        let block = self.next_block().await;
        if block.is_err() {
            // Nothing may follow a piece that is missing.
            self.end = self.next;
            self.pending.clear();
        }
        let block = block?;
        let start = self.next * BLOCK_BYTES as u64;
        self.payload.engine.count_read_ahead(self.next, self.next + 1);
        self.next += 1;
        let within =
            |at: u64| usize::try_from(at.saturating_sub(start)).unwrap_or(usize::MAX).min(block.len());
        let range = within(self.range.start)..within(self.range.end);
        Ok(Some(PayloadChunk { bytes: ChunkBytes::Block(block), range }))
    }

    fn count_ahead(&mut self, blocks: u64) {
        self.payload.engine.count_read_ahead(self.ahead + blocks, self.ahead);
        self.ahead += blocks;
    }

    async fn next_block(&mut self) -> Result<Arc<[u8]>, EngineError> {
        self.read_ahead();
        if let Some(Pending::Reading(task)) = self.pending.front_mut() {
            let blocks = task.await;
            self.pending.pop_front();
            for block in blocks?.into_iter().rev() {
                self.pending.push_front(Pending::Ready(block));
            }
        }
        match self.pending.pop_front() {
            Some(Pending::Ready(block)) => Ok(block),
            _ => Err(EngineError::Io("a read gave no block".to_owned())),
        }
    }

    /// Keeps the next blocks under way: several while the executor's readers hold little, else the next one alone.
    fn read_ahead(&mut self) {
        let (ahead_max, run_max) = self.purpose.depth();
        while self.ahead < self.end {
            let (under_way, plenty) = (self.ahead - self.next, self.payload.engine.may_read_ahead());
            if under_way >= ahead_max || (under_way > 0 && !plenty) {
                return;
            }
            if let Some(block) = self.payload.cached(self.ahead, self.purpose) {
                self.payload.engine.figures.cache_hits.add(1);
                self.pending.push_back(Pending::Ready(block));
                self.count_ahead(1);
                continue;
            }
            let first = self.ahead;
            let most = if plenty { (self.end - first).min(run_max) } else { 1 };
            let mut count = 1;
            while count < most
                && self.payload.follows(first, count)
                && !self.payload.is_cached(first + count, self.purpose)
            {
                count += 1;
            }
            self.count_ahead(count);
            if self.purpose != Purpose::Verify {
                self.payload.engine.figures.cache_misses.add(count);
            }
            let (payload, purpose) = (Rc::clone(&self.payload), self.purpose);
            let task = glommio::spawn_local(async move { payload.read_blocks(first, count, purpose).await });
            self.pending.push_back(Pending::Reading(task));
        }
    }
}

impl PinnedPayload {
    fn piece(block: u64) -> Piece {
        Piece::Block(u32::try_from(block).unwrap_or(u32::MAX))
    }

    fn cached(&self, block: u64, purpose: Purpose) -> Option<Arc<[u8]>> {
        self.ask_cache(Self::piece(block), purpose)
    }

    fn ask_cache(&self, piece: Piece, purpose: Purpose) -> Option<Arc<[u8]>> {
        match purpose {
            Purpose::Serve | Purpose::Copy => self.engine.store().cache.get(self.payload.id, piece),
            Purpose::Verify => None,
        }
    }

    fn fill_cache(&self, piece: Piece, bytes: &Arc<[u8]>, purpose: Purpose) {
        // A copy asks for each page of a check table many times, and for its blocks once.
        let fills = match piece {
            Piece::Block(_) => purpose == Purpose::Serve,
            Piece::TablePage(_) => purpose != Purpose::Verify,
        };
        if fills {
            self.engine.store().cache.insert(self.payload.id, piece, Arc::clone(bytes));
        }
    }

    fn is_cached(&self, block: u64, purpose: Purpose) -> bool {
        self.cached(block, purpose).is_some()
    }

    /// Whether block `first + count` lies right behind block `first` and those between.
    pub(crate) fn follows(&self, first: u64, count: u64) -> bool {
        let place = |block: u64| locate(&self.payload.extents, block * BLOCK_UNITS);
        match (place(first), place(first + count)) {
            (Some((v1, o1)), Some((v2, o2))) => {
                v1 == v2 && o2.checked_sub(o1) == Some(count * BLOCK_BYTES as u64)
            }
            _ => false,
        }
    }

    /// Reads `count` blocks that lie one behind the other, checks each, and puts them into the cache.
    pub(crate) async fn read_blocks(
        &self,
        first: u64,
        count: u64,
        purpose: Purpose,
    ) -> Result<Vec<Arc<[u8]>>, EngineError> {
        let checks = self.checks(first, count, purpose).await?;
        let start = first * BLOCK_BYTES as u64;
        let bytes = (self.size - start).min(count * BLOCK_BYTES as u64);
        let read = self.read_units(&self.payload.extents, first * BLOCK_UNITS, bytes, purpose).await?;
        let wanted = read.as_ref().get(..usize::try_from(bytes).unwrap_or(0)).unwrap_or_default();
        let mut blocks = Vec::with_capacity(checks.len());
        for (at, (number, bytes)) in (first..).zip(wanted.chunks(BLOCK_BYTES)).enumerate() {
            let mut block: Arc<[u8]> = bytes.into();
            let opened = Arc::get_mut(&mut block).zip(checks.get(at));
            if !opened.is_some_and(|(bytes, check)| accept(self.key.as_deref(), number, bytes, check)) {
                return Err(self.corrupt(&format!("block {number}"), purpose));
            }
            self.fill_cache(Self::piece(number), &block, purpose);
            blocks.push(block);
        }
        self.engine.figures.blocks_read.add(count);
        Ok(blocks)
    }

    /// Reads `bytes` bytes, rounded up to units, from unit `unit` of what lies in `extents`.
    async fn read_units(
        &self,
        extents: &[crate::extent::Extent],
        unit: u64,
        bytes: u64,
        purpose: Purpose,
    ) -> Result<disk::ReadBytes, EngineError> {
        let (volume, offset) = locate(extents, unit).ok_or_else(|| self.corrupt("extents", purpose))?;
        let file = self.engine.volume_file(&self.slice, volume).await?;
        let bytes = usize::try_from(bytes.next_multiple_of(UNIT_BYTES)).unwrap_or(usize::MAX);
        disk::read(&file, offset, bytes).await.map_err(|error| {
            let what = format!("volume {volume} at byte {offset}: {error}");
            let (object, version, what) = (&*self.object, self.version, &self.of_part(&what));
            self.engine.store().events.report(&StoreEvent::ReadFailed { object, version, what });
            EngineError::Io(format!("reading a payload: {error}"))
        })
    }

    /// The checks of `count` blocks from `first` on.
    async fn checks(&self, first: u64, count: u64, purpose: Purpose) -> Result<Checks, EngineError> {
        let table = match &self.payload.checks {
            BlockChecks::List(checks) => {
                let span =
                    usize::try_from(first).unwrap_or(usize::MAX)..usize::try_from(first + count).unwrap_or(0);
                return checks.range(span).ok_or_else(|| self.corrupt("checks", purpose));
            }
            BlockChecks::Table(extents) => extents,
        };
        let kind = self.check_kind();
        let per_page = kind.per_page() as u64;
        let mut checks = Checks::new(kind);
        for page in first / per_page..=(first + count - 1) / per_page {
            let bytes = self.table_page(table, page, purpose).await?;
            let start = page * per_page;
            let within =
                |block: u64| usize::try_from(block.clamp(start, start + per_page) - start).unwrap_or(0);
            let wanted = read_table_page(self.payload.id, page, &bytes, kind)
                .and_then(|all| all.range(within(first)..within(first + count)))
                .ok_or_else(|| self.corrupt(&format!("page {page} of the check table"), purpose))?;
            checks.append(&wanted);
        }
        Ok(checks)
    }

    const fn check_kind(&self) -> CheckKind {
        CheckKind::of(self.key.is_some())
    }

    async fn table_page(
        &self,
        table: &[crate::extent::Extent],
        page: u64,
        purpose: Purpose,
    ) -> Result<Arc<[u8]>, EngineError> {
        let piece = Piece::TablePage(u32::try_from(page).unwrap_or(u32::MAX));
        if let Some(bytes) = self.ask_cache(piece, purpose) {
            return Ok(bytes);
        }
        let read = self.read_units(table, page, UNIT_BYTES, purpose).await?;
        let bytes: Arc<[u8]> = read.as_ref().get(..4096).unwrap_or_default().into();
        if read_table_page(self.payload.id, page, &bytes, self.check_kind()).is_some() {
            self.fill_cache(piece, &bytes, purpose);
        }
        Ok(bytes)
    }

    /// Whether the volume of a block is gone, or ends before the block does.
    pub(crate) async fn is_missing(&self, block: u64) -> bool {
        let Some((volume, offset)) = locate(&self.payload.extents, block * BLOCK_UNITS) else { return false };
        let Ok(file) = self.engine.volume_file(&self.slice, volume).await else { return true };
        let bytes = self.size.saturating_sub(block * BLOCK_BYTES as u64).min(BLOCK_BYTES as u64);
        file.length().await.is_ok_and(|length| length < offset + bytes)
    }

    /// What was found, with the number of the part.
    pub(crate) fn of_part(&self, what: &str) -> String {
        self.part.map_or_else(|| what.to_owned(), |number| format!("part {number}: {what}"))
    }

    fn corrupt(&self, what: &str, purpose: Purpose) -> EngineError {
        let what = self.of_part(what);
        if purpose == Purpose::Verify {
            return EngineError::Corrupt(what);
        }
        let (object, version) = (&*self.object, Some(self.version));
        let found_while = FoundWhile::Serving;
        self.engine.store().events.report(&StoreEvent::Damage { object, version, what: &what, found_while });
        EngineError::Corrupt(format!("{what} of {object} version {}", self.version))
    }
}
