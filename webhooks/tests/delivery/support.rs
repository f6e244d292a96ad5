//! A source of events, a client and a clock that tests control.

use cairn_engine::{
    EngineError, EventId, EventPage, EventQuery, EventType, ObjectOfEvent, StorageEvent, Tick,
};
use cairn_fixtures::ManualClock;
use cairn_model::{AgeLimit, Clock, Timestamp, VersionName};
use cairn_sync::{Condvar, Mutex};
use cairn_webhooks::client::{Attempt, Delivery, Failure, FailureKind, Probe, Sender};
use cairn_webhooks::destination::TargetPolicy;
use cairn_webhooks::{
    DeliveryEntry, DeliveryQuery, DeliveryStatus, EventSource, NewWebhook, TargetClient, Webhook, WebhookId,
    WebhookOptions, Webhooks,
};
use futures_lite::future::block_on;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// The time for which a test waits for what must happen.
const PATIENCE: Duration = Duration::from_secs(120);
pub(crate) const STORE: [u8; 16] = [9; 16];

/// The start of the clock: 2026.
const BEGUN: u64 = 1_767_225_600_000;

/// Events in memory.
#[derive(Default)]
pub(crate) struct Events {
    state: Mutex<(Vec<StorageEvent>, u64)>,
    changed: Condvar,
    last: AtomicU64,
    /// The start of the last page that was read.
    read_from: AtomicU64,
}

impl Events {
    /// Returns whether this event and all before it have been handed to the webhooks.
    pub(crate) fn is_handed_out(&self, event: EventId) -> bool {
        self.read_from.load(Ordering::SeqCst) > event.tick().0
    }

    /// Commits an event of a new object.
    pub(crate) fn push(&self, bucket: &str, key: &str) -> EventId {
        // A reader takes its end under the same lock, so no event comes before it later.
        let mut state = self.state.lock();
        let id = EventId::new(self.tick(), &STORE);
        let object = ObjectOfEvent {
            key: key.to_owned(),
            version: Some(VersionName::Null),
            size: 1,
            is_delete_marker: false,
            etag: None,
            content_type: None,
        };
        let event = StorageEvent {
            id,
            kind: EventType::ObjectCreated,
            bucket: bucket.to_owned(),
            object: Some(object),
            principal: String::new(),
            request_id: String::new(),
            lifecycle_rule: None,
        };
        state.0.push(event);
        drop(state);
        self.wake();
        id
    }

    /// Removes all events, as retention does.
    pub(crate) fn clear(&self) {
        self.state.lock().0.clear();
    }
}

impl EventSource for Events {
    fn events(&self, query: &EventQuery) -> Result<EventPage, EngineError> {
        self.read_from.store(query.from.0, Ordering::SeqCst);
        let state = self.state.lock();
        let end = query.until.min(self.tick());
        let matching = state.0.iter().filter(|event| {
            let tick = event.id.tick();
            tick >= query.from
                && tick < end
                && query.types.contains(event.kind)
                && query.bucket.as_ref().is_none_or(|bucket| *bucket == event.bucket)
        });
        let mut events: Vec<_> = matching.take(query.limit + 1).cloned().collect();
        let is_truncated = events.len() > query.limit;
        let examined = if is_truncated { events[query.limit].id.tick() } else { end.max(query.from) };
        events.truncate(query.limit);
        Ok(EventPage { events, examined, is_truncated })
    }

    fn generation(&self) -> u64 {
        self.state.lock().1
    }

    fn wait(&self, seen: u64, limit: Duration) {
        let state = self.state.lock();
        drop(self.changed.wait_timeout_while(state, limit, |state| state.1 == seen));
    }

    fn wake(&self) {
        self.state.lock().1 += 1;
        self.changed.notify_all();
    }

    fn tick(&self) -> Tick {
        let first = Tick::first_at(Timestamp(1_767_225_600_000)).0;
        let last = self.last.fetch_add(1, Ordering::SeqCst);
        Tick(first + last)
    }
}

/// A request that the client has made.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) host: String,
    pub(crate) event_id: String,
    pub(crate) body: String,
    pub(crate) at: Timestamp,
    /// Signatures of `webhook-signature`.
    pub(crate) signatures: usize,
}

