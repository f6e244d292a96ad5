//! Writes a payload: from the client's bytes to reserved space that a commit takes over.
//!
//! Small payloads are collected in memory and stored in the metadata by the commit (inline). Larger ones are divided into
//! blocks with a check each and written to their extents as they arrive, with several writes in flight. Nothing is visible
//! before the commit. Dropping the writer or the staged payload frees the space after the last write has ended.
//!
//! With encryption at rest, a full buffer is first hashed, because the entity tag is that of the plain bytes. Then it is
//! encrypted in place and written: no copy, and no additional memory. An unencrypted buffer is written while it is hashed.

use crate::device::executor_files::{self as disk, DiskFile, SharedBuffer, Write, WriteBuffer};
use crate::error::EngineError;
use crate::executor::context::ExecutorContext;
use crate::executor::hasher::HashStream;
use crate::executor::memory_budget::{MemoryPermit, Recall};
use crate::format::block::{BlockCheck, CheckKind, Checks, protect, protect_block, write_table};
use crate::format::codec::{BlockChecks, Payload, PayloadForm, VolumePayload};
use crate::format::extent::{Extent, units_for};
use crate::format::payload_id::PayloadId;
use crate::format::seal::{KeyOwner, PayloadKey, WrappedKey};
use crate::limits::{
    BLOCK_BYTES, EXTENT_UNITS_MAX, EXTENTS_MAX, FIRST_RESERVATION_BYTES, INLINE_BYTES_MAX,
    INLINE_CHECK_BYTES_MAX, UNIT_BYTES, WRITES_IN_FLIGHT_MAX,
};
use crate::slice::Slice;
use crate::slice::staged::{StagedParts, StagedPayload};
use crate::space::reservation::Reservation;
use crate::store::options::EtagKind;
use crate::types::bucket::Bucket;
use cairn_model::{Etag, ObjectKey, u64_of, usize_of};
use futures_channel::oneshot;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::ready;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

/// Writes the bytes of one payload. Dropping it before [`PayloadWriter::finish`] discards them.
pub struct PayloadWriter {
    form: Form,
    key: Option<DataKey>,
    tag: TagSource,
    /// Failed flushes of the device, counted before the first write.
    flush_failures: u64,
}

/// The source of a payload's entity tag.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TagSource {
    /// From the MD5 of the bytes.
    Md5(EtagKind),
    /// It is known before the bytes arrive, which are not hashed then.
    Known(Etag),
}

impl TagSource {
    /// Returns the MD5, if there is one, and the entity tag. `computed` is the MD5 of the bytes, unless the tag is known.
    fn resolve(self, computed: Option<[u8; 16]>) -> (Option<[u8; 16]>, Etag) {
        match self {
            Self::Known(etag) => (Some(etag.md5).filter(|_| etag.parts == 0), etag),
            Self::Md5(kind) => {
                let md5 = computed.expect("the bytes are hashed unless the tag is known");
                let etag = match kind {
                    EtagKind::Md5 => Etag::single(md5),
                    EtagKind::Opaque => Etag::opaque(md5),
                };
                (Some(md5), etag)
            }
        }
    }
}

/// The computation of a payload's MD5.
enum Digest {
    /// A stream of its buffers.
    Stream(HashStream),
    /// Nothing: the entity tag is known.
    None,
}

/// The data key of a payload, and its wrapped form for the record.
#[derive(Clone)]
struct DataKey {
    key: Rc<PayloadKey>,
    wrapped: WrappedKey,
}

enum Form {
    Inline { context: Rc<ExecutorContext>, bytes: Vec<u8>, filled: usize },
    Volume(Box<VolumeWriter>),
}

impl Digest {
    /// Queues a full buffer whose first `length` bytes are payload. `hashed` is notified when the plain bytes are not needed
    /// any more.
    fn push(
        &self,
        buffer: &SharedBuffer,
        length: usize,
        permit: &Rc<MemoryPermit>,
        hashed: Option<oneshot::Sender<()>>,
    ) {
        match self {
            Self::Stream(stream) => stream.push(buffer.clone(), length, Rc::clone(permit), hashed),
            // The receiver is gone when the upload was cancelled.
            Self::None => drop(hashed.map(|hashed| hashed.send(()))),
        }
    }
}

