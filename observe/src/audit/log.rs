//! The audit trail as the rest of the process uses it: records in, pages out, and the two threads behind them.
//!
//! The writer takes everything that waits as one batch and makes it durable with one commit: no timer, no added latency
//! when idle, larger batches when busy. The reader gives one page after the other, so that queries of an administrator
//! never hold an executor. A failure of the device stops the writer until the next start: what the device holds is then
//! unknown. A full disk does not: records are refused until there is space again.

use super::error::{AuditError, AuditOpenError};
use super::id::{AuditId, AuditIds};
use super::intent::{self, Intent};
use super::limiter::{Admission, Limiter};
use super::limits::{
    BATCH_RECORDS_MAX, FINDINGS, QUERIES_WAITING_MAX, REFUSALS, RETENTION_CHECK_INTERVAL, UNSETTLED_MAX,
};
use super::query::{AuditPage, AuditQuery};
use super::queue::{Job, Queue, Taken};
use super::record::AuditRecord;
use super::store::{Entry, Retention, TrailStore};
use crate::metrics;
use cairn_model::Clock;
use futures_channel::oneshot;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How the trail is opened.
pub struct AuditOptions {
    /// `<data-dir>/audit`. The lock on the data folder must be held: nobody else may have the trail open.
    pub folder: PathBuf,
    /// The id of the store that the trail belongs to.
    pub store: [u8; 16],
    /// How long events are kept.
    pub age_max: Duration,
    /// How many events are kept.
    pub records_max: u64,
    /// Where the times of events come from.
    pub clock: Arc<dyn Clock>,
}

/// What causes records that nobody waits for. Each source may cause so many at a time, see `limits.rs`.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// A client whose requests are refused, by its address. The addresses of one IPv6 network of 64 bits count as one.
    Client(IpAddr),
    /// Something that the service found damaged or failed, by its name.
    Finding(&'a str),
}

type Query = (AuditQuery, oneshot::Sender<Result<AuditPage, AuditError>>);

/// What the threads share with the callers.
struct Shared {
    trail: TrailStore,
    queue: Queue,
    retention: Retention,
    clock: Arc<dyn Clock>,
    /// Set once, by a failure after which nothing is recorded any more.
    stopped: OnceLock<String>,
}

