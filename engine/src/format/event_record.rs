//! The record of a storage event (table `events`).
//!
//! Its key is the event's tick, big-endian, so events are in the order in which they happened.
//!
//! ```text
//! body, version 1 (integers little-endian)
//! offset  size  what
//! 0       1     type (`EventType::number`)
//! 1       1     flags: bit 0 has a version, 1 null version, 2 a delete marker was written, 3 has an entity tag,
//!               4 has an object, 5 has a content type, 6 has the id of an imported version; the others zero. Of a
//!               restored object, bit 2 means that a delete marker was removed
//! 2       8     size of the version in bytes
//! 10      8     sequence of the version, or zero
//! 18      16    MD5 of the entity tag, or zeros
//! 34      4     number of parts of the entity tag
//! 38      2     length of the bucket's name
//! 40      2     length of the object key
//! 42      2     length of the content type
//! 44      2     length of the principal
//! 46      2     length of the request id
//! 48      2     length of the lifecycle rule's id
//! 50      ...   these texts in this order, UTF-8
//! ...     1+n   only with bit 6: length n of the id, and the id
//! ```
//! The bucket is named, not numbered: its events can be read after it was deleted.

use crate::format::codec::{Cursor, InvalidRecord, decode_imported_id, encode_imported_id};
use crate::types::event::{EventId, EventType, ObjectOfEvent, StorageEvent, Tick};
use crate::types::object::version_name;
use cairn_lmdb::{Table, WriteTxn};
use cairn_model::{Etag, ImportedId, VersionId, VersionName};

/// Version byte of the current form.
pub(crate) const EVENT_RECORD_VERSION: u8 = 1;

const HAS_VERSION: u8 = 1;
const NULL_VERSION: u8 = 1 << 1;
const DELETE_MARKER: u8 = 1 << 2;
const HAS_ETAG: u8 = 1 << 3;
const HAS_OBJECT: u8 = 1 << 4;
const HAS_CONTENT_TYPE: u8 = 1 << 5;
const HAS_IMPORTED_ID: u8 = 1 << 6;
const FLAGS: u8 = (1 << 7) - 1;
/// Number of texts.
const TEXTS: usize = 6;

/// The fields of an event, as the committer has them.
#[derive(Clone, Copy)]
pub(crate) struct EventFields<'e> {
    pub(crate) kind: EventType,
    pub(crate) bucket: &'e str,
    pub(crate) object: Option<ObjectFields<'e>>,
    pub(crate) principal: &'e str,
    pub(crate) request_id: &'e str,
    /// Id of the lifecycle rule that made the change. Empty without one.
    pub(crate) lifecycle_rule: &'e str,
}

/// The fields of an event's object.
#[derive(Clone, Copy)]
pub(crate) struct ObjectFields<'e> {
    pub(crate) key: &'e str,
    /// The version, and whether it is the null version.
    pub(crate) version: Option<(VersionId, bool)>,
    /// The id of an imported version.
    pub(crate) imported: Option<ImportedId>,
    pub(crate) size: u64,
    pub(crate) is_delete_marker: bool,
    pub(crate) etag: Option<Etag>,
    pub(crate) content_type: Option<&'e str>,
}

/// The part of an event that filters look at.
pub(crate) struct EventHead<'r> {
    pub(crate) kind: EventType,
    pub(crate) bucket: &'r str,
    pub(crate) key: Option<&'r str>,
    pub(crate) principal: &'r str,
    pub(crate) request_id: &'r str,
    pub(crate) lifecycle_rule: &'r str,
}

/// Returns the longest beginning of a text that fits its length field.
fn fitting(text: &str) -> &str {
    const BYTES_MAX: usize = u16::MAX as usize;
    &text[..text.floor_char_boundary(BYTES_MAX)]
}

