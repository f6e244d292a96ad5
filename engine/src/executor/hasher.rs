//! Computes the MD5 of several uploads at once, with SIMD lanes.
//!
//! A writer passes each full buffer to its [`HashStream`]. One task of the executor takes a piece from each stream with queued
//! buffers, as many as there are lanes, hashes the pieces together, and then yields to other tasks. Full lanes cost little more
//! than one. Therefore the task waits for other streams, but not long: until each expected stream has a buffer or no lane is
//! left, until a stream has two buffers or its writer waits, or until [`HOLD_BACK`] has passed. A stream is expected from its
//! first buffer on. A stream that missed one round is not waited for again until its next buffer arrives, so a slow client
//! delays others once. The writers bound work and memory: none passes another buffer while [`WRITES_IN_FLIGHT_MAX`] of its
//! buffers wait.

use crate::device::executor_files::SharedBuffer;
use crate::executor::memory_budget::MemoryPermit;
use crate::limits::WRITES_IN_FLIGHT_MAX;
use cairn_md5::{Lane, MD5_BLOCK_BYTES, Md5, lanes_max, update_lanes};
use futures_channel::oneshot;
use futures_lite::future::{or, yield_now};
use glommio::timer::sleep;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration;

/// Bytes of each stream that are hashed before the task yields: about 0.1 ms of work, for one lane or sixteen.
const ROUND_BYTES: usize = 32 * 1024;

/// Longest time that buffers wait for those of other streams. A buffer takes about as long to arrive at 2 GB/s, so streams that
/// keep a core busy meet within it. It also bounds how long a slow client delays the others.
const HOLD_BACK: Duration = Duration::from_micros(500);

/// The streams of one executor with queued buffers.
#[derive(Clone)]
pub(crate) struct Hasher(Rc<Shared>);

struct Shared {
    hold_back: Cell<Duration>,
    /// The streams with queued buffers, in the order in which they are hashed.
    waiting: RefCell<VecDeque<Rc<RefCell<State>>>>,
    /// The number of streams that are expected to have a buffer soon: those of the current epoch.
    expected: Cell<usize>,
    /// Counts the waits that were in vain.
    epoch: Cell<u64>,
    running: Cell<bool>,
    /// Wakes the task while it holds buffers back.
    held_back: RefCell<Option<Waker>>,
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
    /// The stream is expected while this is the epoch of the hasher. 0 before its first buffer.
    epoch: u64,
}

/// The MD5 of one payload. Dropping it discards the buffers that wait.
pub(crate) struct HashStream {
    hasher: Hasher,
    state: Rc<RefCell<State>>,
}

impl Drop for HashStream {
    fn drop(&mut self) {
        let mut state = self.state.borrow_mut();
        state.queue.clear();
        let Shared { expected, epoch, .. } = &*self.hasher.0;
        if state.epoch == epoch.get() {
            expected.set(expected.get() - 1);
        }
        drop(state);
        self.hasher.0.reconsider();
    }
}

impl HashStream {
    pub(crate) fn new(hasher: &Hasher) -> Self {
        let state = State { md5: Md5::new(), queue: VecDeque::new(), waker: None, epoch: 0 };
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
        self.hasher.0.expect(&mut state);
        if state.queue.len() == 1 {
            self.hasher.0.waiting.borrow_mut().push_back(Rc::clone(&self.state));
            self.hasher.start();
        }
        drop(state);
        self.hasher.0.reconsider();
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
            drop(state);
            self.hasher.0.reconsider();
            Poll::Pending
        })
        .await;
    }
}

impl Default for Hasher {
    fn default() -> Self {
        Self::holding_back(HOLD_BACK)
    }
}

impl Hasher {
    /// Buffers wait at most `hold_back` for those of other streams.
    fn holding_back(hold_back: Duration) -> Self {
        Self(Rc::new(Shared {
            hold_back: Cell::new(hold_back),
            waiting: RefCell::default(),
            expected: Cell::default(),
            epoch: Cell::new(1),
            running: Cell::default(),
            held_back: RefCell::default(),
        }))
    }

