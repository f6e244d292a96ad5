//! Pages of storage events, the latest first, merged from all slices.
//!
//! The first page begins with the latest event that is final, as `list/events.rs` says. Its cost does not depend on how many
//! events there are.

use crate::error::EngineError;
use crate::format::event_record;
use crate::limits::{EVENT_PAGE_EVENTS_MAX, EVENT_STEPS_MAX};
use crate::list::events::{Found, Head, Snapshot, is_selected};
use crate::store::Store;
use crate::types::event::{EventQuery, LatestEventPage, Tick};
use cairn_lmdb::{Record, ReverseScan};
use std::collections::BinaryHeap;

impl Store {
    /// Returns one page of events, latest first. Examines a bounded number of events, so a page may be empty although more
    /// events match: the next page ends at [`LatestEventPage::examined`].
    ///
    /// # Errors
    /// As [`Store::events`].
    pub fn latest_events(&self, query: &EventQuery) -> Result<LatestEventPage, EngineError> {
        let limit = query.limit.clamp(1, EVENT_PAGE_EVENTS_MAX);
        let end = query.until.min(self.final_before());
        let mut page = LatestEventPage { examined: query.from, ..LatestEventPage::default() };
        if query.from >= end {
            return Ok(page);
        }
        let snapshots = self.event_snapshots()?;
        let mut merge = LatestMerge::new(&snapshots, end)?;
        let mut reached = end;
        for examined in 0.. {
            let Some((tick, record)) = merge.next()?.filter(|(tick, _)| *tick >= query.from) else { break };
            if examined >= EVENT_STEPS_MAX {
                return Ok(LatestEventPage { examined: reached, is_truncated: true, ..page });
            }
            let head = record.and_then(|record| {
                let head = event_record::decode_head(record.version, record.body)?;
                Ok((record, head))
            });
            match head {
                Ok((record, head)) if is_selected(query, &head) => {
                    if page.events.len() >= limit {
                        return Ok(LatestEventPage { examined: reached, is_truncated: true, ..page });
                    }
                    let event = event_record::decode(record.version, record.body, tick, &self.id().0)?;
                    page.events.push(event);
                }
                Ok(_) => {}
                Err(error) => self.report_damaged_event(tick, &error),
            }
            reached = tick;
        }
        Ok(page)
    }
}

/// The events of all sources, the latest tick first, including damaged ones.
struct LatestMerge<'t> {
    sources: Vec<ReverseScan<'t>>,
    /// The next event of each source, the latest one on top.
    heads: BinaryHeap<Head>,
    records: Vec<Option<Result<Record<'t>, EngineError>>>,
}

impl<'t> LatestMerge<'t> {
    /// Begins before a tick.
    fn new(snapshots: &'t [Snapshot<'_>], end: Tick) -> Result<Self, EngineError> {
        let before = end.0.to_be_bytes();
        let of_source = |(txn, table): &'t Snapshot<'_>| txn.scan_reverse(*table, &before);
        let sources = snapshots.iter().map(of_source).collect::<Result<Vec<_>, _>>()?;
        let count = sources.len();
        let mut merge =
            Self { sources, heads: BinaryHeap::new(), records: (0..count).map(|_| None).collect() };
        (0..count).try_for_each(|source| merge.read(source))?;
        Ok(merge)
    }

    /// Reads the next event of a source.
    fn read(&mut self, source: usize) -> Result<(), EngineError> {
        if let Some((key, record)) = self.sources[source].next().transpose()? {
            let tick = event_record::tick_of(key)?;
            self.records[source] = Some(record.map_err(EngineError::from));
            self.heads.push((tick, source));
        }
        Ok(())
    }

    /// Returns the next event of all sources.
    fn next(&mut self) -> Result<Option<Found<'t>>, EngineError> {
        let Some((tick, source)) = self.heads.pop() else { return Ok(None) };
        let record = self.records[source].take().expect("each head has a record");
        self.read(source)?;
        Ok(Some((tick, record)))
    }
}
