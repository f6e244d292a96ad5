//! Storage events: what changed, when, and at whose request (specification: "Events").
//!
//! The committer of a slice writes an event in the transaction of the change that it describes. So there is no acknowledged
//! change without its event, and no event without its change.

use cairn_model::{Etag, TextSearch, Timestamp, VersionName};
use std::fmt;
use std::sync::Arc;
use uuid::Uuid;

/// Bits of a tick below the millisecond: the 12 bits that a UUID of version 7 has after its version.
const FRACTION_BITS: u32 = 12;
/// Longest text of an id: a hyphenated UUID.
const ID_TEXT_BYTES: usize = 36;

/// The position of an event among all events of a store: milliseconds since the Unix epoch, and 12 bits of a fraction.
///
/// The clock of events returns each tick once, in increasing order. So a tick identifies an event.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Tick(pub u64);

impl Tick {
    /// Returns the first tick of a millisecond.
    #[must_use]
    pub const fn first_at(time: Timestamp) -> Self {
        const TIME_MAX: u64 = (1 << (u64::BITS - FRACTION_BITS)) - 1;
        Self(if time.0 > TIME_MAX { u64::MAX } else { time.0 << FRACTION_BITS })
    }

    /// Returns the time, without the fraction of a millisecond.
    #[must_use]
    pub const fn time(self) -> Timestamp {
        Timestamp(self.0 >> FRACTION_BITS)
    }

    /// Returns the tick that follows.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// The id of an event: a UUID of version 7 (RFC 9562, section 5.7). Later events have greater ids.
///
/// Its time is the event's tick. The rest is part of the store's random id, so events of two stores have different ids.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EventId([u8; 16]);

impl EventId {
    /// Returns the id of the event at this tick of the store with this id.
    #[must_use]
    pub fn new(tick: Tick, store: &[u8; 16]) -> Self {
        let [a, b, c, d, e, f, ..] = (tick.time().0 << 16).to_be_bytes();
        let [high, low] =
            (u16::try_from(tick.0 & ((1 << FRACTION_BITS) - 1)).unwrap_or_default()).to_be_bytes();
        let mut id = [a, b, c, d, e, f, 0x70 | high, low, 0, 0, 0, 0, 0, 0, 0, 0];
        id[8..].copy_from_slice(&store[..8]);
        id[8] = id[8] & 0x3F | 0x80;
        Self(id)
    }

    /// Parses a hyphenated UUID of version 7: 36 characters, in upper or lower case.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let id = Some(text).filter(|text| text.len() == ID_TEXT_BYTES).map(Uuid::try_parse)?.ok()?;
        (id.get_version_num() == 7).then_some(Self(id.into_bytes()))
    }

    /// Returns the position of the event.
    #[must_use]
    pub const fn tick(self) -> Tick {
        let [a, b, c, d, e, f, high, low, ..] = self.0;
        let time = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
        Tick(time << FRACTION_BITS | u16::from_be_bytes([high & 0x0F, low]) as u64)
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        Uuid::from_bytes(self.0).hyphenated().fmt(out)
    }
}

cairn_model::named_enum! {
    /// The type of an event (specification: "Event types").
    ///
    /// Named as in the management API and in deliveries. The numbers are those on disk.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    pub enum EventType {
        /// A bucket was created.
        BucketCreated = 1 => "bucket.created",
        /// A bucket was deleted.
        BucketDeleted = 2 => "bucket.deleted",
        /// An object was written where none existed.
        ObjectCreated = 3 => "object.created",
        /// An existing object was overwritten.
        ObjectUpdated = 4 => "object.updated",
        /// An object or a version was deleted.
        ObjectDeleted = 5 => "object.deleted",
        /// An older version was restored as the current one.
        ObjectRestored = 6 => "object.restored",
        /// A multipart upload was completed.
        MultipartCompleted = 7 => "multipart.completed",
        /// A multipart upload was aborted.
        MultipartAborted = 8 => "multipart.aborted",
    }
}

impl EventType {
    /// Returns the type with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns the number on disk.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Returns the type with this number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }
}

/// A set of event types.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EventTypes(u16);

impl EventTypes {
    /// All types.
    pub const ALL: Self = Self(0b1_1111_1110);

