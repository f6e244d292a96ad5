//! Changes of links. Each is a transaction of its own, made by the writer's thread.

use super::environment::LinkStore;
use super::record::{self, LinkRecord, StoredToken, Usage};
use super::state::LinkState;
use crate::error::LinkError;
use crate::limits::{LINKS_MAX, LINKS_PER_OBJECT_MAX, MEMBER_SHARES_MAX, MEMBER_SHARES_PER_OBJECT_MAX};
use crate::types::id::LinkId;
use crate::types::link::{Link, LinkKind, LinkStatus, NewLink};
use crate::types::share::Share;
use crate::types::token::CapabilityToken;
use cairn_model::time_id;
use cairn_tables::{Space, StoreFailure};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The limits on links: how many there may be for another one to be created.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LinkLimits {
    links: u64,
    per_object: usize,
}

impl LinkLimits {
    /// Those of people with a role.
    pub(crate) const ROLES: Self = Self { links: LINKS_MAX, per_object: LINKS_PER_OBJECT_MAX };
    /// Those of members.
    pub(crate) const MEMBERS: Self =
        Self { links: MEMBER_SHARES_MAX, per_object: MEMBER_SHARES_PER_OBJECT_MAX };
}

/// Makes changes. Only the writer has one.
pub(crate) struct Changes {
    pub(super) shared: Arc<LinkState>,
}

/// The outcome of a download that had to be counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Counted {
    /// It was counted, durably.
    Yes,
    /// The share cannot be downloaded any more.
    Refused(LinkStatus),
}

/// The kind of a write: of a new record, or of an existing one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Write {
    /// A new record.
    Insert,
    /// An existing record.
    Replace,
}

impl Changes {
    /// Creates a link. `make` makes it of what every link has.
    pub(crate) fn create<T: LinkRecord>(
        &self,
        new: NewLink,
        limits: LinkLimits,
        make: impl FnOnce(Link) -> T,
    ) -> Result<(T, CapabilityToken), LinkError> {
        let shared = &self.shared;
        let now = shared.now();
        shared.policy.check_expiry(now, new.expires_at, now)?;
        if shared.count(T::KIND) >= limits.links {
            let what = if T::KIND == LinkKind::Share { "shares" } else { "embeds" };
            return Err(LinkError::TooMany { what, max: limits.links });
        }
        if shared.ids_of_object(T::KIND, &new.object)?.len() >= limits.per_object {
            let what = if T::KIND == LinkKind::Share { "shares of an object" } else { "embeds of an object" };
            return Err(LinkError::TooMany { what, max: cairn_model::u64_of(limits.per_object) });
        }
        let id = LinkId(time_id::random(now)?);
        let NewLink { object, label, created_by, expires_at } = new;
        let link = make(Link {
            id,
            object,
            label,
            created_at: now,
            created_by,
            expires_at,
            revoked_at: None,
            access_count: 0,
            last_accessed_at: None,
        });
        let token = CapabilityToken::generate()?;
        let sealed = shared.sealing.seal(T::KIND, id, &token)?;
        self.write(&link, &StoredToken { hash: token.hash(), sealed }, Write::Insert)?;
        shared.counts[T::KIND.index()].fetch_add(1, Ordering::Relaxed);
        Ok((link, token))
    }

    /// Changes a link. Its expiry is checked against the policy if `checks_expiry`.
    pub(crate) fn update<T: LinkRecord>(
        &self,
        id: LinkId,
        checks_expiry: bool,
        change: impl FnOnce(&mut T) -> Result<(), LinkError>,
    ) -> Result<T, LinkError> {
        let (mut link, token) = self.find::<T>(id)?;
        change(&mut link)?;
        if checks_expiry {
            let Link { created_at, expires_at, .. } = *link.link();
            self.shared.policy.check_expiry(created_at, expires_at, self.shared.now())?;
        }
        self.write(&link, &token, Write::Replace)?;
        Ok(link)
    }

    /// Revokes a link. Returns it, and whether it was not revoked before.
    pub(crate) fn revoke<T: LinkRecord>(&self, id: LinkId) -> Result<(T, bool), LinkError> {
        let (mut link, token) = self.find::<T>(id)?;
        if link.link().revoked_at.is_some() {
            return Ok((link, false));
        }
        link.link_mut().revoked_at = Some(self.shared.now());
        self.write(&link, &token, Write::Replace)?;
        Ok((link, true))
    }

