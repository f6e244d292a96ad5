//! Webhooks as the rest of the process uses them.
//!
//! Methods that wait are futures that never block their thread: the writer, a reader thread and short-lived threads do the
//! work.

use crate::client::{Client, ClientSettings, Probe};
use crate::delivery::{Context, EventSource, Redeliver, TargetClient, Threads};
use crate::destination::{SystemResolver, TargetPolicy, TargetUrl, check_at_creation};
use crate::error::WebhookError;
use crate::id::{DeliveryId, WebhookId};
use crate::limits::{ATTEMPTS_MAX, OVERLAP_SECONDS_MAX, PREFIX_BYTES_MAX, QUERIES_WAITING_MAX};
use crate::schema::SCHEMA;
use crate::signature::SigningSecret;
use crate::store::{DeliveryEntry, DeliveryPage, DeliveryQuery, Settings, Shared, Writer};
use crate::view::{NewWebhook, Webhook, WebhookChange};
use cairn_engine::{EventId, EventType, ObjectOfEvent, StorageEvent};
use cairn_lmdb::Environment;
use cairn_model::{AgeLimit, BucketName, Clock, HistogramSnapshot, Timestamp, VersionName};
use cairn_tables::{ReaderThread, StoreOpenError, WriterThread};
use cairn_trust::Authorities;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use zeroize::Zeroizing;

/// Options for opening the webhooks.
pub struct WebhookOptions {
    /// `<data-dir>/webhooks`. The caller must hold the lock on the data folder, so that no other process has it open.
    pub folder: PathBuf,
    /// The id of the store that the webhooks belong to.
    pub store: [u8; 16],
    /// The key that the sealing key is derived from. Never stored.
    pub master_key: Zeroizing<Vec<u8>>,
    /// The clock for times and schedules.
    pub clock: Arc<dyn Clock>,
    /// The policy on targets.
    pub policy: TargetPolicy,
    /// Time limit of an attempt.
    pub request_timeout: Duration,
    /// Attempts after which a delivery has failed, from 1 to [`ATTEMPTS_MAX`].
    pub maximum_attempts: u8,
    /// The interval at which new events are looked for if nothing announces them.
    pub poll_interval: Duration,
    /// Requests to one webhook at a time.
    pub concurrency_per_target: usize,
    /// The age up to which the delivery log is kept: that of events.
    pub age: AgeLimit,
}

/// The results of deliveries and attempts since the start, and the waiting deliveries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WebhookMetrics {
    /// Deliveries that succeeded.
    pub succeeded: u64,
    /// Deliveries that ended with a failed attempt.
    pub failed: u64,
    /// Deliveries that were dropped.
    pub dropped: u64,
    /// Failed attempts of deliveries that went on.
    pub retried: u64,
    /// Waiting deliveries.
    pub pending: u64,
    /// Events whose last attempt failed, and of which no delivery has succeeded since.
    pub lost: u64,
    /// Age of the oldest waiting delivery.
    pub oldest_pending: Duration,
    /// Requests that are being made.
    pub in_flight: u64,
    /// The durations of attempts.
    pub attempt_durations: HistogramSnapshot,
}

/// The webhooks of a store, shared by all executors.
pub struct Webhooks {
    context: Arc<Context>,
    policy: TargetPolicy,
    reader: ReaderThread<Shared>,
    writer_thread: WriterThread,
    threads: Threads,
}

impl Webhooks {
    /// Opens the webhooks and starts delivery. Blocks.
    ///
    /// # Errors
    /// [`StoreOpenError`], whose message says what the operator can do. An existing folder is not changed.
    pub fn open(options: WebhookOptions, source: Arc<dyn EventSource>) -> Result<Arc<Self>, StoreOpenError> {
        let settings = ClientSettings {
            policy: options.policy.clone(),
            request_timeout: options.request_timeout,
            authorities: Authorities::Host,
        };
        let client = Client::new(settings, Arc::new(SystemResolver::default()));
        Self::open_with_client(options, source, Arc::new(client))
    }

