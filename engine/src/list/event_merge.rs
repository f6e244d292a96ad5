//! Merges the events of all sources by tick, oldest or latest first.

use crate::error::EngineError;
use crate::format::event_record;
use crate::types::event::Tick;
use cairn_lmdb::{Error, ReadTxn, Record, Table};

/// A snapshot of an environment, and its table of events.
pub(super) type Snapshot<'s> = (ReadTxn<'s>, Table);

/// An event's tick, and its record or why that is invalid.
type Found<'t> = (Tick, Result<Record<'t>, EngineError>);

/// The order of events.
#[derive(Clone, Copy)]
enum Order {
    OldestFirst,
    LatestFirst,
}

/// The events of all sources in the order of their ticks, including damaged ones.
pub(super) struct EventMerge<'t, I> {
    order: Order,
    sources: Vec<I>,
    /// The next event of each source. There are few sources, so all of them are compared.
    heads: Vec<Option<Found<'t>>>,
}

/// Merges the events at or after a tick, oldest first.
pub(super) fn oldest_first<'t>(
    snapshots: &'t [Snapshot<'_>],
    from: Tick,
) -> Result<EventMerge<'t, impl Iterator<Item = Result<Found<'t>, EngineError>>>, EngineError> {
    let after = from.0.checked_sub(1).map(u64::to_be_bytes);
    let of_source = |(txn, table): &'t Snapshot<'_>| {
        let entries = txn.entries(*table, after.as_ref().map(|key| &key[..]))?;
        Ok(entries.map(|entry| {
            let entry = entry?;
            found(entry.key, entry.record)
        }))
    };
    EventMerge::of(Order::OldestFirst, snapshots.iter().map(of_source))
}

/// Merges the events before a tick, latest first.
pub(super) fn latest_first<'t>(
    snapshots: &'t [Snapshot<'_>],
    end: Tick,
) -> Result<EventMerge<'t, impl Iterator<Item = Result<Found<'t>, EngineError>>>, EngineError> {
    let before = end.0.to_be_bytes();
    let of_source = |(txn, table): &'t Snapshot<'_>| {
        let entries = txn.scan_reverse(*table, &before)?;
        Ok(entries.map(|entry| {
            let (key, record) = entry?;
            found(key, record)
        }))
    };
    EventMerge::of(Order::LatestFirst, snapshots.iter().map(of_source))
}

fn found<'t>(key: &[u8], record: Result<Record<'t>, Error>) -> Result<Found<'t>, EngineError> {
    Ok((event_record::tick_of(key)?, record.map_err(EngineError::from)))
}

impl<'t, I: Iterator<Item = Result<Found<'t>, EngineError>>> EventMerge<'t, I> {
    fn of(order: Order, sources: impl Iterator<Item = Result<I, EngineError>>) -> Result<Self, EngineError> {
        let mut sources = sources.collect::<Result<Vec<_>, _>>()?;
        let heads = sources.iter_mut().map(|source| source.next().transpose()).collect::<Result<_, _>>()?;
        Ok(Self { order, sources, heads })
    }

    /// Returns the next event of all sources.
    pub(super) fn next(&mut self) -> Result<Option<Found<'t>>, EngineError> {
        let heads = self.heads.iter().enumerate();
        let ticks = heads.filter_map(|(source, head)| head.as_ref().map(|(tick, _)| (*tick, source)));
        let next = match self.order {
            Order::OldestFirst => ticks.min(),
            Order::LatestFirst => ticks.max(),
        };
        let Some((_, source)) = next else { return Ok(None) };
        let following = self.sources[source].next().transpose()?;
        Ok(std::mem::replace(&mut self.heads[source], following))
    }
}