/// Appends the body of an event's record. Texts that are too long for their field are cut.
pub(crate) fn encode(out: &mut Vec<u8>, event: &EventFields<'_>) {
    let object = event.object.as_ref();
    let version = object.and_then(|object| object.version);
    let etag = object.and_then(|object| object.etag);
    let content_type = object.and_then(|object| object.content_type);
    let imported = object.and_then(|object| object.imported);
    let flag = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
    let flags = flag(version.is_some(), HAS_VERSION)
        | flag(version.is_some_and(|(_, is_null)| is_null), NULL_VERSION)
        | flag(object.is_some_and(|object| object.is_delete_marker), DELETE_MARKER)
        | flag(etag.is_some(), HAS_ETAG)
        | flag(object.is_some(), HAS_OBJECT)
        | flag(content_type.is_some(), HAS_CONTENT_TYPE)
        | flag(imported.is_some(), HAS_IMPORTED_ID);
    let sequence = version.map_or(0, |(VersionId(sequence), _)| sequence);
    let Etag { md5, parts } = etag.unwrap_or(Etag { md5: [0; 16], parts: 0 });
    out.extend_from_slice(&[event.kind.number(), flags]);
    out.extend_from_slice(&object.map_or(0, |object| object.size).to_le_bytes());
    out.extend_from_slice(&sequence.to_le_bytes());
    out.extend_from_slice(&md5);
    out.extend_from_slice(&parts.to_le_bytes());
    let texts: [&str; TEXTS] = [
        event.bucket,
        object.map_or("", |object| object.key),
        content_type.unwrap_or_default(),
        event.principal,
        event.request_id,
        event.lifecycle_rule,
    ];
    let texts = texts.map(fitting);
    for text in texts {
        let length = u16::try_from(text.len()).expect("the text was cut to fit");
        out.extend_from_slice(&length.to_le_bytes());
    }
    for text in texts {
        out.extend_from_slice(text.as_bytes());
    }
    if let Some(id) = imported {
        encode_imported_id(out, &id);
    }
}

/// The fields of a record as they are stored.
struct Stored<'r> {
    kind: EventType,
    flags: u8,
    size: u64,
    sequence: u64,
    etag: Etag,
    texts: [&'r str; TEXTS],
    imported: Option<ImportedId>,
}

impl<'r> Stored<'r> {
    fn decode(version: u8, body: &'r [u8]) -> Result<Self, InvalidRecord> {
        if version != EVENT_RECORD_VERSION {
            return Err(InvalidRecord("its version is unknown"));
        }
        let mut from = Cursor(body);
        let [number, flags] = from.array()?;
        let kind = EventType::from_number(number).ok_or(InvalidRecord("the type of the event is unknown"))?;
        if flags & !FLAGS != 0 {
            return Err(InvalidRecord("some of its flags are unknown"));
        }
        let (size, sequence) = (from.u64()?, from.u64()?);
        let etag = Etag { md5: from.array()?, parts: from.u32()? };
        let mut lengths = [0; TEXTS];
        for length in &mut lengths {
            *length = from.u16()?;
        }
        let mut texts = [""; TEXTS];
        for (text, length) in texts.iter_mut().zip(lengths) {
            *text = std::str::from_utf8(from.bytes(length.into())?)
                .map_err(|_| InvalidRecord("a text is not UTF-8"))?;
        }
        let imported = (flags & HAS_IMPORTED_ID != 0).then(|| decode_imported_id(&mut from)).transpose()?;
        if !from.0.is_empty() {
            return Err(InvalidRecord("bytes follow its end"));
        }
        Ok(Self { kind, flags, size, sequence, etag, texts, imported })
    }

    const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    fn version(&self) -> Option<VersionName> {
        let name = || version_name(VersionId(self.sequence), self.has(NULL_VERSION), self.imported);
        self.has(HAS_VERSION).then(name)
    }
}

/// Decodes what filters look at. The whole record is checked.
pub(crate) fn decode_head(version: u8, body: &[u8]) -> Result<EventHead<'_>, InvalidRecord> {
    let stored = Stored::decode(version, body)?;
    let [bucket, key, _, principal, request_id, lifecycle_rule] = stored.texts;
    let key = stored.has(HAS_OBJECT).then_some(key);
    Ok(EventHead { kind: stored.kind, bucket, key, principal, request_id, lifecycle_rule })
}

/// Decodes the event at a tick of the store with this id.
pub(crate) fn decode(
    version: u8,
    body: &[u8],
    tick: Tick,
    store: &[u8; 16],
) -> Result<StorageEvent, InvalidRecord> {
    let stored = Stored::decode(version, body)?;
    let [bucket, key, content_type, principal, request_id, rule] = stored.texts.map(str::to_owned);
    let object = stored.has(HAS_OBJECT).then(|| ObjectOfEvent {
        key,
        version: stored.version(),
        size: stored.size,
        is_delete_marker: stored.has(DELETE_MARKER),
        etag: stored.has(HAS_ETAG).then_some(stored.etag),
        content_type: stored.has(HAS_CONTENT_TYPE).then_some(content_type),
    });
    let lifecycle_rule = Some(rule).filter(|rule| !rule.is_empty());
    let id = EventId::new(tick, store);
    Ok(StorageEvent { id, kind: stored.kind, bucket, object, principal, request_id, lifecycle_rule })
}

