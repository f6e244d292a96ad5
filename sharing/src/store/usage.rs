//! Counted downloads that are not on disk yet.
//!
//! Most downloads are counted in memory and written once a second. A crash loses at most that second of counts. Downloads of
//! shares with a limit are durable before their first byte is sent (`changes.rs`).
//!
//! Invariant: an entry leaves the cache only after its value became durable. So a reader that looks here first, and on disk
//! afterwards, never sees an older count.

use super::record::Usage;
use crate::error::LinkError;
use crate::limits::{USAGE_BATCH_MAX, USAGE_ENTRIES_MAX};
use crate::types::id::LinkId;
use crate::types::link::LinkKind;
use cairn_model::Timestamp;
use cairn_sync::Mutex;
use std::collections::HashMap;

/// A link, for the cache.
pub(super) type CacheKey = (LinkKind, LinkId);

/// Counted downloads that are not on disk yet.
#[derive(Default, Debug)]
pub(crate) struct UsageCache(Mutex<HashMap<CacheKey, Usage>>);

impl UsageCache {
    /// Returns the downloads of a link, if they are not all on disk.
    pub(super) fn get(&self, kind: LinkKind, id: LinkId) -> Option<Usage> {
        self.0.lock().get(&(kind, id)).copied()
    }

    /// Counts a download if `is_allowed` agrees with the number before it. `stored` reads the downloads on disk. Returns
    /// whether it was counted: not if too many links have new counts.
    pub(super) fn count(
        &self,
        kind: LinkKind,
        id: LinkId,
        now: Timestamp,
        stored: impl FnOnce() -> Result<Usage, LinkError>,
        is_allowed: impl FnOnce(Usage) -> bool,
    ) -> Result<bool, LinkError> {
        let mut entries = self.0.lock();
        let before = match entries.get(&(kind, id)) {
            Some(usage) => *usage,
            None if entries.len() >= USAGE_ENTRIES_MAX => return Ok(false),
            // Under the lock, so that no count between the read and the insertion is lost. It is mapped memory.
            None => stored()?,
        };
        if !is_allowed(before) {
            return Ok(false);
        }
        let after = Usage { count: before.count.saturating_add(1), last_at: now.max(before.last_at) };
        entries.insert((kind, id), after);
        Ok(true)
    }

    /// Takes back a download that was counted and not made durable.
    pub(super) fn uncount(&self, kind: LinkKind, id: LinkId) {
        if let Some(usage) = self.0.lock().get_mut(&(kind, id)) {
            usage.count = usage.count.saturating_sub(1);
        }
    }

    /// Returns some entries, to be written.
    pub(super) fn batch(&self) -> Vec<(CacheKey, Usage)> {
        self.0.lock().iter().take(USAGE_BATCH_MAX).map(|(key, usage)| (*key, *usage)).collect()
    }

    /// Removes entries that became durable, except for those that have changed since.
    pub(super) fn written(&self, batch: &[(CacheKey, Usage)]) {
        let mut entries = self.0.lock();
        for (key, usage) in batch {
            if entries.get(key) == Some(usage) {
                entries.remove(key);
            }
        }
    }

    /// Forgets a deleted link.
    pub(super) fn forget(&self, kind: LinkKind, id: LinkId) {
        self.0.lock().remove(&(kind, id));
    }
}
