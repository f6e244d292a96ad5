//! Events of a batch: each is written in the transaction of the change that it describes.
//!
//! An event is written after everything about its change has been decided, so a refused command writes none.

use super::lookup::TargetKey;
use super::records::{Accounting, broken};
use super::{Batch, Failure};
use crate::fault::Flaw;
use crate::format::event_record::{self, EVENT_RECORD_VERSION, EventFields, ObjectFields};
use crate::slice::change_log::{ChangeKind, FollowedTable};
use crate::types::event::{Cause, EventType, Origin, Tick};
use crate::types::object::ObjectInfo;
use cairn_model::ObjectKey;

/// The author of an object's change, for its event.
#[derive(Clone, Copy)]
pub(super) struct Author<'c> {
    pub(super) key: &'c ObjectKey,
    pub(super) origin: &'c Origin,
    /// Id of the lifecycle rule that made the change. Empty without one.
    pub(super) lifecycle_rule: &'c str,
}

impl<'c> Author<'c> {
    /// Returns the author of a change that a client asked for.
    pub(super) const fn client(key: &'c ObjectKey, origin: &'c Origin) -> Self {
        Self { key, origin, lifecycle_rule: "" }
    }
}

/// Returns the content type in stored headers.
fn content_type(info: &ObjectInfo) -> Option<&str> {
    let (_, value) = info.attributes.headers.iter().find(|(name, _)| name == "content-type")?;
    std::str::from_utf8(value).ok()
}

/// Returns what an event says of a version that was written or removed.
fn object_fields<'e>(key: &'e ObjectKey, info: &'e ObjectInfo, is_marker: bool) -> ObjectFields<'e> {
    ObjectFields {
        key: key.as_str(),
        version: Some((info.version, info.is_null)),
        imported: info.imported,
        size: info.size,
        is_delete_marker: false,
        etag: (!is_marker).then_some(info.etag),
        content_type: content_type(info),
    }
}

impl Batch<'_> {
    /// Writes the events of an object version that was written. `replaced`: there was a current object before.
    pub(super) fn write_event_of_put(
        &mut self,
        target: &TargetKey,
        author: Author<'_>,
        info: &ObjectInfo,
        replaced: bool,
        is_upload: bool,
    ) -> Result<(), Failure> {
        let cause = author.origin.cause;
        let kind = match (cause, replaced) {
            (Cause::Restore, _) => EventType::ObjectRestored,
            (Cause::Request | Cause::Copy, true) => EventType::ObjectUpdated,
            (Cause::Request | Cause::Copy, false) => EventType::ObjectCreated,
        };
        let object = object_fields(author.key, info, false);
        self.write_event(target, author, kind, object)?;
        if is_upload && cause == Cause::Request {
            self.write_event(target, author, EventType::MultipartCompleted, object)?;
        }
        Ok(())
    }

    /// Writes the event of an undeletion: the delete marker above this version was permanently removed.
    pub(super) fn write_event_of_undeletion(
        &mut self,
        target: &TargetKey,
        author: Author<'_>,
        restored: &ObjectInfo,
    ) -> Result<(), Failure> {
        let object = ObjectFields { is_delete_marker: true, ..object_fields(author.key, restored, false) };
        self.write_event(target, author, EventType::ObjectRestored, object)
    }

    /// Writes the event of a delete marker over a current object.
    pub(super) fn write_event_of_marker(
        &mut self,
        target: &TargetKey,
        author: Author<'_>,
        marker: &ObjectInfo,
    ) -> Result<(), Failure> {
        let object = ObjectFields { is_delete_marker: true, ..object_fields(author.key, marker, true) };
        self.write_event(target, author, EventType::ObjectDeleted, object)
    }

    /// Writes the event of a version that was removed.
    pub(super) fn write_event_of_removal(
        &mut self,
        target: &TargetKey,
        author: Author<'_>,
        removed: &ObjectInfo,
        was_marker: bool,
    ) -> Result<(), Failure> {
        let object = object_fields(author.key, removed, was_marker);
        self.write_event(target, author, EventType::ObjectDeleted, object)
    }

    /// Writes the event of an upload that was aborted. Uploads of the engine's own copies have none.
    pub(super) fn write_event_of_abort(
        &mut self,
        target: &TargetKey,
        author: Author<'_>,
    ) -> Result<(), Failure> {
        if author.origin.cause != Cause::Request {
            return Ok(());
        }
        let object = ObjectFields {
            key: author.key.as_str(),
            version: None,
            imported: None,
            size: 0,
            is_delete_marker: false,
            etag: None,
            content_type: None,
        };
        self.write_event(target, author, EventType::MultipartAborted, object)
    }

    fn write_event(
        &mut self,
        target: &TargetKey,
        author: Author<'_>,
        kind: EventType,
        object: ObjectFields<'_>,
    ) -> Result<(), Failure> {
        let events = &self.slice.events;
        let is_forgotten = kind == EventType::ObjectDeleted && self.slice.faults.has(Flaw::ForgetEvents);
        if !events.is_enabled || is_forgotten {
            return Ok(());
        }
        let Author { origin: Origin { principal, request_id, .. }, lifecycle_rule, .. } = author;
        let (bucket, object) = (target.bucket.name.as_str(), Some(object));
        self.buffers.event.clear();
        let fields = EventFields { kind, bucket, object, principal, request_id, lifecycle_rule };
        event_record::encode(&mut self.buffers.event, &fields);
        let tick = events.tick(kind, self.clock.now());
        let (table, key, before) = (self.slice.tables.events, tick.0.to_be_bytes(), self.txn.totals().hash);
        self.txn.append(table, &key, EVENT_RECORD_VERSION, &self.buffers.event).map_err(broken)?;
        let hash = self.txn.totals().hash.wrapping_sub(before);
        self.record_change(ChangeKind::Added, FollowedTable::Events, 0, &key, Accounting::NOTHING, hash);
        Ok(())
    }

    /// Removes the oldest events, those before a tick, at most `max`. Returns their number.
    pub(super) fn remove_events(&mut self, before: Tick, max: usize) -> Result<usize, Failure> {
        let (table, end) = (self.slice.tables.events, before.0.to_be_bytes());
        for removed in 0..max {
            let oldest = self.txn.first_key_at_or_after(table, &[0]).map_err(broken)?;
            let Some(key) = oldest.filter(|key| *key < &end[..]).map(<[u8]>::to_vec) else {
                return Ok(removed);
            };
            let hash = self.txn.totals().hash;
            self.txn.remove(table, &key).map_err(broken)?;
            let (kind, hash) = (ChangeKind::Removed, hash.wrapping_sub(self.txn.totals().hash));
            self.record_change(kind, FollowedTable::Events, 0, &key, Accounting::NOTHING, hash);
        }
        Ok(max)
    }
}