type Answer = dyn Fn(&Sent) -> Attempt + Send + Sync;

/// A client that answers as a test says.
pub(crate) struct FakeClient {
    sent: Mutex<Vec<Sent>>,
    changed: Condvar,
    answer: Mutex<Arc<Answer>>,
}

pub(crate) fn status(status: u16) -> Attempt {
    let failure = Failure::new(FailureKind::Response, format!("HTTP status {status}"));
    let error = (!(200..300).contains(&status)).then_some(failure);
    Attempt { http_status: Some(status), error, retry_after: None, duration: Duration::ZERO }
}

pub(crate) fn no_answer() -> Attempt {
    let error = Some(Failure::new(FailureKind::Connect, "no connection"));
    Attempt { http_status: None, error, retry_after: None, duration: Duration::ZERO }
}

impl FakeClient {
    pub(crate) fn new(answer: impl Fn(&Sent) -> Attempt + Send + Sync + 'static) -> Arc<Self> {
        let answer = Mutex::new(Arc::new(answer) as Arc<Answer>);
        Arc::new(Self { sent: Mutex::default(), changed: Condvar::new(), answer })
    }

    pub(crate) fn answer_with(&self, answer: impl Fn(&Sent) -> Attempt + Send + Sync + 'static) {
        *self.answer.lock() = Arc::new(answer);
    }

    /// Requests to a host, in the order in which they were begun.
    pub(crate) fn to(&self, host: &str) -> Vec<Sent> {
        self.sent.lock().iter().filter(|sent| sent.host == host).cloned().collect()
    }

    /// Waits until as many requests to a host have been begun. Gives up when nothing has happened for [`PATIENCE`].
    pub(crate) fn wait_for(&self, host: &str, count: usize) -> Vec<Sent> {
        let mut sent = self.sent.lock();
        // Each request is looked at once: a test may make tens of thousands.
        let (mut seen, mut found) = (0, 0);
        loop {
            found += sent[seen..].iter().filter(|sent| sent.host == host).count();
            seen = sent.len();
            if found >= count {
                return sent.iter().filter(|sent| sent.host == host).cloned().collect();
            }
            sent = self.changed.wait_timeout_while(sent, PATIENCE, |sent| sent.len() == seen);
            assert!(sent.len() > seen, "{found} requests to {host}, not {count}");
        }
    }
}

impl Sender for FakeClient {
    fn deliver(&self, delivery: &Delivery<'_>) -> Attempt {
        let target = format!("{:?}", delivery.target);
        let host = target.split("//").nth(1).unwrap().split('/').next().unwrap().to_owned();
        let signatures = delivery.secrets.sign(delivery.event_id, 1, delivery.body).standard;
        let sent = Sent {
            host,
            event_id: delivery.event_id.to_owned(),
            body: String::from_utf8(delivery.body.to_vec()).unwrap(),
            at: delivery.attempted_at,
            signatures: signatures.split(' ').count(),
        };
        self.sent.lock().push(sent.clone());
        self.changed.notify_all();
        let answer = Arc::clone(&self.answer.lock());
        answer(&sent)
    }
}

impl TargetClient for FakeClient {
    fn probe(&self, delivery: &Delivery<'_>) -> Probe {
        Probe { attempt: self.deliver(delivery), steps: Vec::new() }
    }

    fn shut_down(&self) {}

    fn close_idle_connections(&self) {}
}

/// Lets attempts wait until a test opens it.
#[derive(Default)]
pub(crate) struct Gate {
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    pub(crate) fn pass(&self) {
        let is_open = self.is_open.lock();
        drop(self.opened.wait_timeout_while(is_open, PATIENCE, |is_open| !*is_open));
    }

    pub(crate) fn open(&self) {
        *self.is_open.lock() = true;
        self.opened.notify_all();
    }
}

/// A store of webhooks in a temporary folder.
pub(crate) struct Setup {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) events: Arc<Events>,
    pub(crate) client: Arc<FakeClient>,
    pub(crate) webhooks: Arc<Webhooks>,
}

