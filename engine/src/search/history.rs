//! The storage events of one object.
//!
//! Events have no index by object. Those of known versions are looked up at the times of the versions; the others are searched
//! for, from the latest event backwards, within bounds.

use crate::api::engine::Engine;
use crate::check::throttle::Throttle;
use crate::error::EngineError;
use crate::format::event_record;
use crate::limits::{EVENT_STEPS_MAX, WALK_STEP_TIME};
use crate::slice::Slice;
use crate::store::Store;
use crate::types::bucket::Bucket;
use crate::types::event::{StorageEvent, Tick};
use crate::types::search::{ObjectEvents, SearchBounds};
use cairn_lmdb::Record;
use cairn_model::{ObjectKey, Timestamp, VersionName};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

/// A version of the object, and when it was written.
type Known = (VersionName, Timestamp);

/// Versions that are looked up in one snapshot.
const VERSIONS_AT_ONCE: usize = 16;
/// The event of a version is within so many milliseconds after its date: both are in one transaction.
const EVENT_MILLIS_MAX: u64 = 100;
/// Most events that are examined for one version.
const EVENTS_OF_VERSION_MAX: usize = 256;

impl Engine {
    /// Returns the events of an object that are still kept, the latest first, with lower priority than all requests. `versions`
    /// are its versions with their dates: their events are found in any case. At most `max` others are.
    ///
    /// # Errors
    /// Failures of the device. A damaged event is reported and left out.
    pub async fn object_events(
        self: &Rc<Self>,
        bucket: &Arc<Bucket>,
        key: &ObjectKey,
        versions: Vec<(VersionName, Timestamp)>,
        max: usize,
        bounds: SearchBounds,
    ) -> Result<ObjectEvents, EngineError> {
        let (store, bucket, key) = (Arc::clone(self.store()), Arc::clone(bucket), key.clone());
        let work = async move {
            let slice = store.slice_of(&bucket, &key)?;
            let found = BTreeMap::new();
            let search = EventSearch { store: &store, slice, bucket: &bucket, key: &key, found };
            search.run(&versions, max, bounds).await
        };
        self.in_background(work).await
    }
}

/// A search for the events of an object.
struct EventSearch<'s> {
    store: &'s Store,
    slice: &'s Slice,
    bucket: &'s Bucket,
    key: &'s ObjectKey,
    found: BTreeMap<Tick, StorageEvent>,
}

impl EventSearch<'_> {
    async fn run(
        mut self,
        versions: &[Known],
        max: usize,
        bounds: SearchBounds,
    ) -> Result<ObjectEvents, EngineError> {
        let begun = Instant::now();
        let throttle = Throttle::at_pace(&self.store.background.on_demand);
        for some in versions.chunks(VERSIONS_AT_ONCE) {
            if begun.elapsed() >= bounds.time {
                break;
            }
            let read = throttle.begin().await;
            self.look_up(some)?;
            read.end(0).await;
        }
        let (known, mut examined, mut before) = (self.found.len(), 0, Some(Tick(u64::MAX)));
        while let Some(end) = before {
            if examined >= bounds.keys || begun.elapsed() >= bounds.time || self.found.len() - known >= max {
                break;
            }
            let read = throttle.begin().await;
            before = self.step(end, &mut examined)?;
            read.end(0).await;
        }
        let events = self.found.into_values().rev().collect();
        Ok(ObjectEvents { events, is_complete: before.is_none() })
    }

    /// Adds the events of these versions.
    fn look_up(&mut self, versions: &[Known]) -> Result<(), EngineError> {
        let txn = self.slice.environment.read()?;
        for (name, time) in versions {
            let (from, until) = (Tick::first_at(*time), Tick::first_at(Timestamp(time.0 + EVENT_MILLIS_MAX)));
            let after = from.0.checked_sub(1).map(u64::to_be_bytes);
            let entries = txn.entries(self.slice.tables.events, after.as_ref().map(|key| &key[..]))?;
            for entry in entries.take(EVENTS_OF_VERSION_MAX) {
                let entry = entry?;
                let tick = event_record::tick_of(entry.key)?;
                if tick >= until {
                    break;
                }
                let event = self.event(tick, entry.record.map_err(EngineError::from));
                let version = |event: &StorageEvent| event.object.as_ref().and_then(|object| object.version);
                if let Some(event) = event.filter(|event| version(event) == Some(*name)) {
                    self.found.insert(tick, event);
                }
            }
        }
        Ok(())
    }

    /// Examines the next events before a tick, backwards. Returns the tick of the last one; `None` if no event of the object
    /// can be before it.
    fn step(&mut self, end: Tick, examined: &mut u64) -> Result<Option<Tick>, EngineError> {
        let begun = Instant::now();
        let txn = self.slice.environment.read()?;
        let mut last = end;
        for (number, entry) in txn.scan_reverse(self.slice.tables.events, &end.0.to_be_bytes())?.enumerate() {
            if number >= EVENT_STEPS_MAX || (number > 0 && begun.elapsed() >= WALK_STEP_TIME) {
                return Ok(Some(last));
            }
            let (key, record) = entry?;
            last = event_record::tick_of(key)?;
            // Those of an earlier bucket of this name are about other objects.
            if last.time() < self.bucket.created_at {
                return Ok(None);
            }
            *examined += 1;
            if let Some(event) = self.event(last, record.map_err(EngineError::from)) {
                self.found.insert(last, event);
            }
        }
        Ok(None)
    }

    /// Returns an event, if it is about the object.
    fn event(&self, tick: Tick, record: Result<Record<'_>, EngineError>) -> Option<StorageEvent> {
        let decode = || -> Result<Option<StorageEvent>, EngineError> {
            let record = record?;
            let head = event_record::decode_head(record.version, record.body)?;
            if head.bucket != self.bucket.name.as_str() || head.key != Some(self.key.as_str()) {
                return Ok(None);
            }
            Ok(Some(event_record::decode(record.version, record.body, tick, &self.store.id().0)?))
        };
        decode().unwrap_or_else(|error| {
            self.store.report_damaged_event(tick, &error);
            None
        })
    }
}
