//! Pages of storage events, the latest first, merged from all slices.
//!
//! The first page begins with the latest event that is final, as `list/events.rs` says. Its cost does not depend on how many
//! events there are.

use crate::error::EngineError;
use crate::format::event_record;
use crate::limits::{EVENT_PAGE_EVENTS_MAX, EVENT_STEPS_MAX};
use crate::list::event_merge::latest_first;
use crate::list::events::is_selected;
use crate::store::Store;
use crate::types::event::{EventQuery, LatestEventPage};

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
        let mut merge = latest_first(&snapshots, end)?;
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
