//! One connection's TLS session: what the client sends is opened, what is sent is sealed.
//!
//! Ciphertext is read into a buffer that all connections of an executor share; what is left of a read when the caller's
//! slice is full stays with the session, and reads are not much longer than the slice. An idle session holds its keys and
//! the library's small buffers, no payload. Records carry up to 16 KiB (RFC 8446 section 5.1); each is opened when it is
//! whole.

use std::cell::RefCell;
use std::io::{self, IoSlice, Read, Write};
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use rustls::ServerConnection;

use crate::limits::{RECORD_SLACK_BYTES, SEAL_BYTES};
use crate::socket::Socket;

/// Where ciphertext is read; shared by the connections of an executor and borrowed only within a poll.
pub(crate) type CipherBuffer = Rc<RefCell<Vec<u8>>>;

/// A session whose handshake is over.
#[derive(Debug)]
pub(crate) struct Session {
    connection: ServerConnection,
    /// Ciphertext that was read, and how much of it was opened.
    incoming: Vec<u8>,
    opened: usize,
    buffer: CipherBuffer,
    /// The client's side has ended, with a close_notify or without.
    at_end: bool,
    said_goodbye: bool,
}

impl Session {
    pub(crate) fn new(mut connection: ServerConnection, buffer: CipherBuffer) -> Self {
        connection.set_buffer_limit(Some(SEAL_BYTES));
        Self { connection, incoming: Vec::new(), opened: 0, buffer, at_end: false, said_goodbye: false }
    }

    /// Ciphertext that was read together with the end of the handshake.
    pub(crate) fn keep_incoming(&mut self, ciphertext: &[u8]) {
        self.incoming.extend_from_slice(ciphertext);
    }

    /// Reads into `out` as much as is there, at least one byte; 0 at the client's end.
    ///
    /// # Errors
    /// Those of the socket; `InvalidData` when what came is no TLS or was changed on its way.
    pub(crate) fn poll_read(
        &mut self,
        socket: &mut Socket,
        context: &mut Context<'_>,
        out: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut filled = self.open_kept(out)?;
        if filled == 0 && !self.at_end && !out.is_empty() {
            let buffer = Rc::clone(&self.buffer);
            let mut buffer = buffer.borrow_mut();
            let wanted = buffer.len().min(out.len() + RECORD_SLACK_BYTES);
            let count = ready!(socket.poll_read(context, &mut buffer[..wanted]))?;
            self.at_end = count == 0;
            let mut rest = &buffer[..count];
            filled = self.open(&mut rest, out)?;
            self.incoming.extend_from_slice(rest);
            if filled == 0 && !self.at_end {
                // Records without content, or a part of one: others have their turn, and deadlines are looked at, before more
                // of them is read.
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
        Poll::Ready(Ok(filled))
    }

    /// Opens what was kept.
    fn open_kept(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let kept = std::mem::take(&mut self.incoming);
        let mut rest = &kept[self.opened..];
        let filled = self.open(&mut rest, out)?;
        // The memory goes with the last of it, for an idle connection has none.
        if !rest.is_empty() {
            self.opened = kept.len() - rest.len();
            self.incoming = kept;
        } else {
            self.opened = 0;
        }
        Ok(filled)
    }

    /// Opens `ciphertext` into `out` until one of them is used up; gives the bytes of plaintext.
    fn open(&mut self, ciphertext: &mut &[u8], out: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        loop {
            while filled < out.len() {
                match self.connection.reader().read(&mut out[filled..]) {
                    Ok(0) => {
                        self.at_end = true;
                        return Ok(filled);
                    }
                    Ok(count) => filled += count,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                }
            }
            if filled == out.len() || ciphertext.is_empty() {
                return Ok(filled);
            }
            feed(&mut self.connection, ciphertext)?;
        }
    }

    /// Seals a piece of `head` and then `body`; gives how many of their bytes. What it made is to be sent before the next.
    pub(crate) fn seal(&mut self, head: &[u8], body: &[u8]) -> io::Result<usize> {
        match self.connection.writer().write_vectored(&[IoSlice::new(head), IoSlice::new(body)]) {
            Ok(0) => Err(io::ErrorKind::WriteZero.into()),
            other => other,
        }
    }

    pub(crate) fn has_outgoing(&self) -> bool {
        self.connection.wants_write()
    }

    /// Sends some of what is to be sent; gives the bytes that the socket took.
    pub(crate) fn poll_send(
        &mut self,
        socket: &mut Socket,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        poll_send(&mut self.connection, socket, context)
    }

    /// Tells the client that nothing more comes (close_notify, RFC 8446 section 6.1), so that it can tell this end from a
    /// cut. It leaves with the last words.
    pub(crate) fn say_goodbye(&mut self) {
        if !std::mem::replace(&mut self.said_goodbye, true) {
            self.connection.send_close_notify();
        }
    }

    /// Sends what is still to be said, as far as there is room for it.
    pub(crate) fn send_last_words(&mut self, socket: &Socket) {
        if self.connection.wants_write() {
            send_if_there_is_room(&mut self.connection, socket);
        }
    }
}

/// Gives the session some of `ciphertext`, as much as it takes at once.
///
/// # Errors
/// `InvalidData` when it is no TLS; what the session then has to send is the alert that says so.
pub(super) fn feed(connection: &mut ServerConnection, ciphertext: &mut &[u8]) -> io::Result<rustls::IoState> {
    connection.read_tls(ciphertext)?;
    connection.process_new_packets().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Sends some of what a session, also one whose handshake goes on, has to send: as many records in one system call as the
/// socket has room for.
pub(crate) fn poll_send(
    connection: &mut ServerConnection,
    socket: &mut Socket,
    context: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    struct Records<'s, 'c, 'w> {
        socket: &'s mut Socket,
        context: &'c mut Context<'w>,
    }
    impl Write for Records<'_, '_, '_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            match self.socket.poll_write(self.context, bytes) {
                Poll::Ready(result) => result,
                Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
            }
        }
        fn write_vectored(&mut self, records: &[IoSlice<'_>]) -> io::Result<usize> {
            match self.socket.try_send(records)? {
                // This one wakes the task when there is room.
                0 => records.first().map_or(Ok(0), |first| self.write(first)),
                count => Ok(count),
            }
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    match connection.write_tls(&mut Records { socket, context }) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
        other => Poll::Ready(other),
    }
}

/// Sends what a session has to send as far as the socket has room now. For last words, which nobody waits for.
pub(crate) fn send_if_there_is_room(connection: &mut ServerConnection, socket: &Socket) {
    struct LastWords<'s>(&'s Socket);
    impl Write for LastWords<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.try_send(&[IoSlice::new(bytes)])
        }
        fn write_vectored(&mut self, records: &[IoSlice<'_>]) -> io::Result<usize> {
            self.0.try_send(records)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    // A client that takes nothing any more hears of it by the end of the connection.
    let _ = connection.write_tls(&mut LastWords(socket));
}
