//! The MD5 of an executor's uploads, computed side by side.
//!
//! A writer hands each full buffer to its [`HashStream`]; one task of the executor takes a piece from up to eight streams
//! that have something and hashes the pieces together, then lets other tasks run. Nobody waits for others to arrive: a lone
//! stream is hashed alone. Work and memory are bounded by the writers, which hand over no further buffer while
//! [`WRITES_IN_FLIGHT_MAX`] of theirs wait.

use crate::disk::SharedBuffer;
use crate::limits::WRITES_IN_FLIGHT_MAX;
use crate::md5::{LANES, Lane, MD5_BLOCK_BYTES, Md5, lanes_pay, update_lanes};
use crate::upload_budget::Grant;
use futures_channel::oneshot;
use futures_lite::future::yield_now;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

/// Bytes of each stream that are hashed before other tasks may run: 0.1 ms of work for eight lanes, or for one.
const TURN_BYTES: usize = 32 * 1024;

/// The streams of one executor that have something to hash.
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
    /// Payload bytes in it, and how many of them have been hashed.
    length: usize,
    done: usize,
    /// Told when the buffer has been hashed and let go; dropped untold when it never will be.
    hashed: Option<oneshot::Sender<()>>,
    /// Its memory is granted until it has been hashed.
    _grant: Rc<Grant>,
}

struct State {
    md5: Md5,
    queue: VecDeque<Queued>,
    /// The writer, when it waits for progress.
    waker: Option<Waker>,
}

/// The MD5 of one payload. Dropped early: what waits is not hashed.
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

    /// Hands over a buffer whose first `length` bytes are payload. `hashed` is told when they have been hashed and the buffer
    /// is let go.
    pub(crate) fn push(
        &self,
        buffer: SharedBuffer,
        length: usize,
        grant: Rc<Grant>,
        hashed: Option<oneshot::Sender<()>>,
    ) {
        let mut state = self.state.borrow_mut();
        state.queue.push_back(Queued { buffer, length, done: 0, hashed, _grant: grant });
        if state.queue.len() == 1 {
            self.hasher.0.waiting.borrow_mut().push_back(Rc::clone(&self.state));
            self.hasher.start();
        }
    }

    /// Waits until another buffer may be handed over.
    pub(crate) async fn has_room(&self) {
        self.wait_for(WRITES_IN_FLIGHT_MAX - 1).await;
    }

    /// Waits until everything is hashed, and gives the digest.
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
            // Let uploads that are ready to hand something over do so: lanes are cheap when they are full.
            yield_now().await;
            while shared.hash_a_turn() {
                yield_now().await;
            }
            shared.running.set(false);
        })
        .detach();
    }
}

impl Shared {
    /// Hashes a piece of up to eight streams; `false` when there was nothing to hash.
    fn hash_a_turn(&self) -> bool {
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
                    // A plain payload's writer does not wait for it.
                    // When the upload was given up, nobody listens.
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

/// Hashes the same number of bytes of every stream, and at a payload's end the few that fill no block.
fn hash_together(states: &mut [std::cell::RefMut<'_, State>]) {
    let mut lanes: Vec<Lane<'_>> = Vec::with_capacity(states.len());
    for state in states.iter_mut() {
        let State { md5, queue, .. } = &mut **state;
        let Some(front) = queue.front() else { continue };
        let end = front.length.min(front.done + TURN_BYTES);
        lanes.push(Lane { md5, bytes: front.buffer.as_bytes().get(front.done..end).unwrap_or_default() });
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
        let rest = front.buffer.as_bytes().get(front.done..front.length).unwrap_or_default();
        if rest.len() < MD5_BLOCK_BYTES {
            md5.update(rest);
            front.done = front.length;
        }
    }
}
