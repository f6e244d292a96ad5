//! Opening a version for reading: its record is found and decoded, its payload pinned.
//!
//! Everything that reading takes is read in one snapshot of the slice's metadata. The pin is taken in it, right after the
//! record was found, and counts only when no space was given away since before the snapshot; else the look is repeated. Of
//! an object of parts the pin keeps all of them, so their records, up to ten thousand, are looked up behind it: those
//! that the wanted bytes lie in. All readers of the whole of one version on an executor share what was found.

use crate::block::accept;
use crate::bucket::Bucket;
use crate::codec::{Payload, PayloadForm, PayloadId};
use crate::engine::Engine;
use crate::error::EngineError;
use crate::keys;
use crate::list;
use crate::object::ObjectInfo;
use crate::part_record::PartRecord;
use crate::reader::{OpenObject, OpenPart, PayloadSource, PinnedPayload, Purpose, Source};
use crate::record::{Content, ObjectRecord};
use crate::seal::KeyOwner;
use crate::slice::Slice;
use crate::space::Pin;
use cairn_lmdb::{ReadTxn, Record};
use cairn_model::{ObjectKey, UploadId, VersionName};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::{Rc, Weak};
use std::sync::Arc;

/// The snapshot that a version is looked up in.
pub(crate) struct Look<'t> {
    pub(crate) slice: &'t Arc<Slice>,
    /// The slice's count of removals from before the snapshot.
    pub(crate) removals: u64,
    pub(crate) txn: &'t ReadTxn<'t>,
    /// Beginning of the keys of the key's versions.
    pub(crate) versions: &'t [u8],
    pub(crate) owner: KeyOwner<'t>,
    /// Bucket and key, for reports of damage; asked for when there is something that is read later.
    pub(crate) object: &'t dyn Fn() -> String,
    pub(crate) purpose: Purpose,
}

/// The parts of those objects that are being read as a whole, by the id that pins them.
#[derive(Default)]
pub(crate) struct SharedParts(RefCell<HashMap<PayloadId, Weak<Vec<OpenPart>>>>);

impl SharedParts {
    fn get(&self, id: PayloadId) -> Option<Rc<Vec<OpenPart>>> {
        self.0.borrow().get(&id).and_then(Weak::upgrade)
    }

    fn share(&self, id: PayloadId, parts: &Rc<Vec<OpenPart>>) {
        let mut shared = self.0.borrow_mut();
        // What nobody reads any more goes when something comes: there are never more than readers.
        shared.retain(|_, parts| parts.strong_count() > 0);
        shared.insert(id, Rc::downgrade(parts));
    }
}

/// Whose payload is being opened, and what keeps it.
struct Opening<'o> {
    version: VersionName,
    part: Option<u16>,
    size: u64,
    object: &'o Rc<str>,
    pin: Option<Rc<Pin>>,
}

impl Engine {
    /// Opens a version, by default the current one, for reading the bytes that `wanted` asks for, and pins them. `wanted`
    /// may be called again, with a later version, when the first was removed at that moment.
    ///
    /// # Errors
    /// As [`Engine::head_object`].
    pub fn open_object<T>(
        self: &Rc<Self>,
        bucket: &Arc<Bucket>,
        key: &ObjectKey,
        version: Option<VersionName>,
        mut wanted: impl FnMut(&ObjectInfo) -> (Range<u64>, T),
    ) -> Result<(OpenObject, T), EngineError> {
        self.note_request();
        let slice = self.store().slice_of(bucket, key)?;
        let object = || format!("{}/{key}", bucket.name);
        let owner = KeyOwner { bucket: bucket.id, object: key.as_bytes() };
        let mut decided = None;
        let opened = self.open_found(slice, |removals| {
            lookup(slice, bucket, key, version, |txn, versions, record, stored| {
                let (range, decision) = wanted(&record.info);
                decided = Some(decision);
                let purpose = Purpose::Serve;
                let look = Look { slice, removals, txn, versions, owner, object: &object, purpose };
                self.open_record(&look, record, stored.tail, range)
            })
        });
        let opened = self.reported(opened, object)?;
        decided.map(|decided| (opened, decided)).ok_or(EngineError::ShuttingDown)
    }

    /// Opens a version, by default the current one, for reading all of it.
    ///
    /// # Errors
    /// As [`Engine::head_object`].
    pub fn open_whole(
        self: &Rc<Self>,
        bucket: &Arc<Bucket>,
        key: &ObjectKey,
        version: Option<VersionName>,
    ) -> Result<OpenObject, EngineError> {
        self.open_object(bucket, key, version, |info| (0..info.size, ())).map(|(open, ())| open)
    }

    /// Opens what `look_up` finds, given the slice's count of removals. It is called again when space was given away between
    /// that count and the pin.
    pub(crate) fn open_found(
        &self,
        slice: &Slice,
        mut look_up: impl FnMut(u64) -> Result<Option<OpenObject>, EngineError>,
    ) -> Result<OpenObject, EngineError> {
        loop {
            if let Some(open) = look_up(slice.space.removals())? {
                return Ok(open);
            }
        }
    }