impl PayloadWriter {
    pub(crate) fn new(
        context: &Rc<ExecutorContext>,
        slice: &Arc<Slice>,
        bucket: &Bucket,
        object: &ObjectKey,
        size: u64,
        tag: TagSource,
    ) -> Result<Self, EngineError> {
        let store = &context.store;
        let flush_failures = slice.failures.flushes.count();
        let key = if store.payloads.encryption_at_rest {
            let owner = KeyOwner { bucket: bucket.id, object: object.as_bytes() };
            let made = store.payloads.wrapping_key.new_payload_key(owner);
            let (key, wrapped) = made.map_err(|error| EngineError::Io(format!("no data key: {error}")))?;
            Some(DataKey { key: Rc::new(key), wrapped })
        } else {
            None
        };
        if size <= INLINE_BYTES_MAX {
            let length = usize_of(size);
            return Ok(Self {
                form: Form::Inline { context: Rc::clone(context), bytes: vec![0; length], filled: 0 },
                key,
                tag,
                flush_failures,
            });
        }
        let mut id = [0u8; 16];
        getrandom::fill(&mut id).map_err(|error| EngineError::Io(format!("no random numbers: {error}")))?;
        let checks = Checks::new(CheckKind::of(key.is_some()));
        let form = Form::Volume(Box::new(VolumeWriter {
            context: Rc::clone(context),
            slice: Arc::clone(slice),
            size,
            id: PayloadId(id),
            received: 0,
            reserved: 0,
            reservation: None,
            checks,
            key: key.as_ref().map(|key| Rc::clone(&key.key)),
            buffer: None,
            recall: Recall::default(),
            in_flight: VecDeque::new(),
            hash: match tag {
                TagSource::Md5(_) => Digest::Stream(HashStream::new(&context.hasher)),
                TagSource::Known(_) => Digest::None,
            },
            has_failed: false,
        }));
        Ok(Self { form, key, tag, flush_failures })
    }

    /// Returns a buffer for the next bytes; empty when the payload is complete.
    ///
    /// Waits for earlier writes when too many are in flight, for memory when the executor's budget is used up, and for space.
    /// Dropping the future loses nothing.
    ///
    /// # Errors
    /// [`EngineError::StorageFull`], or [`EngineError::Io`] when an earlier write failed.
    pub async fn buffer(&mut self) -> Result<&mut [u8], EngineError> {
        match &mut self.form {
            Form::Inline { bytes, filled, .. } => Ok(&mut bytes[*filled..]),
            Form::Volume(writer) => writer.next_room().await,
        }
    }

    /// Returns whether there is a buffer that holds some bytes and is not full.
    pub(crate) fn is_filling(&self) -> bool {
        matches!(&self.form, Form::Volume(writer) if writer.buffer.is_some())
    }

    /// Resolves when this upload must be aborted: its buffer is needed elsewhere and the client is too slow.
    #[must_use]
    pub fn recall(&self) -> Recall {
        match &self.form {
            Form::Inline { .. } => Recall::default(),
            Form::Volume(writer) => writer.recall.clone(),
        }
    }

    /// Declares that the first `count` bytes of the last buffer hold payload.
    ///
    /// # Errors
    /// [`EngineError::Io`] when `count` is larger than the buffer.
    pub fn advance(&mut self, count: usize) -> Result<(), EngineError> {
        match &mut self.form {
            Form::Inline { bytes, filled, .. } => {
                *filled = filled.checked_add(count).filter(|end| *end <= bytes.len()).ok_or_else(too_many)?;
                Ok(())
            }
            Form::Volume(writer) => writer.advance(count),
        }
    }

    /// Like [`PayloadWriter::finish`], for a payload that may have ended before the declared size: its size is then the
    /// number of bytes received. Space beyond is freed.
    ///
    /// # Errors
    /// [`EngineError::Io`] when a write failed.
    pub async fn finish_shorter(self) -> Result<StagedPayload, EngineError> {
        let Self { form, key, tag, flush_failures } = self;
        Self { form: shortened(form)?, key, tag, flush_failures }.finish().await
    }

