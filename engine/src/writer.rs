//! Writing a payload: from the client's bytes to space that a commit can take over.
//!
//! Small payloads are gathered in memory and travel with the commit. Larger ones are cut into blocks with a check each
//! and written to their extents as they arrive, several writes in flight. Nothing is visible before the commit;
//! dropping the writer, or what it staged, gives the space back once the last write has ended.
//!
//! With encryption at rest a full buffer is hashed first, for the entity tag is of the bytes that came in, then sealed
//! where it lies, then written: no copy, and memory as without. A plain one is written while it is hashed.

use crate::block::{BlockCheck, CheckKind, Checks, protect, protect_block, write_table};
use crate::bucket::Bucket;
use crate::codec::{BlockChecks, Payload, PayloadForm, PayloadId, VolumePayload};
use crate::disk::{self, DiskFile, SharedBuffer, Write, WriteBuffer};
use crate::engine::Engine;
use crate::error::EngineError;
use crate::extent::Extent;
use crate::hasher::HashStream;
use crate::limits::{
    BLOCK_BYTES, EXTENT_UNITS_MAX, EXTENTS_MAX, FIRST_RESERVATION_BYTES, INLINE_BYTES_MAX,
    INLINE_CHECK_BYTES_MAX, UNIT_BYTES, WRITES_IN_FLIGHT_MAX,
};
use crate::md5::Md5;
use crate::seal::{KeyOwner, PayloadKey, WrappedKey};
use crate::slice::Slice;
use crate::space::Reservation;
use crate::upload_budget::{Grant, Recall};
use cairn_model::ObjectKey;
use futures_channel::oneshot;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::ready;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

/// Takes the bytes of one payload. Dropped before [`PayloadWriter::finish`]: nothing has happened.
pub struct PayloadWriter {
    form: Form,
    key: Option<DataKey>,
    /// Known before: the bytes are a copy.
    md5: Option<[u8; 16]>,
}

/// Where the MD5 of a payload comes from.
enum Digest {
    /// From its bytes.
    Stream(HashStream),
    /// It was known before.
    Known([u8; 16]),
}

/// The key that seals a payload, and what its record keeps of it.
#[derive(Clone)]
struct DataKey {
    key: Rc<PayloadKey>,
    wrapped: WrappedKey,
}

enum Form {
    Inline { bytes: Vec<u8>, filled: usize },
    Volume(Box<VolumeWriter>),
}

/// A payload whose writes have all completed; the committer flushes them before it commits the record.
#[derive(Debug)]
pub struct StagedPayload {
    parts: StagedParts,
}

/// What a staged payload is made of.
#[derive(Debug)]
pub(crate) struct StagedParts {
    pub(crate) size: u64,
    pub(crate) md5: [u8; 16],
    pub(crate) payload: Payload,
    /// Bytes of an inline payload.
    pub(crate) inline: Vec<u8>,
    pub(crate) reservation: Option<Reservation>,
}

impl StagedPayload {
    /// Volumes that must be flushed before the commit; a number may come more than once.
    pub(crate) fn volumes(&self) -> impl Iterator<Item = u32> + '_ {
        self.parts.payload.owned().map(|extent| extent.volume)
    }

    /// Bytes of the payload.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.parts.size
    }

    /// MD5 of the payload.
    #[must_use]
    pub const fn md5(&self) -> [u8; 16] {
        self.parts.md5
    }

    /// Whether the payload is encrypted at rest.
    #[must_use]
    pub const fn is_encrypted(&self) -> bool {
        self.parts.payload.sealed.is_some()
    }

    /// Bytes that travel with the record.
    pub(crate) fn inline_bytes(&self) -> usize {
        self.parts.inline.len()
    }

    pub(crate) fn into_parts(self) -> StagedParts {
        self.parts
    }
}

impl Digest {
    /// Hands over a full buffer, whose first `length` bytes are payload. `hashed` is told when its bytes are not needed any
    /// more.
    fn push(
        &self,
        buffer: &SharedBuffer,
        length: usize,
        grant: &Rc<Grant>,
        hashed: Option<oneshot::Sender<()>>,
    ) {
        match self {
            Self::Stream(stream) => stream.push(buffer.clone(), length, Rc::clone(grant), hashed),
            // When the upload is given up, nobody listens.
            Self::Known(_) => drop(hashed.map(|hashed| hashed.send(()))),
        }
    }
}

