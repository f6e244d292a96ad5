//! Reads a payload: yields its checked pieces in order and prefetches the next blocks.
//!
//! A reader pins its payload. An overwrite or a removal in the meantime neither changes nor tears what it reads. The blocks
//! after the current one are already being read. Adjacent blocks that are missing in the cache are read together.

use crate::error::EngineError;
use crate::limits::BLOCK_BYTES;
use crate::read::pinned_payload::{PinnedPayload, ReadMode};
use crate::types::object::ObjectInfo;
use cairn_model::{u64_of, usize_of};
use glommio::Task;
use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

/// An object that is open for reading. Its payload stays pinned until this is dropped.
pub struct OpenObject {
    /// Metadata of the version.
    pub info: ObjectInfo,
    /// The bytes that it was opened for.
    pub(crate) range: Range<u64>,
    pub(crate) mode: ReadMode,
    pub(crate) source: Source,
}

/// The source of an object's bytes.
pub(crate) enum Source {
    Payload(StoredPayload),
    /// Parts in order: at least those that the range touches.
    Parts(Rc<Vec<OpenPart>>),
}

/// A payload as it is stored: in the metadata, or pinned in a volume.
#[derive(Clone)]
pub(crate) enum StoredPayload {
    Inline(Vec<u8>),
    Volume(Rc<PinnedPayload>),
}

/// A part of an object that is open for reading.
pub(crate) struct OpenPart {
    /// Offset of the part's first byte in the object.
    pub(crate) start: u64,
    pub(crate) size: u64,
    pub(crate) source: StoredPayload,
}

/// A checked piece of a payload.
#[derive(Clone, Debug)]
pub struct PayloadChunk {
    bytes: ChunkBytes,
    range: Range<usize>,
}

#[derive(Clone, Debug)]
enum ChunkBytes {
    /// A block, which the cache may hold too.
    Block(Arc<[u8]>),
    /// An inline payload, copied from the metadata.
    Inline(Vec<u8>),
}

impl PayloadChunk {
    /// Returns the bytes in their own buffer. A whole inline payload is not copied.
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
        &bytes[self.range.clone()]
    }
}

/// Yields the pieces of a range in order.
pub struct PayloadReader(Form);

enum Form {
    /// The payload, until it is returned, and the range of it to return.
    Inline(Option<Vec<u8>>, Range<usize>),
    Volume(VolumeReader),
    Parts(PartsReader),
}

/// Reads the parts of a multipart object one after the other.
struct PartsReader {
    parts: Rc<Vec<OpenPart>>,
    range: Range<u64>,
    mode: ReadMode,
    /// Index of the next part to open.
    next: usize,
    /// The part that is being read, and the part after it.
    open: VecDeque<PayloadReader>,
}

/// Reads the blocks of a payload in volumes.
struct VolumeReader {
    payload: Rc<PinnedPayload>,
    range: Range<u64>,
    mode: ReadMode,
    /// The next block to return.
    next: u64,
    /// The next block to prefetch; at least `next`.
    ahead: u64,
    /// One more than the last block.
    end: u64,
    /// Blocks from `next` to `ahead`, in order.
    pending: VecDeque<Pending>,
}

enum Pending {
    Ready(Arc<[u8]>),
    Reading(Task<Result<Vec<Arc<[u8]>>, EngineError>>),
}

impl OpenObject {
    /// Begins to read the bytes that the object was opened for.
    #[must_use]
    pub fn read(self) -> PayloadReader {
        let Self { range, mode, source, .. } = self;
        match source {
            Source::Payload(source) => PayloadReader::of_payload(source, range, mode),
            Source::Parts(parts) => {
                let next = parts.partition_point(|part| part.start + part.size <= range.start);
                let open = VecDeque::new();
                PayloadReader(Form::Parts(PartsReader { parts, range, mode, next, open }))
            }
        }
    }

    /// The same object, to be read for a copy.
    pub(crate) fn copying(self) -> Self {
        Self { mode: ReadMode::Copy, ..self }
    }
}

impl PayloadReader {
    fn of_payload(source: StoredPayload, range: Range<u64>, mode: ReadMode) -> Self {
        Self(match source {
            StoredPayload::Inline(bytes) => {
                assert!(range.end <= u64_of(bytes.len()), "a range lies within its payload");
                Form::Inline(Some(bytes), usize_of(range.start)..usize_of(range.end))
            }
            StoredPayload::Volume(payload) => {
                let block = BLOCK_BYTES as u64;
                let (first, end) = (range.start / block, range.end.div_ceil(block));
                let end = if range.is_empty() { first } else { end };
                let pending = VecDeque::new();
                Form::Volume(VolumeReader { payload, range, mode, next: first, ahead: first, end, pending })
            }
        })
    }

    /// Drops the blocks that were read ahead, so that they take no memory while the reader waits. They are read again.
    pub(crate) fn discard_prefetched(&mut self) {
        match &mut self.0 {
            Form::Inline(..) => {}
            Form::Volume(reader) => reader.discard_prefetched(),
            Form::Parts(parts) => parts.open.iter_mut().for_each(Self::discard_prefetched),
        }
    }

