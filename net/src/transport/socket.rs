//! A client's TCP socket: glommio's stream, plus the system calls that glommio does not offer.
//!
//! Invariant: the kernel never holds the bytes of a write whose future was dropped. A socket without room is polled for
//! readiness, and the bytes are handed over only when there is room.

use std::io::{self, IoSlice};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_lite::io::{AsyncRead, AsyncWrite};
use glommio::net::TcpStream;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::SockRef;

/// A connected socket of this executor.
#[derive(Debug)]
pub(crate) struct Socket(TcpStream);

impl Socket {
    pub(crate) const fn new(stream: TcpStream) -> Self {
        Self(stream)
    }

    pub(crate) fn local_address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr().map_err(io::Error::from)
    }

    /// Reads into `out`. Returns 0 at the end of the stream.
    pub(crate) fn poll_read(&mut self, context: &mut Context<'_>, out: &mut [u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_read(context, out)
    }

    /// Writes some of `bytes`, at least one.
    pub(crate) fn poll_write(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match Pin::new(&mut self.0).poll_write(context, bytes) {
            Poll::Ready(Ok(0)) => Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
            other => other,
        }
    }

    /// Sends from several slices without waiting. Returns 0 when the socket has no room.
    pub(crate) fn try_send(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        match SockRef::from(&self.descriptor()).send_vectored_with_flags(parts, flags) {
            Err(error) if is_temporary(&error) => Ok(0),
            other => other,
        }
    }

    /// Returns whether the client has closed its side or disconnected, even if it sent bytes that are still unread.
    pub(crate) fn is_hung_up(&self) -> bool {
        let descriptor = self.descriptor();
        let mut polled = [PollFd::from_borrowed_fd(descriptor, PollFlags::RDHUP)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut polled, Some(&now)).is_ok_and(|count| count > 0)
    }

    /// Limits how many bytes the kernel queues for this connection.
    pub(crate) fn limit_send_buffer(&self, bytes: usize) {
        // The limit only saves memory, so a failure is ignored.
        let _ = SockRef::from(&self.descriptor()).set_send_buffer_size(bytes);
    }

    /// Closes one or both directions. Ignores failures: the client may have disconnected already.
    pub(crate) fn shut_down(&self, how: Shutdown) {
        let _ = SockRef::from(&self.descriptor()).shutdown(how);
    }

    #[expect(unsafe_code, reason = "glommio's stream gives its descriptor only as a number")]
    fn descriptor(&self) -> BorrowedFd<'_> {
        // SAFETY: the stream owns the descriptor and keeps it open for as long as it lives, which is longer than the
        // borrow of `self` that the result carries.
        unsafe { BorrowedFd::borrow_raw(self.0.as_raw_fd()) }
    }
}

fn is_temporary(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
