//! The workload of a campaign: tasks that put, copy, upload in parts, delete, lock and read slowly, and that abandon uploads.
//!
//! Each task owns keys, which it changes one at a time. All tasks share a few keys that are only put. What they do depends on
//! the seed: every future is polled at each turn of the executor, so that nothing depends on when another thread wakes it.
//! This file has what all operations share. Puts, copies, deletes and reads are in `workload/objects.rs`, versions and locks
//! in `workload/versions.rs`, uploads in `workload/uploads.rs`, lifecycle rules in `workload/lifecycle.rs`.

mod lifecycle;
mod objects;
mod uploads;
mod versions;

use crate::api::engine::Engine;
use crate::error::EngineError;
use crate::fault::Random;
use crate::simulation::buckets::{LOCKED, PLAIN, VERSIONED};
use crate::simulation::history::{BucketKey, History};
use crate::simulation::key_state::{Change, Content};
use crate::simulation::recovery::StaticFiles;
use crate::simulation::violation::{Violation, ViolationKind};
use crate::slice::staged::StagedPayload;
use crate::types::bucket::Bucket;
use cairn_md5::md5_digest;
use cairn_model::{Etag, ObjectKey, usize_of};
use futures_lite::future::yield_now;
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

/// Keys that a task owns in each bucket, by the bucket's number.
const OWN_KEYS: [u64; 3] = [3, 1, 1];
/// Keys of each bucket that all tasks share.
const SHARED_KEYS: u64 = 2;
/// Payload sizes: inline, around the largest inline size, a few blocks, with a check table.
const SIZES: [u64; 16] = [
    0, 1, 700, 5_000, 16_384, 16_385, 17_000, 20_000, 24_577, 40_000, 65_536, 70_001, 131_072, 200_000,
    270_000, 800_000,
];
/// Payload sizes of versions and parts, of which a key holds several.
const SMALL_SIZES: [u64; 10] = [0, 700, 16_384, 16_385, 24_577, 40_000, 65_537, 90_000, 131_072, 200_000];
/// A slow reader yields fewer times than this between two pieces.
const SLOW_READER_YIELDS_BOUND: u64 = 120;
/// A task yields fewer times than this between two operations.
const PAUSE_YIELDS_BOUND: u64 = 8;

/// The state that the tasks of one executor share.
pub(crate) struct Workload {
    pub(crate) engine: Rc<Engine>,
    /// By number.
    pub(crate) buckets: Vec<Arc<Bucket>>,
    pub(crate) history: RefCell<History>,
    /// Read again when the settings of a bucket change.
    pub(crate) static_files: RefCell<Arc<StaticFiles>>,
    /// Tasks that change something. Tasks with higher numbers only read.
    pub(crate) tasks: u64,
    /// Whether requests may fail because of planned failures of the disk.
    pub(crate) has_failing_disk: bool,
    pub(crate) stopped: Cell<bool>,
    pub(crate) running: Cell<u64>,
    pub(crate) acknowledged: Cell<u64>,
    pub(crate) reads: Cell<u64>,
    /// The first violation before any power cut.
    pub(crate) violation: RefCell<Option<Violation>>,
}

/// Polls a future at each turn of its executor, whether it was woken or not.
pub(crate) async fn poll_continuously<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|context| {
        let polled = future.as_mut().poll(context);
        if polled.is_pending() {
            context.waker().wake_by_ref();
        }
        polled
    })
    .await
}

/// Returns random bytes of one of the sizes.
fn random_bytes(random: &mut Random, sizes: &[u64]) -> Arc<Vec<u8>> {
    let size = usize_of(sizes[random.index(sizes.len())]);
    let mut bytes = Vec::with_capacity(size + 8);
    while bytes.len() < size {
        bytes.extend_from_slice(&random.next().to_le_bytes());
    }
    bytes.truncate(size);
    Arc::new(bytes)
}

/// Returns the content of an object that is put with one request.
fn single_put(bytes: Arc<Vec<u8>>) -> Content {
    Content { etag: Etag::single(md5_digest(&bytes)), bytes, parts: Vec::new() }
}

fn object_key(key: &BucketKey) -> ObjectKey {
    ObjectKey::parse(&key.key).expect("the workload's keys are valid")
}

impl Workload {
    /// Starts a task.
    pub(crate) fn spawn(self: &Rc<Self>, number: u64, seed: u64) {
        self.running.set(self.running.get() + 1);
        let (workload, mut random) = (Rc::clone(self), Random::new(seed));
        glommio::spawn_local(poll_continuously(async move {
            while !workload.stopped.get() {
                workload.run_operation(number, &mut random).await;
                for _ in 0..random.below(PAUSE_YIELDS_BOUND) {
                    yield_now().await;
                }
            }
            workload.running.set(workload.running.get() - 1);
        }))
        .detach();
    }