    /// Returns the next piece; `None` at the end. Every returned byte belongs to a block that passed its check.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] or [`EngineError::Io`]. The reader is then at its end.
    pub async fn next(&mut self) -> Result<Option<PayloadChunk>, EngineError> {
        match &mut self.0 {
            Form::Inline(bytes, range) => {
                let Some(bytes) = bytes.take().filter(|_| range.start < range.end) else { return Ok(None) };
                Ok(Some(PayloadChunk { bytes: ChunkBytes::Inline(bytes), range: range.clone() }))
            }
            Form::Volume(reader) => reader.next().await,
            // Boxed because the types are recursive. The recursion is one level deep: parts have no parts.
            Form::Parts(parts) => Box::pin(parts.next()).await,
        }
    }
}

impl PartsReader {
    async fn next(&mut self) -> Result<Option<PayloadChunk>, EngineError> {
        loop {
            self.open_next_parts();
            let Some(part) = self.open.front_mut() else { return Ok(None) };
            match part.next().await {
                Ok(None) => drop(self.open.pop_front()),
                Ok(chunk) => return Ok(chunk),
                Err(error) => {
                    // Nothing may follow a missing piece.
                    self.open.clear();
                    self.next = self.parts.len();
                    return Err(error);
                }
            }
        }
    }

    /// Opens the next part early and prefetches its first blocks while the current part drains.
    fn open_next_parts(&mut self) {
        while self.open.len() < 2 {
            let Some(part) = self.parts.get(self.next).filter(|part| part.start < self.range.end) else {
                break;
            };
            let in_part = |at: u64| at.saturating_sub(part.start).min(part.size);
            let range = in_part(self.range.start)..in_part(self.range.end);
            self.open.push_back(PayloadReader::of_payload(part.source.clone(), range, self.mode));
            self.next += 1;
        }
        let mut readers = self.open.iter_mut();
        if let (Some(PayloadReader(Form::Volume(current))), Some(PayloadReader(Form::Volume(following)))) =
            (readers.next(), readers.next())
            && current.ahead == current.end
            && following.ahead == following.next
        {
            following.prefetch();
        }
    }
}

impl Drop for VolumeReader {
    fn drop(&mut self) {
        self.payload.context.remove_read_ahead(self.ahead - self.next);
    }
}

impl VolumeReader {
    async fn next(&mut self) -> Result<Option<PayloadChunk>, EngineError> {
        if self.next >= self.end {
            return Ok(None);
        }
        let block = self.next_block().await;
        if block.is_err() {
            // Nothing may follow a missing piece.
            self.end = self.next;
            self.pending.clear();
        }
        let block = block?;
        let start = self.next * BLOCK_BYTES as u64;
        assert!(self.next < self.ahead, "a block is returned only after its read began");
        self.payload.context.remove_read_ahead(1);
        self.next += 1;
        let in_block = |at: u64| usize_of(at.saturating_sub(start)).min(block.len());
        let range = in_block(self.range.start)..in_block(self.range.end);
        Ok(Some(PayloadChunk { bytes: ChunkBytes::Block(block), range }))
    }

    fn discard_prefetched(&mut self) {
        self.payload.context.remove_read_ahead(self.ahead - self.next);
        self.ahead = self.next;
        self.pending.clear();
    }

    fn advance_prefetch(&mut self, blocks: u64) {
        self.payload.context.add_read_ahead(blocks);
        self.ahead += blocks;
    }

    async fn next_block(&mut self) -> Result<Arc<[u8]>, EngineError> {
        self.prefetch();
        if let Some(Pending::Reading(task)) = self.pending.front_mut() {
            let blocks = task.await;
            self.pending.pop_front();
            for block in blocks?.into_iter().rev() {
                self.pending.push_front(Pending::Ready(block));
            }
        }
        match self.pending.pop_front() {
            Some(Pending::Ready(block)) => Ok(block),
            _ => unreachable!("the block before `ahead` is pending, and a read returns at least one block"),
        }
    }

    /// Begins to read the next blocks: several while the executor's readers hold little memory, else only the next one.
    fn prefetch(&mut self) {
        let (ahead_max, run_max) = self.mode.depth();
        while self.ahead < self.end {
            let (in_progress, has_memory) = (self.ahead - self.next, self.payload.context.may_read_ahead());
            if in_progress >= ahead_max || (in_progress > 0 && !has_memory) {
                return;
            }
            if let Some(block) = self.payload.cached(self.ahead, self.mode) {
                self.payload.context.counters.cache_hits.add(1);
                self.pending.push_back(Pending::Ready(block));
                self.advance_prefetch(1);
                continue;
            }
            let first = self.ahead;
            let most = if has_memory { (self.end - first).min(run_max) } else { 1 };
            let mut count = 1;
            while count < most
                && self.payload.is_contiguous(first, count)
                && self.payload.cached(first + count, self.mode).is_none()
            {
                count += 1;
            }
            self.advance_prefetch(count);
            if self.mode != ReadMode::Verify {
                self.payload.context.counters.cache_misses.add(count);
            }
            let (payload, mode) = (Rc::clone(&self.payload), self.mode);
            let task = glommio::spawn_local(async move { payload.read_blocks(first, count, mode).await });
            self.pending.push_back(Pending::Reading(task));
        }
    }
}
