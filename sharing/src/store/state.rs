//! State shared by the store's threads, and reads of single links.

use super::environment::LinkStore;
use super::record::{self, LinkRecord, StoredToken, Usage};
use super::seal::TokenKey;
use super::usage::UsageCache;
use crate::error::LinkError;
use crate::policy::LinkPolicy;
use crate::types::id::LinkId;
use crate::types::link::LinkKind;
use crate::types::token::{CapabilityToken, TokenHash};
use cairn_lmdb::{Environment, ReadTxn};
use cairn_model::{Clock, HighestTime, Timestamp};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Shared by the threads of the store.
pub(crate) struct LinkState {
    pub(crate) store: LinkStore,
    pub(crate) policy: LinkPolicy,
    pub(super) sealing: TokenKey,
    clock: Arc<dyn Clock>,
    highest_time: HighestTime,
    pub(crate) usage: UsageCache,
    /// Links of each kind.
    pub(super) counts: [AtomicU64; LinkKind::ALL.len()],
    /// The service is ending: inspections end early.
    closing: AtomicBool,
}

fn damaged(kind: LinkKind, id: LinkId) -> LinkError {
    LinkError::failed(format!("the record of {} {id} has an unknown form", kind.name()))
}

impl LinkState {
    pub(super) fn new(
        store: LinkStore,
        policy: LinkPolicy,
        sealing: TokenKey,
        clock: Arc<dyn Clock>,
        counts: [u64; LinkKind::ALL.len()],
    ) -> Self {
        let highest_time = HighestTime::new(clock.now());
        let (usage, counts) = (UsageCache::default(), counts.map(AtomicU64::new));
        let closing = AtomicBool::new(false);
        Self { store, policy, sealing, clock, highest_time, usage, counts, closing }
    }

    /// Returns the time by which links expire. A clock that is set back makes no link valid again.
    pub(crate) fn now(&self) -> Timestamp {
        self.highest_time.observe(self.clock.now())
    }

    /// Asks inspections to end.
    pub(crate) fn begin_closing(&self) {
        self.closing.store(true, Ordering::Release);
    }

    /// Returns whether the service is ending.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// Returns the number of links of a kind.
    pub(crate) fn count(&self, kind: LinkKind) -> u64 {
        self.counts[kind.index()].load(Ordering::Relaxed)
    }

    /// Reads a link with its counted downloads.
    pub(crate) fn get<T: LinkRecord>(&self, id: LinkId) -> Result<Option<T>, LinkError> {
        // Before the transaction: a count leaves the cache after it became durable.
        let cached = self.usage.get(T::KIND, id);
        let txn = self.store.read()?;
        let Some((mut link, _)) = self.read::<T>(&txn, id)? else { return Ok(None) };
        self.fill_usage(&txn, cached, &mut link)?;
        Ok(Some(link))
    }

    /// Finds the link of a token, with its counted downloads.
    pub(crate) fn find<T: LinkRecord>(&self, hash: &TokenHash) -> Result<Option<T>, LinkError> {
        let txn = self.store.read()?;
        let Some(found) = txn.get(self.store.tokens, &hash.0)? else { return Ok(None) };
        let (kind, id) = record::decode_token_body(found.version, found.body)
            .ok_or_else(|| LinkError::failed("the record of a token has an unknown form"))?;
        if kind != T::KIND {
            return Ok(None);
        }
        let Some((mut link, _)) = self.read::<T>(&txn, id)? else {
            return Err(LinkError::failed(format!("the {} {id} of a token is missing", kind.name())));
        };
        // The count may be flushed between the two reads and then is too low. Limits are enforced on the writer thread.
        self.fill_usage(&txn, self.usage.get(kind, id), &mut link)?;
        Ok(Some(link))
    }

    /// Returns the token of a link.
    pub(crate) fn token<T: LinkRecord>(&self, id: LinkId) -> Result<Option<CapabilityToken>, LinkError> {
        let txn = self.store.read()?;
        let Some((_, stored)) = self.read::<T>(&txn, id)? else { return Ok(None) };
        let opened = self.sealing.open(T::KIND, id, &stored.sealed);
        opened.map(Some).ok_or_else(|| {
            LinkError::failed(format!("the sealed token of {} {id} cannot be opened", T::KIND.name()))
        })
    }

    /// Reads a link without its counted downloads.
    pub(super) fn read<T: LinkRecord>(
        &self,
        txn: &ReadTxn<'_>,
        id: LinkId,
    ) -> Result<Option<(T, StoredToken)>, LinkError> {
        let Some(found) = txn.get(self.store.of(T::KIND).links, &id.0)? else { return Ok(None) };
        let decoded = record::decode(id, found.version, found.body);
        decoded.map(Some).ok_or_else(|| damaged(T::KIND, id))
    }

    /// Fills in the downloads: the cached ones, or those on disk.
    pub(super) fn fill_usage<T: LinkRecord>(
        &self,
        txn: &ReadTxn<'_>,
        cached: Option<Usage>,
        link: &mut T,
    ) -> Result<(), LinkError> {
        let id = link.link().id;
        let usage = match cached {
            Some(usage) => usage,
            None => self.stored_usage(txn, T::KIND, id)?,
        };
        usage.fill(link.link_mut());
        Ok(())
    }

    /// Reads the counted downloads on disk.
    pub(super) fn stored_usage(
        &self,
        txn: &ReadTxn<'_>,
        kind: LinkKind,
        id: LinkId,
    ) -> Result<Usage, LinkError> {
        match txn.get(self.store.of(kind).usage, &id.0)? {
            Some(found) => Usage::decode(found.version, found.body).ok_or_else(|| damaged(kind, id)),
            None => Ok(Usage::default()),
        }
    }

    /// Counts a download, to be written later. Returns whether it was counted: not if too many counts wait.
    pub(crate) fn count_in_memory(&self, kind: LinkKind, id: LinkId) -> Result<bool, LinkError> {
        let stored = || {
            let txn = self.store.read()?;
            self.stored_usage(&txn, kind, id)
        };
        self.usage.count(kind, id, self.clock.now(), stored, |_| true)
    }

    /// Returns whether links can be changed.
    pub(crate) fn health(&self) -> Result<(), String> {
        self.store.tables.health()
    }

    /// Returns the environment, for compactions.
    pub(crate) fn environment(&self) -> Arc<Environment> {
        Arc::clone(self.store.tables.environment())
    }
}
