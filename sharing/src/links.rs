//! [`Links`]: the shares and embeds of a store, for all executors.

use crate::checks::{check_label, check_maximum, checked_origins};
use crate::denied::{DeniedCounters, DeniedCounts, DeniedReason};
use crate::downloads::{RecentDownloads, Visitor};
use crate::error::{LinkError, UnlockError};
use crate::limits::{PASSWORD_BYTES_MAX, QUERIES_WAITING_MAX};
use crate::password::attempts::Attempts;
use crate::password::hash_threads::{HashThreads, NotHashed};
use crate::password::unlock_token::{Unlock, UnlockKey};
use crate::policy::{LinkPolicy, LinkUrls, ListenerUrls};
use crate::schema::SCHEMA;
use crate::store::{
    self, Changes, Counted, LinkFinding, LinkLimits, LinkPage, LinkQuery, LinkRecord, LinkState,
    derive_unlock_key,
};
use crate::types::embed::{Embed, EmbedChange, NewEmbed};
use crate::types::id::LinkId;
use crate::types::link::{LinkKind, LinkObject, LinkStatus};
use crate::types::password::PasswordVerifier;
use crate::types::share::{NewShare, Share, ShareChange};
use crate::types::token::{CapabilityToken, TokenHash};
use cairn_lmdb::Environment;
use cairn_model::{Clock, Counter, Timestamp};
use cairn_tables::{ReaderThread, StoreFailure, StoreOpenError, Writer};
use futures_channel::oneshot;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use zeroize::Zeroizing;

/// Options for opening the links.
pub struct LinkOptions {
    /// `<data-dir>/sharing`. The caller must hold the lock on the data folder, so that no other process has it open.
    pub folder: PathBuf,
    /// The id of the store that the links belong to.
    pub store: [u8; 16],
    /// The key that the other keys are derived from. Never stored.
    pub master_key: Zeroizing<Vec<u8>>,
    /// The deployment-wide policy.
    pub policy: LinkPolicy,
    /// The listeners, for URLs.
    pub listeners: ListenerUrls,
    /// The clock for times and expiry.
    pub clock: Arc<dyn Clock>,
}

/// The decision on a download: whether the content of a link may be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Download {
    /// It may: the download was counted, now or within the last hour.
    Allowed,
    /// The link cannot be used any more.
    Refused(LinkStatus),
}

/// Counts and gauges of sharing.
#[derive(Clone, Copy, Default, Debug)]
pub struct LinkMetrics {
    /// Links that exist, by kind in the order of [`LinkKind::ALL`].
    pub links: [u64; LinkKind::ALL.len()],
    /// Downloads that were counted since the start, by kind.
    pub downloads: [u64; LinkKind::ALL.len()],
    /// Right passwords since the start.
    pub unlocked: u64,
    /// Wrong passwords since the start.
    pub wrong_passwords: u64,
    /// Attempts that were refused unchecked since the start.
    pub refused_attempts: u64,
    /// Refused accesses since the start, by kind and reason.
    pub denied: DeniedCounts,
}

#[derive(Default)]
struct Counters {
    downloads: [Counter; LinkKind::ALL.len()],
    unlocked: Counter,
    wrong_passwords: Counter,
    refused_attempts: Counter,
    denied: DeniedCounters,
}

/// Niceness of the thread of an inspection.
const INSPECTION_NICENESS: i32 = 10;

/// A share or an embed. [`Share`] and [`Embed`] are all.
pub trait AnyLink: LinkRecord {}

impl AnyLink for Share {}
impl AnyLink for Embed {}

/// The links, shared by all executors. All changes are durable when they are answered.
pub struct Links {
    shared: Arc<LinkState>,
    writer: Writer<Changes>,
    reader: ReaderThread<LinkState>,
    urls: LinkUrls,
    hashing: HashThreads,
    attempts: Attempts,
    unlock_key: UnlockKey,
    recent: Arc<RecentDownloads>,
    is_inspecting: Arc<AtomicBool>,
    counters: Counters,
}

