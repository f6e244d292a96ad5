//! Wakes each executor regularly from another thread, through sockets.
//!
//! glommio 0.9 can put an executor to sleep while tasks of it are ready to run. Before it runs them, it checks whether
//! something is due in the ring of its timers, such as the end of its own time slice or the wake-up by another thread. If
//! so, it runs none of them, handles that event, and sleeps until the next one. Event and check must come within
//! microseconds of each other, so it takes a busy machine. The tasks then wait for the next event in any ring of the
//! executor. Without a heartbeat that may be a client's next request: answers of finished commits were seen to take 90 s.
//!
//! The first task of the executor reads the sockets. If it was among the tasks that did not run, the socket that has woken it
//! wakes nothing until it has run. So each executor has several sockets, which are written to in turn. What is read means
//! nothing: any wake-up runs all tasks that are ready.
//!
//! The sockets are read before that task does anything else, because the executor may fall asleep in this way as soon as it
//! waits for the first time. When tasks of their own read them, an executor was seen to sleep before these had run at all: it
//! never served a request. It may even sleep before its first task has run; `executors.rs` sees to that.

use std::future::{Future, poll_fn};
use std::io::{self, Write};
use std::os::fd::{FromRawFd, IntoRawFd};
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::task::Poll;
use std::thread;

use futures_lite::AsyncReadExt;

use crate::limits::HEARTBEAT_INTERVAL;

/// Bytes that an executor reads at a time. More than one arrives only if it was busy.
const READ_BYTES: usize = 64;
/// Sockets of each executor. It stays asleep only if it falls asleep in this way so many times in succession.
const SOCKETS: usize = 4;

/// The ends of an executor's sockets that the thread writes to.
type Ends = [UnixStream; SOCKETS];

/// Gives the sockets of an executor to the thread.
#[derive(Clone)]
pub(super) struct Heartbeats(Sender<Ends>);

impl Heartbeats {
    /// Starts the thread. It ends when all clones of this are gone and all executors have ended.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(super) fn start() -> io::Result<Self> {
        let (sender, added) = channel();
        thread::Builder::new().name("heartbeat".to_owned()).spawn(move || beat(&added))?;
        Ok(Self(sender))
    }

    /// Runs `work` on the calling executor and wakes the executor at least every [`HEARTBEAT_INTERVAL`] meanwhile.
    pub(super) async fn during(self, work: impl Future<Output = ()>) {
        let listening = match self.connect() {
            Ok(sockets) => sockets.map(listen).into_iter().collect(),
            Err(error) => {
                tracing::warn!(target: "service", %error, "an executor runs without a heartbeat");
                Vec::new()
            }
        };
        drop(self);
        with_first(listening, work).await;
    }

    /// Returns the executor's ends of new sockets, and gives the other ends to the thread.
    fn connect(&self) -> io::Result<[glommio::net::UnixStream; SOCKETS]> {
        let mut pairs = Vec::with_capacity(SOCKETS);
        for _ in 0..SOCKETS {
            let (ours, theirs) = UnixStream::pair()?;
            theirs.set_nonblocking(true)?;
            pairs.push((ours, theirs));
        }
        let (ours, theirs): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        let (Ok(ours), Ok(theirs)) = (<[UnixStream; SOCKETS]>::try_from(ours), Ends::try_from(theirs)) else {
            unreachable!("there are as many pairs");
        };
        self.0.send(theirs).map_err(|_| io::Error::other("the thread of the heartbeat has ended"))?;
        Ok(ours.map(|socket| {
            #[expect(unsafe_code, reason = "glommio takes over a socket only by its number")]
            // SAFETY: the descriptor is open, and nobody else owns it: `into_raw_fd` has given it up.
            unsafe {
                glommio::net::UnixStream::from_raw_fd(socket.into_raw_fd())
            }
        }))
    }
}

/// Runs `work` to its end, and polls `others` before it, in the same task.
async fn with_first<O: Future<Output = ()>>(others: Vec<O>, work: impl Future<Output = ()>) {
    let mut others: Vec<Pin<Box<O>>> = others.into_iter().map(Box::pin).collect();
    let others = poll_fn(move |context| {
        others.retain_mut(|other| other.as_mut().poll(context).is_pending());
        Poll::Pending
    });
    futures_lite::future::or(others, work).await;
}

/// Reads until the thread has ended. What is read means nothing.
async fn listen(mut socket: glommio::net::UnixStream) {
    let mut bytes = [0; READ_BYTES];
    while !matches!(socket.read(&mut bytes).await, Ok(0) | Err(_)) {}
}

/// Writes a byte to one socket of each executor at each interval, in turn.
fn beat(added: &Receiver<Ends>) {
    let mut executors: Vec<Ends> = Vec::new();
    let mut has_starting = true;
    let mut turns = (0..SOCKETS).cycle();
    while has_starting || !executors.is_empty() {
        match added.recv_timeout(HEARTBEAT_INTERVAL) {
            Ok(ends) => {
                executors.push(ends);
                continue;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                has_starting = false;
                thread::park_timeout(HEARTBEAT_INTERVAL);
            }
        }
        let turn = turns.next().unwrap_or_default();
        // A full socket belongs to an executor that is busy, or that has bytes to wake up for.
        executors.retain_mut(|ends| match ends[turn].write(&[0]) {
            Ok(_) => true,
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_lite::future::{block_on, yield_now};
    use std::cell::Cell;
    use std::io::Read;
    use std::time::Duration;

    /// Each socket is read before the work of an executor waits for the first time, and as often as it is polled.
    #[test]
    fn others_are_polled_before_the_work() {
        let (polls, steps) = (Cell::new(0), Cell::new(0));
        let endless = || {
            poll_fn(|_| {
                polls.set(polls.get() + 1);
                Poll::Pending
            })
        };
        let work = async {
            for step in 1..=3 {
                assert_eq!(polls.get(), 2 * step);
                steps.set(step);
                yield_now().await;
            }
        };
        block_on(with_first(vec![endless(), endless()], work));
        let ended = vec![std::future::ready(()), std::future::ready(())];
        block_on(with_first(ended, yield_now()));
        assert_eq!(steps.get(), 3);
    }

    /// An executor once had one socket. When it fell asleep while the task that reads it was ready to run, nothing woke it
    /// any more.
    #[test]
    fn a_socket_that_nobody_reads_does_not_stop_the_beats_of_the_others() {
        let (sender, added) = channel();
        let beating = thread::spawn(move || beat(&added));
        let pairs: [_; SOCKETS] = std::array::from_fn(|_| UnixStream::pair().unwrap());
        let (mut ours, theirs): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        sender.send(Ends::try_from(theirs).unwrap()).unwrap();
        for _ in 0..2 {
            for socket in &mut ours[1..] {
                socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
                socket.read_exact(&mut [0]).unwrap();
            }
        }
        drop((sender, ours));
        beating.join().unwrap();
    }
}