impl PayloadWriter {
    pub(crate) fn new(
        engine: &Rc<Engine>,
        slice: &Arc<Slice>,
        (bucket, object): (&Bucket, &ObjectKey),
        size: u64,
        md5: Option<[u8; 16]>,
    ) -> Result<Self, EngineError> {
        let store = engine.store();
        let key = if store.encryption_at_rest {
            let owner = KeyOwner { bucket: bucket.id, object: object.as_bytes() };
            let made = store.wrapping_key.new_payload_key(owner);
            let (key, wrapped) = made.map_err(|error| EngineError::Io(format!("no data key: {error}")))?;
            Some(DataKey { key: Rc::new(key), wrapped })
        } else {
            None
        };
        if size <= INLINE_BYTES_MAX {
            let length = usize::try_from(size).map_err(|_| EngineError::PayloadTooLarge)?;
            return Ok(Self { form: Form::Inline { bytes: vec![0; length], filled: 0 }, key, md5 });
        }
        let mut id = [0u8; 16];
        getrandom::fill(&mut id).map_err(|error| EngineError::Io(format!("no random numbers: {error}")))?;
        let checks = Checks::new(CheckKind::of(key.is_some()));
        let form = Form::Volume(Box::new(VolumeWriter {
            engine: Rc::clone(engine),
            slice: Arc::clone(slice),
            size,
            id: PayloadId(id),
            taken: 0,
            reserved: 0,
            reservation: None,
            checks,
            key: key.as_ref().map(|key| Rc::clone(&key.key)),
            buffer: None,
            recall: Recall::default(),
            in_flight: VecDeque::new(),
            hash: match md5 {
                None => Digest::Stream(HashStream::new(&engine.hasher)),
                Some(md5) => Digest::Known(md5),
            },
            lost: false,
        }));
        Ok(Self { form, key, md5 })
    }

    /// Room for the next bytes; waits for earlier writes when too many are in flight, for memory when uploads use too
    /// much of it, and for space. Not empty while bytes are missing. Dropping the future loses nothing.
    ///
    /// # Errors
    /// [`EngineError::StorageFull`], or [`EngineError::Io`] when an earlier write failed.
    pub async fn buffer(&mut self) -> Result<&mut [u8], EngineError> {
        match &mut self.form {
            Form::Inline { bytes, filled } => Ok(bytes.get_mut(*filled..).unwrap_or_default()),
            Form::Volume(writer) => writer.room().await,
        }
    }

    /// Tells when the memory that the payload's bytes are waited for with is wanted by others and its sender has been too
    /// slow: then the payload should be given up.
    #[must_use]
    pub fn recall(&self) -> Recall {
        match &self.form {
            Form::Inline { .. } => Recall::default(),
            Form::Volume(writer) => writer.recall.clone(),
        }
    }

    /// Says that the first `count` bytes of the room last given hold payload.
    ///
    /// # Errors
    /// [`EngineError::Io`] when `count` is more than there was room for.
    pub fn advance(&mut self, count: usize) -> Result<(), EngineError> {
        match &mut self.form {
            Form::Inline { bytes, filled } => {
                *filled = filled.checked_add(count).filter(|end| *end <= bytes.len()).ok_or_else(too_many)?;
                Ok(())
            }
            Form::Volume(writer) => writer.advance(count),
        }
    }

    /// Waits for all writes and stages the payload for a commit.
    ///
    /// # Errors
    /// [`EngineError::Io`] when bytes are missing or a write failed.
    pub async fn finish(self) -> Result<StagedPayload, EngineError> {
        let mut parts = match self.form {
            Form::Inline { mut bytes, filled } if filled == bytes.len() => {
                let md5 = self.md5.unwrap_or_else(|| Md5::digest(&bytes));
                let check = protect_inline(self.key.as_ref(), &mut bytes)?;
                StagedParts {
                    size: filled as u64,
                    md5,
                    payload: Payload { form: PayloadForm::Inline { check }, sealed: None },
                    inline: bytes,
                    reservation: None,
                }
            }
            Form::Inline { .. } => return Err(missing()),
            Form::Volume(writer) => writer.finish().await?,
        };
        parts.payload.sealed = self.key.map(|key| key.wrapped);
        Ok(StagedPayload { parts })
    }
}

