//! Computes the next due time of each rule of a bucket.

use crate::error::EngineError;
use crate::format::due_record::DueKey;
use crate::format::keys;
use crate::format::object_record::decode_tags_of;
use crate::limits::{UPCOMING_ENTRIES_MAX, UPCOMING_RECORDS_MAX};
use crate::slice::Slice;
use crate::store::Store;
use crate::types::bucket::Bucket;
use crate::types::lifecycle::{DayLength, LifecycleRule, LifecycleRules, VersionRole};
use crate::types::tags::Tags;
use cairn_lmdb::ReadTxn;
use cairn_model::Timestamp;

/// Returns for each rule when the first version after `now` is due. `None` if there is none, or if none is among the first
/// entries of the index. Tags are looked up in the records of the versions; if these are too many, the time is not known.
pub(super) fn next_due(
    store: &Store,
    bucket: &Bucket,
    rules: &LifecycleRules,
    now: Timestamp,
) -> Result<Vec<Option<Timestamp>>, EngineError> {
    let day = store.background.lifecycle.day();
    let (mut upcoming, mut records_left) = (Vec::new(), UPCOMING_RECORDS_MAX);
    for rule in rules.iter() {
        let mut next = None;
        if rule.is_enabled {
            for slice in &store.slices {
                for role in VersionRole::ALL {
                    let found = next_of(slice, bucket, rule, role, (day, now), &mut records_left)?;
                    next = [next, found].into_iter().flatten().min();
                }
            }
        }
        let is_known = rule.tags.is_empty() || records_left > 0;
        upcoming.push(next.filter(|_| is_known));
    }
    Ok(upcoming)
}

fn next_of(
    slice: &Slice,
    bucket: &Bucket,
    rule: &LifecycleRule,
    role: VersionRole,
    (day, now): (DayLength, Timestamp),
    records_left: &mut usize,
) -> Result<Option<Timestamp>, EngineError> {
    if rule.due_at(role, now, day).is_none() {
        return Ok(None);
    }
    // Whatever began until then is due already.
    let since = rule.latest_due(role, now, day).map_or(0, |latest| latest.0.saturating_add(1));
    let first = DueKey::before_all(bucket.id, role, Timestamp(since));
    let txn = slice.environment.read()?;
    for entry in txn.entries(slice.tables.due, Some(&first.encode()))?.take(UPCOMING_ENTRIES_MAX) {
        let entry = entry?;
        let key = DueKey::decode(entry.key).filter(|key| (key.bucket, key.role) == (bucket.id, role));
        let Some(key) = key else { return Ok(None) };
        let Ok(record) = entry.record else { continue };
        if !record.body.starts_with(rule.prefix.as_bytes()) {
            continue;
        }
        if !rule.tags.is_empty() {
            if *records_left == 0 {
                return Ok(None);
            }
            *records_left -= 1;
            if !rule.selects(&tags_of(&txn, slice, &key, record.body)?) {
                continue;
            }
        }
        return Ok(rule.due_at(role, key.since, day));
    }
    Ok(None)
}

/// Returns the tags of the version that an entry is about. A version that is gone has none.
fn tags_of(txn: &ReadTxn<'_>, slice: &Slice, entry: &DueKey, object: &[u8]) -> Result<Tags, EngineError> {
    let Some(versions) = keys::versions_of(entry.bucket, object) else { return Ok(Tags::default()) };
    let key = keys::with_sequence(&versions, entry.version.0);
    match txn.get(slice.tables.objects, &key)? {
        Some(stored) => Ok(decode_tags_of(stored.version, stored.body)?),
        None => Ok(Tags::default()),
    }
}