    /// Waits for all writes, and stages the payload for a commit.
    ///
    /// # Errors
    /// [`EngineError::Io`] when bytes are missing or a write failed.
    pub async fn finish(self) -> Result<StagedPayload, EngineError> {
        let Self { form, key, tag, flush_failures } = self;
        let sealed = key.as_ref().map(|key| key.wrapped);
        let parts = match form {
            Form::Inline { context, mut bytes, filled } if filled == bytes.len() => {
                let computed = match tag {
                    TagSource::Known(_) => None,
                    TagSource::Md5(_) => {
                        let md5;
                        (md5, bytes) = context.inline_hasher.digest(bytes).await;
                        Some(md5)
                    }
                };
                let (md5, etag) = tag.resolve(computed);
                let check = protect_inline(key.as_ref(), &mut bytes)?;
                StagedParts {
                    size: filled as u64,
                    md5,
                    etag,
                    payload: Payload { form: PayloadForm::Inline { check }, sealed },
                    inline: bytes,
                    reservation: None,
                    flush_failures,
                }
            }
            Form::Inline { .. } => return Err(missing()),
            Form::Volume(writer) => writer.finish(tag, sealed, flush_failures).await?,
        };
        Ok(StagedPayload { parts })
    }
}

/// Turns a form whose payload ended early into one that is complete.
fn shortened(form: Form) -> Result<Form, EngineError> {
    match form {
        Form::Inline { context, mut bytes, filled } => {
            bytes.truncate(filled);
            Ok(Form::Inline { context, bytes, filled })
        }
        Form::Volume(mut writer) if writer.received <= INLINE_BYTES_MAX => {
            // The first buffer is longer than this, so nothing has been written.
            assert!(writer.in_flight.is_empty(), "a buffer is written only when it is full");
            let bytes = match &mut writer.buffer {
                Some(filling) => filling.buffer.bytes_mut()[..filling.filled].to_vec(),
                None => Vec::new(),
            };
            Ok(Form::Inline { context: Rc::clone(&writer.context), filled: bytes.len(), bytes })
        }
        Form::Volume(mut writer) => {
            writer.shorten()?;
            Ok(Form::Volume(writer))
        }
    }
}

/// Computes the check of an inline payload, and encrypts it in place if there is a key. It is one block, possibly empty.
fn protect_inline(key: Option<&DataKey>, bytes: &mut [u8]) -> Result<BlockCheck, EngineError> {
    let key = key.map(|key| &*key.key);
    protect_block(key, 0, bytes).map_err(|error| EngineError::Io(format!("sealing a payload: {error}")))
}

fn too_many() -> EngineError {
    EngineError::Io("more bytes than the declared size".to_owned())
}

fn missing() -> EngineError {
    EngineError::Io("the payload is not complete".to_owned())
}

/// A buffer that is filling. Its bytes go to one contiguous range of a volume.
struct Filling {
    buffer: WriteBuffer,
    permit: MemoryPermit,
    file: Rc<DiskFile>,
    offset: u64,
    capacity: usize,
    filled: usize,
}

struct VolumeWriter {
    context: Rc<ExecutorContext>,
    slice: Arc<Slice>,
    size: u64,
    id: PayloadId,
    /// Bytes received, including those in the filling buffer.
    received: u64,
    /// Bytes for which space has been reserved.
    reserved: u64,
    /// Shared with the writes in flight, so that the space cannot be freed before they end.
    reservation: Option<Rc<RefCell<Reservation>>>,
    /// The checks of the blocks whose writes have ended.
    checks: Checks,
    /// Encrypts the blocks, with encryption at rest.
    key: Option<Rc<PayloadKey>>,
    buffer: Option<Filling>,
    recall: Recall,
    in_flight: VecDeque<Write<Checks>>,
    hash: Digest,
    /// A write failed, so the payload can never be complete.
    has_failed: bool,
}

impl VolumeWriter {
    async fn next_room(&mut self) -> Result<&mut [u8], EngineError> {
        if self.buffer.is_none() && self.received < self.size {
            while self.in_flight.len() >= WRITES_IN_FLIGHT_MAX {
                self.await_oldest().await?;
            }
            if let Digest::Stream(hash) = &self.hash {
                hash.has_room().await;
            }
            if self.received == self.reserved {
                self.reserve_more().await?;
            }
            let filling = self.next_buffer().await?;
            self.buffer = Some(filling);
        }
        let Some(filling) = &mut self.buffer else { return Ok(&mut []) };
        Ok(&mut filling.buffer.bytes_mut()[filling.filled..filling.capacity])
    }