    /// Deletes a link. Returns it.
    pub(crate) fn delete<T: LinkRecord>(&self, id: LinkId) -> Result<T, LinkError> {
        let (link, token) = self.find::<T>(id)?;
        let (shared, object) = (&self.shared, &link.link().object);
        let (store, tables) = (&shared.store, shared.store.of(T::KIND));
        store.tables.write(Space::Change, |txn| {
            txn.remove(store.tokens, &token.hash.0)?;
            txn.remove(tables.links, &id.0)?;
            txn.remove(tables.usage, &id.0)?;
            txn.remove(tables.by_object, &record::object_key(object, id))?;
            txn.remove(tables.by_bucket, &record::bucket_key(object.bucket_id, id))
        })?;
        shared.usage.forget(T::KIND, id);
        shared.counts[T::KIND.index()].fetch_sub(1, Ordering::Relaxed);
        Ok(link)
    }

    /// Counts a download of a share with a limit, durably. The status is decided here, so that no more downloads begin than
    /// are allowed.
    pub(crate) fn count_download(&self, id: LinkId) -> Result<Counted, LinkError> {
        let (shared, kind) = (&self.shared, LinkKind::Share);
        let (share, _) = self.find::<Share>(id)?;
        let now = shared.now();
        let status = share.status_at(now);
        if status != LinkStatus::Active {
            return Ok(Counted::Refused(status));
        }
        shared.store.tables.check()?;
        let stored = || {
            let txn = shared.store.read()?;
            shared.stored_usage(&txn, kind, id)
        };
        let is_allowed = |usage: Usage| share.maximum_downloads.is_none_or(|maximum| usage.count < maximum);
        if !shared.usage.count(kind, id, now, stored, is_allowed)? {
            let cached = shared.usage.get(kind, id);
            // The cache was full, or the downloads were used up in the meantime.
            return if cached.is_some() {
                Ok(Counted::Refused(LinkStatus::Exhausted))
            } else {
                Err(StoreFailure::Overloaded.into())
            };
        }
        let counted = shared.usage.get(kind, id).unwrap_or_default();
        let written = self.write_usage(&[((kind, id), counted)]);
        if written.is_err() {
            shared.usage.uncount(kind, id);
        }
        written.map(|()| Counted::Yes)
    }

    /// Writes downloads that were counted in memory. Returns whether there may be more.
    pub(super) fn flush_usage(&self) -> Result<bool, LinkError> {
        let batch = self.shared.usage.batch();
        if batch.is_empty() {
            return Ok(false);
        }
        self.write_usage(&batch)?;
        Ok(batch.len() == crate::limits::USAGE_BATCH_MAX)
    }

    fn write_usage(&self, batch: &[(super::usage::CacheKey, Usage)]) -> Result<(), LinkError> {
        let (shared, store) = (&self.shared, &self.shared.store);
        store.tables.write(Space::Change, |txn| {
            for ((kind, id), usage) in batch {
                let tables = store.of(*kind);
                // A link that was deleted in the meantime has no downloads.
                if txn.get(tables.links, &id.0)?.is_some() {
                    LinkStore::put(txn, tables.usage, &id.0, &usage.encode())?;
                }
            }
            Ok(())
        })?;
        shared.usage.written(batch);
        Ok(())
    }

    fn find<T: LinkRecord>(&self, id: LinkId) -> Result<(T, StoredToken), LinkError> {
        let shared = &self.shared;
        let cached = shared.usage.get(T::KIND, id);
        let txn = shared.store.read()?;
        let (mut link, token) = shared.read::<T>(&txn, id)?.ok_or(LinkError::NotFound(T::KIND))?;
        shared.fill_usage(&txn, cached, &mut link)?;
        Ok((link, token))
    }

    fn write<T: LinkRecord>(&self, link: &T, token: &StoredToken, write: Write) -> Result<(), LinkError> {
        let (store, tables) = (&self.shared.store, self.shared.store.of(T::KIND));
        let Link { id, object, .. } = link.link();
        let space = if write == Write::Insert { Space::Addition } else { Space::Change };
        store.tables.write(space, |txn| {
            let (version, body) = record::encode(link, token);
            txn.put(tables.links, &id.0, version, &body, &[])?;
            if write == Write::Insert {
                LinkStore::put(txn, store.tokens, &token.hash.0, &record::token_body(T::KIND, *id))?;
                LinkStore::put(txn, tables.by_object, &record::object_key(object, *id), &[])?;
                LinkStore::put(txn, tables.by_bucket, &record::bucket_key(object.bucket_id, *id), &[])?;
            }
            Ok(())
        })?;
        Ok(())
    }
}
