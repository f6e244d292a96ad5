//! The workload of a campaign: tasks that put, overwrite, copy, upload in parts, delete, lock, read slowly and give up half-way.
//!
//! Each task owns keys that it changes one at a time; all share a few that are only put. What they do follows from the seed:
//! every future is polled once a turn, so that nothing depends on when a wake-up from another thread arrives. Here is what
//! all operations share; puts, copies, deletes and reads are in `workload/objects.rs`, versions and locks in
//! `workload/versions.rs`, uploads in `workload/uploads.rs`.

mod objects;
mod uploads;
mod versions;

use crate::bucket::Bucket;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::md5::md5_digest;
use crate::simulation::Random;
use crate::simulation::buckets::{LOCKED, PLAIN, VERSIONED};
use crate::simulation::examine::FixedFiles;
use crate::simulation::history::{History, Place};
use crate::simulation::state::{Change, Content};
use crate::writer::StagedPayload;
use cairn_model::{Etag, ObjectKey};
use futures_lite::future::yield_now;
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

/// Keys that a task owns in each bucket, by number, and keys that all share.
const OWN_KEYS: [u64; 3] = [3, 1, 1];
const SHARED_KEYS: u64 = 2;
/// Payload sizes: inline, around the border to volumes, a few blocks, with a check table.
const SIZES: [u64; 16] = [
    0, 1, 700, 5_000, 16_384, 16_385, 17_000, 20_000, 24_577, 40_000, 65_536, 70_001, 131_072, 200_000,
    270_000, 800_000,
];
/// As [`SIZES`], where many are held at once: versions and parts.
const SMALL_SIZES: [u64; 10] = [0, 700, 16_384, 16_385, 24_577, 40_000, 65_537, 90_000, 131_072, 200_000];
/// Turns between two pieces that a reader takes at most.
const SLOW_READER_TURNS_MAX: u64 = 120;
/// Turns between two operations of a task at most.
const PAUSE_TURNS_MAX: u64 = 8;

/// What the tasks of one executor share.
pub(crate) struct Workload {
    pub(crate) engine: Rc<Engine>,
    pub(crate) buckets: Vec<Arc<Bucket>>,
    pub(crate) history: RefCell<History>,
    /// Read again when the settings of a bucket change.
    pub(crate) fixed: RefCell<Arc<FixedFiles>>,
    /// Tasks that change something; those behind them only read.
    pub(crate) tasks: u64,
    /// Whether the device fails now and then.
    pub(crate) failing: bool,
    pub(crate) stopped: Cell<bool>,
    pub(crate) running: Cell<u64>,
    pub(crate) acknowledged: Cell<u64>,
    pub(crate) reads: Cell<u64>,
    /// What went wrong while the power was on.
    pub(crate) finding: RefCell<Option<String>>,
}

