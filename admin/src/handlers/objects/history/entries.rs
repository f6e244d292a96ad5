//! Entries of a history, and what they are made of.

use std::collections::HashMap;

use cairn_api::{HistoryEntry, HistoryKind};
use cairn_engine::{EventType, ListedVersion, StorageEvent, Tick};
use cairn_model::{Timestamp, VersionName};
use cairn_sharing::{Embed, Link, LinkId, Share};

/// Something that has happened to an object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    /// The time, in the order of events.
    pub(super) tick: Tick,
    pub(super) kind: HistoryKind,
    pub(super) version: Option<VersionName>,
    pub(super) size: Option<u64>,
    pub(super) is_delete_marker: bool,
    pub(super) principal: Option<String>,
    pub(super) request_id: Option<String>,
    pub(super) rule_id: Option<String>,
    pub(super) source_ip: Option<String>,
    /// The link that was created.
    pub(super) link: Option<LinkId>,
}

impl Entry {
    /// Makes an entry of which only time and kind are known.
    pub(super) const fn new(tick: Tick, kind: HistoryKind) -> Self {
        Self {
            tick,
            kind,
            version: None,
            size: None,
            is_delete_marker: false,
            principal: None,
            request_id: None,
            rule_id: None,
            source_ip: None,
            link: None,
        }
    }

    /// Returns the entry of an event of an object; `None` for one of an upload.
    pub(super) fn of_event(event: StorageEvent) -> Option<Self> {
        let kind = match event.kind {
            EventType::ObjectCreated => HistoryKind::Written,
            EventType::ObjectUpdated => HistoryKind::Overwritten,
            EventType::ObjectDeleted if event.lifecycle_rule.is_some() => HistoryKind::Expired,
            EventType::ObjectDeleted => HistoryKind::Deleted,
            EventType::ObjectRestored => HistoryKind::Restored,
            EventType::MultipartCompleted
            | EventType::MultipartAborted
            | EventType::BucketCreated
            | EventType::BucketDeleted => return None,
        };
        let known = |text: String| Some(text).filter(|text| !text.is_empty());
        let object = event.object.as_ref();
        Some(Self {
            version: object.and_then(|object| object.version),
            size: object.map(|object| object.size),
            is_delete_marker: object.is_some_and(|object| object.is_delete_marker),
            rule_id: event.lifecycle_rule,
            principal: known(event.principal),
            request_id: known(event.request_id),
            ..Self::new(event.id.tick(), kind)
        })
    }

    pub(super) fn of_share(share: &Share) -> Self {
        Self::of_link(&share.link, HistoryKind::Shared)
    }

    pub(super) fn of_embed(embed: &Embed) -> Self {
        Self::of_link(&embed.link, HistoryKind::Embedded)
    }

    fn of_link(link: &Link, kind: HistoryKind) -> Self {
        Self {
            version: link.object.version,
            principal: Some(link.created_by.clone()).filter(|principal| !principal.is_empty()),
            link: Some(link.id),
            ..Self::new(Tick::first_at(link.created_at), kind)
        }
    }

    pub(super) const fn time(&self) -> Timestamp {
        self.tick.time()
    }

    pub(super) fn body(self) -> HistoryEntry {
        HistoryEntry {
            time: self.time().into(),
            kind: self.kind,
            version_id: self.version.map(|version| version.to_string().into()),
            size: self.size,
            principal: self.principal,
            request_id: self.request_id,
            rule_id: self.rule_id,
            source_ip: self.source_ip,
        }
    }
}

/// Longest time between the date of a version and its event, in milliseconds.
const EVENT_MILLIS_MAX: u64 = 1000;

/// The versions that entries are about, each with the time of the latest entry that has written it.
struct Written {
    of: HashMap<(VersionName, bool), Timestamp>,
    /// A restoration writes a new version, or makes one of any age the current one again.
    restored: HashMap<VersionName, Timestamp>,
}

impl Written {
    fn by(entries: &[Entry]) -> Self {
        let mut written = Self { of: HashMap::new(), restored: HashMap::new() };
        for entry in entries {
            let (Some(name), time) = (entry.version, entry.time()) else { continue };
            let is_marker = match entry.kind {
                HistoryKind::Written | HistoryKind::Overwritten => false,
                HistoryKind::Deleted | HistoryKind::Expired if entry.is_delete_marker => true,
                HistoryKind::Restored => {
                    let first = written.restored.entry(name).or_insert(time);
                    *first = time.min(*first);
                    continue;
                }
                // A version was removed, or shown.
                _ => continue,
            };
            let last = written.of.entry((name, is_marker)).or_insert(time);
            *last = time.max(*last);
        }
        written
    }

    fn has(&self, version: &ListedVersion) -> bool {
        let (name, date) = (version.name, version.object.last_modified);
        // A key has one null version after the other.
        let is_of = |time: &Timestamp| name != VersionName::Null || *time >= date;
        let is_restoration = |time: &Timestamp| (date.0..=date.0 + EVENT_MILLIS_MAX).contains(&time.0);
        self.of.get(&(name, version.is_delete_marker)).is_some_and(is_of)
            || self.restored.get(&name).is_some_and(is_restoration)
    }
}

/// Returns entries of the versions that no entry has written: their events are no longer kept, or were never recorded. The
/// versions are those of one key, the newest first.
pub(super) fn of_versions(versions: &[ListedVersion], known: &[Entry]) -> Vec<Entry> {
    let written = Written::by(known);
    let older = versions.iter().skip(1).map(Some).chain([None]);
    let unknown = versions.iter().zip(older).filter(|(version, _)| !written.has(version));
    let entry = |(version, older): (&ListedVersion, Option<&ListedVersion>)| {
        let kind = match older {
            _ if version.is_delete_marker => HistoryKind::Deleted,
            Some(older) if !older.is_delete_marker => HistoryKind::Overwritten,
            _ => HistoryKind::Written,
        };
        Entry {
            version: Some(version.name),
            size: Some(version.object.size),
            is_delete_marker: version.is_delete_marker,
            ..Entry::new(Tick::first_at(version.object.last_modified), kind)
        }
    };
    unknown.map(entry).collect()
}

/// Sorts entries, the latest first, and keeps at most `max`. Returns whether all were kept.
pub(super) fn keep_latest(entries: &mut Vec<Entry>, max: usize) -> bool {
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.tick));
    let are_all = entries.len() <= max;
    entries.truncate(max);
    are_all
}