/// See the module's first lines. Shared by all executors.
pub struct AuditLog {
    shared: Arc<Shared>,
    refusals: Mutex<Limiter>,
    findings: Mutex<Limiter>,
    queries: Mutex<Option<SyncSender<Query>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl AuditLog {
    /// Opens the trail and starts its threads. Blocks.
    ///
    /// # Errors
    /// [`AuditOpenError`], whose text says what to do. Nothing of an existing trail has been changed.
    pub fn open(options: AuditOptions) -> Result<Arc<Self>, AuditOpenError> {
        let AuditOptions { folder, store, age_max, records_max, clock } = options;
        let damaged = |error: cairn_lmdb::Error| AuditOpenError::Damaged {
            path: folder.clone(),
            what: error.to_string(),
        };
        let trail = TrailStore::open(&folder, store)?;
        let mut ids = AuditIds::behind(trail.last_id().map_err(damaged)?);
        let retention = Retention { age_max, records_max };
        intent::settle_left(&trail, &mut ids, clock.now(), retention).map_err(damaged)?;
        let (queue, stopped) = (Queue::default(), OnceLock::new());
        let shared = Arc::new(Shared { trail, queue, retention, clock, stopped });
        let (queries, asked) = sync_channel(QUERIES_WAITING_MAX);
        let now = Instant::now();
        let log = Arc::new(Self {
            shared: Arc::clone(&shared),
            refusals: Mutex::new(Limiter::new(REFUSALS, now)),
            findings: Mutex::new(Limiter::new(FINDINGS, now)),
            queries: Mutex::new(Some(queries)),
            threads: Mutex::default(),
        });
        let writer = Arc::clone(&shared);
        let started = [
            spawn("audit-writer", move || {
                Writer { shared: writer, ids, lacks_space: false, unsettled: Vec::new() }.run()
            }),
            spawn("audit-reader", move || read_pages(&shared, &asked)),
        ];
        for thread in started {
            let thread = thread.map_err(|error| AuditOpenError::Io { path: folder.clone(), error })?;
            lock(&log.threads).push(thread);
        }
        Ok(log)
    }

    /// Records an action. Durable when the future resolves: only then may the action's response be sent. Dropping the
    /// future does not take the record back.
    ///
    /// # Errors
    /// [`AuditError::Full`]: the action must be refused (507). Any other likewise: what is not recorded is not done.
    pub async fn append(&self, record: AuditRecord) -> Result<AuditId, AuditError> {
        let (reply, answer) = oneshot::channel();
        self.shared.queue.push(Job::Append(Box::new(record), reply))?;
        answer.await.map_err(|_| AuditError::ShuttingDown)?
    }

    /// Records what is about to be done. Durable when the future resolves, and the caller may begin; what became of it is
    /// recorded by [`Intent::settle`], or, should the process end before, when the trail is opened again.
    ///
    /// # Errors
    /// As [`Self::append`]: what cannot be recorded must not be begun.
    pub async fn intend(self: &Arc<Self>, record: AuditRecord) -> Result<Intent, AuditError> {
        let (reply, answer) = oneshot::channel();
        self.shared.queue.push(Job::Intend(Box::new(record.clone()), reply))?;
        let id = answer.await.map_err(|_| AuditError::ShuttingDown)??;
        Ok(Intent::new(Arc::clone(self), id, record))
    }

    /// Has an intent settled; tells `reply`, if there is one, when that is durable or will be tried again.
    pub(super) fn settle(&self, id: AuditId, event: Option<AuditRecord>, reply: Option<oneshot::Sender<()>>) {
        // Refused when the trail is closed: then the next start settles it.
        let _ = self.shared.queue.push(Job::Settle(id, event.map(Box::new), reply));
    }

    /// Has an event recorded that nobody waits for, unless its source has caused too many. Never waits.
    pub fn offer(&self, source: Source<'_>, mut record: AuditRecord) {
        let (limiter, source) = match source {
            Source::Client(address) => (&self.refusals, network_of(address)),
            Source::Finding(name) => (&self.findings, hash_of(name)),
        };
        let Admission::Admitted { left_out } = lock(limiter).admit(source, Instant::now()) else {
            metrics::AUDIT_RECORDS_LEFT_OUT.add(1);
            return;
        };
        if left_out > 0 {
            let separator = if record.detail.is_empty() { "" } else { "; " };
            // Writing to a string cannot fail.
            let _ = write!(
                record.detail,
                "{separator}{left_out} earlier events of this source were not recorded"
            );
        }
        if self.shared.queue.push(Job::Offer(Box::new(record))).is_err() {
            metrics::AUDIT_RECORDS_LEFT_OUT.add(1);
            lock(limiter).left_out_after_all(source, left_out);
        }
    }

    /// One page of events, the latest first, with everything in it that was appended or offered before the call.
    ///
    /// # Errors
    /// [`AuditError::Overloaded`] when too many queries wait, [`AuditError::Failed`] when the trail cannot be read.
    pub async fn page(&self, query: AuditQuery) -> Result<AuditPage, AuditError> {
        let (reply, reached) = oneshot::channel();
        self.shared.queue.push(Job::Barrier(reply))?;
        reached.await.map_err(|_| AuditError::ShuttingDown)?;
        let (reply, answer) = oneshot::channel();
        let sent = match &*lock(&self.queries) {
            Some(queries) => queries.try_send((query, reply)),
            None => return Err(AuditError::ShuttingDown),
        };
        sent.map_err(|refused| match refused {
            TrySendError::Full(_) => AuditError::Overloaded,
            TrySendError::Disconnected(_) => AuditError::ShuttingDown,
        })?;
        answer.await.map_err(|_| AuditError::ShuttingDown)?
    }

    /// Whether events can be recorded, as far as is known: `Err` says what is wrong.
    ///
    /// # Errors
    /// The reason, for people.
    pub fn health(&self) -> Result<(), String> {
        self.shared.stopped.get().map_or(Ok(()), |reason| Err(reason.clone()))
    }

    /// Whether events can be recorded, as far as is known, and the trail be read. Blocks for as long as the device does: for
    /// plain threads.
    ///
    /// # Errors
    /// The reason, for people.
    pub fn check(&self) -> Result<(), String> {
        self.health()?;
        let last = self.shared.trail.last_id();
        last.map(|_| ()).map_err(|error| format!("the trail cannot be read: {error}"))
    }

    /// Records and queries that wait for the writer.
    #[must_use]
    pub fn queue_length(&self) -> usize {
        self.shared.queue.length()
    }

    /// Records what waits and ends the threads. Blocks. Later records are refused with [`AuditError::ShuttingDown`].
    pub fn close(&self) {
        self.shared.queue.close();
        drop(lock(&self.queries).take());
        for thread in std::mem::take(&mut *lock(&self.threads)) {
            // A writer that panicked has ended the process already.
            let _ = thread.join();
        }
    }
}

impl Drop for AuditLog {
    fn drop(&mut self) {
        self.close();
    }
}

/// Starts a thread of the trail. A panic in it ends the process: what it left half-done is unknown.
fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        if catch_unwind(AssertUnwindSafe(body)).is_err() {
            tracing::error!(target: "service::audit", "a thread of the audit trail panicked: the process ends");
            std::process::abort();
        }
    })
}

/// What counts as one source: an IPv4 address, or a network of 64 bits, which one client has to itself.
fn network_of(address: IpAddr) -> u64 {
    match address.to_canonical() {
        IpAddr::V4(address) => u64::from(address.to_bits()),
        IpAddr::V6(address) => (address.to_bits() >> 64) as u64,
    }
}

fn hash_of(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}

/// An intent that is over, and its event.
type Unsettled = (AuditId, Option<Box<AuditRecord>>);