/// Polls a future once a turn of its executor.
pub(crate) async fn each_turn<F: Future>(future: F) -> F::Output {
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

fn bytes(random: &mut Random, sizes: &[u64]) -> Arc<Vec<u8>> {
    let size = usize::try_from(sizes[random.index(sizes.len())]).unwrap_or(0);
    let mut bytes = Vec::with_capacity(size + 8);
    while bytes.len() < size {
        bytes.extend_from_slice(&random.next().to_le_bytes());
    }
    bytes.truncate(size);
    Arc::new(bytes)
}

/// What is put in one piece.
fn whole(bytes: Arc<Vec<u8>>) -> Content {
    Content { etag: Etag::single(md5_digest(&bytes)), bytes, parts: Vec::new() }
}

fn parsed(place: &Place) -> Result<ObjectKey, EngineError> {
    ObjectKey::parse(&place.key).map_err(|_| EngineError::KeyTooLong)
}

impl Workload {
    /// Begins a task.
    pub(crate) fn spawn(self: &Rc<Self>, number: u64, seed: u64) {
        self.running.set(self.running.get() + 1);
        let (own, mut random) = (Rc::clone(self), Random::new(seed));
        glommio::spawn_local(each_turn(async move {
            while !own.stopped.get() {
                own.operation(number, &mut random).await;
                for _ in 0..random.below(PAUSE_TURNS_MAX) {
                    yield_now().await;
                }
            }
            own.running.set(own.running.get() - 1);
        }))
        .detach();
    }

    pub(crate) fn find(&self, what: String) {
        self.finding.borrow_mut().get_or_insert(what);
    }

    async fn operation(self: &Rc<Self>, number: u64, random: &mut Random) {
        let bucket = match random.below(8) {
            0..=3 => PLAIN,
            4..=6 => VERSIONED,
            _ => LOCKED,
        };
        let own_key = |task: u64, random: &mut Random| Place {
            bucket,
            key: format!("task {task}/{}", random.below(OWN_KEYS[bucket])),
        };
        if number >= self.tasks {
            let task = random.below(self.tasks);
            return self.read(&own_key(task, random), random).await;
        }
        let own = own_key(number, random);
        let shared = Place { bucket, key: format!("shared/{}", random.below(SHARED_KEYS)) };
        match (bucket, random.below(8)) {
            (LOCKED, _) => self.change_locked(&own, random).await,
            (_, 0) | (PLAIN, 1) => self.upload(&own, random).await,
            (VERSIONED, 1..=5) => self.change_versions(&own, random).await,
            _ => self.change_object(&own, &shared, random).await,
        }
    }

    fn bucket(&self, place: &Place) -> &Arc<Bucket> {
        &self.buckets[place.bucket]
    }

    /// Sizes of what is put at a place.
    fn sizes(place: &Place) -> &'static [u64] {
        if place.bucket == PLAIN { &SIZES } else { &SMALL_SIZES }
    }

    /// Writes a payload; gives up, with `None`, when `most` of its bytes are written.
    async fn stage(
        &self,
        place: &Place,
        bytes: &[u8],
        most: usize,
    ) -> Result<Option<StagedPayload>, EngineError> {
        let key = parsed(place)?;
        let mut writer = self.engine.write_payload(self.bucket(place), &key, bytes.len() as u64).await?;
        let mut done = 0;
        while done < bytes.len() {
            if done >= most {
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

    /// As [`Self::stage`], of all the bytes.
    async fn stage_all(&self, place: &Place, bytes: &[u8]) -> Result<StagedPayload, EngineError> {
        self.stage(place, bytes, usize::MAX).await?.ok_or(EngineError::ShuttingDown)
    }

    /// Makes a change, which the history knows of as long as it is under way. `made` tells the sequence of what an
    /// acknowledged change made, and whether that is a null version.
    async fn change<T>(
        &self,
        place: &Place,
        change: Change,
        doing: impl Future<Output = Result<T, EngineError>>,
        made: impl FnOnce(&T) -> (u64, bool),
    ) -> Result<T, EngineError> {
        let number = self.history.borrow_mut().begin(place, change);
        let outcome = doing.await;
        match &outcome {
            Ok(done) => {
                self.acknowledged.set(self.acknowledged.get() + 1);
                let (id, is_null) = made(done);
                let told = self.history.borrow_mut().acknowledge(place, number, id, is_null);
                if let Err(what) = told {
                    self.find(what);
                }
            }
            Err(error) => {
                self.history.borrow_mut().refuse(place, number);
                self.refused(place, error);
            }
        }
        outcome
    }

    fn refused(&self, place: &Place, error: &EngineError) {
        let expected = match error {
            EngineError::PreconditionFailed | EngineError::NoSuchKey => true,
            EngineError::Io(_) | EngineError::StorageFull => self.failing,
            _ => false,
        };
        if !expected {
            self.find(format!("a change of {place} failed: {error}"));
        }
    }

    /// Whether something is refused as it must be.
    fn expect_refusal<T: std::fmt::Debug>(
        &self,
        what: &str,
        place: &Place,
        outcome: &Result<T, EngineError>,
        refusal: &EngineError,
    ) {
        match outcome {
            Err(error) if error == refusal => {}
            Err(EngineError::Io(_) | EngineError::StorageFull) if self.failing => {}
            other => self.find(format!("{what} of {place} must be refused, and gave {other:?}")),
        }
    }
}

/// Waits for all tasks to end.
pub(crate) async fn ended(workload: &Workload) {
    poll_fn(|context| {
        if workload.running.get() == 0 {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
