//! One keep-alive connection: a request out, its response in. Blocking, one request at a time, no retries.
//!
//! A small request is one `writev` (head and body together) and its response usually one `read`: head and body are
//! read into the same buffer, which is used again for the next. Bytes after a response are an error of the server.

use std::io::{self, IoSlice, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use rustix::net::sockopt::set_socket_send_buffer_size;

use crate::content::{Content, Position};
use crate::failure::Failure;
use crate::response::{Chunked, Framing, HEAD_BYTES_MAX, Head, parse_head};
use crate::server::{Server, Stream};
use crate::units::{ByteCount, index};

/// Large enough that a large body costs few system calls, small enough to stay in a core's cache.
const BUFFER_BYTES: usize = 256 * 1024;
const _: () = assert!(BUFFER_BYTES > HEAD_BYTES_MAX);

/// The body of a request: `length` bytes of the content from `position` on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Body<'a> {
    pub(crate) content: &'a Content,
    pub(crate) position: Position,
    pub(crate) length: u64,
}

/// What becomes of a response body.
#[derive(Debug)]
pub(crate) enum Sink<'a> {
    /// Read and forgotten.
    Discard,
    /// Kept, up to a limit; what goes beyond it is forgotten.
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
    /// Bytes read and not yet used: `buffer[start..end]`.
    start: usize,
    end: usize,
    /// A head that [`Self::is_ready`] has parsed already.
    parsed: Option<(Head, usize)>,
}

impl Connection {
    pub(crate) fn open(server: &Server, timeout: Duration) -> Result<Self, Failure> {
        let stream = server.connect(timeout).map_err(|error| Failure::Connect(error.kind()))?;
        Ok(Self { stream, buffer: vec![0; BUFFER_BYTES], start: 0, end: 0, parsed: None })
    }

    /// Fixes the socket's send buffer. Enough for a whole small upload, so that sending it does not wait for the server;
    /// not so much that what waits there has left the cache when the server reads it, as happens with the several MiB
    /// that the kernel would let wait. (It counts twice what is asked for, and grants up to `net.core.wmem_max`.)
    pub(crate) fn set_send_buffer(&self, size: ByteCount) -> Result<(), Failure> {
        if size == ByteCount(0) {
            return Ok(());
        }
        set_socket_send_buffer_size(self.stream.socket(), index(size.0))
            .map_err(|error| Failure::Connect(io::Error::from(error).kind()))
    }

    /// The socket, to wait on.
    pub(crate) fn socket(&self) -> &TcpStream {
        self.stream.socket()
    }

    /// Reads once, which does not block if the socket is readable, and says whether the response can now be read
    /// without waiting for the server. Also yes if it is larger than the buffer, or only its end will tell its length.
    pub(crate) fn is_ready(&mut self) -> Result<bool, Failure> {
        // What TLS has taken from the socket no longer makes it readable.
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

    /// Gives up the buffers and keeps the socket, for connections that are only held open.
    pub(crate) fn into_stream(self) -> Stream {
        self.stream
    }

    /// Sends a request. The error of a server that answers and closes before it has read all of the body is left to
    /// [`Self::read_head`], which may find that answer.
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

    /// Reads the head of the final response; interim ones (1xx) are skipped.
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

    /// Hands at most `limit` of the buffered bytes to `sink`.
    fn take(&mut self, limit: u64, sink: &mut Sink<'_>) -> u64 {
        let count = (self.end - self.start).min(usize::try_from(limit).unwrap_or(usize::MAX));
        sink.take(&self.buffer[self.start..self.start + count]);
        self.start += count;
        count as u64
    }

    /// Reads once, behind what is buffered. 0 is the end of the stream.
    fn fill(&mut self) -> Result<usize, Failure> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.end == self.buffer.len() {
            // Only a head can be left over (a body is always taken whole), and it is smaller than the buffer.
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

    /// A connection to a server that sends these pieces, each in a write of its own, and closes.
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
    fn responses_in_pieces_interim_and_chunked_are_read_one_after_the_other() {
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
    fn a_body_that_ends_early_is_not_a_whole_one() {
        let mut short = answered(&["HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe"]);
        assert_eq!(read(&mut short), Err(Failure::Closed));
        let mut chunk = answered(&["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe"]);
        assert_eq!(read(&mut chunk), Err(Failure::Closed));
    }

    #[test]
    fn bytes_behind_a_response_are_reported_with_the_next_request() {
        let mut connection = answered(&["HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxy"]);
        assert!(read(&mut connection).is_ok());
        assert_eq!(connection.send(b"GET", None), Err(Failure::Protocol("bytes after the response")));
    }
    #[test]
    fn a_response_is_ready_when_it_is_whole_or_can_never_be() {
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
