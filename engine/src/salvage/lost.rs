//! Names what a damaged slice has lost: by damaged keys, by events, and else by ranges of keys.

use super::store_facts::StoreFacts;
use super::target::{SalvageLoss, SalvageTarget};
use crate::format::event_record;
use crate::format::keys;
use crate::types::event::{EventType, Tick};
use cairn_lmdb::{Record, SalvagedEnvironment, SalvagedTable};
use cairn_model::VersionId;
use std::collections::{BTreeMap, HashSet};
use std::io;

/// Objects that were given to the target although others near them are lost.
#[derive(Default)]
pub(super) struct Given(HashSet<(u64, Vec<u8>)>);

impl Given {
    pub(super) fn note(&mut self, encoded: &[u8]) {
        self.0.extend(keys::decode(encoded).map(|(bucket, key, _)| (bucket, key)));
    }
}

/// Reports what is lost of the table of objects.
pub(super) fn report_lost(
    slice: u16,
    environment: &SalvagedEnvironment,
    objects: &SalvagedTable,
    facts: &StoreFacts,
    only: Option<&str>,
    given: &Given,
    target: &mut dyn SalvageTarget,
) -> io::Result<()> {
    let is_wanted = |bucket: u64| only.is_none_or(|only| only == facts.name(bucket));
    for damaged in &objects.damaged {
        let reason = "its record is damaged".to_owned();
        let loss = match keys::decode(damaged) {
            Some((bucket, key, _)) if !is_wanted(bucket) || given.0.contains(&(bucket, key.clone())) => {
                continue;
            }
            Some((bucket, key, sequence)) => SalvageLoss {
                bucket: Some(facts.name(bucket)),
                key: Some(key),
                version: Some(VersionId(sequence).to_string()),
                ..SalvageLoss::default()
            },
            None => SalvageLoss::default(),
        };
        target.loss(SalvageLoss { slice: Some(slice), reason, ..loss })?;
    }
    for ((bucket, key), version) in named_by_events(environment, objects, facts) {
        if is_wanted(bucket) && !given.0.contains(&(bucket, key.clone())) {
            let reason = "its record is lost; an event names it".to_owned();
            let (bucket, key) = (Some(facts.name(bucket)), Some(key));
            target.loss(SalvageLoss { slice: Some(slice), bucket, key, version, range: None, reason })?;
        }
    }
    for range in objects.lost.all() {
        let reason =
            "records of objects with keys in this range are damaged; what a search found of them is marked"
                .to_owned();
        let range = Some((range.from.clone(), range.to.clone()));
        target.loss(SalvageLoss { slice: Some(slice), range, reason, ..SalvageLoss::default() })?;
    }
    Ok(())
}

/// Returns the objects in lost ranges that events say were written and not deleted since, with the version.
fn named_by_events(
    environment: &SalvagedEnvironment,
    objects: &SalvagedTable,
    facts: &StoreFacts,
) -> BTreeMap<(u64, Vec<u8>), Option<String>> {
    let mut named = BTreeMap::new();
    if objects.lost.all().is_empty() {
        return named;
    }
    let ids = facts.ids();
    environment.known_table("events").each(environment, &mut |found| {
        let Record { version, body, .. } = found.record;
        let Ok(event) = event_record::decode(version, body, Tick(0), &[0; 16]) else { return };
        let Some((object, id)) = event.object.zip(ids.get(&event.bucket)) else { return };
        let versions = keys::versions_of(*id, object.key.as_bytes()).unwrap_or_default();
        if !objects.lost.overlap(&versions, &keys::after_all_of(&versions)) {
            return;
        }
        let name = (*id, object.key.into_bytes());
        match event.kind {
            EventType::ObjectCreated
            | EventType::ObjectUpdated
            | EventType::ObjectRestored
            | EventType::MultipartCompleted => {
                named.insert(name, object.version.map(|version| version.to_string()));
            }
            EventType::ObjectDeleted => drop(named.remove(&name)),
            _ => {}
        }
    });
    named
}
