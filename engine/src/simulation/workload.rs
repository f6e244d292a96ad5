//! The workload of a campaign: tasks that put, overwrite, put on conditions, delete, read slowly and give up half-way.
//!
//! Each task owns keys that it changes one at a time; all share a few that are only put. What they do follows from the seed:
//! every future is polled once a turn, so that nothing depends on when a wake-up from another thread arrives.

use crate::bucket::Bucket;
use crate::engine::{Engine, PutObject};
use crate::error::EngineError;
use crate::hasher::yield_once;
use crate::md5::md5_digest;
use crate::object::{Attributes, EtagMatch, WriteCondition};
use crate::simulation::Random;
use crate::simulation::history::{Content, History};
use cairn_model::{Etag, ObjectKey};
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

/// Keys that a task owns, and keys that all share.
const OWN_KEYS: u64 = 3;
const SHARED_KEYS: u64 = 2;
/// Payload sizes: inline, around the border to volumes, a few blocks, with a check table.
const SIZES: [u64; 16] = [
    0, 1, 700, 5_000, 16_384, 16_385, 17_000, 20_000, 24_577, 40_000, 65_536, 70_001, 131_072, 200_000,
    270_000, 400_000,
];
/// Turns between two pieces that a reader takes at most.
const SLOW_READER_TURNS_MAX: u64 = 120;
/// Turns between two operations of a task at most.
const PAUSE_TURNS_MAX: u64 = 8;

