//! The history of a workload: what was acknowledged, what is in flight, and so what a store may hold after a power cut.
//!
//! For each key the history has the state that the acknowledged changes led to, and the changes in flight. A power cut may
//! leave the former with any of the latter applied, each as a whole, in any order. The versions of a key are ordered by the
//! sequences that the engine gave them.

use crate::simulation::buckets::BUCKETS;
use crate::simulation::key_state::{Change, Content, KeyState};
use crate::simulation::violation::{Violation, ViolationKind};
use crate::types::bucket::Versioning;
use cairn_model::Etag;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A key in one of the buckets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BucketKey {
    /// Number of the bucket.
    pub(crate) bucket: usize,
    pub(crate) key: String,
}

impl fmt::Display for BucketKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", BUCKETS[self.bucket].name, self.key)
    }
}

/// A change that has started and was neither acknowledged nor refused.
#[derive(Clone, Debug)]
struct InFlight {
    change: Change,
    /// The versioning that the bucket had when the change began, and all that it got since. The change may see any of them.
    versioning: Vec<Versioning>,
}

/// The history of a key.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyHistory {
    /// The state after the acknowledged changes.
    acknowledged: KeyState,
    /// A conditional put was refused because there is an object, and the workload never deletes this key.
    exists: bool,
    /// By number.
    in_flight: BTreeMap<u64, InFlight>,
}

/// The histories of all keys of a workload.
#[derive(Clone, Debug)]
pub(crate) struct History {
    pub(crate) keys: BTreeMap<BucketKey, KeyHistory>,
    versioning: [Versioning; BUCKETS.len()],
    changes: u64,
}

impl History {
    /// Returns a history that begins with these states.
    pub(crate) fn new(
        states: BTreeMap<BucketKey, KeyState>,
        versioning: [Versioning; BUCKETS.len()],
    ) -> Self {
        let history = |acknowledged| KeyHistory { acknowledged, ..KeyHistory::default() };
        let keys = states.into_iter().map(|(key, state)| (key, history(state))).collect();
        Self { keys, versioning, changes: 0 }
    }

    /// The versioning of a bucket.
    pub(crate) const fn versioning(&self, bucket: usize) -> Versioning {
        self.versioning[bucket]
    }

    /// Records that the versioning of a bucket has changed. Changes in flight may see the old or the new one.
    pub(crate) fn set_versioning(&mut self, bucket: usize, versioning: Versioning) {
        self.versioning[bucket] = versioning;
        let keys = self.keys.iter_mut().filter(|(key, _)| key.bucket == bucket);
        for in_flight in keys.flat_map(|(_, history)| history.in_flight.values_mut()) {
            in_flight.versioning.push(versioning);
        }
    }

    /// Returns the state of a key; `None` while a change of it is in flight.
    pub(crate) fn known_state(&self, key: &BucketKey) -> Option<KeyState> {
        match self.keys.get(key) {
            Some(history) if !history.in_flight.is_empty() => None,
            Some(history) => Some(history.acknowledged.clone()),
            None => Some(KeyState::default()),
        }
    }

    /// Returns the payload with an entity tag that a key holds, or that is being put.
    pub(crate) fn content(&self, key: &BucketKey, etag: Etag) -> Option<Content> {
        let history = self.keys.get(key)?;
        let held = history.acknowledged.versions.values().filter_map(|version| version.content.as_ref());
        let in_flight = history.in_flight.values().filter_map(|in_flight| match &in_flight.change {
            Change::Write { content, .. } | Change::Import(_, content) => Some(content),
            _ => None,
        });
        held.chain(in_flight).find(|content| content.etag == etag).cloned()
    }

    /// Returns the bytes of the part with an MD5 that an upload of the key holds, or that is being put.
    pub(crate) fn part(&self, key: &BucketKey, md5: [u8; 16]) -> Option<Arc<Vec<u8>>> {
        let history = self.keys.get(key)?;
        let held = history.acknowledged.uploads.values().flat_map(BTreeMap::values);
        let held = held.map(|(md5, bytes)| (md5, bytes));
        let in_flight = history.in_flight.values().filter_map(|in_flight| match &in_flight.change {
            Change::PutPart { md5, bytes, .. } => Some((md5, bytes)),
            _ => None,
        });
        held.chain(in_flight).find(|(of, _)| **of == md5).map(|(_, bytes)| Arc::clone(bytes))
    }

    /// Records that a change begins; returns its number.
    pub(crate) fn begin(&mut self, key: &BucketKey, change: Change) -> u64 {
        self.changes += 1;
        let in_flight = InFlight { change, versioning: vec![self.versioning[key.bucket]] };
        self.keys.entry(key.clone()).or_default().in_flight.insert(self.changes, in_flight);
        self.changes
    }

    fn end(&mut self, key: &BucketKey, change: u64) -> (&mut KeyHistory, InFlight) {
        let history = self.keys.get_mut(key).expect("the change has started");
        let ended = history.in_flight.remove(&change).expect("a change ends once");
        (history, ended)
    }

    /// Records that a change was acknowledged. `id` is the sequence of the version or upload that it created, if any, and
    /// `is_null` tells whether that is a null version.
    ///
    /// # Errors
    /// An error when the bucket's versioning does not allow that kind of version.
    pub(crate) fn acknowledge(
        &mut self,
        key: &BucketKey,
        change: u64,
        id: u64,
        is_null: bool,
    ) -> Result<(), Violation> {
        let (history, InFlight { change, versioning }) = self.end(key, change);
        let fits = |versioning: &&Versioning| (**versioning != Versioning::Enabled) == is_null;
        let creates_version = matches!(change, Change::Write { .. } | Change::Delete);
        let Some(seen) = versioning.iter().rev().find(|seen| !creates_version || fits(seen)) else {
            let detail = format!("{key} got a version of the wrong kind: null {is_null}, {versioning:?}");
            return Err(Violation::new(ViolationKind::WrongOutcome, detail));
        };
        history.acknowledged.apply(&change, *seen, id);
        Ok(())
    }

    /// Records that a change was refused: nothing of it has happened.
    pub(crate) fn refuse(&mut self, key: &BucketKey, change: u64) {
        self.end(key, change);
    }

    /// Records that a put that requires absence was refused, on a key that is never deleted.
    pub(crate) fn set_exists(&mut self, key: &BucketKey) {
        self.keys.entry(key.clone()).or_default().exists = true;
    }
}

impl KeyHistory {
    /// Checks that a power cut may leave this state.
    pub(crate) fn check_after_cut(&self, found: &KeyState) -> Result<(), Violation> {
        let changes: Vec<_> = self.in_flight.values().collect();
        if (!self.exists || found.current().is_some()) && reaches(&self.acknowledged, &changes, found) {
            return Ok(());
        }
        let detail = format!(
            "holds {}; acknowledged {}, in flight {:?}, exists {}",
            found.describe(),
            self.acknowledged.describe(),
            changes.iter().map(|in_flight| in_flight.change.describe()).collect::<Vec<_>>(),
            self.exists,
        );
        Err(Violation::new(ViolationKind::StateMismatch, detail))
    }
}

/// Returns whether some of the changes, in some order, lead from one state to the other.
fn reaches(from: &KeyState, changes: &[&InFlight], to: &KeyState) -> bool {
    from.with_sequences_of(to).is_some()
        || (0..changes.len()).any(|next| {
            let mut rest = changes.to_vec();
            let InFlight { change, versioning } = rest.remove(next);
            versioning.iter().any(|seen| {
                let mut state = from.clone();
                state.apply_with_unknown_sequence(change, *seen);
                reaches(&state, &rest, to)
            })
        })
}
