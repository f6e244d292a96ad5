//! What a workload did, and so what must be there after a power cut: the checker's side of a campaign.
//!
//! Each key has the state that its acknowledged changes left, and the changes under way. A cut may leave the former with any
//! of the latter, whole and in any order. New versions of a key are ordered by the sequences that the engine gave them.

use crate::bucket::Versioning;
use crate::simulation::buckets::BUCKETS;
use crate::simulation::state::{Change, Content, KeyState};
use cairn_model::Etag;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A key of one of the buckets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// Number of the bucket.
    pub(crate) bucket: usize,
    pub(crate) key: String,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", BUCKETS[self.bucket].name, self.key)
    }
}

/// A change that has begun and was not answered.
#[derive(Clone, Debug)]
struct UnderWay {
    change: Change,
    /// What the bucket's versioning was or became since: the change may see each.
    versioning: Vec<Versioning>,
}

/// What is known of a key.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyHistory {
    /// What the acknowledged changes left.
    settled: KeyState,
    /// A conditional put was refused because there was something, and nobody deletes this key.
    exists: bool,
    /// By number.
    under_way: BTreeMap<u64, UnderWay>,
}

/// All keys of a workload.
#[derive(Clone, Debug)]
pub(crate) struct History {
    pub(crate) keys: BTreeMap<Place, KeyHistory>,
    versioning: [Versioning; BUCKETS.len()],
    changes: u64,
}

impl History {
    /// A history that begins with what was found.
    pub(crate) fn found(states: BTreeMap<Place, KeyState>, versioning: [Versioning; BUCKETS.len()]) -> Self {
        let key = |settled| KeyHistory { settled, ..KeyHistory::default() };
        let keys = states.into_iter().map(|(place, state)| (place, key(state))).collect();
        Self { keys, versioning, changes: 0 }
    }

    /// What the versioning of a bucket is.
    pub(crate) const fn versioning(&self, bucket: usize) -> Versioning {
        self.versioning[bucket]
    }

    /// The versioning of a bucket is another now. What is under way may see either.
    pub(crate) fn set_versioning(&mut self, bucket: usize, versioning: Versioning) {
        self.versioning[bucket] = versioning;
        let keys = self.keys.iter_mut().filter(|(place, _)| place.bucket == bucket);
        for under_way in keys.flat_map(|(_, history)| history.under_way.values_mut()) {
            under_way.versioning.push(versioning);
        }
    }

    /// What the acknowledged changes of a key left, when nothing of it is under way.
    pub(crate) fn certain(&self, place: &Place) -> Option<KeyState> {
        match self.keys.get(place) {
            Some(history) if !history.under_way.is_empty() => None,
            Some(history) => Some(history.settled.clone()),
            None => Some(KeyState::default()),
        }
    }

    /// The payload with an entity tag that a key holds, or that it is being given.
    pub(crate) fn content(&self, place: &Place, etag: Etag) -> Option<Content> {
        let history = self.keys.get(place)?;
        let settled = history.settled.versions.values().filter_map(|version| version.content.as_ref());
        let under_way = history.under_way.values().filter_map(|under_way| match &under_way.change {
            Change::Write { content, .. } => Some(content),
            _ => None,
        });
        settled.chain(under_way).find(|content| content.etag == etag).cloned()
    }

    /// The bytes of a part with an MD5 that an upload holds, or that it is being given.
    pub(crate) fn part(&self, place: &Place, md5: [u8; 16]) -> Option<Arc<Vec<u8>>> {
        let history = self.keys.get(place)?;
        let settled = history.settled.uploads.values().flat_map(BTreeMap::values);
        let settled = settled.map(|(md5, bytes)| (md5, bytes));
        let under_way = history.under_way.values().filter_map(|under_way| match &under_way.change {
            Change::PutPart { md5, bytes, .. } => Some((md5, bytes)),
            _ => None,
        });
        settled.chain(under_way).find(|(of, _)| **of == md5).map(|(_, bytes)| Arc::clone(bytes))
    }

    /// A change begins; its number.
    pub(crate) fn begin(&mut self, place: &Place, change: Change) -> u64 {
        self.changes += 1;
        let under_way = UnderWay { change, versioning: vec![self.versioning[place.bucket]] };
        self.keys.entry(place.clone()).or_default().under_way.insert(self.changes, under_way);
        self.changes
    }

    /// A change was acknowledged. `id` is the sequence of the version or upload that it made, if it made one, and `is_null`
    /// whether that is a null version.
    pub(crate) fn acknowledge(
        &mut self,
        place: &Place,
        change: u64,
        id: u64,
        is_null: bool,
    ) -> Result<(), String> {
        let Some(history) = self.keys.get_mut(place) else { return Ok(()) };
        let Some(UnderWay { change, versioning }) = history.under_way.remove(&change) else { return Ok(()) };
        let fits = |versioning: &&Versioning| (**versioning != Versioning::Enabled) == is_null;
        let makes_version = matches!(change, Change::Write { .. } | Change::Delete);
        let seen = versioning.iter().rev().find(|seen| !makes_version || fits(seen));
        let Some(seen) = seen else {
            return Err(format!(
                "{place} was given a version of the wrong kind: null {is_null}, {versioning:?}"
            ));
        };
        history.settled.change(&change, *seen, id);
        Ok(())
    }

    /// A change was refused: nothing of it has happened.
    pub(crate) fn refuse(&mut self, place: &Place, change: u64) {
        if let Some(history) = self.keys.get_mut(place) {
            history.under_way.remove(&change);
        }
    }

    /// A put on the condition that there is nothing was refused, on a key that is never deleted.
    pub(crate) fn exists(&mut self, place: &Place) {
        self.keys.entry(place.clone()).or_default().exists = true;
    }
}

impl KeyHistory {
    /// Whether a cut may leave this; says what is wrong when it may not.
    pub(crate) fn admits(&self, found: &KeyState) -> Result<(), String> {
        let changes: Vec<_> = self.under_way.values().collect();
        if (!self.exists || found.current().is_some()) && reaches(&self.settled, &changes, found) {
            return Ok(());
        }
        Err(format!(
            "holds {}; acknowledged {}, under way {:?}, exists {}",
            found.describe(),
            self.settled.describe(),
            changes.iter().map(|under_way| describe(&under_way.change)).collect::<Vec<_>>(),
            self.exists,
        ))
    }
}

/// Whether some of the changes, in some order, lead from a state to what was found.
fn reaches(from: &KeyState, changes: &[&UnderWay], found: &KeyState) -> bool {
    from.identified(found).is_some()
        || (0..changes.len()).any(|next| {
            let mut rest = changes.to_vec();
            let UnderWay { change, versioning } = rest.remove(next);
            versioning.iter().any(|seen| {
                let mut state = from.clone();
                state.change_unknown(change, *seen);
                reaches(&state, &rest, found)
            })
        })
}

fn describe(change: &Change) -> String {
    match change {
        Change::Write { content, upload, .. } => {
            format!("write of {}, upload {upload:?}", content.bytes.len())
        }
        Change::PutPart { upload, number, bytes, .. } => {
            format!("part {number} of upload {upload} of {}", bytes.len())
        }
        other => format!("{other:?}"),
    }
}