    /// Opens the webhooks with another client, for tests. Blocks.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_with_client(
        options: WebhookOptions,
        source: Arc<dyn EventSource>,
        client: Arc<dyn TargetClient>,
    ) -> Result<Arc<Self>, StoreOpenError> {
        let WebhookOptions { folder, store, master_key, clock, policy, age, .. } = options;
        let io = |error| StoreOpenError::io(&SCHEMA, &folder, error);
        let writer = Writer::open(&folder, store, &master_key, clock, age)?;
        let attempts_max = options.maximum_attempts.clamp(1, ATTEMPTS_MAX);
        let context = Context::new(
            writer,
            source,
            client,
            attempts_max,
            options.poll_interval,
            options.concurrency_per_target,
        );
        let reader =
            ReaderThread::start("webhook-reader", QUERIES_WAITING_MAX, &context.writer.shared).map_err(io)?;
        let writer_thread = context.writer.start().map_err(io)?;
        let threads = Threads::start(&context).map_err(io)?;
        Ok(Arc::new(Self { context, policy, reader, writer_thread, threads }))
    }

    fn shared(&self) -> &Shared {
        self.context.shared()
    }

    fn view(&self, webhook: &crate::store::WebhookState) -> Webhook {
        Webhook::new(webhook, self.context.is_held(webhook.record.id))
    }

    fn check_target(&self, url: &str) -> Result<TargetUrl, WebhookError> {
        check_at_creation(url, &self.policy).map_err(|error| WebhookError::InvalidTarget(error.to_string()))
    }

    /// Creates a webhook. It receives events that are committed from now on. Returns its secret, which is never shown again.
    ///
    /// # Errors
    /// [`WebhookError::InvalidTarget`], [`WebhookError::Invalid`], [`WebhookError::TooMany`], or a failure.
    pub async fn create(&self, new: NewWebhook) -> Result<(Webhook, SigningSecret), WebhookError> {
        let target = self.check_target(&new.target_url)?;
        let settings = Settings {
            target_url: new.target_url,
            event_types: checked_types(new.event_types)?,
            bucket_filter: checked_bucket(new.bucket_filter)?,
            object_prefix_filter: checked_prefix(new.object_prefix_filter)?,
            enabled: new.enabled,
        };
        let from = self.context.source.tick();
        let created =
            self.context.writer.change(move |changes| changes.create(settings, target, from)).await?;
        self.context.note_change();
        Ok((self.view(&created), created.record.secret.clone()))
    }

    /// Returns all webhooks, oldest first.
    #[must_use]
    pub fn list(&self) -> Vec<Webhook> {
        let found: Vec<_> = self.shared().state().webhooks.values().cloned().collect();
        found.iter().map(|webhook| self.view(webhook)).collect()
    }

    /// Returns a webhook.
    #[must_use]
    pub fn get(&self, id: WebhookId) -> Option<Webhook> {
        self.shared().webhook(id).map(|webhook| self.view(&webhook))
    }

    /// Changes a webhook. Deliveries that wait go to the new target. Changed filters apply to events that have not been handed
    /// out yet: usually those that are committed from now on.
    ///
    /// # Errors
    /// [`WebhookError::WebhookNotFound`], [`WebhookError::InvalidTarget`], [`WebhookError::Invalid`], or a failure.
    pub async fn patch(&self, id: WebhookId, change: WebhookChange) -> Result<Webhook, WebhookError> {
        let target = change.target_url.as_deref().map(|url| self.check_target(url)).transpose()?;
        let types = change.event_types.map(checked_types).transpose()?;
        let bucket = change.bucket_filter.map(checked_bucket).transpose()?;
        let prefix = change.object_prefix_filter.map(checked_prefix).transpose()?;
        let apply = move |settings: &mut Settings| {
            let Settings { target_url, event_types, bucket_filter, object_prefix_filter, .. } = settings;
            set(target_url, change.target_url);
            set(event_types, types);
            set(bucket_filter, bucket);
            set(object_prefix_filter, prefix);
        };
        let from = self.context.source.tick();
        let changed = self.context.writer.change(move |changes| changes.update(id, apply, target, from));
        changed.await.map(|webhook| self.view(&webhook))
    }

    /// Enables or disables a webhook. One that is disabled drops its waiting deliveries. One that is enabled receives events
    /// that are committed from now on.
    ///
    /// # Errors
    /// [`WebhookError::WebhookNotFound`], or a failure.
    pub async fn set_enabled(&self, id: WebhookId, enabled: bool) -> Result<Webhook, WebhookError> {
        let from = self.context.source.tick();
        let apply = move |settings: &mut Settings| settings.enabled = enabled;
        let changed = self.context.writer.change(move |changes| changes.update(id, apply, None, from));
        let changed = changed.await?;
        self.context.note_change();
        Ok(self.view(&changed))
    }

    /// Ends the pause of a webhook whose target was away: what waits is sent now. A target that is still away is paused again
    /// after as many failures as before.
    ///
    /// # Errors
    /// [`WebhookError::WebhookNotFound`], [`WebhookError::Disabled`].
    pub fn resume(&self, id: WebhookId) -> Result<Webhook, WebhookError> {
        let found = self.shared().webhook(id).ok_or(WebhookError::WebhookNotFound)?;
        if !found.record.settings.enabled {
            return Err(WebhookError::Disabled);
        }
        self.context.resume(id);
        Ok(self.view(&found))
    }

    /// Deletes a webhook with its waiting deliveries and its log. Returns what was deleted.
    ///
    /// # Errors
    /// [`WebhookError::WebhookNotFound`], [`WebhookError::TooMany`], or a failure.
    pub async fn delete(&self, id: WebhookId) -> Result<Webhook, WebhookError> {
        let deleted = self.context.writer.change(move |changes| changes.delete(id)).await?;
        Ok(self.view(&deleted))
    }

    /// Replaces the secret of a webhook. Returns the new one, which is never shown again, and the time until which deliveries
    /// are signed with the old one as well.
    ///
    /// # Errors
    /// [`WebhookError::WebhookNotFound`], [`WebhookError::Invalid`] if the overlap is longer than [`OVERLAP_SECONDS_MAX`], or a
    /// failure.
    pub async fn rotate_secret(
        &self,
        id: WebhookId,
        overlap_seconds: u64,
    ) -> Result<(SigningSecret, Timestamp), WebhookError> {
        if overlap_seconds > OVERLAP_SECONDS_MAX {
            let what = format!("overlap_seconds must be at most {OVERLAP_SECONDS_MAX}");
            return Err(WebhookError::Invalid(what));
        }
        self.context.writer.change(move |changes| changes.rotate(id, overlap_seconds)).await
    }

    /// Sends an event that only tests a webhook, now and outside the queue. Returns every step.
    ///
    /// # Errors
    /// [`WebhookError::WebhookNotFound`], or [`WebhookError::Store`]. A target that fails is not an error.
    pub async fn test(&self, id: WebhookId) -> Result<Probe, WebhookError> {
        let found = self.shared().webhook(id).ok_or(WebhookError::WebhookNotFound)?;
        let event = self.test_event(&found.record.settings)?;
        self.context.test(id, event).await
    }

    /// Returns an event of a webhook's first type that never happened.
    fn test_event(&self, settings: &Settings) -> Result<StorageEvent, WebhookError> {
        let kind = settings.event_types.first().copied().unwrap_or(EventType::ObjectCreated);
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(std::io::Error::other)?;
        let version = (kind != EventType::MultipartAborted).then_some(VersionName::Null);
        let is_of_bucket = matches!(kind, EventType::BucketCreated | EventType::BucketDeleted);
        let key = format!("{}example.txt", settings.object_prefix_filter.as_deref().unwrap_or_default());
        let object =
            ObjectOfEvent { key, version, size: 0, is_delete_marker: false, etag: None, content_type: None };
        Ok(StorageEvent {
            id: EventId::new(self.context.source.tick(), &random),
            kind,
            bucket: settings.bucket_filter.clone().unwrap_or_else(|| "example-bucket".to_owned()),
            object: (!is_of_bucket).then_some(object),
            principal: String::new(),
            request_id: String::new(),
            lifecycle_rule: None,
        })
    }

    /// Delivers the event of a delivery again. Returns the new delivery.
    ///
    /// # Errors
    /// [`WebhookError::DeliveryNotFound`], [`WebhookError::EventNotFound`], [`WebhookError::Disabled`],
    /// [`WebhookError::Store`].
    pub async fn redeliver_delivery(&self, id: DeliveryId) -> Result<DeliveryEntry, WebhookError> {
        let waiting = self.context.redeliver_one(id).await?;
        Ok(DeliveryEntry::of_waiting(&waiting, &self.shared().store_id))
    }

    /// Delivers events from `since` (inclusive) to `until` (exclusive) to a webhook again. Returns how many.
    ///
    /// # Errors
    /// [`WebhookError::WebhookNotFound`], [`WebhookError::Disabled`], or [`WebhookError::Store`]. Those that were
    /// queued before a failure are delivered.
    pub async fn redeliver(
        &self,
        id: WebhookId,
        since: Timestamp,
        until: Option<Timestamp>,
        which: Redeliver,
    ) -> Result<u64, WebhookError> {
        self.context.redeliver(id, since, until, which).await
    }

    /// Returns a page of deliveries, latest first.
    ///
    /// # Errors
    /// [`WebhookError::Store`].
    pub async fn deliveries(&self, query: DeliveryQuery) -> Result<DeliveryPage, WebhookError> {
        Ok(self.reader.query(move |shared| shared.page(&query)).await??)
    }

    /// Returns counts and gauges.
    #[must_use]
    pub fn metrics(&self) -> WebhookMetrics {
        let (shared, now) = (self.shared(), self.shared().clock.now());
        let state = shared.state();
        let oldest = state.webhooks.values().filter_map(|webhook| webhook.waiting().1).min();
        let age = oldest.map_or(0, |oldest| now.0.saturating_sub(oldest.0));
        WebhookMetrics {
            succeeded: shared.counters.succeeded.value(),
            failed: shared.counters.failed.value(),
            dropped: shared.counters.dropped.value(),
            retried: shared.counters.retried.value(),
            pending: state.webhooks.values().map(|webhook| webhook.waiting().0).sum(),
            lost: state.webhooks.values().map(|webhook| webhook.losses.events).sum(),
            oldest_pending: Duration::from_millis(age),
            in_flight: cairn_model::u64_of(self.context.in_flight()),
            attempt_durations: self.context.durations.snapshot(),
        }
    }

    /// Returns whether changes can be made and events are delivered.
    ///
    /// # Errors
    /// The reason, for people.
    pub fn health(&self) -> Result<(), String> {
        self.shared().store.tables.health()
    }

    /// Returns the environment, for compactions.
    #[must_use]
    pub fn environment(&self) -> Arc<Environment> {
        Arc::clone(self.shared().store.tables.environment())
    }

    /// Begins no further attempts, waits for those that are being made, at most for `grace`, and interrupts the rest. Then
    /// everything is on disk. Blocks. Later calls are refused with
    /// [`StoreFailure::Closing`](cairn_tables::StoreFailure::Closing).
    ///
    /// The source of events must still be open.
    pub fn close(&self, grace: Duration) {
        self.threads.close(&self.context, grace);
        self.context.writer.close(&self.writer_thread);
        self.reader.close();
    }
}

