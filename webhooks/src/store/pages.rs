//! Reading of deliveries: pages of the log, one delivery, and failed deliveries.
//!
//! The log of each webhook is a range of keys in each of three tables. A page merges these ranges, so its cost does not depend
//! on the length of the log. A filter by status or event reads only the tables that can match.

use super::delivery_record::{DeliveryStatus, LogEntry, Summary, Waiting, time_key, time_key_parts};
use super::query::{DeliveryEntry, DeliveryPage, DeliveryQuery};
use super::state::Shared;
use crate::id::{DeliveryId, EVENT_BYTES, ID_BYTES, WebhookId};
use crate::limits::{EVENT_DELIVERIES_MAX, PAGE_DELIVERIES_MAX, PAGE_RECORDS_READ_MAX, TXN_RECORDS_READ_MAX};
use cairn_engine::{EventId, EventType, Tick};
use cairn_lmdb::{Error, ReadTxn, Record, ReverseScan, Table};
use cairn_model::Timestamp;
use std::collections::BinaryHeap;

/// A place in the order of pages. Later places come first.
type Place = (Timestamp, DeliveryId);
/// A part of the events whose deliveries failed.
pub(crate) struct FailedEvents {
    pub(crate) events: Vec<(Tick, EventType)>,
    /// The start of the next part, if there may be one.
    pub(crate) next: Option<Place>,
}

/// Before all places of a page.
const START: Place = (Timestamp(u64::MAX), DeliveryId([0xFF; ID_BYTES]));

impl Shared {
    /// Returns a page of deliveries. Blocks for as long as reading [`PAGE_RECORDS_READ_MAX`] records takes.
    pub(crate) fn page(&self, query: &DeliveryQuery) -> Result<DeliveryPage, Error> {
        let limit = query.limit.clamp(1, PAGE_DELIVERIES_MAX);
        if let Some(event) = query.event {
            return self.page_of_event(query, event, limit);
        }
        let webhooks: Vec<WebhookId> = match query.webhook {
            Some(webhook) => vec![webhook],
            None => self.state().webhooks.keys().copied().collect(),
        };
        let mut page = DeliveryPage::default();
        let (mut after, mut read) = (query.after.unwrap_or(START), 0);
        loop {
            let txn = self.store.read()?;
            let tables = self.tables(query.status.or(query.lost.then_some(DeliveryStatus::Failed)));
            let mut merge = Merge::new(&txn, &tables, &webhooks, after, &self.store_id)?;
            for _ in 0..TXN_RECORDS_READ_MAX {
                let Some((place, found)) = merge.next(&self.store_id)? else { return Ok(page) };
                if page.deliveries.len() >= limit || read >= PAGE_RECORDS_READ_MAX {
                    page.next = Some(after);
                    return Ok(page);
                }
                (after, read) = (place, read + 1);
                let Some(found) = found else { continue };
                let found = self.with_loss(&txn, found)?;
                page.deliveries.extend(Some(found).filter(|found| is_selected(query, found)));
            }
        }
    }

    /// Returns the tables with entries of a status.
    fn tables(&self, status: Option<DeliveryStatus>) -> Vec<(Table, Kind)> {
        let waiting = (self.store.waiting, Kind::Waiting);
        let succeeded = (self.store.succeeded, Kind::Entry);
        let unsuccessful = (self.store.unsuccessful, Kind::Entry);
        match status {
            None => vec![waiting, succeeded, unsuccessful],
            Some(DeliveryStatus::Pending) => vec![waiting, unsuccessful],
            Some(DeliveryStatus::Succeeded) => vec![succeeded],
            Some(DeliveryStatus::Failed | DeliveryStatus::Dropped) => vec![unsuccessful],
        }
    }

