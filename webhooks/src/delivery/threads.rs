//! What the threads of delivery share, and their beginning and end.

use super::lanes::Lanes;
use super::redelivery::{self, Redeliver};
use super::source::EventSource;
use super::target_client::TargetClient;
use super::worker::EventBytes;
use super::{fan_out, loader, worker};
use crate::client::Probe;
use crate::error::WebhookError;
use crate::id::{DeliveryId, WebhookId};
use crate::limits::{IDLE_CONNECTIONS_INTERVAL, INTERRUPTED_WAIT, TASKS_MAX};
use crate::store::{Observer, Shared, Waiting, Writer};
use cairn_engine::StorageEvent;
use cairn_model::{DurationHistogram, Timestamp};
use futures_channel::oneshot;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// What the threads share.
pub(crate) struct Context {
    pub(crate) writer: Writer,
    pub(super) lanes: Arc<Lanes>,
    pub(crate) source: Arc<dyn EventSource>,
    pub(super) client: Arc<dyn TargetClient>,
    /// Attempts after which a delivery has failed.
    pub(super) attempts_max: u8,
    pub(super) poll_interval: Duration,
    /// How long attempts took.
    pub(crate) durations: DurationHistogram,
    is_closing: AtomicBool,
    /// Locked and notified for the end of the service.
    end: (Mutex<()>, Condvar),
    tasks: AtomicUsize,
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
        let (lock, ended) = &self.end;
        let guard = lock.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = ended.wait_timeout_while(guard, limit, |()| !self.is_closing());
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Returns whether first attempts of a webhook are held back.
    pub(crate) fn is_held(&self, webhook: WebhookId) -> bool {
        self.lanes.is_held(webhook)
    }

    /// Returns the number of attempts that are being made.
    pub(crate) fn in_flight(&self) -> usize {
        self.lanes.in_flight()
    }

    /// Does something that blocks on a thread of its own. At most [`TASKS_MAX`] run at a time.
    async fn task<T: Send + 'static>(
        self: &Arc<Self>,
        task: impl FnOnce(&Arc<Self>) -> Result<T, WebhookError> + Send + 'static,
    ) -> Result<T, WebhookError> {
        if self.is_closing() {
            return Err(WebhookError::ShuttingDown);
        }
        if self.tasks.fetch_add(1, Ordering::AcqRel) >= TASKS_MAX {
            self.tasks.fetch_sub(1, Ordering::AcqRel);
            return Err(WebhookError::Overloaded);
        }
        let (reply, answer) = oneshot::channel();
        let context = Arc::clone(self);
        let run = move || {
            let done = catch_unwind(AssertUnwindSafe(|| task(&context)));
            context.tasks.fetch_sub(1, Ordering::AcqRel);
            let failed = || Err(WebhookError::Failed("a thread panicked".to_owned()));
            // The caller may have gone.
            let _ = reply.send(done.unwrap_or_else(|_| failed()));
        };
        if let Err(error) = std::thread::Builder::new().name("webhook-task".to_owned()).spawn(run) {
            self.tasks.fetch_sub(1, Ordering::AcqRel);
            return Err(error.into());
        }
        answer.await.map_err(|_| WebhookError::ShuttingDown)?
    }

    /// Sends an event that only tests a webhook, outside the queue.
    pub(crate) async fn test(
        self: &Arc<Self>,
        webhook: WebhookId,
        event: StorageEvent,
    ) -> Result<Probe, WebhookError> {
        self.task(move |context| {
            let found = context.shared().webhook(webhook).ok_or(WebhookError::WebhookNotFound)?;
            let event = EventBytes::of_test(&event);
            Ok(context.client.probe(&event.request(&found.record, context.shared().clock.now())))
        })
        .await
    }

    /// Delivers one event again.
    pub(crate) async fn redeliver_one(self: &Arc<Self>, id: DeliveryId) -> Result<Waiting, WebhookError> {
        self.task(move |context| redelivery::redeliver_one(context, id)).await
    }

    /// Delivers many events to a webhook again.
    pub(crate) async fn redeliver(
        self: &Arc<Self>,
        webhook: WebhookId,
        since: Timestamp,
        until: Option<Timestamp>,
        which: Redeliver,
    ) -> Result<u64, WebhookError> {
        self.task(move |context| redelivery::redeliver(context, webhook, since, until, which)).await
    }
}

/// What a thread does.
type Body = fn(&Arc<Context>);

/// The threads that run from the beginning to the end.
pub(crate) struct Threads(Mutex<Vec<JoinHandle<()>>>);

impl Threads {
    /// Starts the threads.
    ///
    /// # Errors
    /// The operating system has no thread.
    pub(crate) fn start(context: &Arc<Context>) -> std::io::Result<Self> {
        let threads = Self(Mutex::default());
        let bodies: [(&str, Body); 3] =
            [("webhook-fanout", fan_out::run), ("webhook-loader", loader::run), ("webhook-idle", close_idle)];
        for (name, body) in bodies {
            let context = Arc::clone(context);
            let run = move || {
                if catch_unwind(AssertUnwindSafe(|| body(&context))).is_err() {
                    tracing::error!(target: "service::webhooks", "a thread of webhooks panicked: the process ends");
                    std::process::abort();
                }
            };
            let thread = std::thread::Builder::new().name(name.to_owned()).spawn(run)?;
            threads.0.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
        }
        worker::start_if_needed(context);
        Ok(threads)
    }

    /// Begins no further attempts, waits for those that are being made, at most for `grace`, and then interrupts them. Blocks.
    pub(crate) fn close(&self, context: &Context, grace: Duration) {
        context.is_closing.store(true, Ordering::Release);
        let (lock, ended) = &context.end;
        drop(lock.lock().unwrap_or_else(PoisonError::into_inner));
        ended.notify_all();
        context.lanes.close();
        context.source.wake();
        let threads = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // A panic of the thread has already ended the process.
            let _ = thread.join();
        }
        if !context.lanes.wait_quiet(grace) {
            context.lanes.interrupt();
            context.client.shut_down();
            context.lanes.wait_quiet(INTERRUPTED_WAIT);
        }
    }
}

/// Closes connections that are not in use, from time to time.
fn close_idle(context: &Arc<Context>) {
    while !context.is_closing() {
        context.wait_for_end(IDLE_CONNECTIONS_INTERVAL);
        context.client.close_idle_connections();
    }
}
