//! The audit trail as the rest of the process uses it: records in, pages out.
//!
//! Executors hand records and queries to two threads (`threads.rs`) and never wait for the disk themselves.

use super::accesses::Merged;
use super::id::{AuditId, AuditIds};
use super::intent::{self, Intent};
use super::kind::AuditKind;
use super::limiter::{Admission, Limiter};
use super::limits::{FINDINGS, QUERIES_WAITING_MAX, QUEUE_RECORDS_UNWAITED_MAX, REFUSALS};
use super::query::{AuditPage, AuditQuery};
use super::queue::Command;
use super::record::AuditRecord;
use super::store::{AuditStore, Retention, SCHEMA};
use super::threads::{Shared, Writer};
use crate::metrics;
use cairn_lmdb::Environment;
use cairn_model::{AgeLimit, Clock, client_network};
use cairn_sync::Mutex;
use cairn_tables::{ReaderThread, StoreFailure, StoreOpenError, WriterThread};
use futures_channel::oneshot;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// Options for opening the trail.
pub struct AuditOptions {
    /// `<data-dir>/audit`. The caller must hold the lock on the data folder, so that no other process has the trail open.
    pub folder: PathBuf,
    /// The id of the store that the trail belongs to.
    pub store: [u8; 16],
    /// The age up to which events are kept.
    pub age: AgeLimit,
    /// The number of events of each kind that are kept.
    pub records_max: u64,
    /// The requests for objects that are recorded in addition.
    pub data_events: DataEvents,
    /// The clock for the times of events.
    pub clock: Arc<dyn Clock>,
}

cairn_model::named_enum! {
    /// The data events to record: requests for objects and lists that are neither refused nor administrative.
    ///
    /// Named as in the configuration.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
    pub enum DataEvents {
        /// None.
        #[default]
        Off => "off",
        /// Those that change objects.
        Writes => "writes",
        /// Those that change or read objects, and lists.
        All => "all",
    }
}

/// The source of an offered record. `limits.rs` limits the records of each source.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// The address of a client whose requests are refused. All addresses of an IPv6 /64 network are one source.
    Client(IpAddr),
    /// The name of something that the service found damaged or failed.
    Finding(&'a str),
}

/// The audit trail, shared by all executors.
pub struct AuditLog {
    shared: Arc<Shared>,
    data_events: DataEvents,
    refusals: Mutex<Limiter>,
    findings: Mutex<Limiter>,
    writer: WriterThread,
    reader: ReaderThread<Shared>,
}

impl AuditLog {
    /// Opens the trail and starts its threads. Blocks.
    ///
    /// # Errors
    /// [`StoreOpenError`], whose message says what the operator can do. An existing trail is not changed.
    pub fn open(options: AuditOptions) -> Result<Arc<Self>, StoreOpenError> {
        let AuditOptions { folder, store: store_id, age, records_max, data_events, clock } = options;
        let store = AuditStore::open(&folder, store_id)?;
        let mut ids = AuditIds::after(store.load()?);
        let retention = Retention { age, records_max };
        let damaged =
            |failure: StoreFailure| StoreOpenError::damaged(&SCHEMA, &folder, failure.message(&SCHEMA));
        intent::complete_leftovers(&store, &mut ids, clock.now(), &retention).map_err(damaged)?;
        let shared = Arc::new(Shared::new(store, retention, clock));
        let now = Instant::now();
        let io = |error| StoreOpenError::io(&SCHEMA, &folder, error);
        let own = Arc::clone(&shared);
        let writer = WriterThread::start("audit-writer", &SCHEMA, move || Writer::new(own, ids).run());
        let reader = ReaderThread::start("audit-reader", QUERIES_WAITING_MAX, &shared);
        Ok(Arc::new(Self {
            shared,
            data_events,
            refusals: Mutex::new(Limiter::new(REFUSALS, now)),
            findings: Mutex::new(Limiter::new(FINDINGS, now)),
            writer: writer.map_err(io)?,
            reader: reader.map_err(io)?,
        }))
    }

    /// Returns which requests for objects are recorded in addition.
    #[must_use]
    pub fn data_events(&self) -> DataEvents {
        self.data_events
    }

    /// Records a read. The record becomes durable soon after, and usually later than the response. If many commands wait
    /// for the writer, this waits for the record, so that readers are no faster than the trail. A record that finds no space
    /// or a failed device is counted, and the read goes on: a full disk must stay readable.
    ///
    /// # Errors
    /// [`StoreFailure::Overloaded`] and [`StoreFailure::Closing`]. The caller must not send what was read then.
    pub async fn record_read(&self, record: AuditRecord) -> Result<(), StoreFailure> {
        let (reply, answer) = oneshot::channel();
        let command = Command::Append(AuditKind::Read, Box::new(record), reply);
        if self.shared.queue.push(command)? > QUEUE_RECORDS_UNWAITED_MAX {
            let _ = answer.await;
        }
        Ok(())
    }

