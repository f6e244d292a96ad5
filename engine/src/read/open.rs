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
use crate::limits::{OPEN_ATTEMPTS_MAX, OWN_PARTS_MAX};
use crate::read::pinned_payload::{PinnedPayload, ReadMode};
use crate::read::reader::{OpenObject, OpenPart, Source, StoredPayload};
use crate::read::shared_parts::SharedParts;
use crate::slice::Slice;
use crate::space::allocator::Pin;
use crate::types::object::{ObjectInfo, PartRun};
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
        let free_epoch = slice.space.allocator.free_epoch();
        Ok(Self { slice, free_epoch, txn: slice.environment.read()? })
    }

    /// Pins a payload; `None` when space was freed since the snapshot began.
    fn pin(&self, id: PayloadId) -> Option<Pin> {
        self.slice.space.allocator.pin(id, self.free_epoch)
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
            Content::DeleteMarker => Source::Payload(StoredPayload::Inline(Vec::new())),
        };
        Ok(Some(OpenObject { info, range, mode: target.mode, source }))
    }

    fn open_payload(
        &self,
        target: &OpenTarget<'_>,
        payload: Payload,
        tail: &[u8],
        opening: PayloadTarget<'_>,
    ) -> Result<StoredPayload, EngineError> {
        let corrupt = |what: &str| EngineError::Corrupt(what.to_owned());
        let unwrap = |wrapped| {
            let unwrapped = self.context.store.payloads.wrapping_key.unwrap(&wrapped, target.owner);
            unwrapped.ok_or_else(|| corrupt("the data key"))
        };
        let data_key = payload.sealed.map(unwrap).transpose()?;
        let PayloadTarget { version, part, size, object, pin } = opening;
        match payload.form {
            PayloadForm::Volume(payload) => Ok(StoredPayload::Volume(Rc::new(PinnedPayload {
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
                Ok(StoredPayload::Inline(bytes))
            }
        }
    }

    /// Opens the parts that a range touches. If they are many, opens all parts, which the executor's readers of the object
    /// share.
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
        let is_shared = count_parts(&info.parts, range) > OWN_PARTS_MAX;
        let range = if is_shared { &(0..info.size) } else { range };
        let upload = keys::with_upload(target.versions, upload);
        let mut opened = Vec::new();
        for (run, run_start, touched) in touched_parts(&info.parts, range) {
            for index in touched {
                let number = u16::try_from(u64::from(run.first) + index).expect("part numbers end at 10,000");
                let (start, part, pin) = (run_start + index * run.size, Some(number), whole.pin.clone());
                let opening = PayloadTarget { part, size: run.size, pin, ..whole };
                let source = self.open_part(target, &upload, number, opening)?;
                opened.push(OpenPart { start, size: run.size, source });
            }
        }
        let opened = Rc::new(opened);
        if is_shared {
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
    ) -> Result<StoredPayload, EngineError> {
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

/// Returns the runs of parts of an object, with the offset of each run and which of its parts a range touches.
fn touched_parts<'r>(
    runs: &'r [PartRun],
    range: &'r Range<u64>,
) -> impl Iterator<Item = (&'r PartRun, u64, Range<u64>)> {
    let mut next = 0;
    runs.iter().map(move |run| {
        let (start, count) = (next, u64::from(run.count));
        next += run.size * count;
        // All parts of a run have the same size.
        let touched = match run.size {
            0 => 0..count,
            size => {
                let first = range.start.saturating_sub(start) / size;
                first..range.end.saturating_sub(start).div_ceil(size).min(count)
            }
        };
        (run, start, touched)
    })
}

fn count_parts(runs: &[PartRun], range: &Range<u64>) -> usize {
    touched_parts(runs, range).map(|(_, _, touched)| touched.count()).sum()
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

#[cfg(test)]
mod tests {
    use super::{PartRun, count_parts, touched_parts};

    #[test]
    fn only_the_parts_that_a_range_touches_are_opened() {
        let run = |first, count, size| PartRun { first, count, size };
        // Bytes 0 to 30 in three parts, a part without bytes, and bytes 30 to 37 in one part.
        let runs = [run(1, 3, 10), run(4, 1, 0), run(7, 1, 7)];
        let touched = |range| -> Vec<u64> {
            let parts = touched_parts(&runs, &range)
                .flat_map(|(run, _, touched)| touched.map(|index| u64::from(run.first) + index));
            parts.collect()
        };
        assert_eq!(touched(0..37), [1, 2, 3, 4, 7]);
        assert_eq!(touched(10..11), [2, 4]);
        assert_eq!(touched(9..11), [1, 2, 4]);
        assert_eq!(touched(30..31), [4, 7]);
        let starts: Vec<_> = touched_parts(&runs, &(0..1)).map(|(_, start, _)| start).collect();
        assert_eq!(starts, [0, 30, 30]);
        assert_eq!(count_parts(&runs, &(29..37)), 3);
        assert_eq!(count_parts(&runs, &(36..37)), 2);
    }
}
