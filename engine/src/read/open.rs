//! Opens a version for reading: finds its record in a snapshot and pins its payload.
//!
//! Everything that a read needs comes from one [`ReadSnapshot`] of the slice's metadata. The payload is pinned while the
//! snapshot is open. If any space was freed since the snapshot began, the pin is refused and the caller repeats the lookup
//! in a new snapshot. One pin covers all parts of a multipart object, so their records (up to 10,000) are read after it,
//! and only those that the requested range touches. Readers of a whole object on one executor share its opened parts.

use crate::error::EngineError;
use crate::executor::context::ExecutorContext;
use crate::format::block::accept;
use crate::format::codec::{Payload, PayloadForm};
use crate::format::keys;
use crate::format::object_record::{Content, ObjectRecord};
use crate::format::part_record::PartRecord;
use crate::format::payload_id::PayloadId;
use crate::format::seal::KeyOwner;
use crate::limits::OPEN_ATTEMPTS_MAX;
use crate::read::pinned_payload::{PinnedPayload, ReadMode};
use crate::read::reader::{OpenObject, OpenPart, PayloadSource, Source};
use crate::read::shared_parts::SharedParts;
use crate::slice::Slice;
use crate::space::allocator::Pin;
use crate::types::object::ObjectInfo;
use cairn_lmdb::ReadTxn;
use cairn_model::{UploadId, VersionName};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

/// A consistent view of a slice's metadata, in which payloads can be pinned.
pub(crate) struct ReadSnapshot<'s> {
    pub(crate) slice: &'s Arc<Slice>,
    /// The slice's count of removals, read before the transaction began.
    free_epoch: u64,
    pub(crate) txn: ReadTxn<'s>,
}

impl<'s> ReadSnapshot<'s> {
    /// Begins a snapshot.
    ///
    /// # Errors
    /// [`EngineError::Io`] when LMDB cannot begin a transaction.
    pub(crate) fn begin(slice: &'s Arc<Slice>) -> Result<Self, EngineError> {
        // The count must be read first: a removal after it makes the pin fail, even if the snapshot already shows it.
        let free_epoch = slice.allocator.free_epoch();
        Ok(Self { slice, free_epoch, txn: slice.environment.read()? })
    }

    /// Pins a payload; `None` when space was freed since the snapshot began.
    fn pin(&self, id: PayloadId) -> Option<Pin> {
        self.slice.allocator.pin(id, self.free_epoch)
    }
}

/// The object that is being opened, and how it will be read.
pub(crate) struct OpenTarget<'o> {
    pub(crate) snapshot: &'o ReadSnapshot<'o>,
    /// Common prefix of the encoded keys of all versions of the object.
    pub(crate) versions: &'o [u8],
    pub(crate) owner: KeyOwner<'o>,
    /// Formats bucket and key for damage reports. Called only when payload blocks will be read later.
    pub(crate) object: &'o dyn Fn() -> String,
    pub(crate) mode: ReadMode,
}

/// Opens payloads on one executor.
pub(crate) struct Opener {
    pub(crate) context: Rc<ExecutorContext>,
    shared_parts: SharedParts,
}

/// One payload that is being opened: the object itself, or one of its parts.
struct PayloadTarget<'o> {
    version: VersionName,
    part: Option<u16>,
    size: u64,
    object: &'o Rc<str>,
    pin: Option<Rc<Pin>>,
}

impl Opener {
    pub(crate) fn new(context: Rc<ExecutorContext>) -> Self {
        Self { context, shared_parts: SharedParts::default() }
    }

    /// Opens the payload of a record for reading the bytes of `range`; `None` when space was freed since the snapshot began.
    ///
    /// Pins payloads in volumes, unwraps the data keys of sealed payloads, checks inline payloads, and finds the parts that
    /// the range touches.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] when a data key, an inline payload or the record of a part is damaged.
    pub(crate) fn open(
        &self,
        target: &OpenTarget<'_>,
        record: ObjectRecord,
        tail: &[u8],
        range: Range<u64>,
    ) -> Result<Option<OpenObject>, EngineError> {
        let ObjectRecord { info, content } = record;
        let range = range.start.min(info.size)..range.end.min(info.size);
        let pinned = match &content {
            Content::Payload(payload) => payload.volume().map(|volume| volume.id),
            Content::Parts { id, .. } => Some(*id),
            Content::DeleteMarker => None,
        };
        let pin = match pinned.map(|id| target.snapshot.pin(id)) {
            Some(None) => return Ok(None),
            Some(Some(pin)) => Some(Rc::new(pin)),
            None => None,
        };
        let object: Rc<str> = if pin.is_some() { (target.object)().into() } else { Rc::default() };
        let (version, size) = (info.version_name(), info.size);
        let opening = PayloadTarget { version, part: None, size, object: &object, pin };
        let source = match content {
            Content::Payload(payload) => Source::Payload(self.open_payload(target, payload, tail, opening)?),
            Content::Parts { id, upload } => {
                Source::Parts(self.open_parts(target, (id, upload), &info, &range, opening)?)
            }
            Content::DeleteMarker => Source::Payload(PayloadSource::Inline(Vec::new())),
        };
        Ok(Some(OpenObject { info, range, mode: target.mode, source }))
    }

