//! Wakes each executor regularly from another thread, through a socket.
//!
//! An executor sleeps in its main ring. Timers and wakes of other threads arrive in another ring of it (its latency ring). While
//! it sleeps, a poll of that ring wakes the main ring. On a very busy machine, executors were seen asleep until the next request
//! although timers had expired and commits had been answered. A poll that wakes nothing would explain it; it was not caught in
//! the act. The read of a socket is in the main ring itself, so it does not depend on the poll. Each wake-up processes all rings
//! and all wakes of other threads.

use std::future::Future;
use std::io::{self, Write};
use std::os::fd::{FromRawFd, IntoRawFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;

use futures_lite::AsyncReadExt;

use crate::limits::HEARTBEAT_INTERVAL;

/// Bytes that an executor reads at a time. More than one arrives only if it was busy.
const READ_BYTES: usize = 64;

/// The ends of the sockets that the thread writes to.
#[derive(Clone)]
pub(super) struct Heartbeats(Sender<UnixStream>);

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
            Ok(socket) => Some(glommio::spawn_local(listen(socket))),
            Err(error) => {
                tracing::warn!(target: "service", %error, "an executor runs without a heartbeat");
                None
            }
        };
        drop(self);
        work.await;
        if let Some(listening) = listening {
            listening.cancel().await;
        }
    }

    /// Returns the executor's end of a new socket, and gives the other end to the thread.
    fn connect(&self) -> io::Result<glommio::net::UnixStream> {
        let (ours, theirs) = UnixStream::pair()?;
        theirs.set_nonblocking(true)?;
        self.0.send(theirs).map_err(|_| io::Error::other("the thread of the heartbeat has ended"))?;
        #[expect(unsafe_code, reason = "glommio takes over a socket only by its number")]
        // SAFETY: the descriptor is open, and nobody else owns it: `into_raw_fd` has given it up.
        Ok(unsafe { glommio::net::UnixStream::from_raw_fd(ours.into_raw_fd()) })
    }
}

/// Reads until the thread has ended. What is read means nothing.
async fn listen(mut socket: glommio::net::UnixStream) {
    let mut bytes = [0; READ_BYTES];
    while !matches!(socket.read(&mut bytes).await, Ok(0) | Err(_)) {}
}

/// Writes a byte to each socket at each interval.
fn beat(added: &Receiver<UnixStream>) {
    let mut sockets: Vec<UnixStream> = Vec::new();
    let mut has_starting = true;
    while has_starting || !sockets.is_empty() {
        match added.recv_timeout(HEARTBEAT_INTERVAL) {
            Ok(socket) => {
                sockets.push(socket);
                continue;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                has_starting = false;
                thread::park_timeout(HEARTBEAT_INTERVAL);
            }
        }
        // A full socket belongs to an executor that is busy, or that has bytes to wake up for.
        sockets.retain_mut(|socket| match socket.write(&[0]) {
            Ok(_) => true,
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
        });
    }
}