    async fn await_oldest(&mut self) -> Result<(), EngineError> {
        // The handle leaves the queue only after the write has ended, so that a dropped future loses no result.
        let Some(write) = self.in_flight.front_mut() else { return Ok(()) };
        let ended = write.await;
        self.in_flight.pop_front();
        match ended {
            Some(Ok(checks)) => {
                self.checks.append(&checks);
                Ok(())
            }
            Some(Err(error)) => {
                self.has_failed = true;
                Err(self.io_error("writing", &error))
            }
            None => {
                self.has_failed = true;
                Err(EngineError::ShuttingDown)
            }
        }
    }

    fn io_error(&self, doing: &str, error: &std::io::Error) -> EngineError {
        tracing::error!(target: "service::engine", slice = self.slice.number, %error, doing, "payload I/O failed");
        EngineError::Io(format!("{doing} a payload: {error}"))
    }

    async fn reserve_more(&mut self) -> Result<(), EngineError> {
        let most = self.reserved.clamp(FIRST_RESERVATION_BYTES, EXTENT_UNITS_MAX * UNIT_BYTES);
        let bytes = (self.size - self.reserved).min(most);
        let more = self.context.counters.count_refusal(self.slice.space.reserve(bytes).await)?;
        self.reserved += bytes;
        match &self.reservation {
            Some(reservation) => reservation.borrow_mut().append(more),
            None => self.reservation = Some(Rc::new(RefCell::new(more))),
        }
        Ok(())
    }

    /// A buffer for the bytes from `received`: at most one write, and within one extent.
    async fn next_buffer(&self) -> Result<Filling, EngineError> {
        let reservation = self.reservation.as_ref().ok_or_else(missing)?;
        let (volume, offset, in_extent) =
            locate_byte(reservation.borrow().extents(), self.received).ok_or_else(missing)?;
        let most = self.context.memory_budget.buffer_bytes(self.received);
        let capacity = (self.size - self.received).min(in_extent).min(most as u64);
        let capacity = usize_of(capacity);
        let permit = self.context.memory_budget.acquire(capacity, &self.recall).await;
        let file = self.context.volume_file(&self.slice, volume).await?;
        let buffer = disk::write_buffer(&file, capacity);
        Ok(Filling { buffer, permit, file, offset, capacity, filled: 0 })
    }

    fn advance(&mut self, count: usize) -> Result<(), EngineError> {
        let filling = self.buffer.as_mut().ok_or_else(too_many)?;
        filling.filled =
            filling.filled.checked_add(count).filter(|end| *end <= filling.capacity).ok_or_else(too_many)?;
        self.received += u64_of(count);
        assert!(
            self.received <= self.reserved && self.reserved <= self.size,
            "space is reserved before bytes are received"
        );
        if filling.filled == filling.capacity {
            self.submit()?;
        }
        Ok(())
    }

    /// Computes the checks of the full buffer, encrypts it if there is a key, and begins to write it.
    fn submit(&mut self) -> Result<(), EngineError> {
        let Some(mut filling) = self.buffer.take() else { return Ok(()) };
        let reservation = Rc::clone(self.reservation.as_ref().ok_or_else(missing)?);
        let first_block = (self.received - u64_of(filling.capacity)) / BLOCK_BYTES as u64;
        let (payload, padding) = filling.buffer.bytes_mut().split_at_mut(filling.capacity);
        padding.fill(0);
        filling.permit.filled();
        let write = match self.key.clone() {
            None => {
                let checks = protect(None, first_block, payload);
                let (buffer, permit) = (filling.buffer.share(), Rc::new(filling.permit));
                self.hash.push(&buffer, filling.capacity, &permit, None);
                let prepared = ready(checks.map(|checks| (buffer, checks)));
                disk::write(&filling.file, filling.offset, prepared, (permit, reservation))
            }
            Some(key) => {
                let (buffer, permit) = (filling.buffer.share(), Rc::new(filling.permit));
                let (hashed, when_hashed) = oneshot::channel();
                self.hash.push(&buffer, filling.capacity, &permit, Some(hashed));
                let sealed = seal_when_hashed(when_hashed, buffer, filling.capacity, key, first_block);
                disk::write(&filling.file, filling.offset, sealed, (permit, reservation))
            }
        };
        self.in_flight.push_back(write);
        Ok(())
    }

    /// Makes the bytes received the whole payload, and begins to write the buffer that they fill in part.
    fn shorten(&mut self) -> Result<(), EngineError> {
        self.size = self.received;
        match &mut self.buffer {
            Some(filling) if filling.filled > 0 => {
                filling.capacity = filling.filled;
                self.submit()
            }
            _ => {
                self.buffer = None;
                Ok(())
            }
        }
    }

