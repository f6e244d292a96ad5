//! Opening a version for reading: its record is found and decoded, its payload pinned.
//!
//! Everything that reading takes is read in one snapshot of the slice's metadata: of an object of parts the records of
//! those parts that the wanted bytes lie in. The pin is taken after the look, and counts only when no space was given
//! away in between; else the look is repeated.

use crate::block::accept;
use crate::bucket::Bucket;
use crate::codec::{Payload, PayloadForm, PayloadId, VolumePayload};
use crate::engine::Engine;
use crate::error::EngineError;
use crate::keys;
use crate::list;
use crate::object::ObjectInfo;
use crate::part_record::PartRecord;
use crate::reader::{OpenObject, OpenPart, PinnedPayload, Purpose, Source};
use crate::record::{Content, ObjectRecord};
use crate::seal::{KeyOwner, PayloadKey};
use crate::slice::Slice;
use cairn_lmdb::{ReadTxn, Record};
use cairn_model::{ObjectKey, UploadId, VersionName};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

/// A payload that can be read: inline bytes, or where the blocks are and what opens them.
pub(crate) enum Opened {
    Inline(Vec<u8>),
    Volume(VolumePayload, Option<Box<PayloadKey>>),
    /// Parts in order, with the id that pins them all.
    Parts(PayloadId, Vec<OpenedPart>),
}

/// A part of an object, as it was found.
pub(crate) struct OpenedPart {
    number: u16,
    /// Where its bytes stand in the object.
    start: u64,
    size: u64,
    opened: Opened,
}

/// The snapshot that a version is looked up in.
pub(crate) struct Look<'t> {
    pub(crate) slice: &'t Slice,
    pub(crate) txn: &'t ReadTxn<'t>,
    /// Beginning of the keys of the key's versions.
    pub(crate) versions: &'t [u8],
    pub(crate) owner: KeyOwner<'t>,
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
        let opened = self.open_found(slice, Purpose::Serve, object, || {
            lookup(slice, bucket, key, version, |txn, versions, record, stored| {
                let (range, decision) = wanted(&record.info);
                decided = Some(decision);
                self.open_record(&Look { slice, txn, versions, owner }, record, stored.tail, range)
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

    /// Opens what `look_up` finds. It is called again when space was given away between its look and the pin.
    pub(crate) fn open_found(
        self: &Rc<Self>,
        slice: &Arc<Slice>,
        purpose: Purpose,
        object: impl Fn() -> String,
        mut look_up: impl FnMut() -> Result<(ObjectInfo, Range<u64>, Opened), EngineError>,
    ) -> Result<OpenObject, EngineError> {
        loop {
            let removals = slice.space.removals();
            let (info, range, opened) = look_up()?;
            let id = match &opened {
                Opened::Inline(_) => None,
                Opened::Volume(payload, _) => Some(payload.id),
                Opened::Parts(id, _) => Some(*id),
            };
            let pin = match id {
                None => None,
                Some(id) => match slice.space.pin(id, removals) {
                    Some(pin) => Some(Rc::new(pin)),
                    None => continue,
                },
            };
            let name: Rc<str> = object().into();
            let source = |opened: Opened, size: u64, part: Option<u16>| match opened {
                Opened::Inline(bytes) => Source::Inline(bytes),
                Opened::Volume(payload, key) => Source::Volume(Rc::new(PinnedPayload {
                    engine: Rc::clone(self),
                    slice: Arc::clone(slice),
                    size,
                    object: Rc::clone(&name),
                    version: info.version_name(),
                    part,
                    purpose,
                    payload,
                    key,
                    _pin: pin.clone(),
                })),
                Opened::Parts(..) => Source::Inline(Vec::new()),
            };
            let source = match opened {
                Opened::Parts(_, parts) => Source::Parts(
                    parts
                        .into_iter()
                        .map(|OpenedPart { number, start, size, opened }| OpenPart {
                            start,
                            size,
                            source: source(opened, size, Some(number)),
                        })
                        .collect(),
                ),
                whole => source(whole, info.size, None),
            };
            return Ok(OpenObject { info, range, source });
        }
    }

    /// Unwraps the data keys of what is sealed; checks, and opens, inline payloads; finds the parts that the bytes of
    /// `range` lie in.
    pub(crate) fn open_record(
        &self,
        look: &Look<'_>,
        record: ObjectRecord,
        tail: &[u8],
        range: Range<u64>,
    ) -> Result<(ObjectInfo, Range<u64>, Opened), EngineError> {
        let ObjectRecord { info, content } = record;
        let range = range.start.min(info.size)..range.end.min(info.size);
        let opened = match content {
            Content::Payload(payload) => self.open_payload(look.owner, payload, tail, info.size)?,
            Content::Parts { id, upload } => Opened::Parts(id, self.open_parts(look, upload, &info, &range)?),
            Content::DeleteMarker => Opened::Inline(Vec::new()),
        };
        Ok((info, range, opened))
    }

    fn open_payload(
        &self,
        owner: KeyOwner<'_>,
        payload: Payload,
        tail: &[u8],
        size: u64,
    ) -> Result<Opened, EngineError> {
        let corrupt = |what: &str| EngineError::Corrupt(what.to_owned());
        let unwrap = |wrapped| {
            let unwrapped = self.store().wrapping_key.unwrap(&wrapped, owner);
            unwrapped.ok_or_else(|| corrupt("the data key"))
        };
        let data_key = payload.sealed.map(unwrap).transpose()?;
        match payload.form {
            PayloadForm::Volume(volume) => Ok(Opened::Volume(volume, data_key.map(Box::new))),
            PayloadForm::Inline { check } => {
                let mut bytes = tail.to_vec();
                if bytes.len() as u64 != size || !accept(data_key.as_ref(), 0, &mut bytes, check) {
                    return Err(corrupt("the inline payload"));
                }
                Ok(Opened::Inline(bytes))
            }
        }
    }

    fn open_parts(
        &self,
        look: &Look<'_>,
        upload: UploadId,
        info: &ObjectInfo,
        range: &Range<u64>,
    ) -> Result<Vec<OpenedPart>, EngineError> {
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
                let start = start + within * run.size;
                opened.push(self.open_part(look, &upload, number, start, run.size)?);
            }
            start += run.size * u64::from(run.count);
        }
        Ok(opened)
    }

    fn open_part(
        &self,
        look: &Look<'_>,
        upload: &[u8],
        number: u16,
        start: u64,
        size: u64,
    ) -> Result<OpenedPart, EngineError> {
        let key = keys::with_part(upload, number);
        let stored = look.txn.get(look.slice.tables.parts, &key)?;
        let stored = stored.ok_or_else(|| EngineError::Corrupt(format!("part {number}: it is missing")))?;
        let record = PartRecord::decode(stored.version, stored.body, number)?;
        if record.info.size != size {
            return Err(EngineError::Corrupt(format!("part {number}: its size")));
        }
        let opened = self.open_payload(look.owner, record.payload, stored.tail, size)?;
        Ok(OpenedPart { number, start, size, opened })
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