    fn start(&self) {
        if self.0.running.replace(true) {
            return;
        }
        let shared = Rc::clone(&self.0);
        glommio::spawn_local(async move {
            // Yield first, so that other uploads can queue buffers.
            yield_now().await;
            while !shared.waiting.borrow().is_empty() {
                shared.hold_back().await;
                shared.hash_round();
                yield_now().await;
            }
            shared.running.set(false);
        })
        .detach();
    }
}

impl Shared {
    /// Waits until a round is worth its time.
    async fn hold_back(&self) {
        if self.round_is_due() {
            return;
        }
        let due = poll_fn(|context| {
            if self.round_is_due() {
                return Poll::Ready(());
            }
            *self.held_back.borrow_mut() = Some(context.waker().clone());
            Poll::Pending
        });
        let in_vain = async {
            sleep(self.hold_back.get()).await;
            self.expect_only_waiting();
        };
        or(due, in_vain).await;
        self.held_back.borrow_mut().take();
    }

    /// Expects further buffers of a stream.
    fn expect(&self, state: &mut State) {
        let epoch = self.epoch.get();
        if state.epoch != epoch {
            state.epoch = epoch;
            self.expected.set(self.expected.get() + 1);
        }
    }

    /// Expects nothing more of streams without queued buffers.
    fn expect_only_waiting(&self) {
        self.epoch.set(self.epoch.get() + 1);
        self.expected.set(0);
        for stream in &*self.waiting.borrow() {
            self.expect(&mut stream.borrow_mut());
        }
    }

    /// Returns whether waiting longer would fill no lane, or would make a writer wait.
    fn round_is_due(&self) -> bool {
        let waiting = self.waiting.borrow();
        let is_full = waiting.len() >= self.expected.get().min(lanes_max());
        is_full
            || waiting.iter().any(|stream| {
                let state = stream.borrow();
                state.queue.is_empty() || state.queue.len() > 1 || state.waker.is_some()
            })
    }

