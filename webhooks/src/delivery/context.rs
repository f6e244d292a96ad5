//! Context of the delivery threads: writer, lanes, events and client.

use super::lanes::Lanes;
use super::source::EventSource;
use super::target_client::TargetClient;
use crate::id::WebhookId;
use crate::store::{Observer, Shared, Writer};
use cairn_model::{DurationHistogram, Timestamp};
use cairn_sync::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// Shared by all threads of delivery.
pub(crate) struct Context {
    pub(crate) writer: Writer,
    pub(super) lanes: Arc<Lanes>,
    pub(crate) source: Arc<dyn EventSource>,
    pub(super) client: Arc<dyn TargetClient>,
    /// Attempts after which a delivery has failed.
    pub(super) attempts_max: u8,
    pub(super) poll_interval: Duration,
    /// The durations of attempts.
    pub(crate) durations: DurationHistogram,
    is_closing: AtomicBool,
    /// Counts changes of webhooks.
    changes: AtomicU64,
    /// Locked and notified for the end of the service, and for changes of webhooks.
    end: (Mutex<()>, Condvar),
    pub(super) tasks: AtomicUsize,
}

impl Context {
    pub(crate) fn new(
        writer: Writer,
        source: Arc<dyn EventSource>,
        client: Arc<dyn TargetClient>,
        attempts_max: u8,
        poll_interval: Duration,
        concurrency: usize,
    ) -> Arc<Self> {
        let lanes = Arc::new(Lanes::new(&writer.shared, concurrency));
        writer.shared.observe(Arc::clone(&lanes) as Arc<dyn Observer>);
        Arc::new(Self {
            writer,
            lanes,
            source,
            client,
            attempts_max,
            poll_interval,
            durations: DurationHistogram::default(),
            is_closing: AtomicBool::new(false),
            changes: AtomicU64::new(0),
            end: (Mutex::new(()), Condvar::new()),
            tasks: AtomicUsize::new(0),
        })
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.writer.shared
    }

    /// Returns whether the service ends.
    pub(super) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }

    /// Returns the time after a wait that begins now.
    pub(super) fn after(&self, wait: Duration) -> Timestamp {
        let millis = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        Timestamp(self.shared().clock.now().0.saturating_add(millis))
    }

    /// Waits for the end of the service, at most for `limit`.
    pub(super) fn wait_for_end(&self, limit: Duration) {
        self.wait_while(limit, || true);
    }

    /// Waits while the service goes on and `is_waiting` returns true, at most for `limit`.
    fn wait_while(&self, limit: Duration, is_waiting: impl Fn() -> bool) {
        let (lock, ended) = &self.end;
        let guard = lock.lock();
        drop(ended.wait_timeout_while(guard, limit, |()| !self.is_closing() && is_waiting()));
    }

    /// Returns a number that changes with every change of webhooks.
    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::SeqCst)
    }

    /// Waits for a change of webhooks after `seen`, or for the end of the service, at most for `limit`.
    pub(super) fn wait_for_change(&self, seen: u64, limit: Duration) {
        self.wait_while(limit, || self.changes() == seen);
    }

    /// Notes that webhooks were created or changed.
    pub(crate) fn note_change(&self) {
        self.changes.fetch_add(1, Ordering::SeqCst);
        self.notify_end();
    }

    fn notify_end(&self) {
        let (lock, ended) = &self.end;
        drop(lock.lock());
        ended.notify_all();
    }

    /// Returns whether first attempts of a webhook are held back.
    pub(crate) fn is_held(&self, webhook: WebhookId) -> bool {
        self.lanes.is_held(webhook)
    }

    /// Returns the number of attempts that are being made.
    pub(crate) fn in_flight(&self) -> usize {
        self.lanes.in_flight()
    }

    /// Notes that the service ends, and wakes the threads that wait for it.
    pub(super) fn begin_closing(&self) {
        self.is_closing.store(true, Ordering::Release);
        self.notify_end();
    }
}