impl Links {
    /// Opens the links and starts their threads. Blocks.
    ///
    /// # Errors
    /// [`StoreOpenError`], whose message says what the operator can do. Existing links are not changed.
    pub fn open(options: LinkOptions) -> Result<Arc<Self>, StoreOpenError> {
        let LinkOptions { folder, store, master_key, policy, listeners, clock } = options;
        let unlock_key = UnlockKey::new(derive_unlock_key(&master_key, store));
        let (shared, writer) = store::open(&folder, store, &master_key, policy, clock)?;
        let reader = ReaderThread::start("sharing-reader", QUERIES_WAITING_MAX, &shared)
            .map_err(|error| StoreOpenError::io(&SCHEMA, &folder, error))?;
        Ok(Arc::new(Self {
            shared,
            writer,
            reader,
            urls: LinkUrls::new(listeners),
            hashing: HashThreads::default(),
            attempts: Attempts::default(),
            unlock_key,
            recent: Arc::default(),
            is_inspecting: Arc::default(),
            counters: Counters::default(),
        }))
    }

    /// Returns the deployment-wide policy.
    #[must_use]
    pub fn policy(&self) -> &LinkPolicy {
        &self.shared.policy
    }

    /// Returns the time by which links expire. It never goes back.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.shared.now()
    }

    /// Returns the URL of a link. `host` is the header `Host` of the request that asks for it.
    #[must_use]
    pub fn url(&self, kind: LinkKind, token: &CapabilityToken, host: Option<&str>) -> String {
        self.urls.url(self.policy(), kind, token, host)
    }

    /// Creates a share.
    ///
    /// # Errors
    /// [`LinkError::Invalid`], [`LinkError::ExpirationRequired`], [`LinkError::LifetimeTooLong`],
    /// [`LinkError::TooMany`], or [`LinkError::Store`].
    pub async fn create_share(&self, new: NewShare) -> Result<(Share, CapabilityToken), LinkError> {
        let NewShare { link, password, disposition, maximum_downloads, author } = new;
        check_label(&link.label)?;
        check_maximum(maximum_downloads)?;
        let password = match password {
            Some(password) => Some(self.hash_password(password).await?),
            None => None,
        };
        let limits = if author.is_some() { LinkLimits::MEMBERS } else { LinkLimits::ROLES };
        self.writer
            .change(move |changes| {
                changes.create(link, limits, |link| Share {
                    link,
                    password,
                    disposition,
                    maximum_downloads,
                    author,
                })
            })
            .await
    }

    /// Creates an embed. The caller has checked that the type of the object allows the disposition.
    ///
    /// # Errors
    /// As [`Self::create_share`], and [`LinkError::EmbedsDisabled`].
    pub async fn create_embed(&self, new: NewEmbed) -> Result<(Embed, CapabilityToken), LinkError> {
        let NewEmbed { link, allowed_origins, disposition } = new;
        if !self.policy().embeds_enabled {
            return Err(LinkError::EmbedsDisabled);
        }
        check_label(&link.label)?;
        let allowed_origins = checked_origins(allowed_origins)?;
        self.writer
            .change(move |changes| {
                let make = |link| Embed { link, allowed_origins, disposition };
                changes.create(link, LinkLimits::ROLES, make)
            })
            .await
    }

    /// Changes a share. Returns it.
    ///
    /// # Errors
    /// As [`Self::create_share`], and [`LinkError::NotFound`].
    pub async fn update_share(&self, id: LinkId, change: ShareChange) -> Result<Share, LinkError> {
        let ShareChange { label, expires_at, password, maximum_downloads } = change;
        label.as_deref().map_or(Ok(()), check_label)?;
        check_maximum(maximum_downloads.flatten())?;
        // Before a password is hashed for nothing.
        self.get::<Share>(id)?.ok_or(LinkError::NotFound(LinkKind::Share))?;
        let password = match password {
            Some(Some(password)) => Some(Some(self.hash_password(password).await?)),
            Some(None) => Some(None),
            None => None,
        };
        let apply = move |share: &mut Share| {
            set(&mut share.link.label, label);
            set(&mut share.link.expires_at, expires_at);
            set(&mut share.password, password);
            set(&mut share.maximum_downloads, maximum_downloads);
            Ok(())
        };
        self.writer.change(move |changes| changes.update(id, expires_at.is_some(), apply)).await
    }

    /// Changes an embed. Returns it.
    ///
    /// # Errors
    /// As [`Self::create_embed`], and [`LinkError::NotFound`].
    pub async fn update_embed(&self, id: LinkId, change: EmbedChange) -> Result<Embed, LinkError> {
        let EmbedChange { label, expires_at, allowed_origins, disposition } = change;
        label.as_deref().map_or(Ok(()), check_label)?;
        let allowed_origins = allowed_origins.map(checked_origins).transpose()?;
        let apply = move |embed: &mut Embed| {
            set(&mut embed.link.label, label);
            set(&mut embed.link.expires_at, expires_at);
            set(&mut embed.allowed_origins, allowed_origins);
            set(&mut embed.disposition, disposition);
            Ok(())
        };
        self.writer.change(move |changes| changes.update(id, expires_at.is_some(), apply)).await
    }

    /// Revokes a link. Returns it, and whether it was not revoked before.
    ///
    /// # Errors
    /// [`LinkError::NotFound`], or a failure.
    pub async fn revoke<L: AnyLink>(&self, id: LinkId) -> Result<(L, bool), LinkError> {
        self.writer.change(move |changes| changes.revoke(id)).await
    }

    /// Deletes a link. Returns it.
    ///
    /// # Errors
    /// [`LinkError::NotFound`], or a failure.
    pub async fn delete<L: AnyLink>(&self, id: LinkId) -> Result<L, LinkError> {
        self.writer.change(move |changes| changes.delete(id)).await
    }

    /// Returns a link, if it exists. Reads mapped memory.
    ///
    /// # Errors
    /// A damaged record, or a failure.
    pub fn get<L: AnyLink>(&self, id: LinkId) -> Result<Option<L>, LinkError> {
        self.shared.get(id)
    }

    /// Returns the token of a link, if the link exists.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn token<L: AnyLink>(&self, id: LinkId) -> Result<Option<CapabilityToken>, LinkError> {
        self.shared.token::<L>(id)
    }

    /// Finds the link of a token in the durable state.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn find<L: AnyLink>(&self, token: &TokenHash) -> Result<Option<L>, LinkError> {
        self.shared.find(token)
    }

    /// Returns the links of an object, the newest first.
    ///
    /// # Errors
    /// [`LinkError::Store`].
    pub async fn of_object<L: AnyLink>(&self, object: LinkObject) -> Result<Vec<L>, LinkError> {
        self.reader.query(move |shared| shared.links_of_object(&object)).await?
    }

    /// Returns a page of all links, the newest first.
    ///
    /// # Errors
    /// As [`Self::of_object`].
    pub async fn page<L: AnyLink>(&self, query: LinkQuery) -> Result<LinkPage<L>, LinkError> {
        self.reader.query(move |shared| shared.page(&query)).await?
    }

    /// Examines every record. Returns the number of records, and what is wrong with them.
    ///
    /// It runs on a thread of its own, and ends early when the future is dropped.
    ///
    /// # Errors
    /// [`StoreFailure::Overloaded`] while another inspection runs, or a failure.
    pub async fn inspect(&self) -> Result<(u64, Vec<LinkFinding>), LinkError> {
        if self.is_inspecting.swap(true, Ordering::AcqRel) {
            return Err(StoreFailure::Overloaded.into());
        }
        let (reply, answer) = oneshot::channel();
        let (shared, is_inspecting) = (Arc::clone(&self.shared), Arc::clone(&self.is_inspecting));
        let run = move || {
            // Requests have priority. If it fails, the work is done at normal priority.
            let _ = rustix::process::nice(INSPECTION_NICENESS);
            let is_wanted = || !reply.is_canceled() && !shared.is_closing();
            let inspected = catch_unwind(AssertUnwindSafe(|| shared.inspect(&is_wanted)));
            is_inspecting.store(false, Ordering::Release);
            let failed = || Err(LinkError::failed("an inspection panicked"));
            // The caller may be gone.
            drop(reply.send(inspected.unwrap_or_else(|_| failed())));
        };
        let thread = std::thread::Builder::new().name("sharing-inspection".to_owned()).spawn(run);
        if let Err(error) = thread {
            self.is_inspecting.store(false, Ordering::Release);
            return Err(error.into());
        }
        answer.await.map_err(|_| LinkError::failed("the inspection failed"))?
    }

    /// Checks a password. The caller has found the share active.
    ///
    /// # Errors
    /// [`UnlockError`].
    pub async fn unlock(
        &self,
        share: &Share,
        password: Zeroizing<String>,
        client: IpAddr,
    ) -> Result<Unlock, UnlockError> {
        let verifier = share.password.clone().ok_or(UnlockError::NotProtected)?;
        if password.len() > PASSWORD_BYTES_MAX {
            return Err(UnlockError::Incorrect);
        }
        let id = share.link.id;
        let attempt = self.attempts.begin(id, client, Instant::now()).map_err(|retry_after| {
            self.counters.refused_attempts.add(1);
            UnlockError::TooManyAttempts { retry_after }
        })?;
        let generation = verifier.generation;
        let checked = self.hashing.run(move |memory| verifier.matches(&password, memory)).await;
        match checked {
            Ok(Ok(true)) => {
                self.attempts.succeeded(&attempt);
                self.counters.unlocked.add(1);
                self.unlock_key.issue(id, generation, self.now()).map_err(|_| UnlockError::Unavailable)
            }
            Ok(Ok(false)) => {
                self.counters.wrong_passwords.add(1);
                Err(UnlockError::Incorrect)
            }
            Err(NotHashed::Busy) => {
                self.attempts.succeeded(&attempt);
                self.counters.refused_attempts.add(1);
                Err(UnlockError::Busy)
            }
            Ok(Err(_)) | Err(NotHashed::Unavailable) => {
                self.attempts.succeeded(&attempt);
                Err(UnlockError::Unavailable)
            }
        }
    }

    /// Returns what identifies a visitor who has unlocked the share, or `None` if the token is not valid for it.
    #[must_use]
    pub fn check_unlock(&self, share: &Share, token: &str) -> Option<[u8; 16]> {
        let verifier = share.password.as_ref()?;
        self.unlock_key.check(share.link.id, verifier.generation, token, self.now())
    }

    /// Counts a download of a share, unless the visitor's last hour contains one. Call it right before content is sent.
    /// `continues` says that the request is for a part of the content: a visitor whose download was counted may continue it
    /// after the share is exhausted. For a share with a limit, the count is durable on return.
    ///
    /// # Errors
    /// [`LinkError::Store`]: the content must not be sent. Shares without a limit
    /// never fail.
    pub async fn begin_share_download(
        &self,
        share: &Share,
        visitor: Visitor,
        continues: bool,
    ) -> Result<Download, LinkError> {
        let (id, now) = (share.link.id, Instant::now());
        let is_recent = self.recent.contains(LinkKind::Share, id, visitor, now);
        match share.status_at(self.now()) {
            LinkStatus::Active if is_recent => return Ok(Download::Allowed),
            LinkStatus::Active => {}
            LinkStatus::Exhausted if is_recent && continues => return Ok(Download::Allowed),
            status => return Ok(Download::Refused(status)),
        }
        if share.maximum_downloads.is_none() {
            self.count_later(LinkKind::Share, id, visitor, now);
            return Ok(Download::Allowed);
        }
        let recent = Arc::clone(&self.recent);
        let counted = self.writer.change(move |changes| {
            // A player opens several connections at once: they are one download.
            if recent.contains(LinkKind::Share, id, visitor, now) {
                return Ok::<_, LinkError>(None);
            }
            let counted = changes.count_download(id)?;
            if counted == Counted::Yes {
                recent.insert(LinkKind::Share, id, visitor, now);
            }
            Ok(Some(counted))
        });
        match counted.await? {
            Some(Counted::Refused(status)) => Ok(Download::Refused(status)),
            counted => {
                if counted.is_some() {
                    self.counters.downloads[LinkKind::Share.index()].add(1);
                }
                Ok(Download::Allowed)
            }
        }
    }

    /// Counts a download of an embed, unless the visitor's last hour contains one.
    pub fn count_embed_download(&self, embed: &Embed, visitor: Visitor) {
        let (id, now) = (embed.link.id, Instant::now());
        if !self.recent.contains(LinkKind::Embed, id, visitor, now) {
            self.count_later(LinkKind::Embed, id, visitor, now);
        }
    }

    fn count_later(&self, kind: LinkKind, id: LinkId, visitor: Visitor, now: Instant) {
        self.recent.insert(kind, id, visitor, now);
        // Statistics only: a download is not refused because it cannot be counted.
        if self.shared.count_in_memory(kind, id).unwrap_or(false) {
            self.counters.downloads[kind.index()].add(1);
        }
    }

    /// Counts a refused access to a link.
    pub fn count_denied(&self, kind: LinkKind, reason: DeniedReason) {
        self.counters.denied.count(kind, reason);
    }

    async fn hash_password(&self, password: Zeroizing<String>) -> Result<PasswordVerifier, LinkError> {
        if password.is_empty() || password.len() > PASSWORD_BYTES_MAX {
            return Err(LinkError::Invalid(format!("password must have 1 to {PASSWORD_BYTES_MAX} bytes")));
        }
        let hashed = self.hashing.run(move |memory| PasswordVerifier::make(&password, memory)).await;
        match hashed {
            Ok(made) => Ok(made?),
            Err(NotHashed::Busy) => Err(StoreFailure::Overloaded.into()),
            Err(NotHashed::Unavailable) => Err(StoreFailure::Closing.into()),
        }
    }

    /// Returns counts and gauges.
    #[must_use]
    pub fn metrics(&self) -> LinkMetrics {
        let counters = &self.counters;
        LinkMetrics {
            links: LinkKind::ALL.map(|kind| self.shared.count(kind)),
            downloads: LinkKind::ALL.map(|kind| counters.downloads[kind.index()].value()),
            unlocked: counters.unlocked.value(),
            wrong_passwords: counters.wrong_passwords.value(),
            refused_attempts: counters.refused_attempts.value(),
            denied: counters.denied.values(),
        }
    }

    /// Returns whether links can be read and changed.
    ///
    /// # Errors
    /// The reason, for people.
    pub fn health(&self) -> Result<(), String> {
        self.shared.health()
    }

    /// Returns the environment, for compactions.
    #[must_use]
    pub fn environment(&self) -> Arc<Environment> {
        self.shared.environment()
    }

    /// Sets how many passwords are hashed at a time: 1 or 2, which is the default. Each takes
    /// [`PASSWORD_HASH_BYTES`](crate::PASSWORD_HASH_BYTES) of memory.
    pub fn limit_password_hashes(&self, at_a_time: usize) {
        self.hashing.limit(at_a_time);
    }

    /// Makes what waits durable, and ends the threads. Blocks. Later changes are refused with
    /// [`StoreFailure::Closing`].
    pub fn close(&self) {
        self.shared.begin_closing();
        self.hashing.close();
        self.writer.close();
        self.reader.close();
    }
}

impl Drop for Links {
    fn drop(&mut self) {
        self.close();
    }
}

impl std::fmt::Debug for Links {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Links").finish_non_exhaustive()
    }
}

fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}