    /// Returns whether a type is in the set.
    #[must_use]
    pub const fn contains(self, kind: EventType) -> bool {
        self.0 & 1 << kind.number() != 0
    }

    /// Returns the types of the set, in the order of their numbers.
    pub fn iter(self) -> impl Iterator<Item = EventType> {
        EventType::ALL.into_iter().filter(move |kind| self.contains(*kind))
    }

    /// Returns whether the set has no type.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl FromIterator<EventType> for EventTypes {
    fn from_iter<I: IntoIterator<Item = EventType>>(kinds: I) -> Self {
        Self(kinds.into_iter().fold(0, |bits, kind| bits | 1 << kind.number()))
    }
}

/// The cause of a change, as far as its event depends on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Cause {
    /// A client asked for exactly this change.
    #[default]
    Request,
    /// An older version is restored.
    Restore,
    /// A copy, which the engine may make with an upload of its own.
    Copy,
}

/// The origin of a change, which its event records: the principal that requested it, and the cause.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Origin {
    /// The account, token or rule that asked for it. Empty if it is unknown.
    pub principal: Arc<str>,
    /// Id of the request. Empty if no request asked for it.
    pub request_id: Arc<str>,
    /// The cause.
    pub cause: Cause,
}

/// A storage event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StorageEvent {
    /// Identity and position.
    pub id: EventId,
    /// The type of the event.
    pub kind: EventType,
    /// Name of the bucket.
    pub bucket: String,
    /// The object, for events of objects and uploads.
    pub object: Option<ObjectOfEvent>,
    /// The account, token or rule that asked for the change. Empty if it is unknown.
    pub principal: String,
    /// Id of the request. Empty if no request asked for the change.
    pub request_id: String,
    /// Id of the lifecycle rule that removed the object or version.
    pub lifecycle_rule: Option<String>,
}

/// The object that an event is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObjectOfEvent {
    /// The key.
    pub key: String,
    /// The version that was written or removed. `None` for an upload that was aborted.
    pub version: Option<VersionName>,
    /// Bytes of that version. 0 for a delete marker and for an aborted upload.
    pub size: u64,
    /// Whether the version is a delete marker. Of a restored object: whether the delete marker over it was removed.
    pub is_delete_marker: bool,
    /// Entity tag of the version.
    pub etag: Option<Etag>,
    /// Content type of the version.
    pub content_type: Option<String>,
}

impl StorageEvent {
    /// Returns when the change was committed.
    #[must_use]
    pub const fn time(&self) -> Timestamp {
        self.id.tick().time()
    }
}

/// A query for events.
#[derive(Clone, Debug)]
pub struct EventQuery {
    /// The start of the range, inclusive.
    pub from: Tick,
    /// The end of the range, exclusive.
    pub until: Tick,
    /// Only events of these types.
    pub types: EventTypes,
    /// Only events of the bucket with this name.
    pub bucket: Option<String>,
    /// Only events of objects whose key begins with this.
    pub prefix: Option<String>,
    /// Only events of changes that this principal asked for.
    pub principal: Option<String>,
    /// Only events with this text in the bucket's name, the key, the type, the principal, or the id of request or rule.
    pub contains: Option<TextSearch>,
    /// Most events of the page.
    pub limit: usize,
}

impl Default for EventQuery {
    fn default() -> Self {
        Self {
            from: Tick::default(),
            until: Tick(u64::MAX),
            types: EventTypes::ALL,
            bucket: None,
            prefix: None,
            principal: None,
            contains: None,
            limit: crate::limits::EVENT_PAGE_EVENTS_MAX,
        }
    }
}

/// One page of events, latest first.
#[derive(Clone, Debug, Default)]
pub struct LatestEventPage {
    /// The events.
    pub events: Vec<StorageEvent>,
    /// All events at this tick and later, and before the end of the query, have been examined. The next page ends here.
    pub examined: Tick,
    /// Whether events that match may precede. They may be beyond the limit of the page, or not examined yet.
    pub is_truncated: bool,
}

/// One page of events, oldest first.
#[derive(Clone, Debug, Default)]
pub struct EventPage {
    /// The events.
    pub events: Vec<StorageEvent>,
    /// All events before this tick have been examined. The next page begins here.
    pub examined: Tick,
    /// Whether events that match may follow. They may be beyond the limit of the page, or not examined yet.
    pub is_truncated: bool,
}