    /// Pins what a record names, unwraps the data keys of what is sealed, checks and opens inline payloads, finds the parts
    /// that the bytes of `range` lie in. `None`: space was given away meanwhile.
    pub(crate) fn open_record(
        self: &Rc<Self>,
        look: &Look<'_>,
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
        let pin = match pinned.map(|id| look.slice.space.pin(id, look.removals)) {
            Some(None) => return Ok(None),
            Some(Some(pin)) => Some(Rc::new(pin)),
            None => None,
        };
        let object: Rc<str> = if pin.is_some() { (look.object)().into() } else { Rc::default() };
        let (version, size) = (info.version_name(), info.size);
        let opening = Opening { version, part: None, size, object: &object, pin };
        let source = match content {
            Content::Payload(payload) => Source::Payload(self.open_payload(look, payload, tail, opening)?),
            Content::Parts { id, upload } => {
                Source::Parts(self.open_parts(look, (id, upload), &info, &range, opening)?)
            }
            Content::DeleteMarker => Source::Payload(PayloadSource::Inline(Vec::new())),
        };
        Ok(Some(OpenObject { info, range, purpose: look.purpose, source }))
    }

    fn open_payload(
        self: &Rc<Self>,
        look: &Look<'_>,
        payload: Payload,
        tail: &[u8],
        opening: Opening<'_>,
    ) -> Result<PayloadSource, EngineError> {
        let corrupt = |what: &str| EngineError::Corrupt(what.to_owned());
        let unwrap = |wrapped| {
            let unwrapped = self.store().wrapping_key.unwrap(&wrapped, look.owner);
            unwrapped.ok_or_else(|| corrupt("the data key"))
        };
        let data_key = payload.sealed.map(unwrap).transpose()?;
        let Opening { version, part, size, object, pin } = opening;
        match payload.form {
            PayloadForm::Volume(payload) => Ok(PayloadSource::Volume(Rc::new(PinnedPayload {
                engine: Rc::clone(self),
                slice: Arc::clone(look.slice),
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
        self: &Rc<Self>,
        look: &Look<'_>,
        (id, upload): (PayloadId, UploadId),
        info: &ObjectInfo,
        range: &Range<u64>,
        whole: Opening<'_>,
    ) -> Result<Rc<Vec<OpenPart>>, EngineError> {
        if let Some(parts) = self.shared_parts.get(id) {
            return Ok(parts);
        }
        let upload = keys::with_upload(look.versions, upload);
        let (mut start, mut opened) = (0, Vec::new());
        for run in &info.parts {
            // Of a run of one size, no more than what overlaps the range is looked at.
            let (before, through) = match run.size {
                0 => (0, u64::from(run.count)),
                size => (
                    range.start.saturating_sub(start) / size,
                    range.end.saturating_sub(start).div_ceil(size).min(run.count.into()),
                ),
            };
            for within in before..through {
                let number = u16::try_from(u64::from(run.first) + within).unwrap_or(u16::MAX);
                let (start, part, pin) = (start + within * run.size, Some(number), whole.pin.clone());
                let opening = Opening { part, size: run.size, pin, ..whole };
                let source = self.open_part(look, &upload, number, opening)?;
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
        self: &Rc<Self>,
        look: &Look<'_>,
        upload: &[u8],
        number: u16,
        opening: Opening<'_>,
    ) -> Result<PayloadSource, EngineError> {
        let stored = look.txn.get(look.slice.tables.parts, &keys::with_part(upload, number))?;
        let stored = stored.ok_or_else(|| EngineError::Corrupt(format!("part {number}: it is missing")))?;
        let record = PartRecord::decode(stored.version, stored.body, number)?;
        if record.info.size != opening.size {
            return Err(EngineError::Corrupt(format!("part {number}: its size")));
        }
        self.open_payload(look, record.payload, stored.tail, opening)
    }
}

/// What `use_record` makes of the record of a version, by default the current one.
pub(crate) fn lookup<T>(
    slice: &Slice,
    bucket: &Bucket,
    key: &ObjectKey,
    version: Option<VersionName>,
    use_record: impl FnOnce(&ReadTxn<'_>, &[u8], ObjectRecord, Record<'_>) -> Result<T, EngineError>,
) -> Result<T, EngineError> {
    let missing = || if version.is_some() { EngineError::NoSuchVersion } else { EngineError::NoSuchKey };
    let versions = keys::versions_of(bucket.id, key.as_bytes()).ok_or_else(missing)?;
    let (txn, tables) = (slice.environment.read()?, &slice.tables);
    let stored = match version {
        None => {
            let found = txn.first_at_or_after(tables.objects, &versions)?;
            found.filter(|(key, _)| key.starts_with(&versions)).map(|(_, stored)| stored)
        }
        Some(VersionName::Id(id)) => txn.get(tables.objects, &keys::with_sequence(&versions, id.0))?,
        Some(VersionName::Null) => match list::null_version(&txn, tables, &versions)? {
            Some(sequence) => txn.get(tables.objects, &keys::with_sequence(&versions, sequence))?,
            None => None,
        },
    };
    let stored = stored.ok_or_else(missing)?;
    let used =
        ObjectRecord::decode(stored.version, stored.body).map_err(EngineError::from).and_then(|record| {
            let info = &record.info;
            match version {
                // The null version has no id that a client could name.
                Some(VersionName::Id(_)) if info.is_null => Err(missing()),
                _ if record.is_delete_marker() => {
                    let (version, last_modified) = (info.version_name(), info.last_modified);
                    Err(EngineError::DeleteMarker { version, last_modified })
                }
                _ => use_record(&txn, &versions, record, stored),
            }
        });
    used.map_err(|error| match error {
        EngineError::Corrupt(what) => EngineError::Corrupt(format!("{what} of {}/{key}", bucket.name)),
        other => other,
    })
}
