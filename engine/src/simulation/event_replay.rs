//! Replay of storage events: they must lead to the versions that the store holds.
//!
//! A missing event leaves out a version that is there, or keeps one that is not. An invented event does the opposite. Delete
//! markers are left out: a marker over nothing has no event.

use crate::simulation::bucket_contents::Contents;
use crate::simulation::buckets::BUCKETS;
use crate::simulation::history::BucketKey;
use crate::simulation::key_state::name_of;
use crate::simulation::violation::{Violation, ViolationKind};
use crate::store::Store;
use crate::types::event::{EventQuery, EventType, StorageEvent};
use cairn_model::Etag;
use std::collections::BTreeMap;

/// The versions with a payload of each key, by their names.
type Versions = BTreeMap<BucketKey, BTreeMap<String, Etag>>;

/// Checks that the events of a store lead to its contents.
pub(crate) fn check_events(store: &Store, contents: &Contents) -> Result<(), Violation> {
    let mismatch = |detail| Violation::new(ViolationKind::EventMismatch, detail);
    let mut replayed = Versions::new();
    let mut query = EventQuery::default();
    loop {
        let page = store.events(&query).map_err(|error| mismatch(format!("cannot be read: {error}")))?;
        for event in page.events {
            replay(&mut replayed, event);
        }
        query.from = page.examined;
        if !page.is_truncated {
            break;
        }
    }
    replayed.retain(|_, versions| !versions.is_empty());
    let held = versions_of(contents);
    if replayed == held {
        return Ok(());
    }
    let differs = |key: &&BucketKey| replayed.get(*key) != held.get(*key);
    let key = held.keys().chain(replayed.keys()).find(differs);
    let detail = key
        .map(|key| format!("of {key} lead to {:?}, the store holds {:?}", replayed.get(key), held.get(key)));
    Err(mismatch(detail.unwrap_or_default()))
}

fn replay(versions: &mut Versions, event: StorageEvent) {
    let bucket = BUCKETS.iter().position(|bucket| bucket.name == event.bucket);
    let (Some(bucket), Some(object)) = (bucket, event.object) else { return };
    let of_key = versions.entry(BucketKey { bucket, key: object.key }).or_default();
    let name = object.version.map(|version| version.to_string()).unwrap_or_default();
    match (event.kind, object.etag) {
        (EventType::ObjectCreated | EventType::ObjectUpdated | EventType::ObjectRestored, Some(etag)) => {
            of_key.insert(name, etag);
        }
        // A null marker takes the place of the null version.
        (EventType::ObjectDeleted, _) => {
            of_key.remove(&name);
        }
        _ => {}
    }
}

fn versions_of(contents: &Contents) -> Versions {
    let mut held = Versions::new();
    for (key, state) in contents {
        for (sequence, version) in &state.versions {
            let Some(content) = &version.content else { continue };
            let name = name_of(*sequence, version);
            held.entry(key.clone()).or_default().insert(name.to_string(), content.etag);
        }
    }
    held
}