/// What the tasks of one executor share.
pub(crate) struct Workload {
    pub(crate) engine: Rc<Engine>,
    pub(crate) bucket: Arc<Bucket>,
    pub(crate) history: RefCell<History>,
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

fn content(random: &mut Random) -> Content {
    let size = SIZES[random.index(SIZES.len())];
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0) + 8);
    while (bytes.len() as u64) < size {
        bytes.extend_from_slice(&random.next().to_le_bytes());
    }
    bytes.truncate(usize::try_from(size).unwrap_or(0));
    Content { etag: Etag::single(md5_digest(&bytes)), bytes: Arc::new(bytes) }
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
                    yield_once().await;
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
        let own = format!("task {number}/{}", random.below(OWN_KEYS));
        let shared = format!("shared/{}", random.below(SHARED_KEYS));
        if number >= self.tasks {
            let anybodys = format!("task {}/{}", random.below(self.tasks), random.below(OWN_KEYS));
            return self.read(&anybodys, random).await;
        }
        let absent = WriteCondition { must_be_absent: true, ..WriteCondition::default() };
        match random.below(16) {
            0..=5 => drop(self.put(&own, content(random), WriteCondition::default()).await),
            6 => drop(self.put(&shared, content(random), WriteCondition::default()).await),
            7 => drop(self.put(&shared, content(random), absent).await),
            8 => self.put_if_unchanged(&own, random).await,
            9..=11 => self.delete(&own).await,
            12 => self.give_up(&own, content(random)).await,
            13 => self.read(&own, random).await,
            _ => self.read(&shared, random).await,
        }
    }

    async fn stage(
        &self,
        key: &ObjectKey,
        bytes: &[u8],
        most: usize,
    ) -> Result<Option<crate::writer::StagedPayload>, EngineError> {
        let mut writer = self.engine.write_payload(&self.bucket, key, bytes.len() as u64).await?;
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

    /// Puts; `Ok` when it was acknowledged.
    async fn put(&self, name: &str, content: Content, condition: WriteCondition) -> Result<(), EngineError> {
        let conditional = condition.must_be_absent;
        let key = ObjectKey::parse(name).map_err(|_| EngineError::KeyTooLong)?;
        let change = self.history.borrow_mut().begin(name, Some(content.clone()));
        let outcome = match self.stage(&key, &content.bytes, usize::MAX).await {
            Ok(Some(payload)) => {
                let put = PutObject {
                    bucket: Arc::clone(&self.bucket),
                    key,
                    payload,
                    etag: content.etag,
                    attributes: Attributes::default(),
                    condition,
                    lock: crate::lock::ObjectLock::default(),
                };
                self.engine.put_object(put).await
            }
            Ok(None) => Err(EngineError::ShuttingDown),
            Err(error) => Err(error),
        };
        let mut history = self.history.borrow_mut();
        match outcome {
            Ok(put) => {
                self.acknowledged.set(self.acknowledged.get() + 1);
                history.acknowledge(name, change, Some(put.version.0));
                Ok(())
            }
            Err(error) => {
                history.refuse(name, change);
                if conditional && error == EngineError::PreconditionFailed {
                    history.exists(name);
                }
                drop(history);
                self.refused(name, &error);
                Err(error)
            }
        }
    }

    fn refused(&self, name: &str, error: &EngineError) {
        let expected = match error {
            EngineError::PreconditionFailed | EngineError::NoSuchKey => true,
            EngineError::Io(_) | EngineError::StorageFull => self.failing,
            _ => false,
        };
        if !expected {
            self.find(format!("a change of {name} failed: {error}"));
        }
    }

    /// A put on the condition that the object is still the one that was put last, or one that never was.
    async fn put_if_unchanged(&self, name: &str, random: &mut Random) {
        let current = self.history.borrow().certain(name).flatten();
        let right = random.below(3) > 0;
        let tag = current.filter(|_| right).map_or_else(|| "none".to_owned(), |c| c.etag.to_string());
        let holds = tag != "none";
        let condition =
            WriteCondition { if_match: Some(EtagMatch::OneOf(vec![tag])), ..WriteCondition::default() };
        if self.put(name, content(random), condition).await.is_ok() && !holds {
            self.find(format!("{name} was overwritten although its tag is another"));
        }
    }

    async fn delete(&self, name: &str) {
        let Ok(key) = ObjectKey::parse(name) else { return };
        let change = self.history.borrow_mut().begin(name, None);
        let outcome =
            self.engine.delete_object(&self.bucket, &key, crate::object::DeleteOptions::default()).await;
        match outcome {
            Ok(_) => {
                self.acknowledged.set(self.acknowledged.get() + 1);
                self.history.borrow_mut().acknowledge(name, change, None);
            }
            Err(error) => {
                self.history.borrow_mut().refuse(name, change);
                self.refused(name, &error);
            }
        }
    }

    /// A client that goes away in the middle of its upload.
    async fn give_up(&self, name: &str, content: Content) {
        let Ok(key) = ObjectKey::parse(name) else { return };
        if let Err(error) = self.stage(&key, &content.bytes, content.bytes.len() / 2).await {
            self.refused(name, &error);
        }
    }

    /// A slow reader: sees one version, whole, whatever happens meanwhile.
    async fn read(self: &Rc<Self>, name: &str, random: &mut Random) {
        let Ok(key) = ObjectKey::parse(name) else { return };
        let certain = self.history.borrow().certain(name);
        let open = match self.engine.open_whole(&self.bucket, &key, None) {
            Ok(open) => open,
            Err(EngineError::NoSuchKey) => {
                if certain.is_some_and(|state| state.is_some()) {
                    self.find(format!("{name} was put and is not there"));
                }
                return;
            }
            Err(error) => return self.find(format!("{name} cannot be opened: {error}")),
        };
        let etag = open.info.etag;
        if certain.is_some_and(|state| state.is_none_or(|content| content.etag != etag)) {
            self.find(format!("{name} is not what was put last"));
        }
        let mut reader = open.read();
        let mut bytes = Vec::new();
        loop {
            match reader.next().await {
                Ok(Some(chunk)) => bytes.extend_from_slice(chunk.as_ref()),
                Ok(None) => break,
                Err(EngineError::Io(_)) if self.failing => return,
                Err(error) => return self.find(format!("{name} cannot be read: {error}")),
            }
            for _ in 0..random.below(SLOW_READER_TURNS_MAX) {
                yield_once().await;
            }
        }
        self.reads.set(self.reads.get() + 1);
        if Etag::single(md5_digest(&bytes)) != etag {
            self.find(format!("{name} was read torn: {} bytes", bytes.len()));
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