    /// Waits for all tasks to end.
    pub(crate) async fn wait_for_tasks(&self) {
        poll_fn(|context| {
            if self.running.get() == 0 {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    /// Records a violation, unless there is one already.
    pub(crate) fn report(&self, violation: Violation) {
        self.violation.borrow_mut().get_or_insert(violation);
    }

    fn report_mismatch(&self, detail: String) {
        self.report(Violation::new(ViolationKind::StateMismatch, detail));
    }

    fn report_wrong_outcome(&self, detail: String) {
        self.report(Violation::new(ViolationKind::WrongOutcome, detail));
    }

    async fn run_operation(self: &Rc<Self>, number: u64, random: &mut Random) {
        let bucket = match random.below(8) {
            0..=3 => PLAIN,
            4..=6 => VERSIONED,
            _ => LOCKED,
        };
        let key_of = |task: u64, random: &mut Random| BucketKey {
            bucket,
            key: format!("task {task}/{}", random.below(OWN_KEYS[bucket])),
        };
        if number >= self.tasks {
            let task = random.below(self.tasks);
            return self.read(&key_of(task, random), random).await;
        }
        let own = key_of(number, random);
        let shared = BucketKey { bucket, key: format!("shared/{}", random.below(SHARED_KEYS)) };
        match random.below(16) {
            0 => return self.step_due_index(&own, random).await,
            1 => return self.expire(&own, &shared, random).await,
            _ => {}
        }
        match (bucket, random.below(8)) {
            (LOCKED, _) => self.change_locked(&own, random).await,
            (_, 0) | (PLAIN, 1) => self.upload(&own, random).await,
            (VERSIONED, 1..=5) => self.change_versions(&own, random).await,
            _ => self.change_object(&own, &shared, random).await,
        }
    }

    fn bucket(&self, key: &BucketKey) -> &Arc<Bucket> {
        &self.buckets[key.bucket]
    }

    /// Returns the sizes of payloads for a key.
    fn sizes(key: &BucketKey) -> &'static [u64] {
        if key.bucket == PLAIN { &SIZES } else { &SMALL_SIZES }
    }

    /// Writes a payload. Stops with `None` when at least `limit` of its bytes are written and some are left.
    async fn stage(
        &self,
        key: &BucketKey,
        bytes: &[u8],
        limit: usize,
    ) -> Result<Option<StagedPayload>, EngineError> {
        let bytes_in_total = bytes.len() as u64;
        let mut writer =
            self.engine.write_payload(self.bucket(key), &object_key(key), bytes_in_total).await?;
        let mut done = 0;
        while done < bytes.len() {
            if done >= limit {
                return Ok(None);
            }
            let room = writer.buffer().await?;
            let count = room.len().min(bytes.len() - done);
            room[..count].copy_from_slice(&bytes[done..done + count]);
            writer.advance(count)?;
            done += count;
        }
        writer.finish().await.map(Some)
    }

    /// Writes a whole payload.
    async fn stage_all(&self, key: &BucketKey, bytes: &[u8]) -> Result<StagedPayload, EngineError> {
        let staged = self.stage(key, bytes, usize::MAX).await?;
        Ok(staged.expect("no payload is as long as the limit"))
    }

    /// Makes a change, which is in flight in the history until it is answered. `created` returns the sequence of what an
    /// acknowledged change created, and whether that is a null version.
    async fn change<T>(
        &self,
        key: &BucketKey,
        change: Change,
        request: impl Future<Output = Result<T, EngineError>>,
        created: impl FnOnce(&T) -> (u64, bool),
    ) -> Result<T, EngineError> {
        let number = self.history.borrow_mut().begin(key, change);
        let outcome = request.await;
        match &outcome {
            Ok(done) => {
                self.acknowledged.set(self.acknowledged.get() + 1);
                let (id, is_null) = created(done);
                let acknowledged = self.history.borrow_mut().acknowledge(key, number, id, is_null);
                if let Err(violation) = acknowledged {
                    self.report(violation);
                }
            }
            Err(error) => {
                self.history.borrow_mut().refuse(key, number);
                self.check_refusal(key, error);
            }
        }
        outcome
    }

    /// Reports a refused change unless a condition or the disk explains it.
    fn check_refusal(&self, key: &BucketKey, error: &EngineError) {
        let is_expected = match error {
            EngineError::PreconditionFailed(_) | EngineError::NoSuchKey => true,
            EngineError::Io(_) | EngineError::StorageFull => self.has_failing_disk,
            _ => false,
        };
        if !is_expected {
            let detail = format!("a change of {key} failed: {error}");
            self.report(Violation::new(ViolationKind::ChangeFailed, detail));
        }
    }

    /// Reports an outcome other than this refusal.
    fn expect_refusal<T: std::fmt::Debug>(
        &self,
        what: &str,
        key: &BucketKey,
        outcome: &Result<T, EngineError>,
        refusal: &EngineError,
    ) {
        match outcome {
            Err(error) if error == refusal => {}
            Err(EngineError::Io(_) | EngineError::StorageFull) if self.has_failing_disk => {}
            other => {
                let is_lock = *refusal == EngineError::ObjectLocked && other.is_ok();
                let kind = if is_lock { ViolationKind::LockIgnored } else { ViolationKind::WrongOutcome };
                let detail = format!("{what} of {key} must be refused, and gave {other:?}");
                self.report(Violation::new(kind, detail));
            }
        }
    }
}