    /// Wakes the task if it holds buffers back and should not any more.
    fn reconsider(&self) {
        if self.held_back.borrow().is_some() && self.round_is_due() {
            let waker = self.held_back.borrow_mut().take();
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    /// Hashes one piece of as many streams as there are lanes.
    fn hash_round(&self) {
        let streams: Vec<_> = {
            let mut waiting = self.waiting.borrow_mut();
            let count = waiting.len().min(lanes_max());
            waiting.drain(..count).collect()
        };
        let mut states: Vec<_> = streams
            .iter()
            .map(|stream| stream.borrow_mut())
            .filter(|state| !state.queue.is_empty())
            .collect();
        if states.is_empty() {
            // All of them were dropped.
            return;
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
    let taken = update_lanes(&mut lanes);
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

#[cfg(test)]
mod tests {
    use super::{HashStream, Hasher};
    use crate::device::executor_files::SharedBuffer;
    use crate::executor::memory_budget::{MemoryBudget, Recall};
    use cairn_fixtures::on_executor;
    use cairn_md5::{lanes_max, md5_digest};
    use futures_lite::future::yield_now;
    use glommio::io::DmaFile;
    use glommio::timer::sleep;
    use std::rc::Rc;
    use std::time::Duration;

    const BUFFER_BYTES: usize = 64 * 1024;
    /// Far longer than a test may take.
    const NEVER: Duration = Duration::from_secs(3600);

    /// Allocates the buffers of a test.
    struct Buffers {
        file: DmaFile,
        budget: MemoryBudget,
    }

    impl Buffers {
        /// Two streams that have had a buffer of zeros each, and are expected to have more.
        async fn two_streams(&self, hasher: &Hasher) -> [HashStream; 2] {
            let streams = [HashStream::new(hasher), HashStream::new(hasher)];
            for stream in &streams {
                self.push(stream, 0).await;
            }
            settle().await;
            assert_eq!((queued(&streams[0]), queued(&streams[1])), (0, 0));
            streams
        }

        /// Passes a buffer of `fill` to the stream.
        async fn push(&self, stream: &HashStream, fill: u8) {
            let mut buffer = self.file.alloc_dma_buffer(BUFFER_BYTES);
            buffer.as_bytes_mut().fill(fill);
            let permit = self.budget.acquire(BUFFER_BYTES, &Recall::default()).await;
            stream.push(SharedBuffer::Direct(Rc::new(buffer)), BUFFER_BYTES, Rc::new(permit), None);
        }
    }

    /// The digest of buffers of these bytes.
    fn digest(fills: &[u8]) -> [u8; 16] {
        let bytes: Vec<u8> = fills.iter().flat_map(|fill| [*fill; BUFFER_BYTES]).collect();
        md5_digest(&bytes)
    }

    fn queued(stream: &HashStream) -> usize {
        stream.state.borrow().queue.len()
    }

    /// Lets the hasher run for longer than it needs for all that is due.
    async fn settle() {
        for _ in 0..100 {
            yield_now().await;
        }
    }

    /// Runs `body` on an executor, if the processor hashes several streams at once.
    fn with_lanes<F: Future<Output = ()> + 'static>(
        hold_back: Duration,
        body: impl FnOnce(Hasher, Buffers) -> F + Send + 'static,
    ) {
        if lanes_max() < 4 {
            return;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        on_executor(move || async move {
            let file = DmaFile::create(path).await.expect("a file");
            let buffers = Buffers { file, budget: MemoryBudget::new(1 << 26) };
            body(Hasher::holding_back(hold_back), buffers).await;
        });
    }

    #[test]
    fn buffers_wait_until_each_stream_has_one() {
        with_lanes(NEVER, async |hasher, buffers| {
            let [first, second] = buffers.two_streams(&hasher).await;
            buffers.push(&first, 1).await;
            settle().await;
            assert_eq!(queued(&first), 1, "it waits for the second stream");
            buffers.push(&second, 2).await;
            settle().await;
            assert_eq!((queued(&first), queued(&second)), (0, 0));
            assert_eq!(second.finish().await, digest(&[0, 2]));
            assert_eq!(first.finish().await, digest(&[0, 1]));
        });
    }

    #[test]
    fn a_single_stream_is_hashed_at_once() {
        with_lanes(NEVER, async |hasher, buffers| {
            let stream = HashStream::new(&hasher);
            buffers.push(&stream, 1).await;
            settle().await;
            assert_eq!(queued(&stream), 0);
        });
    }

    #[test]
    fn a_second_buffer_does_not_wait() {
        with_lanes(NEVER, async |hasher, buffers| {
            let [fast, _slow] = buffers.two_streams(&hasher).await;
            buffers.push(&fast, 1).await;
            buffers.push(&fast, 2).await;
            settle().await;
            assert_eq!(queued(&fast), 1, "one of two buffers is hashed; the other waits for the slow stream");
        });
    }

    #[test]
    fn a_stream_at_its_end_does_not_wait() {
        with_lanes(NEVER, async |hasher, buffers| {
            let [fast, slow] = buffers.two_streams(&hasher).await;
            buffers.push(&fast, 1).await;
            assert_eq!(fast.finish().await, digest(&[0, 1]));
            buffers.push(&slow, 2).await;
            assert_eq!(slow.finish().await, digest(&[0, 2]));
        });
    }

    #[test]
    fn a_cancelled_stream_is_not_waited_for() {
        with_lanes(NEVER, async |hasher, buffers| {
            let [first, cancelled] = buffers.two_streams(&hasher).await;
            buffers.push(&first, 1).await;
            settle().await;
            assert_eq!(queued(&first), 1);
            drop(cancelled);
            settle().await;
            assert_eq!(queued(&first), 0);
        });
    }

    #[test]
    fn slow_streams_are_waited_for_once() {
        with_lanes(Duration::from_millis(1), async |hasher, buffers| {
            let [fast, slow] = buffers.two_streams(&hasher).await;
            buffers.push(&fast, 1).await;
            while queued(&fast) > 0 {
                sleep(Duration::from_millis(1)).await;
            }
            // No wait ends by itself from here on.
            hasher.0.hold_back.set(NEVER);
            buffers.push(&fast, 2).await;
            settle().await;
            assert_eq!(queued(&fast), 0, "the slow stream is not expected any more");
            buffers.push(&slow, 3).await;
            settle().await;
            assert_eq!(queued(&slow), 1, "it is expected again, and expects the fast one");
            drop(fast);
            assert_eq!(slow.finish().await, digest(&[0, 3]));
        });
    }
}
