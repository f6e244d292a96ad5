//! The read buffer of a connection: bytes that were read from the socket but not yet consumed.
//!
//! It holds the rest of a request head, the start of a body, or pipelined requests.
//!
//! Invariants: consumed bytes are removed before more are added, so the size is bounded by the longest head plus the
//! read that completes it, however long the connection lives. An empty buffer holds no memory; an idle connection's is
//! empty.

/// Bytes that have been read and not yet consumed.
#[derive(Debug, Default)]
pub(crate) struct ReadBuffer {
    bytes: Vec<u8>,
    /// Length of the consumed prefix of `bytes`; never more than `bytes.len()`.
    consumed: usize,
}

impl ReadBuffer {
    pub(crate) const fn new() -> Self {
        Self { bytes: Vec::new(), consumed: 0 }
    }

    /// Returns the bytes that were not consumed.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[self.consumed..]
    }

    /// Consumes the first `count` bytes. Frees the memory together with the last of them.
    pub(crate) fn consume(&mut self, count: usize) {
        assert!(count <= self.bytes.len() - self.consumed, "only buffered bytes can be consumed");
        self.consumed += count;
        if self.consumed == self.bytes.len() {
            *self = Self::new();
        }
    }

    /// Appends bytes. Consumed bytes are removed first. That moves at most the bytes of an incomplete head, once per
    /// read.
    pub(crate) fn append(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.bytes.drain(..self.consumed);
        self.consumed = 0;
        self.bytes.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use cairn_http1::{HeadLimits, HeadParser};

    use super::*;
    use crate::limits::HEAD_READ_BYTES;

    /// Consumed bytes were removed only when nothing followed them. A client that pipelined without a pause, so that
    /// every read ended within a head, never let that happen: each read was appended to all that had long been
    /// answered, and one connection grew until the process was out of memory.
    #[test]
    fn endless_pipelining_needs_room_for_one_head_and_one_read() {
        // No read ends where a request ends: the lengths have no common divisor until far beyond this stream.
        let request = format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", "k".repeat(970));
        let stream = request.repeat(4 * 1024 * 1024 / request.len());
        let (mut buffer, mut answered, mut capacity) = (ReadBuffer::new(), 0, 0);
        for read in stream.as_bytes().chunks(HEAD_READ_BYTES - 1) {
            buffer.append(read);
            capacity = capacity.max(buffer.bytes.capacity());
            while let Ok(Some((_, length))) = HeadParser::new(HeadLimits::default()).parse(buffer.bytes()) {
                buffer.consume(length);
                answered += 1;
            }
        }
        assert_eq!(answered, stream.len() / request.len());
        // A vector that grows may reserve as much again.
        assert!(capacity <= 2 * (request.len() + HEAD_READ_BYTES), "{capacity} bytes");
    }

    #[test]
    fn bytes_stay_in_order_and_an_empty_buffer_holds_no_memory() {
        let mut buffer = ReadBuffer::new();
        buffer.append(b"abcdef");
        buffer.consume(2);
        buffer.append(b"gh");
        assert_eq!(buffer.bytes(), b"cdefgh");
        buffer.consume(1);
        buffer.append(b"");
        assert_eq!(buffer.bytes(), b"defgh");
        buffer.consume(5);
        assert_eq!((buffer.bytes(), buffer.bytes.capacity()), (&b""[..], 0));
    }

    #[test]
    #[should_panic(expected = "only buffered bytes can be consumed")]
    fn consuming_more_than_is_buffered_panics() {
        let mut buffer = ReadBuffer::new();
        buffer.append(b"abc");
        buffer.consume(4);
    }
}
