//! A blocking keep-alive connection without retries.
//!
//! A small request is one `writev` of head and body, and its response is usually one `read`: head and body are read into one
//! buffer, which is reused. Bytes after a response are an error of the server.

use std::io::{self, IoSlice, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use rustix::net::sockopt::set_socket_send_buffer_size;

use crate::failure::Failure;
use crate::http::response::{Chunked, Framing, HEAD_BYTES_MAX, Head, parse_head};
use crate::http::server::{Server, Stream};
use crate::objects::content::{Content, Position};
use crate::units::{ByteCount, index};

/// Large enough for few system calls per large body, small enough for a core's cache.
const BUFFER_BYTES: usize = 256 * 1024;
const _: () = assert!(BUFFER_BYTES > HEAD_BYTES_MAX);

/// The body of a request: `length` bytes of the content from `position` on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Body<'a> {
    pub(crate) content: &'a Content,
    pub(crate) position: Position,
    pub(crate) length: u64,
}

/// The use of a response body.
#[derive(Debug)]
pub(crate) enum Sink<'a> {
    /// Read and discarded.
    Discard,
    /// Stored up to a limit; the rest is discarded.
    Collect(&'a mut Vec<u8>, usize),
    /// Compared with the content; `same` becomes false at the first difference.
    Compare { content: &'a Content, position: Position, same: &'a mut bool },
}

impl Sink<'_> {
    fn take(&mut self, bytes: &[u8]) {
        match self {
            Self::Discard => {}
            Self::Collect(kept, limit) => {
                let room = limit.saturating_sub(kept.len());
                kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
            }
            Self::Compare { content, position, same } => {
                **same = **same && content.matches(*position, bytes);
                *position = content.advance(*position, bytes.len());
            }
        }
    }
}

/// An open connection.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: Stream,
    buffer: Vec<u8>,
    /// Bytes that were read but not consumed: `buffer[start..end]`.
    start: usize,
    end: usize,
    /// A head that [`Self::is_ready`] has already parsed.
    parsed: Option<(Head, usize)>,
}

impl Connection {
    pub(crate) fn open(server: &Server, timeout: Duration) -> Result<Self, Failure> {
        let stream = server.connect(timeout).map_err(|error| Failure::Connect(error.kind()))?;
        Ok(Self { stream, buffer: vec![0; BUFFER_BYTES], start: 0, end: 0, parsed: None })
    }

    /// Sets the socket's send buffer. It must hold a whole small upload, so that sending does not wait for the server, but not
    /// so much that its content has left the CPU cache when the server reads it, as with the several MiB of the kernel's
    /// default. (The kernel doubles the requested size, and limits it to `net.core.wmem_max`.)
    pub(crate) fn set_send_buffer(&self, size: ByteCount) -> Result<(), Failure> {
        if size == ByteCount(0) {
            return Ok(());
        }
        set_socket_send_buffer_size(self.stream.socket(), index(size.0))
            .map_err(|error| Failure::Connect(io::Error::from(error).kind()))
    }

    /// Returns the socket, to poll it.
    pub(crate) fn socket(&self) -> &TcpStream {
        self.stream.socket()
    }