    /// Records an access with a credential, or counts it if the caller repeats one that is recorded. A record is durable when
    /// the future resolves, and only then may the caller send the response.
    ///
    /// # Errors
    /// As for [`Self::append`].
    pub async fn record_access(&self, credential: &str, record: AuditRecord) -> Result<(), StoreFailure> {
        if self.shared.accesses().admit(credential, &record, Instant::now()) == Merged::Counted {
            metrics::AUDIT_RECORDS_LEFT_OUT.add(1);
            return Ok(());
        }
        let recorded = self.append_as(AuditKind::Access, record.clone()).await;
        if recorded.is_err() {
            self.shared.accesses().revert(credential, &record);
        }
        recorded.map(|_| ())
    }

    /// Records an event of the service. It is durable when the future resolves, and only then may the caller send the
    /// response to the action. Dropping the future does not cancel the record.
    ///
    /// # Errors
    /// After any error the caller must refuse the action, after [`StoreFailure::Full`] with 507.
    pub async fn append(&self, record: AuditRecord) -> Result<AuditId, StoreFailure> {
        self.append_as(AuditKind::Change, record).await
    }

    async fn append_as(&self, kind: AuditKind, record: AuditRecord) -> Result<AuditId, StoreFailure> {
        let (reply, answer) = oneshot::channel();
        self.shared.queue.push(Command::Append(kind, Box::new(record), reply))?;
        answer.await.map_err(|_| StoreFailure::Closing)?
    }

    /// Records that a change is about to begin. The intent is durable when the future resolves, and only then may the caller
    /// begin. [`Intent::complete`] records the outcome. If the process ends before that, the next opening of the trail does.
    ///
    /// # Errors
    /// As for [`Self::append`]. After any error the caller must not begin the change.
    pub async fn record_intent(&self, kind: AuditKind, record: AuditRecord) -> Result<Intent, StoreFailure> {
        let (reply, answer) = oneshot::channel();
        let record = Arc::new(record);
        self.shared.queue.push(Command::Intend(Arc::clone(&record), reply))?;
        let id = answer.await.map_err(|_| StoreFailure::Closing)??;
        Ok(Intent::new(Arc::clone(&self.shared.queue), id, kind, record))
    }

    /// Records an event later, unless its source has caused too many. Never waits.
    pub fn offer(&self, source: Source<'_>, mut record: AuditRecord) {
        let (limiter, source) = match source {
            Source::Client(address) => (&self.refusals, hash_of(&client_network(address))),
            Source::Finding(name) => (&self.findings, hash_of(name)),
        };
        let Admission::Admitted { left_out } = limiter.lock().admit(source, Instant::now()) else {
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
        if self.shared.queue.push(Command::Offer(Box::new(record))).is_err() {
            metrics::AUDIT_RECORDS_LEFT_OUT.add(1);
            limiter.lock().revert_admission(source, left_out);
        }
    }

    /// Returns a page of events, latest first. It includes events that were appended or offered before the call.
    ///
    /// # Errors
    /// [`StoreFailure::Overloaded`] if too many queries wait, [`StoreFailure::Failed`] if the trail cannot be read.
    pub async fn page(&self, query: AuditQuery) -> Result<AuditPage, StoreFailure> {
        let (reply, reached) = oneshot::channel();
        self.shared.queue.push(Command::Barrier(reply))?;
        reached.await.map_err(|_| StoreFailure::Closing)?;
        self.reader.query(move |shared| shared.page(&query)).await?
    }

    /// Returns the trail's environment, for compactions.
    #[must_use]
    pub fn environment(&self) -> Arc<Environment> {
        Arc::clone(self.shared.store.tables.environment())
    }

    /// Returns whether events can be recorded, as far as is known.
    ///
    /// # Errors
    /// The reason, for people.
    pub fn health(&self) -> Result<(), String> {
        self.shared.store.tables.health()
    }

    /// Returns whether events can be recorded, as far as is known, and whether the trail can be read. Blocks for as long as
    /// the device does.
    ///
    /// # Errors
    /// The reason, for people.
    pub fn check(&self) -> Result<(), String> {
        self.health()?;
        let last = self.shared.store.last_id();
        last.map(|_| ()).map_err(|error| format!("the trail cannot be read: {error}"))
    }

    /// Returns the number of records and queries that wait for the writer.
    #[must_use]
    pub fn queue_length(&self) -> usize {
        self.shared.queue.length()
    }

    /// Writes the waiting records and ends the threads. Blocks. Later records are refused with
    /// [`StoreFailure::Closing`].
    pub fn close(&self) {
        self.shared.queue.close();
        self.writer.join();
        self.reader.close();
    }
}

impl Drop for AuditLog {
    fn drop(&mut self) {
        self.close();
    }
}

/// Returns the key of a source for its limiter.
fn hash_of(source: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    source.hash(&mut hasher);
    hasher.finish()
}