    /// Returns a page of the deliveries of one event.
    fn page_of_event(
        &self,
        query: &DeliveryQuery,
        event: EventId,
        limit: usize,
    ) -> Result<DeliveryPage, Error> {
        let mut page = DeliveryPage::default();
        if event != EventId::new(event.tick(), &self.store_id) {
            return Ok(page);
        }
        let txn = self.store.read()?;
        for (id, summary) in self.deliveries_of(&txn, event.tick())? {
            let is_visible = self.state().webhooks.contains_key(&summary.webhook);
            if is_visible && query.webhook.is_none_or(|webhook| webhook == summary.webhook) {
                self.entries_of(&txn, id, &summary, &mut page.deliveries)?;
            }
        }
        let place = |found: &DeliveryEntry| (found.timestamp, found.id);
        let found = std::mem::take(&mut page.deliveries).into_iter();
        page.deliveries = found.map(|found| self.with_loss(&txn, found)).collect::<Result<_, _>>()?;
        page.deliveries.retain(|found| {
            is_selected(query, found) && query.after.is_none_or(|after| place(found) < after)
        });
        page.deliveries.sort_by_key(|found| std::cmp::Reverse(place(found)));
        if page.deliveries.len() > limit {
            page.deliveries.truncate(limit);
            page.next = page.deliveries.last().map(place);
        }
        Ok(page)
    }

    /// Returns an entry that says whether its event is lost.
    fn with_loss(&self, txn: &ReadTxn<'_>, entry: DeliveryEntry) -> Result<DeliveryEntry, Error> {
        let event_lost = self.store.is_lost(txn, entry.webhook_id, entry.event_id.tick())?;
        Ok(DeliveryEntry { event_lost, ..entry })
    }

    /// Returns the deliveries of the event at a tick.
    fn deliveries_of(&self, txn: &ReadTxn<'_>, event: Tick) -> Result<Vec<(DeliveryId, Summary)>, Error> {
        let start = DeliveryId::new(event, [0; 8]).0;
        let mut found = Vec::new();
        for item in txn.scan(self.store.deliveries, &start[..EVENT_BYTES])?.take(EVENT_DELIVERIES_MAX) {
            let (key, record) = item?;
            let Ok(id) = key.try_into().map(DeliveryId) else { continue };
            if id.event() != event {
                break;
            }
            found.extend(Summary::decode(&record).map(|summary| (id, summary)));
        }
        Ok(found)
    }

    /// Adds the entries of a delivery.
    fn entries_of(
        &self,
        txn: &ReadTxn<'_>,
        id: DeliveryId,
        summary: &Summary,
        entries: &mut Vec<DeliveryEntry>,
    ) -> Result<(), Error> {
        let waiting_key = time_key(summary.webhook, summary.queued_at, id);
        if let Some(record) = txn.get(self.store.waiting, &waiting_key)? {
            entries.extend(view(&waiting_key, &record, Kind::Waiting, &self.store_id));
        }
        for time in &summary.times {
            let key = time_key(summary.webhook, *time, id);
            for table in [self.store.succeeded, self.store.unsuccessful] {
                if let Some(record) = txn.get(table, &key)? {
                    entries.extend(view(&key, &record, Kind::Entry, &self.store_id));
                }
            }
        }
        Ok(())
    }

    /// Returns a delivery: its webhook and the type of its event.
    pub(crate) fn delivery(&self, id: DeliveryId) -> Result<Option<(WebhookId, EventType)>, Error> {
        let txn = self.store.read()?;
        let Some(record) = txn.get(self.store.deliveries, &id.0)? else { return Ok(None) };
        let Some(summary) = Summary::decode(&record) else { return Ok(None) };
        let mut entries = Vec::new();
        self.entries_of(&txn, id, &summary, &mut entries)?;
        Ok(entries.first().map(|entry| (summary.webhook, entry.event_type)))
    }

    /// Returns whether an event waits to be delivered to a webhook, or was delivered.
    fn is_delivered_or_waits(
        &self,
        txn: &ReadTxn<'_>,
        webhook: WebhookId,
        event: Tick,
    ) -> Result<bool, Error> {
        let is_fine = |status| matches!(status, DeliveryStatus::Pending | DeliveryStatus::Succeeded);
        let mut deliveries = self.deliveries_of(txn, event)?.into_iter();
        Ok(deliveries.any(|(_, summary)| summary.webhook == webhook && is_fine(summary.status)))
    }

