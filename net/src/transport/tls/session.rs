//! The TLS session of one connection: decrypts what the client sends and encrypts what is sent to it.
//!
//! Ciphertext is read into a buffer that all connections of an executor share. Reads are not much longer than the
//! caller's slice; ciphertext that is left when the slice is full stays with the session. An idle session holds its
//! keys and the library's small buffers, but no payload. Records carry up to 16 KiB (RFC 8446 section 5.1). Each is
//! decrypted once it is complete.

use std::cell::RefCell;
use std::io::{self, IoSlice, Read, Write};
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use rustls::ServerConnection;

use crate::limits::{TLS_OVERHEAD_BYTES, TLS_WRITE_BYTES};
use crate::transport::socket::Socket;

/// The buffer for reads of ciphertext. The connections of an executor share it and borrow it only within a poll.
pub(crate) type TlsReadBuffer = Rc<RefCell<Vec<u8>>>;

/// A session whose handshake has finished.
#[derive(Debug)]
pub(crate) struct Session {
    connection: ServerConnection,
    /// Ciphertext that was read and has not all been decrypted.
    ciphertext: Vec<u8>,
    /// Length of the decrypted prefix of `ciphertext`.
    decrypted: usize,
    buffer: TlsReadBuffer,
    /// Whether the client's side has ended, with or without a close_notify.
    at_end: bool,
    close_notify_prepared: bool,
}

impl Session {
    pub(crate) fn new(mut connection: ServerConnection, buffer: TlsReadBuffer) -> Self {
        connection.set_buffer_limit(Some(TLS_WRITE_BYTES));
        Self {
            connection,
            ciphertext: Vec::new(),
            decrypted: 0,
            buffer,
            at_end: false,
            close_notify_prepared: false,
        }
    }

    /// Appends ciphertext that was read together with the end of the handshake.
    pub(crate) fn append_ciphertext(&mut self, ciphertext: &[u8]) {
        self.ciphertext.extend_from_slice(ciphertext);
    }

    /// Reads the plaintext that is available into `out`, at least one byte. Returns 0 at the client's end.
    ///
    /// # Errors
    /// Those of the socket; `InvalidData` when the bytes are not TLS or were changed in transit.
    pub(crate) fn poll_read(
        &mut self,
        socket: &mut Socket,
        context: &mut Context<'_>,
        out: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut filled = self.decrypt_buffered(out)?;
        if filled == 0 && !self.at_end && !out.is_empty() {
            let buffer = Rc::clone(&self.buffer);
            let mut buffer = buffer.borrow_mut();
            let wanted = buffer.len().min(out.len() + TLS_OVERHEAD_BYTES);
            let count = ready!(socket.poll_read(context, &mut buffer[..wanted]))?;
            self.at_end = count == 0;
            let mut rest = &buffer[..count];
            filled = self.decrypt(&mut rest, out)?;
            self.ciphertext.extend_from_slice(rest);
            if filled == 0 && !self.at_end {
                // Only empty records, or an incomplete one. Yield before reading more, so that other tasks run and
                // timeouts are checked.
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
        Poll::Ready(Ok(filled))
    }

    /// Decrypts the ciphertext that the session holds.
    fn decrypt_buffered(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let buffered = std::mem::take(&mut self.ciphertext);
        let mut rest = &buffered[self.decrypted..];
        let filled = self.decrypt(&mut rest, out)?;
        // The memory is freed with the last of the ciphertext, so an idle connection holds none.
        if rest.is_empty() {
            self.decrypted = 0;
        } else {
            self.decrypted = buffered.len() - rest.len();
            self.ciphertext = buffered;
        }
        Ok(filled)
    }

    /// Decrypts `ciphertext` into `out` until one of them is used up. Returns the bytes of plaintext.
    fn decrypt(&mut self, ciphertext: &mut &[u8], out: &mut [u8]) -> io::Result<usize> {
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

    /// Encrypts a piece of `head` followed by `body` and returns its length. The result must be sent before the next
    /// piece is encrypted.
    pub(crate) fn encrypt(&mut self, head: &[u8], body: &[u8]) -> io::Result<usize> {
        match self.connection.writer().write_vectored(&[IoSlice::new(head), IoSlice::new(body)]) {
            Ok(0) => Err(io::ErrorKind::WriteZero.into()),
            other => other,
        }
    }

    /// Returns whether there are records to send.
    pub(crate) fn has_outgoing(&self) -> bool {
        self.connection.wants_write()
    }

    /// Sends some of the outgoing records. Returns the bytes that the socket took.
    pub(crate) fn poll_send(
        &mut self,
        socket: &mut Socket,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        poll_send(&mut self.connection, socket, context)
    }

    /// Prepares a close_notify (RFC 8446 section 6.1), by which the client can tell this end from a truncation. It is
    /// sent by [`Session::send_without_waiting`].
    pub(crate) fn prepare_close_notify(&mut self) {
        if !std::mem::replace(&mut self.close_notify_prepared, true) {
            self.connection.send_close_notify();
        }
    }

    /// Sends the outgoing records as far as the socket has room.
    pub(crate) fn send_without_waiting(&mut self, socket: &Socket) {
        if self.connection.wants_write() {
            send_without_waiting(&mut self.connection, socket);
        }
    }
}

/// Passes some of `ciphertext` to the session, as much as it takes at once.
///
/// # Errors
/// `InvalidData` when the bytes are not TLS. The session then has an alert to send.
pub(crate) fn feed(connection: &mut ServerConnection, ciphertext: &mut &[u8]) -> io::Result<rustls::IoState> {
    connection.read_tls(ciphertext)?;
    connection.process_new_packets().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Sends some of a session's outgoing records, also during its handshake: as many in one system call as the socket has
/// room for.
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
                // A waiting write: it wakes the task when there is room.
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

/// Sends a session's outgoing records as far as the socket has room now.
pub(crate) fn send_without_waiting(connection: &mut ServerConnection, socket: &Socket) {
    struct NonBlocking<'s>(&'s Socket);
    impl Write for NonBlocking<'_> {
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
    // Best effort: the connection is closed next, which also tells the client.
    let _ = connection.write_tls(&mut NonBlocking(socket));
}
