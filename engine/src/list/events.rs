//! Pages of storage events, merged from all slices and the bucket catalog.
//!
//! `slice/event_source.rs` explains which events are final. A page ends before the first tick that may not be. So a reader that
//! continues where a page ended misses nothing.

use crate::error::EngineError;
use crate::fault_reports::{FoundWhile, StoreFault};
use crate::format::event_record::{self, EventHead};
use crate::limits::{EVENT_PAGE_EVENTS_MAX, EVENT_STEPS_MAX};
use crate::list::event_merge::{Snapshot, oldest_first};
use crate::slice::Slice;
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
        let mut merge = oldest_first(&snapshots, query.from)?;
        for examined in 0.. {
            let Some((tick, record)) = merge.next()?.filter(|(tick, _)| *tick < end) else { break };
            if examined >= EVENT_STEPS_MAX {
                return Ok(EventPage { examined: tick, is_truncated: true, ..page });
            }
            let head = record.and_then(|record| {
                let head = event_record::decode_head(record.version, record.body)?;
                Ok((record, head))
            });
            let (record, head) = match head {
                Ok(found) => found,
                Err(error) => {
                    self.report_damaged_event(tick, &error);
                    continue;
                }
            };
            if is_selected(query, &head) {
                if page.events.len() >= limit {
                    return Ok(EventPage { examined: tick, is_truncated: true, ..page });
                }
                let event = event_record::decode(record.version, record.body, tick, &self.id().0)?;
                page.events.push(event);
            }
        }
        Ok(page)
    }

    /// Returns a tick above those of all events that have been committed, and below those of all that begin later.
    #[must_use]
    pub fn event_tick(&self) -> Tick {
        self.event_signal().tick(self.clocks.system.now())
    }

    /// Reports an event that fails its check. Readers skip it: the others must not wait for it.
    pub(crate) fn report_damaged_event(&self, tick: Tick, error: &EngineError) {
        self.fault_reports.report(&StoreFault::Damage {
            object: &format!("storage event {}", self.event_id(tick)),
            version: None,
            what: &error.to_string(),
            found_while: FoundWhile::Serving,
        });
    }

    /// Returns the id of the event at a tick, whether or not there is one.
    #[must_use]
    pub fn event_id(&self, tick: Tick) -> EventId {
        EventId::new(tick, &self.id().0)
    }

    /// Returns the tick before which all events are final.
    pub(super) fn final_before(&self) -> Tick {
        // The order matters: the tick first, then the floors, then the snapshots.
        let now = self.event_tick();
        let sources = self.slices.iter().map(|slice| &slice.events).chain([&self.control.catalog.events]);
        sources.map(EventSource::floor).fold(now, Tick::min)
    }

    /// Returns the number of events of a slice, or with `None` of those of buckets.
    pub(crate) fn count_events(&self, slice: Option<&Slice>) -> Result<u64, EngineError> {
        let (environment, table) = match slice {
            Some(slice) => (&slice.environment, slice.tables.events),
            None => (&self.control.catalog.environment, self.control.catalog.events_table),
        };
        Ok(environment.read()?.count(table)?)
    }

    /// Begins a snapshot of each source of events.
    pub(super) fn event_snapshots(&self) -> Result<Vec<Snapshot<'_>>, EngineError> {
        let of_slices = self.slices.iter().map(|slice| (&slice.environment, slice.tables.events));
        let of_buckets = [(&self.control.catalog.environment, self.control.catalog.events_table)];
        let sources = of_slices.chain(of_buckets);
        sources.map(|(environment, table)| Ok((environment.read()?, table))).collect()
    }
}

/// Returns whether an event passes the filters of a query other than those for time.
pub(super) fn is_selected(query: &EventQuery, event: &EventHead<'_>) -> bool {
    query.types.contains(event.kind)
        && query.bucket.as_deref().is_none_or(|bucket| bucket == event.bucket)
        && query.prefix.as_deref().is_none_or(|prefix| event.key.is_some_and(|key| key.starts_with(prefix)))
        && query.principal.as_deref().is_none_or(|principal| principal == event.principal)
        && query.contains.as_ref().is_none_or(|wanted| {
            wanted.is_in_path(event.bucket, event.key.unwrap_or_default())
                || [event.kind.name(), event.principal, event.request_id, event.lifecycle_rule]
                    .into_iter()
                    .any(|text| wanted.is_in(text))
        })
}