    /// Reads a part of the failed deliveries of a webhook whose last attempt was after `after`. Leaves out events that have
    /// been delivered since, or wait. Returns the events, and where the next part begins.
    pub(crate) fn failed_events(
        &self,
        webhook: WebhookId,
        after: Place,
        max: usize,
    ) -> Result<FailedEvents, Error> {
        let txn = self.store.read()?;
        let start = time_key(webhook, after.0, after.1);
        let (mut found, mut last) = (Vec::new(), None);
        for item in txn.scan(self.store.unsuccessful, &start)?.take(TXN_RECORDS_READ_MAX) {
            let (key, record) = item?;
            let Some((of, time, id)) = time_key_parts(key) else { break };
            if of != webhook {
                return Ok(FailedEvents { events: found, next: None });
            }
            if found.len() >= max {
                return Ok(FailedEvents { events: found, next: last });
            }
            last = Some((time, id));
            let Some(entry) = LogEntry::decode(&record) else { continue };
            let is_failed = entry.is_last && entry.status == DeliveryStatus::Failed;
            if (time, id) != after && is_failed && !self.is_delivered_or_waits(&txn, webhook, id.event())? {
                found.push((id.event(), entry.kind));
            }
        }
        let is_whole_part = last.is_some_and(|last| last != after);
        Ok(FailedEvents { events: found, next: last.filter(|_| is_whole_part) })
    }
}

/// Returns whether an entry passes the filters by status and loss.
fn is_selected(query: &DeliveryQuery, found: &DeliveryEntry) -> bool {
    query.status.is_none_or(|status| status == found.status) && (found.event_lost || !query.lost)
}

/// The kind of a log record.
#[derive(Clone, Copy)]
enum Kind {
    Waiting,
    Entry,
}

fn view(key: &[u8], record: &Record<'_>, kind: Kind, store: &[u8; 16]) -> Option<DeliveryEntry> {
    match kind {
        Kind::Waiting => Some(DeliveryEntry::of_waiting(&Waiting::from_waiting(key, record)?, store)),
        Kind::Entry => Some(DeliveryEntry::of_entry(time_key_parts(key)?, LogEntry::decode(record)?, store)),
    }
}

/// The entries of one webhook in one table, latest first.
struct Range<'t> {
    scan: ReverseScan<'t>,
    webhook: WebhookId,
    kind: Kind,
    /// The view of the next entry. `None` for a record that is damaged or has an unknown form.
    head: Option<DeliveryEntry>,
}

impl Range<'_> {
    /// Moves on. Returns the place of the next entry.
    fn advance(&mut self, store: &[u8; 16]) -> Result<Option<Place>, Error> {
        let Some(item) = self.scan.next() else { return Ok(None) };
        let (key, record) = item?;
        let Some((webhook, time, id)) = time_key_parts(key) else { return Ok(None) };
        if webhook != self.webhook {
            return Ok(None);
        }
        self.head = record.ok().and_then(|record| view(key, &record, self.kind, store));
        if self.head.is_none() {
            tracing::error!(target: "service::webhooks", delivery = %id, "a record of the delivery log failed its check");
        }
        Ok(Some((time, id)))
    }
}

/// Merges ranges, latest entries first.
struct Merge<'t> {
    ranges: Vec<Range<'t>>,
    /// The places of the next entries, with the indexes of their ranges.
    heads: BinaryHeap<(Place, usize)>,
}

impl<'t> Merge<'t> {
    fn new(
        txn: &'t ReadTxn<'_>,
        tables: &[(Table, Kind)],
        webhooks: &[WebhookId],
        after: Place,
        store: &[u8; 16],
    ) -> Result<Self, Error> {
        let mut merge = Self { ranges: Vec::new(), heads: BinaryHeap::new() };
        for webhook in webhooks {
            let before = time_key(*webhook, after.0, after.1);
            for (table, kind) in tables {
                let scan = txn.scan_reverse(*table, &before)?;
                let mut range = Range { scan, webhook: *webhook, kind: *kind, head: None };
                if let Some(place) = range.advance(store)? {
                    merge.heads.push((place, merge.ranges.len()));
                    merge.ranges.push(range);
                }
            }
        }
        Ok(merge)
    }

    /// Returns the next entry and its place. There is no entry for a damaged record.
    fn next(&mut self, store: &[u8; 16]) -> Result<Option<(Place, Option<DeliveryEntry>)>, Error> {
        let Some((place, index)) = self.heads.pop() else { return Ok(None) };
        let entry = self.ranges[index].head.take();
        if let Some(next) = self.ranges[index].advance(store)? {
            self.heads.push((next, index));
        }
        Ok(Some((place, entry)))
    }
}