/// Removes the oldest events, those before a tick, at most `max`. Returns their number.
pub(crate) fn remove_before(
    txn: &mut WriteTxn<'_>,
    events: Table,
    before: Tick,
    max: usize,
) -> Result<usize, cairn_lmdb::Error> {
    let end = before.0.to_be_bytes();
    for removed in 0..max {
        let oldest = txn.first_key_at_or_after(events, &[0])?.filter(|key| *key < &end[..]);
        let Some(oldest) = oldest.map(<[u8]>::to_vec) else { return Ok(removed) };
        txn.remove(events, &oldest)?;
    }
    Ok(max)
}

/// Returns the tick of a key in the table of events.
pub(crate) fn tick_of(key: &[u8]) -> Result<Tick, InvalidRecord> {
    key.try_into()
        .map(|bytes| Tick(u64::from_be_bytes(bytes)))
        .map_err(|_| InvalidRecord("the key of an event does not have 8 bytes"))
}

#[cfg(test)]
mod tests {
    use super::{EventFields, ObjectFields, decode, decode_head, encode, tick_of};
    use crate::types::event::{EventType, Tick};
    use cairn_model::{Etag, ImportedId, VersionId, VersionName};
    use proptest::prelude::*;

    const STORE: [u8; 16] = [7; 16];

    fn fields() -> EventFields<'static> {
        EventFields {
            kind: EventType::ObjectUpdated,
            bucket: "photos",
            object: Some(ObjectFields {
                key: "a/b",
                version: Some((VersionId(0x0102), false)),
                imported: None,
                size: 5,
                is_delete_marker: false,
                etag: Some(Etag { md5: [9; 16], parts: 2 }),
                content_type: Some("text/plain"),
            }),
            principal: "root",
            request_id: "r1",
            lifecycle_rule: "",
        }
    }

    fn encoded(fields: &EventFields<'_>) -> Vec<u8> {
        let mut body = Vec::new();
        encode(&mut body, fields);
        body
    }

    /// Golden bytes: a change here is a change of the on-disk format.
    #[test]
    fn encoded_bytes_do_not_change() {
        let mut expected = vec![4, 0b11_1001, 5, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0];
        expected.extend_from_slice(&[9; 16]);
        expected.extend_from_slice(&[2, 0, 0, 0, 6, 0, 3, 0, 10, 0, 4, 0, 2, 0, 0, 0]);
        expected.extend_from_slice(b"photosa/btext/plainrootr1");
        assert_eq!(encoded(&fields()), expected);
    }

    #[test]
    fn decoded_event_says_what_was_encoded() {
        let body = encoded(&fields());
        let event = decode(1, &body, Tick(0x0123_4567), &STORE).expect("decodes");
        assert_eq!(event.id.tick(), Tick(0x0123_4567));
        assert_eq!((event.kind, &*event.bucket), (EventType::ObjectUpdated, "photos"));
        let object = event.object.expect("an object");
        assert_eq!((&*object.key, object.size), ("a/b", 5));
        assert_eq!(object.version, Some(VersionName::Id(VersionId(0x0102))));
        assert_eq!(object.content_type.as_deref(), Some("text/plain"));
        assert_eq!((&*event.principal, &*event.request_id), ("root", "r1"));
        assert_eq!(event.lifecycle_rule, None);
        let head = decode_head(1, &body).expect("decodes");
        assert_eq!((head.bucket, head.key), ("photos", Some("a/b")));
        let of_bucket = EventFields { kind: EventType::BucketDeleted, object: None, ..fields() };
        assert!(decode(1, &encoded(&of_bucket), Tick(1), &STORE).expect("decodes").object.is_none());
    }

    #[test]
    fn event_about_an_imported_version_has_its_id() {
        let id = ImportedId::parse("7-f").expect("well-formed");
        let of = |fields: EventFields<'static>| ObjectFields {
            imported: Some(id),
            ..fields.object.expect("an object")
        };
        let body = encoded(&EventFields { object: Some(of(fields())), ..fields() });
        assert_eq!((body[1], &body[75..]), (0b111_1001, &b"\x037-f"[..]));
        let event = decode(1, &body, Tick(1), &STORE).expect("decodes");
        assert_eq!(event.object.expect("an object").version, Some(VersionName::Imported(id)));
        for length in 75..body.len() {
            assert!(decode_head(1, &body[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn record_with_missing_or_surplus_bytes_is_refused() {
        let body = encoded(&fields());
        for length in 0..body.len() {
            assert!(decode_head(1, &body[..length]).is_err(), "{length}");
        }
        assert!(decode_head(1, &[&body[..], &[0]].concat()).is_err());
        assert!(decode_head(2, &body).is_err());
        assert!(tick_of(&[0; 7]).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_decoder_panic(body in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = decode(1, &body, Tick(0), &STORE);
        }
    }
}
