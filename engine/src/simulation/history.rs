//! What a workload did, and so what must be there after a power cut: the checker's side of a campaign.
//!
//! Each key has the state that its last acknowledged change left, and the changes under way. A cut may leave the former or
//! one of the latter, whole. Changes of a key are ordered by the versions that the engine gave them.

use cairn_model::Etag;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A payload.
#[derive(Clone, Debug)]
pub(crate) struct Content {
    pub(crate) etag: Etag,
    pub(crate) bytes: Arc<Vec<u8>>,
}

/// What is known of a key.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyHistory {
    /// What the last acknowledged change left.
    pub(crate) settled: Option<Content>,
    /// The version that it gave.
    version: u64,
    /// A conditional put was refused because there was something, and nobody deletes this key.
    exists: bool,
    /// Changes under way, by number: what each would leave.
    under_way: BTreeMap<u64, Option<Content>>,
}

/// All keys of a workload.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    pub(crate) keys: BTreeMap<String, KeyHistory>,
    changes: u64,
}

impl History {
    /// A history that begins with what was found.
    pub(crate) fn found(states: BTreeMap<String, Option<(Content, u64)>>) -> Self {
        let key = |state: Option<(Content, u64)>| {
            let (settled, version) = state.map_or((None, 0), |(content, version)| (Some(content), version));
            KeyHistory { settled, version, ..KeyHistory::default() }
        };
        let keys = states.into_iter().map(|(name, state)| (name, key(state))).collect();
        Self { keys, changes: 0 }
    }

    /// What the last acknowledged change of a key left, when nothing of it is under way.
    pub(crate) fn certain(&self, key: &str) -> Option<Option<Content>> {
        match self.keys.get(key) {
            Some(history) if !history.under_way.is_empty() => None,
            Some(history) => Some(history.settled.clone()),
            None => Some(None),
        }
    }

    /// A change begins, which would leave `state`; its number.
    pub(crate) fn begin(&mut self, key: &str, state: Option<Content>) -> u64 {
        self.changes += 1;
        self.keys.entry(key.to_owned()).or_default().under_way.insert(self.changes, state);
        self.changes
    }

    /// A change was acknowledged; a put with its version.
    pub(crate) fn acknowledge(&mut self, key: &str, change: u64, version: Option<u64>) {
        let Some(history) = self.keys.get_mut(key) else { return };
        let Some(state) = history.under_way.remove(&change) else { return };
        if version.is_none_or(|version| version > history.version) {
            history.settled = state;
            history.version = version.unwrap_or(history.version);
        }
    }

    /// A change was refused: nothing of it has happened.
    pub(crate) fn refuse(&mut self, key: &str, change: u64) {
        if let Some(history) = self.keys.get_mut(key) {
            history.under_way.remove(&change);
        }
    }

    /// A put on the condition that there is nothing was refused, on a key that is never deleted.
    pub(crate) fn exists(&mut self, key: &str) {
        self.keys.entry(key.to_owned()).or_default().exists = true;
    }
}

impl KeyHistory {
    /// Whether a cut may leave this; says what is wrong when it may not. Gives the payload back.
    pub(crate) fn admits(&self, found: Option<&[u8]>) -> Result<Option<Content>, String> {
        let states = std::iter::once(&self.settled).chain(self.under_way.values());
        let fits = states.into_iter().find(|state| match (found, state) {
            (None, None) => !self.exists,
            (Some(found), Some(content)) => found == content.bytes.as_slice(),
            _ => false,
        });
        fits.cloned().ok_or_else(|| {
            let size = |state: &Option<Content>| state.as_ref().map(|content| content.bytes.len());
            let under_way: Vec<_> = self.under_way.values().map(size).collect();
            format!(
                "holds {:?} bytes; acknowledged {:?} (version {}), under way {under_way:?}, exists {}",
                found.map(<[u8]>::len),
                size(&self.settled),
                self.version,
                self.exists,
            )
        })
    }
}
