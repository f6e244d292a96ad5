//! Computes the MD5 of several uploads at once, with SIMD lanes.
//!
//! A writer passes each full buffer to its [`HashStream`]. One task of the executor takes a piece from up to eight streams
//! with queued buffers, hashes the pieces together, and then yields to other tasks. Streams do not wait for each other: a
//! single stream is hashed alone. The writers bound work and memory: none passes another buffer while
//! [`WRITES_IN_FLIGHT_MAX`] of its buffers wait.

use crate::device::executor_files::SharedBuffer;
use crate::executor::memory_budget::MemoryPermit;
use crate::limits::WRITES_IN_FLIGHT_MAX;
use crate::md5::{LANES, Lane, MD5_BLOCK_BYTES, Md5, lanes_pay, update_lanes};
use futures_channel::oneshot;
use futures_lite::future::yield_now;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

/// Bytes of each stream that are hashed before the task yields: about 0.1 ms of work, for one lane or eight.
const ROUND_BYTES: usize = 32 * 1024;

/// The streams of one executor with queued buffers.
#[derive(Clone, Default)]
pub(crate) struct Hasher(Rc<Shared>);

#[derive(Default)]
struct Shared {
    waiting: RefCell<VecDeque<Rc<RefCell<State>>>>,
    running: Cell<bool>,
}

/// A buffer that waits to be hashed.
struct Queued {
    buffer: SharedBuffer,
    /// Payload bytes in the buffer.
    length: usize,
    /// Payload bytes that have been hashed.
    done: usize,
    /// Notified after the buffer was hashed and released; dropped if that never happens.
    hashed: Option<oneshot::Sender<()>>,
    /// Holds the buffer's memory until it has been hashed.
    _permit: Rc<MemoryPermit>,
}

struct State {
    md5: Md5,
    queue: VecDeque<Queued>,
    /// Wakes the writer when it waits for progress.
    waker: Option<Waker>,
}

/// The MD5 of one payload. Dropping it discards the buffers that wait.
pub(crate) struct HashStream {
    hasher: Hasher,
    state: Rc<RefCell<State>>,
}

impl Drop for HashStream {
    fn drop(&mut self) {
        self.state.borrow_mut().queue.clear();
    }
}

impl HashStream {
    pub(crate) fn new(hasher: &Hasher) -> Self {
        let state = State { md5: Md5::new(), queue: VecDeque::new(), waker: None };
        Self { hasher: hasher.clone(), state: Rc::new(RefCell::new(state)) }
    }

    /// Queues a buffer whose first `length` bytes are payload. `hashed` is notified after they were hashed and the buffer was
    /// released.
    pub(crate) fn push(
        &self,
        buffer: SharedBuffer,
        length: usize,
        permit: Rc<MemoryPermit>,
        hashed: Option<oneshot::Sender<()>>,
    ) {
        assert!(length <= buffer.as_bytes().len(), "the payload lies within its buffer");
        let mut state = self.state.borrow_mut();
        state.queue.push_back(Queued { buffer, length, done: 0, hashed, _permit: permit });
        if state.queue.len() == 1 {
            self.hasher.0.waiting.borrow_mut().push_back(Rc::clone(&self.state));
            self.hasher.start();
        }
    }

    /// Waits until another buffer may be queued.
    pub(crate) async fn has_room(&self) {
        self.wait_for(WRITES_IN_FLIGHT_MAX - 1).await;
    }

    /// Waits until all buffers are hashed, and returns the digest.
    pub(crate) async fn finish(self) -> [u8; 16] {
        self.wait_for(0).await;
        let state = self.state.borrow();
        state.md5.clone().finish()
    }

    async fn wait_for(&self, queued_max: usize) {
        poll_fn(|context| {
            let mut state = self.state.borrow_mut();
            if state.queue.len() <= queued_max {
                return Poll::Ready(());
            }
            state.waker = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

impl Hasher {
    fn start(&self) {
        if self.0.running.replace(true) {
            return;
        }
        let shared = Rc::clone(&self.0);
        glommio::spawn_local(async move {
            // Yield first, so that other uploads can queue buffers: full SIMD lanes cost no more than one.
            yield_now().await;
            while shared.hash_round() {
                yield_now().await;
            }
            shared.running.set(false);
        })
        .detach();
    }
}

impl Shared {
    /// Hashes one piece of up to eight streams; `false` when no buffer is queued.
    fn hash_round(&self) -> bool {
        let lanes_max = if lanes_pay() { LANES } else { 1 };
        let streams: Vec<_> = {
            let mut waiting = self.waiting.borrow_mut();
            let count = waiting.len().min(lanes_max);
            waiting.drain(..count).collect()
        };
        let mut states: Vec<_> = streams
            .iter()
            .map(|stream| stream.borrow_mut())
            .filter(|state| !state.queue.is_empty())
            .collect();
        if states.is_empty() {
            drop(states);
            return !self.waiting.borrow().is_empty();
        }
        hash_together(&mut states);
        for state in &mut states {
            if state.queue.front().is_some_and(|front| front.done == front.length) {
                if let Some(Queued { buffer, hashed, .. }) = state.queue.pop_front() {
                    drop(buffer);
                    // The receiver is gone when the upload was cancelled. Unencrypted payloads have none.
                    let _ = hashed.map(|hashed| hashed.send(()));
                }
                if let Some(waker) = state.waker.take() {
                    waker.wake();
                }
            }
        }
        drop(states);
        let unfinished = streams.into_iter().filter(|stream| !stream.borrow().queue.is_empty());
        self.waiting.borrow_mut().extend(unfinished);
        true
    }
}

/// Hashes the same number of bytes of every stream. At the end of a payload it also hashes the last incomplete block.
fn hash_together(states: &mut [std::cell::RefMut<'_, State>]) {
    let mut lanes: Vec<Lane<'_>> = Vec::with_capacity(states.len());
    for state in states.iter_mut() {
        let State { md5, queue, .. } = &mut **state;
        let Some(front) = queue.front() else { continue };
        let end = front.length.min(front.done + ROUND_BYTES);
        lanes.push(Lane { md5, bytes: &front.buffer.as_bytes()[front.done..end] });
    }
    let taken = if let [lane] = &mut lanes[..] {
        lane.md5.update(lane.bytes);
        lane.bytes.len()
    } else {
        update_lanes(&mut lanes)
    };
    for state in states.iter_mut() {
        let State { md5, queue, .. } = &mut **state;
        let Some(front) = queue.front_mut() else { continue };
        front.done += taken;
        assert!(front.done <= front.length, "lanes take no more bytes than they were given");
        let rest = &front.buffer.as_bytes()[front.done..front.length];
        if rest.len() < MD5_BLOCK_BYTES {
            md5.update(rest);
            front.done = front.length;
        }
    }
}
