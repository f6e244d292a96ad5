//! Pages of storage events, merged from all slices and the bucket catalog.
//!
//! `slice/event_source.rs` explains which events are final. A page ends before the first tick that may not be. So a reader that
//! continues where a page ended misses nothing.

use crate::error::EngineError;
use crate::format::event_record::{self, EventHead};
use crate::limits::{EVENT_PAGE_EVENTS_MAX, EVENT_STEPS_MAX};
use crate::list::merge::Merge;
use crate::slice::event_source::EventSource;
use crate::store::Store;
use crate::types::event::{EventId, EventPage, EventQuery, Tick};

impl Store {
    /// Returns one page of events, oldest first. Examines a bounded number of events, so a page may be empty although more
    /// events match: the next page begins at [`EventPage::examined`].
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] when a record fails its check, and failures of the metadata environments.
    pub fn events(&self, query: &EventQuery) -> Result<EventPage, EngineError> {
        let limit = query.limit.clamp(1, EVENT_PAGE_EVENTS_MAX);
        let end = query.until.min(self.final_before());
        let mut page = EventPage { examined: query.from.max(end), ..EventPage::default() };
        if query.from >= end {
            return Ok(page);
        }
        let snapshots = self.event_snapshots()?;
        let start = query.from.0.to_be_bytes();
        let mut merge = Merge::new(snapshots.iter().map(|(txn, table)| (txn, *table)), &start, &[])?;
        while let Some((key, record)) = merge.head() {
            let tick = event_record::tick_of(key)?;
            if tick >= end {
                break;
            }
            if merge.steps() >= EVENT_STEPS_MAX {
                return Ok(EventPage { examined: tick, is_truncated: true, ..page });
            }
            let head = event_record::decode_head(record.version, record.body)?;
            if matches(query, &head) {
                if page.events.len() >= limit {
                    return Ok(EventPage { examined: tick, is_truncated: true, ..page });
                }
                let event = event_record::decode(record.version, record.body, tick, &self.id().0)?;
                page.events.push(event);
            }
            merge.advance()?;
        }
        Ok(page)
    }

    /// Returns a tick above those of all events that have been committed, and below those of all that begin later.
    #[must_use]
    pub fn event_tick(&self) -> Tick {
        self.event_signal().tick(self.clock.now())
    }

    /// Returns the id of the event at a tick, whether or not there is one.
    #[must_use]
    pub fn event_id(&self, tick: Tick) -> EventId {
        EventId::new(tick, &self.id().0)
    }

    /// Returns the tick before which all events are final.
    fn final_before(&self) -> Tick {
        // The order matters: the tick first, then the floors, then the snapshots.
        let now = self.event_tick();
        let sources = self.slices.iter().map(|slice| &slice.events).chain([&self.catalog.events]);
        sources.map(EventSource::floor).fold(now, Tick::min)
    }

    fn event_snapshots(&self) -> Result<Vec<(cairn_lmdb::ReadTxn<'_>, cairn_lmdb::Table)>, EngineError> {
        let of_slices = self.slices.iter().map(|slice| (&slice.environment, slice.tables.events));
        let of_buckets = [(&self.catalog.environment, self.catalog.events_table)];
        let sources = of_slices.chain(of_buckets);
        sources.map(|(environment, table)| Ok((environment.read()?, table))).collect()
    }
}

fn matches(query: &EventQuery, event: &EventHead<'_>) -> bool {
    query.types.contains(event.kind)
        && query.bucket.as_deref().is_none_or(|bucket| bucket == event.bucket)
        && query.prefix.as_deref().is_none_or(|prefix| event.key.is_some_and(|key| key.starts_with(prefix)))
}