    /// Reads once, which does not block if the socket is readable. Returns whether the response can now be read without waiting
    /// for the server, or is larger than the buffer, or ends with the connection.
    pub(crate) fn is_ready(&mut self) -> Result<bool, Failure> {
        // Data that TLS has already read from the socket does not make it readable.
        while !self.is_ready_after_read()? {
            if !self.stream.has_buffered() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn is_ready_after_read(&mut self) -> Result<bool, Failure> {
        if self.fill()? == 0 {
            return Ok(true);
        }
        if self.parsed.is_none() {
            self.parsed = parse_head(&self.buffer[self.start..self.end])?;
        }
        Ok(match self.parsed {
            None => false,
            Some((Head { framing: Framing::Length(body), .. }, head)) => {
                let whole = body.saturating_add(head as u64);
                (self.end - self.start) as u64 >= whole || whole > (self.buffer.len() - self.start) as u64
            }
            Some(_) => true,
        })
    }

    /// Drops the buffers and returns the stream, for connections that are only held open.
    pub(crate) fn into_stream(self) -> Stream {
        self.stream
    }

    /// Sends a request. If the server responds and closes before it has read the whole body, the write error is ignored:
    /// [`Self::read_head`] may find the response.
    pub(crate) fn send(&mut self, head: &[u8], body: Option<Body<'_>>) -> Result<(), Failure> {
        if self.start != self.end {
            return Err(Failure::Protocol("bytes after the response"));
        }
        match self.write_all(head, body) {
            Err(error)
                if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) =>
            {
                Ok(())
            }
            other => Ok(other?),
        }
    }

    fn write_all(&mut self, mut head: &[u8], body: Option<Body<'_>>) -> io::Result<()> {
        let Some(Body { content, mut position, length: mut left }) = body else {
            return self.stream.write_all(head);
        };
        while !head.is_empty() || left > 0 {
            let [first, second] = content.slices(position, left);
            let written = match self.stream.write_vectored(&[IoSlice::new(head), first, second]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => written,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let of_head = written.min(head.len());
            head = &head[of_head..];
            position = content.advance(position, written - of_head);
            left -= (written - of_head) as u64;
        }
        Ok(())
    }

    /// Reads the head of the final response and skips interim responses (1xx).
    pub(crate) fn read_head(&mut self) -> Result<Head, Failure> {
        loop {
            let parsed = match self.parsed.take() {
                None if self.start != self.end => parse_head(&self.buffer[self.start..self.end])?,
                parsed => parsed,
            };
            if let Some((head, length)) = parsed {
                self.start += length;
                if head.status >= 200 {
                    return Ok(head);
                }
                continue;
            }
            if self.fill()? == 0 {
                return Err(Failure::Closed);
            }
        }
    }

    /// Reads the body that belongs to `head` into `sink` and returns its length.
    pub(crate) fn read_body(&mut self, head: &Head, sink: &mut Sink<'_>) -> Result<u64, Failure> {
        match head.framing {
            Framing::Length(length) => self.read_length(length, sink),
            Framing::Chunked => self.read_chunked(sink),
            Framing::UntilClose => {
                let mut total = 0;
                loop {
                    total += self.take(u64::MAX, sink);
                    if self.fill()? == 0 {
                        return Ok(total);
                    }
                }
            }
        }
    }

    fn read_length(&mut self, length: u64, sink: &mut Sink<'_>) -> Result<u64, Failure> {
        let mut left = length - self.take(length, sink);
        while left > 0 {
            if self.fill()? == 0 {
                return Err(Failure::Closed);
            }
            left -= self.take(left, sink);
        }
        Ok(length)
    }

    fn read_chunked(&mut self, sink: &mut Sink<'_>) -> Result<u64, Failure> {
        let mut chunked = Chunked::default();
        let mut total = 0;
        loop {
            let input = &self.buffer[self.start..self.end];
            self.start += chunked.decode(input, |bytes| {
                total += bytes.len() as u64;
                sink.take(bytes);
            })?;
            if chunked.is_done() {
                return Ok(total);
            }
            if self.fill()? == 0 {
                return Err(Failure::Closed);
            }
        }
    }

    /// Passes at most `limit` of the buffered bytes to `sink`.
    fn take(&mut self, limit: u64, sink: &mut Sink<'_>) -> u64 {
        let count = (self.end - self.start).min(usize::try_from(limit).unwrap_or(usize::MAX));
        sink.take(&self.buffer[self.start..self.start + count]);
        self.start += count;
        count as u64
    }

    /// Reads once, after the buffered bytes. 0 means the end of the stream.
    fn fill(&mut self) -> Result<usize, Failure> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.end == self.buffer.len() {
            // Only a head can be in the buffer, because bodies are always consumed, and a head is smaller than the buffer.
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        loop {
            match self.stream.read(&mut self.buffer[self.end..]) {
                Ok(count) => {
                    self.end += count;
                    return Ok(count);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// Returns a connection to a server that sends these pieces in separate writes and closes.
    fn answered(pieces: &'static [&'static str]) -> Connection {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_nodelay(true).unwrap();
            for piece in pieces {
                stream.write_all(piece.as_bytes()).unwrap();
                thread::yield_now();
            }
        });
        Connection::open(&address.into(), Duration::from_secs(10)).unwrap()
    }

    fn read(connection: &mut Connection) -> Result<(u16, String), Failure> {
        let head = connection.read_head()?;
        let mut body = Vec::new();
        let length = connection.read_body(&head, &mut Sink::Collect(&mut body, 1_000))?;
        assert_eq!(length, body.len() as u64);
        Ok((head.status, String::from_utf8(body).unwrap()))
    }

    #[test]
    fn split_interim_and_chunked_responses_are_read() {
        let mut connection = answered(&[
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 O",
            "K\r\nContent-Length: 5\r\n\r\nhe",
            "lloHTTP/1.1 404 X\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab",
            "c\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n\r\nto the end",
        ]);
        assert_eq!(read(&mut connection), Ok((200, "hello".into())));
        assert_eq!(read(&mut connection), Ok((404, "abc".into())));
        assert_eq!(read(&mut connection), Ok((200, "to the end".into())));
        assert_eq!(read(&mut connection), Err(Failure::Closed));
    }

    #[test]
    fn a_truncated_body_is_an_error() {
        let mut short = answered(&["HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe"]);
        assert_eq!(read(&mut short), Err(Failure::Closed));
        let mut chunk = answered(&["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe"]);
        assert_eq!(read(&mut chunk), Err(Failure::Closed));
    }

    #[test]
    fn bytes_after_a_response_are_an_error_of_the_next_request() {
        let mut connection = answered(&["HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxy"]);
        assert!(read(&mut connection).is_ok());
        assert_eq!(connection.send(b"GET", None), Err(Failure::Protocol("bytes after the response")));
    }
    #[test]
    fn a_response_is_ready_if_complete_or_too_large() {
        let ready = |pieces| {
            let mut connection = answered(pieces);
            let mut states = vec![connection.is_ready().unwrap()];
            while !states.last().unwrap() {
                states.push(connection.is_ready().unwrap());
            }
            (read(&mut connection), states.len())
        };
        let (response, _) = ready(&["HTTP/1.1 200 OK\r\nContent-", "Length: 5\r\n\r\nhe", "llo"]);
        assert_eq!(response, Ok((200, "hello".into())));
        let (response, _) = ready(&["HTTP/1.1 204 No Content\r\n\r\n"]);
        assert_eq!(response, Ok((204, String::new())));
        let (response, reads) = ready(&["HTTP/1.1 200 OK\r\n\r\nto the end"]);
        assert_eq!((response, reads), (Ok((200, "to the end".into())), 1));
        let (response, _) = ready(&["HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe"]);
        assert_eq!(response, Err(Failure::Closed));
        let mut large = answered(&["HTTP/1.1 200 OK\r\nContent-Length: 262144\r\n\r\n"]);
        assert_eq!(large.is_ready(), Ok(true), "it does not fit the buffer");
    }
}