impl Drop for Webhooks {
    fn drop(&mut self) {
        self.close(Duration::ZERO);
    }
}

impl std::fmt::Debug for Webhooks {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Webhooks").finish_non_exhaustive()
    }
}

fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

/// Removes repeated types. At least one must be left.
fn checked_types(types: Vec<EventType>) -> Result<Vec<EventType>, WebhookError> {
    let mut checked = Vec::new();
    for kind in types {
        if !checked.contains(&kind) {
            checked.push(kind);
        }
    }
    if checked.is_empty() {
        return Err(WebhookError::Invalid("event_types must name at least one event type".to_owned()));
    }
    Ok(checked)
}

fn checked_bucket(bucket: Option<String>) -> Result<Option<String>, WebhookError> {
    let invalid = |_| WebhookError::Invalid("bucket_filter is not a valid name of a bucket".to_owned());
    bucket.map(|name| BucketName::parse(&name).map(|_| name).map_err(invalid)).transpose()
}

fn checked_prefix(prefix: Option<String>) -> Result<Option<String>, WebhookError> {
    match prefix {
        Some(prefix) if prefix.len() > PREFIX_BYTES_MAX => Err(WebhookError::Invalid(format!(
            "object_prefix_filter must have at most {PREFIX_BYTES_MAX} bytes"
        ))),
        prefix => Ok(prefix),
    }
}