    fn open_payload(
        &self,
        target: &OpenTarget<'_>,
        payload: Payload,
        tail: &[u8],
        opening: PayloadTarget<'_>,
    ) -> Result<PayloadSource, EngineError> {
        let corrupt = |what: &str| EngineError::Corrupt(what.to_owned());
        let unwrap = |wrapped| {
            let unwrapped = self.context.store.wrapping_key.unwrap(&wrapped, target.owner);
            unwrapped.ok_or_else(|| corrupt("the data key"))
        };
        let data_key = payload.sealed.map(unwrap).transpose()?;
        let PayloadTarget { version, part, size, object, pin } = opening;
        match payload.form {
            PayloadForm::Volume(payload) => Ok(PayloadSource::Volume(Rc::new(PinnedPayload {
                context: Rc::clone(&self.context),
                slice: Arc::clone(target.snapshot.slice),
                payload,
                key: data_key.map(Box::new),
                size,
                object: Rc::clone(object),
                version,
                part,
                _pin: pin,
            }))),
            PayloadForm::Inline { check } => {
                let mut bytes = tail.to_vec();
                if bytes.len() as u64 != size || !accept(data_key.as_ref(), 0, &mut bytes, check) {
                    return Err(corrupt("the inline payload"));
                }
                Ok(PayloadSource::Inline(bytes))
            }
        }
    }

    fn open_parts(
        &self,
        target: &OpenTarget<'_>,
        (id, upload): (PayloadId, UploadId),
        info: &ObjectInfo,
        range: &Range<u64>,
        whole: PayloadTarget<'_>,
    ) -> Result<Rc<Vec<OpenPart>>, EngineError> {
        if let Some(parts) = self.shared_parts.get(id) {
            return Ok(parts);
        }
        let upload = keys::with_upload(target.versions, upload);
        let (mut start, mut opened) = (0, Vec::new());
        for run in &info.parts {
            // Only the parts that overlap the range are read. All parts of a run have the same size.
            let (first, end) = match run.size {
                0 => (0, u64::from(run.count)),
                size => (
                    range.start.saturating_sub(start) / size,
                    range.end.saturating_sub(start).div_ceil(size).min(run.count.into()),
                ),
            };
            for index in first..end {
                let number = u16::try_from(u64::from(run.first) + index).expect("part numbers end at 10,000");
                let (start, part, pin) = (start + index * run.size, Some(number), whole.pin.clone());
                let opening = PayloadTarget { part, size: run.size, pin, ..whole };
                let source = self.open_part(target, &upload, number, opening)?;
                opened.push(OpenPart { start, size: run.size, source });
            }
            start += run.size * u64::from(run.count);
        }
        let opened = Rc::new(opened);
        if *range == (0..info.size) {
            self.shared_parts.share(id, &opened);
        }
        Ok(opened)
    }

    fn open_part(
        &self,
        target: &OpenTarget<'_>,
        upload: &[u8],
        number: u16,
        opening: PayloadTarget<'_>,
    ) -> Result<PayloadSource, EngineError> {
        let stored =
            target.snapshot.txn.get(target.snapshot.slice.tables.parts, &keys::with_part(upload, number))?;
        let stored = stored.ok_or_else(|| EngineError::Corrupt(format!("part {number}: it is missing")))?;
        let record = PartRecord::decode(stored.version, stored.body, number)?;
        if record.info.size != opening.size {
            return Err(EngineError::Corrupt(format!("part {number}: its size")));
        }
        self.open_payload(target, record.payload, stored.tail, opening)
    }
}

/// Repeats a lookup until it could pin what it found.
///
/// # Errors
/// Those of `open_once`, and [`EngineError::Overloaded`] after [`OPEN_ATTEMPTS_MAX`] attempts.
pub(crate) fn repeat_until_pinned<T>(
    mut open_once: impl FnMut() -> Result<Option<T>, EngineError>,
) -> Result<T, EngineError> {
    for _ in 0..OPEN_ATTEMPTS_MAX {
        if let Some(opened) = open_once()? {
            return Ok(opened);
        }
    }
    Err(EngineError::Overloaded)
}