/// What a job has written.
fn entry_of(job: &Job) -> Option<Entry<'_>> {
    match job {
        Job::Append(record, _) | Job::Offer(record) => Some(Entry::Event(record)),
        Job::Intend(record, _) => Some(Entry::Intent(record)),
        Job::Settle(id, event, _) => Some(Entry::Settled(*id, event.as_deref())),
        Job::Barrier(_) => None,
    }
}

struct Writer {
    shared: Arc<Shared>,
    ids: AuditIds,
    /// The disk was full at the last attempt: the log hears of changes, not of every record.
    lacks_space: bool,
    /// What could not be settled for lack of space, for the next batch.
    unsettled: Vec<Unsettled>,
}

impl Writer {
    fn run(mut self) {
        loop {
            let batch = match self.shared.queue.take(RETENTION_CHECK_INTERVAL) {
                Taken::Closed => return,
                // An empty batch removes what has become too old.
                Taken::Nothing => Vec::new(),
                Taken::Batch(batch) => batch,
            };
            self.record(batch);
            // While nobody waits: the next batch finds written space.
            if self.shared.stopped.get().is_none() {
                let _ = self.shared.trail.keep_headroom();
            }
        }
    }

    fn record(&mut self, batch: Vec<Job>) {
        let again: Vec<Unsettled> =
            self.unsettled.drain(..self.unsettled.len().min(BATCH_RECORDS_MAX)).collect();
        let mut entries: Vec<Entry<'_>> =
            again.iter().map(|(id, event)| Entry::Settled(*id, event.as_deref())).collect();
        entries.extend(batch.iter().filter_map(entry_of));
        let only_barriers = entries.is_empty() && !batch.is_empty();
        let written = if only_barriers { Ok(Vec::new()) } else { self.write(&entries) };
        let count = entries.iter().filter(|entry| entry.is_event()).count() as u64;
        match &written {
            Ok(_) => metrics::AUDIT_RECORDS.add(count),
            Err(_) => metrics::AUDIT_RECORDS_FAILED.add(count),
        }
        let mut ids = written.iter().flatten().skip(again.len());
        if written.is_err() {
            self.keep(again);
        }
        // The one who waited may have gone: then there is nobody to tell.
        for job in batch {
            match job {
                Job::Append(_, reply) | Job::Intend(_, reply) => {
                    let outcome = match &written {
                        Ok(_) => ids.next().copied().ok_or(AuditError::ShuttingDown),
                        Err(error) => Err(error.clone()),
                    };
                    let _ = reply.send(outcome);
                }
                Job::Offer(_) => drop(ids.next()),
                Job::Settle(id, event, reply) => {
                    let _ = ids.next();
                    if written.is_err() {
                        self.keep([(id, event)]);
                    }
                    let _ = reply.map(|reply| reply.send(()));
                }
                Job::Barrier(reply) => drop(reply.send(())),
            }
        }
    }

    /// Keeps what could not be settled for the next batch. The intents are durable: what is dropped here, or lost with the
    /// process, is settled by the next start.
    fn keep(&mut self, unsettled: impl IntoIterator<Item = Unsettled>) {
        let room = UNSETTLED_MAX.saturating_sub(self.unsettled.len());
        self.unsettled.extend(unsettled.into_iter().take(room));
    }

    fn write(&mut self, entries: &[Entry<'_>]) -> Result<Vec<AuditId>, AuditError> {
        let Shared { trail, retention, clock, stopped, .. } = &*self.shared;
        if let Some(reason) = stopped.get() {
            return Err(AuditError::Failed(reason.clone()));
        }
        let now = clock.now();
        let written =
            trail.keep_headroom().and_then(|()| trail.append(&mut self.ids, entries, now, *retention));
        let lacks_space = matches!(written, Err(cairn_lmdb::Error::Full));
        if std::mem::replace(&mut self.lacks_space, lacks_space) != lacks_space {
            if lacks_space {
                tracing::error!(target: "service::audit", "no space is left for the audit trail: what must be recorded is refused");
            } else if written.is_ok() {
                tracing::info!(target: "service::audit", "there is space for the audit trail again");
            }
        }
        written.map_err(|error| {
            // A lack of space and a record that fails its check leave what was there before.
            if !matches!(error, cairn_lmdb::Error::Full | cairn_lmdb::Error::Corrupt { .. }) {
                tracing::error!(target: "service::audit", %error, "the audit trail failed: nothing is recorded until the service is started again");
                let _ = stopped.set(format!("nothing is recorded after a failure: {error}"));
            }
            error.into()
        })
    }
}

/// Answers one query after the other until nobody can ask any more.
fn read_pages(shared: &Shared, asked: &Receiver<Query>) {
    for (query, reply) in asked {
        // Who asked may have gone while it waited.
        if reply.is_canceled() {
            continue;
        }
        let page = shared.trail.page(&query).map_err(|error| {
            tracing::error!(target: "service::audit", %error, "the audit trail could not be read");
            AuditError::from(error)
        });
        let _ = reply.send(page);
    }
}