pub(crate) fn open(
    folder: &Path,
    clock: &Arc<ManualClock>,
    events: &Arc<Events>,
    client: &Arc<FakeClient>,
) -> Arc<Webhooks> {
    let options = WebhookOptions {
        folder: folder.to_owned(),
        store: STORE,
        master_key: Zeroizing::new(b"master key".to_vec()),
        clock: Arc::clone(clock) as Arc<dyn Clock>,
        policy: TargetPolicy::default(),
        request_timeout: Duration::from_secs(10),
        maximum_attempts: 6,
        poll_interval: Duration::from_millis(50),
        concurrency_per_target: 8,
        age: AgeLimit { age_max: Duration::from_secs(30 * 86_400), clock: Arc::clone(clock) as _ },
    };
    Webhooks::open_with_client(options, Arc::clone(events) as Arc<_>, Arc::clone(client) as Arc<_>).unwrap()
}

impl Setup {
    pub(crate) fn new(answer: impl Fn(&Sent) -> Attempt + Send + Sync + 'static) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("unmade"), "").unwrap();
        let (clock, events, client) =
            (ManualClock::at(BEGUN), Arc::<Events>::default(), FakeClient::new(answer));
        let webhooks = open(folder.path(), &clock, &events, &client);
        Self { folder, clock, events, client, webhooks }
    }

    /// A setup whose targets answer 200 once the gate is open.
    pub(crate) fn behind_gate() -> (Arc<Gate>, Self) {
        let gate = Arc::new(Gate::default());
        let waiting = Arc::clone(&gate);
        let setup = Self::new(move |_| {
            waiting.pass();
            status(200)
        });
        (gate, setup)
    }

    /// Creates a webhook for new objects at `https://<host>/`.
    pub(crate) fn webhook(&self, host: &str) -> Webhook {
        block_on(self.webhooks.create(new_webhook(host))).unwrap().0
    }

    pub(crate) fn entries(&self, query: DeliveryQuery) -> Vec<DeliveryEntry> {
        block_on(self.webhooks.deliveries(query)).unwrap().deliveries
    }

    /// All entries of a webhook, oldest first.
    pub(crate) fn log(&self, webhook: WebhookId) -> Vec<DeliveryEntry> {
        let mut found =
            self.entries(DeliveryQuery { webhook: Some(webhook), limit: 1000, ..DeliveryQuery::default() });
        found.reverse();
        found
    }

    /// Waits until something is so. What it looks at is durable a moment after the request that a test can wait for.
    pub(crate) fn until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let (lock, never, start) = (Mutex::new(()), Condvar::new(), Instant::now());
        while !is_so(self) {
            assert!(start.elapsed() < PATIENCE, "{what}");
            drop(never.wait_timeout(lock.lock(), Duration::from_millis(2)));
        }
    }

    /// Waits until no further attempt is due.
    pub(crate) fn settle(&self) {
        let query =
            DeliveryQuery { status: Some(DeliveryStatus::Pending), limit: 1000, ..DeliveryQuery::default() };
        self.until("attempts that are due are made", |setup| {
            let now = Some(setup.clock.now());
            let is_due = |entry: &DeliveryEntry| {
                entry.attempt > 0 && entry.next_attempt_at <= now && entry.error.is_none()
            };
            setup.webhooks.metrics().in_flight == 0 && !setup.entries(query.clone()).iter().any(is_due)
        });
    }

    pub(crate) fn pending(&self, webhook: WebhookId) -> u64 {
        self.webhooks.get(webhook).unwrap().health.pending
    }

    /// Closes and opens again.
    pub(crate) fn reopen(&mut self) {
        self.webhooks.close(PATIENCE);
        // Two handles of one environment in one process are not allowed, so the old one must be gone.
        let folder = tempfile::tempdir().unwrap();
        copy(self.folder.path(), folder.path());
        self.folder = folder;
        self.webhooks = open(self.folder.path(), &self.clock, &self.events, &self.client);
    }
}

/// Copies the data file: what a crash would leave, as long as nothing is being committed.
pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::copy(from.join("data.mdb"), to.join("data.mdb")).unwrap();
}

pub(crate) fn new_webhook(host: &str) -> NewWebhook {
    NewWebhook {
        target_url: format!("https://{host}/"),
        event_types: vec![EventType::ObjectCreated],
        bucket_filter: None,
        object_prefix_filter: None,
        enabled: true,
    }
}