/// The check of an inline payload, which is sealed in place when there is a key: its only block, though it may be empty.
fn protect_inline(key: Option<&DataKey>, bytes: &mut [u8]) -> Result<BlockCheck, EngineError> {
    let key = key.map(|key| &*key.key);
    protect_block(key, 0, bytes).map_err(|error| EngineError::Io(format!("sealing a payload: {error}")))
}

fn too_many() -> EngineError {
    EngineError::Io("more bytes than the payload has".to_owned())
}

fn missing() -> EngineError {
    EngineError::Io("the payload is not complete".to_owned())
}

/// A buffer that fills: its bytes go to one run of units.
struct Filling {
    buffer: WriteBuffer,
    grant: Grant,
    file: Rc<DiskFile>,
    offset: u64,
    capacity: usize,
    filled: usize,
}

struct VolumeWriter {
    engine: Rc<Engine>,
    slice: Arc<Slice>,
    size: u64,
    id: PayloadId,
    /// Bytes taken in, those in the filling buffer included.
    taken: u64,
    /// Bytes that space has been reserved for.
    reserved: u64,
    /// Shared with the writes in flight, so that the space cannot be given back before they end.
    reservation: Option<Rc<RefCell<Reservation>>>,
    /// Of the blocks whose writes have ended.
    checks: Checks,
    /// Seals the blocks, with encryption at rest.
    key: Option<Rc<PayloadKey>>,
    buffer: Option<Filling>,
    recall: Recall,
    in_flight: VecDeque<Write<Checks>>,
    hash: Digest,
    /// A write failed: the payload can never be complete.
    lost: bool,
}

impl VolumeWriter {
    async fn room(&mut self) -> Result<&mut [u8], EngineError> {
        if self.buffer.is_none() && self.taken < self.size {
            while self.in_flight.len() >= WRITES_IN_FLIGHT_MAX {
                self.await_oldest().await?;
            }
            if let Digest::Stream(hash) = &self.hash {
                hash.has_room().await;
            }
            if self.taken == self.reserved {
                self.reserve_more().await?;
            }
            let filling = self.next_buffer().await?;
            self.buffer = Some(filling);
        }
        let Some(filling) = &mut self.buffer else { return Ok(&mut []) };
        Ok(filling.buffer.bytes_mut().get_mut(filling.filled..filling.capacity).unwrap_or_default())
    }

