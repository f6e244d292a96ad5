//! A pinned payload in volumes: reads its blocks and checks each one.

use crate::device::block_cache::Piece;
use crate::device::executor_files::{self, ReadBytes};
use crate::error::EngineError;
use crate::executor::context::ExecutorContext;
use crate::fault_reports::{FoundWhile, StoreFault};
use crate::format::block::{CheckKind, Checks, accept, locate, read_table_page};
use crate::format::codec::{BlockChecks, VolumePayload};
use crate::format::extent::Extent;
use crate::format::seal::PayloadKey;
use crate::limits::{
    BLOCK_BYTES, BLOCK_UNITS, COPY_AHEAD_BLOCKS, COPY_RUN_BLOCKS, READ_AHEAD_BLOCKS, READ_RUN_BLOCKS,
    UNIT_BYTES,
};
use crate::slice::Slice;
use crate::space::allocator::Pin;
use cairn_model::{VersionName, usize_of};
use std::rc::Rc;
use std::sync::Arc;

/// The purpose of a read of a payload. Decides about caching and damage reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ReadMode {
    /// For a client. Uses and fills the cache; damage is counted and logged.
    Serve,
    /// For a copy. Uses the cache, but does not fill it with blocks.
    Copy,
    /// For verification of the device. Bypasses the cache; the verifier reports damage.
    Verify,
}

impl ReadMode {
    /// Blocks to prefetch, and the most blocks of one read.
    pub(crate) const fn depth(self) -> (u64, u64) {
        match self {
            Self::Serve | Self::Verify => (READ_AHEAD_BLOCKS, READ_RUN_BLOCKS),
            Self::Copy => (COPY_AHEAD_BLOCKS, COPY_RUN_BLOCKS),
        }
    }
}

/// A payload in volumes, with everything that is needed to read it.
pub(crate) struct PinnedPayload {
    pub(crate) context: Rc<ExecutorContext>,
    pub(crate) slice: Arc<Slice>,
    pub(crate) payload: VolumePayload,
    /// Decrypts the blocks of a sealed payload.
    pub(crate) key: Option<Box<PayloadKey>>,
    pub(crate) size: u64,
    /// Bucket and key, for damage reports.
    pub(crate) object: Rc<str>,
    pub(crate) version: VersionName,
    /// The part number, if the payload is a part.
    pub(crate) part: Option<u16>,
    /// Keeps the space of the whole object from being reused.
    pub(crate) _pin: Option<Rc<Pin>>,
}

impl PinnedPayload {
    fn block_piece(block: u64) -> Piece {
        Piece::Block(u32::try_from(block).expect("a payload has fewer than 2^32 blocks"))
    }

    /// The block, if the cache holds it and the mode uses the cache.
    pub(crate) fn cached(&self, block: u64, mode: ReadMode) -> Option<Arc<[u8]>> {
        self.cached_piece(Self::block_piece(block), mode)
    }

    fn cached_piece(&self, piece: Piece, mode: ReadMode) -> Option<Arc<[u8]>> {
        match mode {
            ReadMode::Serve | ReadMode::Copy => self.context.store.payloads.cache.get(self.payload.id, piece),
            ReadMode::Verify => None,
        }
    }

    fn fill_cache(&self, piece: Piece, bytes: &Arc<[u8]>, mode: ReadMode) {
        // A copy needs each page of a check table many times, but each block only once.
        let fills = match piece {
            Piece::Block(_) => mode == ReadMode::Serve,
            Piece::TablePage(_) => mode != ReadMode::Verify,
        };
        if fills {
            self.context.store.payloads.cache.insert(self.payload.id, piece, Arc::clone(bytes));
        }
    }

    /// Returns whether block `first + count` directly follows the blocks from `first` on the device.
    pub(crate) fn is_contiguous(&self, first: u64, count: u64) -> bool {
        let place = |block: u64| locate(&self.payload.extents, block * BLOCK_UNITS);
        match (place(first), place(first + count)) {
            (Some((v1, o1)), Some((v2, o2))) => {
                v1 == v2 && o2.checked_sub(o1) == Some(count * BLOCK_BYTES as u64)
            }
            _ => false,
        }
    }

    /// Reads `count` contiguous blocks, checks each one and adds it to the cache.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] when a block or a check is damaged, [`EngineError::Io`] when the device fails.
    pub(crate) async fn read_blocks(
        &self,
        first: u64,
        count: u64,
        mode: ReadMode,
    ) -> Result<Vec<Arc<[u8]>>, EngineError> {
        let checks = self.checks(first, count, mode).await?;
        let start = first * BLOCK_BYTES as u64;
        assert!(count > 0 && start < self.size, "the blocks lie within the payload");
        let bytes = (self.size - start).min(count * BLOCK_BYTES as u64);
        let read = self.read_units(&self.payload.extents, first * BLOCK_UNITS, bytes, mode).await?;
        // A successful read returned at least the bytes asked for.
        let payload = &read.as_ref()[..usize_of(bytes)];
        let mut blocks = Vec::with_capacity(checks.len());
        for (at, (number, bytes)) in (first..).zip(payload.chunks(BLOCK_BYTES)).enumerate() {
            let mut block: Arc<[u8]> = bytes.into();
            let checked = Arc::get_mut(&mut block).zip(checks.get(at));
            if !checked.is_some_and(|(bytes, check)| accept(self.key.as_deref(), number, bytes, check)) {
                return Err(self.corrupt(&format!("block {number}"), mode));
            }
            self.fill_cache(Self::block_piece(number), &block, mode);
            blocks.push(block);
        }
        self.context.counters.blocks_read.add(count);
        Ok(blocks)
    }