    async fn finish(
        mut self: Box<Self>,
        tag: TagSource,
        sealed: Option<WrappedKey>,
        flush_failures: u64,
    ) -> Result<StagedParts, EngineError> {
        if self.received != self.size || self.buffer.is_some() || self.has_failed {
            return Err(missing());
        }
        while !self.in_flight.is_empty() {
            self.await_oldest().await?;
        }
        let many = self.checks.packed().len() > INLINE_CHECK_BYTES_MAX;
        let table = if many { Some(self.write_table().await?) } else { None };
        let computed = match self.hash {
            Digest::Stream(hash) => Some(hash.finish().await),
            Digest::None => None,
        };
        let (md5, etag) = tag.resolve(computed);
        let reservation = self.reservation.take().and_then(Rc::into_inner).ok_or_else(missing)?;
        let mut reservation = reservation.into_inner();
        reservation.shorten(units_for(self.size));
        let extents = reservation.extents().to_vec();
        if extents.len() > EXTENTS_MAX {
            // Only possible in a full store whose free space is nothing but single blocks.
            return self.context.counters.count_refusal(Err(EngineError::StorageFull));
        }
        let checks = match table {
            None => BlockChecks::List(self.checks),
            Some(table) => {
                let extents = table.extents().to_vec();
                reservation.append(table);
                BlockChecks::Table(extents)
            }
        };
        let payload = VolumePayload { id: self.id, extents, checks };
        Ok(StagedParts {
            size: self.size,
            md5,
            etag,
            payload: Payload { form: PayloadForm::Volume(payload), sealed },
            inline: Vec::new(),
            reservation: Some(reservation),
            flush_failures,
        })
    }

    /// Writes the check table and waits for it. If cancelled, its space is freed when its writes end.
    async fn write_table(&self) -> Result<Reservation, EngineError> {
        let kind = CheckKind::of(self.key.is_some());
        let bytes = kind.table_pages(self.checks.len() as u64) * UNIT_BYTES;
        let reservation =
            Rc::new(self.context.counters.count_refusal(self.slice.space.reserve(bytes).await)?);
        let mut table = vec![0u8; usize_of(bytes)];
        write_table(self.id, &self.checks, &mut table);
        let mut rest: &[u8] = &table;
        let extents = reservation.extents().to_vec();
        for extent in extents {
            let (now, later) = rest.split_at(usize_of(extent.bytes()).min(rest.len()));
            rest = later;
            let file = self.context.volume_file(&self.slice, extent.volume).await?;
            let mut buffer = disk::write_buffer(&file, now.len());
            buffer.bytes_mut().copy_from_slice(now);
            let prepared = ready(Ok((buffer.share(), ())));
            let write = disk::write(&file, extent.offset(), prepared, Rc::clone(&reservation));
            match write.await {
                Some(Ok(())) => {}
                Some(Err(error)) => return Err(self.io_error("writing the check table of", &error)),
                None => return Err(EngineError::ShuttingDown),
            }
        }
        Rc::into_inner(reservation).ok_or_else(missing)
    }
}

/// Waits until the plain bytes are hashed, then encrypts them in place. Fails when the upload is cancelled before that.
async fn seal_when_hashed(
    hashed: oneshot::Receiver<()>,
    buffer: SharedBuffer,
    length: usize,
    key: Rc<PayloadKey>,
    first_block: u64,
) -> io::Result<(SharedBuffer, Checks)> {
    hashed.await.map_err(|_| io::Error::other("the upload was cancelled"))?;
    let shared = || io::Error::other("a buffer is still in use after it was hashed");
    let mut buffer = WriteBuffer::unshare(buffer).ok_or_else(shared)?;
    let payload = &mut buffer.bytes_mut()[..length];
    let checks = protect(Some(&key), first_block, payload)?;
    Ok((buffer.share(), checks))
}

/// Finds byte `at` of the payload: volume, byte offset, and bytes left in the extent.
fn locate_byte(extents: &[Extent], at: u64) -> Option<(u32, u64, u64)> {
    let mut before = 0u64;
    for extent in extents {
        if at < before + extent.bytes() {
            let within = at - before;
            return Some((extent.volume, extent.offset() + within, extent.bytes() - within));
        }
        before += extent.bytes();
    }
    None
}