    async fn await_oldest(&mut self) -> Result<(), EngineError> {
        // The handle leaves the queue only once the write has ended, so that a dropped future loses no result.
        let Some(write) = self.in_flight.front_mut() else { return Ok(()) };
        let ended = write.await;
        self.in_flight.pop_front();
        match ended {
            Some(Ok(checks)) => {
                self.checks.append(&checks);
                Ok(())
            }
            Some(Err(error)) => {
                self.lost = true;
                Err(self.io_error("writing", &error))
            }
            None => {
                self.lost = true;
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
        let more = self.engine.figures.counted(self.slice.reserve(bytes).await)?;
        self.reserved += bytes;
        match &self.reservation {
            Some(reservation) => reservation.borrow_mut().append(more),
            None => self.reservation = Some(Rc::new(RefCell::new(more))),
        }
        Ok(())
    }

    /// A buffer for the bytes from `taken` on: no more than a write carries, and all in one extent.
    async fn next_buffer(&self) -> Result<Filling, EngineError> {
        let reservation = self.reservation.as_ref().ok_or_else(missing)?;
        let (volume, offset, in_extent) =
            place(reservation.borrow().extents(), self.taken).ok_or_else(missing)?;
        let most = self.engine.upload_budget.buffer_bytes(self.taken);
        let capacity = (self.size - self.taken).min(in_extent).min(most as u64);
        let capacity = usize::try_from(capacity).map_err(|_| missing())?;
        let grant = self.engine.upload_budget.grant(capacity, &self.recall).await;
        let file = self.engine.volume_file(&self.slice, volume).await?;
        let buffer = disk::write_buffer(&file, capacity);
        Ok(Filling { buffer, grant, file, offset, capacity, filled: 0 })
    }

    fn advance(&mut self, count: usize) -> Result<(), EngineError> {
        let filling = self.buffer.as_mut().ok_or_else(too_many)?;
        filling.filled =
            filling.filled.checked_add(count).filter(|end| *end <= filling.capacity).ok_or_else(too_many)?;
        self.taken += count as u64;
        if filling.filled == filling.capacity {
            self.submit()?;
        }
        Ok(())
    }

    /// Begins to protect and write the full buffer.
    fn submit(&mut self) -> Result<(), EngineError> {
        let Some(mut filling) = self.buffer.take() else { return Ok(()) };
        let reservation = Rc::clone(self.reservation.as_ref().ok_or_else(missing)?);
        let first_block = (self.taken - filling.capacity as u64) / BLOCK_BYTES as u64;
        let (payload, padding) = filling.buffer.bytes_mut().split_at_mut(filling.capacity);
        padding.fill(0);
        filling.grant.filled();
        let write = match self.key.clone() {
            None => {
                let checks = protect(None, first_block, payload);
                let (buffer, grant) = (filling.buffer.share(), Rc::new(filling.grant));
                self.hash.push(&buffer, filling.capacity, &grant, None);
                let prepared = ready(checks.map(|checks| (buffer, checks)));
                disk::write(&filling.file, filling.offset, prepared, (grant, reservation))
            }
            Some(key) => {
                let (buffer, grant) = (filling.buffer.share(), Rc::new(filling.grant));
                let (hashed, when_hashed) = oneshot::channel();
                self.hash.push(&buffer, filling.capacity, &grant, Some(hashed));
                let sealed = seal_when_hashed(when_hashed, buffer, filling.capacity, key, first_block);
                disk::write(&filling.file, filling.offset, sealed, (grant, reservation))
            }
        };
        self.in_flight.push_back(write);
        Ok(())
    }

    async fn finish(mut self: Box<Self>) -> Result<StagedParts, EngineError> {
        if self.taken != self.size || self.buffer.is_some() || self.lost {
            return Err(missing());
        }
        while !self.in_flight.is_empty() {
            self.await_oldest().await?;
        }
        let many = self.checks.packed().len() > INLINE_CHECK_BYTES_MAX;
        let table = if many { Some(self.write_table().await?) } else { None };
        let md5 = match self.hash {
            Digest::Stream(hash) => hash.finish().await,
            Digest::Known(md5) => md5,
        };
        let reservation = self.reservation.take().and_then(Rc::into_inner).ok_or_else(missing)?;
        let mut reservation = reservation.into_inner();
        let extents = reservation.extents().to_vec();
        if extents.len() > EXTENTS_MAX {
            // Only in a full store of nothing but single free blocks.
            return self.engine.figures.counted(Err(EngineError::StorageFull));
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
            payload: Payload { form: PayloadForm::Volume(payload), sealed: None },
            inline: Vec::new(),
            reservation: Some(reservation),
        })
    }

    /// Writes the check table behind the payload and waits for it. Cancelled, its space is free when its writes end.
    async fn write_table(&self) -> Result<Reservation, EngineError> {
        let kind = CheckKind::of(self.key.is_some());
        let bytes = kind.table_pages(self.checks.len() as u64) * UNIT_BYTES;
        let reservation = Rc::new(self.engine.figures.counted(self.slice.reserve(bytes).await)?);
        let mut table = vec![0u8; usize::try_from(bytes).map_err(|_| EngineError::PayloadTooLarge)?];
        write_table(self.id, &self.checks, &mut table);
        let mut rest: &[u8] = &table;
        let extents = reservation.extents().to_vec();
        for extent in extents {
            let (now, later) = rest.split_at(usize::try_from(extent.bytes()).unwrap_or(0).min(rest.len()));
            rest = later;
            let file = self.engine.volume_file(&self.slice, extent.volume).await?;
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

/// Waits until nobody needs the plain bytes any more and seals the payload's part of the buffer in place. Fails when the
/// upload is given up before.
async fn seal_when_hashed(
    hashed: oneshot::Receiver<()>,
    buffer: SharedBuffer,
    length: usize,
    key: Rc<PayloadKey>,
    first_block: u64,
) -> io::Result<(SharedBuffer, Checks)> {
    hashed.await.map_err(|_| io::Error::other("the upload was given up"))?;
    let shared = || io::Error::other("a buffer is still in use after it was hashed");
    let mut buffer = WriteBuffer::unshare(buffer).ok_or_else(shared)?;
    let payload = buffer.bytes_mut().get_mut(..length).unwrap_or_default();
    let checks = protect(Some(&key), first_block, payload)?;
    Ok((buffer.share(), checks))
}

/// Volume, byte offset and bytes left in the extent, of byte `at` of what lies in `extents`; `at` begins a unit.
fn place(extents: &[Extent], at: u64) -> Option<(u32, u64, u64)> {
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