    /// Reads `bytes` bytes, rounded up to units, that begin at unit `unit` of `extents`.
    async fn read_units(
        &self,
        extents: &[Extent],
        unit: u64,
        bytes: u64,
        mode: ReadMode,
    ) -> Result<ReadBytes, EngineError> {
        let (volume, offset) = locate(extents, unit).ok_or_else(|| self.corrupt("extents", mode))?;
        let file = self.context.volume_file(&self.slice, volume).await?;
        let bytes = usize_of(bytes.next_multiple_of(UNIT_BYTES));
        executor_files::read(&file, offset, bytes).await.map_err(|error| {
            let what = format!("volume {volume} at byte {offset}: {error}");
            let (object, version, what) = (&*self.object, self.version, &self.with_part_number(&what));
            self.context.store.fault_reports.report(&StoreFault::ReadFailed { object, version, what });
            EngineError::Io(format!("reading a payload: {error}"))
        })
    }

    /// The checks of `count` blocks from `first`: from the record, or from the payload's check table.
    async fn checks(&self, first: u64, count: u64, mode: ReadMode) -> Result<Checks, EngineError> {
        let table = match &self.payload.checks {
            BlockChecks::List(checks) => {
                let blocks = usize_of(first)..usize_of(first + count);
                return checks.range(blocks).ok_or_else(|| self.corrupt("checks", mode));
            }
            BlockChecks::Table(extents) => extents,
        };
        let kind = self.check_kind();
        let per_page = kind.per_page() as u64;
        let mut checks = Checks::new(kind);
        for page in first / per_page..=(first + count - 1) / per_page {
            let bytes = self.table_page(table, page, mode).await?;
            let start = page * per_page;
            let in_page = |block: u64| usize_of(block.clamp(start, start + per_page) - start);
            let found = read_table_page(self.payload.id, page, &bytes, kind)
                .and_then(|all| all.range(in_page(first)..in_page(first + count)))
                .ok_or_else(|| self.corrupt(&format!("page {page} of the check table"), mode))?;
            checks.append(&found);
        }
        Ok(checks)
    }

    const fn check_kind(&self) -> CheckKind {
        CheckKind::of(self.key.is_some())
    }

    /// Reads one page of the check table. Only a page that passes its own check is cached.
    async fn table_page(
        &self,
        table: &[Extent],
        page: u64,
        mode: ReadMode,
    ) -> Result<Arc<[u8]>, EngineError> {
        let piece = Piece::TablePage(u32::try_from(page).expect("a check table has fewer than 2^32 pages"));
        if let Some(bytes) = self.cached_piece(piece, mode) {
            return Ok(bytes);
        }
        let read = self.read_units(table, page, UNIT_BYTES, mode).await?;
        let bytes: Arc<[u8]> = read.as_ref()[..usize_of(UNIT_BYTES)].into();
        if read_table_page(self.payload.id, page, &bytes, self.check_kind()).is_some() {
            self.fill_cache(piece, &bytes, mode);
        }
        Ok(bytes)
    }

    /// Returns whether the volume of a block is missing or ends before the block does.
    pub(crate) async fn is_missing(&self, block: u64) -> bool {
        let Some((volume, offset)) = locate(&self.payload.extents, block * BLOCK_UNITS) else { return false };
        let Ok(file) = self.context.volume_file(&self.slice, volume).await else { return true };
        let bytes = self.size.saturating_sub(block * BLOCK_BYTES as u64).min(BLOCK_BYTES as u64);
        file.length().await.is_ok_and(|length| length < offset + bytes)
    }

    /// Adds the part number, if the payload is a part.
    pub(crate) fn with_part_number(&self, what: &str) -> String {
        self.part.map_or_else(|| what.to_owned(), |number| format!("part {number}: {what}"))
    }

    /// Makes the error for damage, and reports it unless the verifier does.
    fn corrupt(&self, what: &str, mode: ReadMode) -> EngineError {
        let what = self.with_part_number(what);
        if mode == ReadMode::Verify {
            return EngineError::Corrupt(what);
        }
        let (object, version) = (&*self.object, Some(self.version));
        let found_while = FoundWhile::Serving;
        self.context.store.fault_reports.report(&StoreFault::Damage {
            object,
            version,
            what: &what,
            found_while,
        });
        EngineError::Corrupt(format!("{what} of {object} version {}", self.version))
    }
}
