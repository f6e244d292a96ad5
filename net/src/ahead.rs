//! Bytes of a connection that were read before anybody asked for them: the rest of a head, the start of a body, the
//! requests behind it.
//!
//! Invariant: it holds no bytes that were consumed when more are added, so its size follows from the longest head and
//! the read that completes it, however long the connection lives. Holds no memory while it is empty, which is where an
//! idle connection stays.

/// Bytes that have arrived and were not consumed.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    bytes: Vec<u8>,
    /// Where the bytes that were not consumed begin.
    at: usize,
}

impl Ahead {
    pub(crate) const fn new() -> Self {
        Self { bytes: Vec::new(), at: 0 }
    }

    /// What is there.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[self.at..]
    }

    /// Takes the first `count` bytes away; the memory goes with the last of them.
    pub(crate) fn consume(&mut self, count: usize) {
        self.at = (self.at + count).min(self.bytes.len());
        if self.at == self.bytes.len() {
            *self = Self::new();
        }
    }

    /// Adds bytes at the end. What was consumed makes room first: of the bytes there, only those of a head that is not
    /// whole are moved, and only once per read.
    pub(crate) fn keep(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.bytes.drain(..self.at);
        self.at = 0;
        self.bytes.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use cairn_http1::{HeadLimits, HeadParser};

    use super::*;
    use crate::limits::HEAD_READ_BYTES;

    /// Consumed bytes were given back only when nothing followed them. A client that pipelined without a pause, so that
    /// every read ended within a head, never let that happen: each read was added behind all that had been answered
    /// long ago, and one connection grew until the process was out of memory.
    #[test]
    fn endless_pipelining_needs_no_more_room_than_one_head_and_one_read() {
        // No read ends where a request ends: the lengths have no common divisor until far beyond this stream.
        let request = format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", "k".repeat(970));
        let stream = request.repeat(4 * 1024 * 1024 / request.len());
        let (mut ahead, mut answered, mut room) = (Ahead::new(), 0, 0);
        for read in stream.as_bytes().chunks(HEAD_READ_BYTES - 1) {
            ahead.keep(read);
            room = room.max(ahead.bytes.capacity());
            while let Ok(Some((_, length))) = HeadParser::new(HeadLimits::default()).parse(ahead.bytes()) {
                ahead.consume(length);
                answered += 1;
            }
        }
        assert_eq!(answered, stream.len() / request.len());
        // A vector that grows may reserve as much again.
        assert!(room <= 2 * (request.len() + HEAD_READ_BYTES), "{room} bytes");
    }

    #[test]
    fn bytes_stay_in_order_and_nothing_is_held_when_all_are_consumed() {
        let mut ahead = Ahead::new();
        ahead.keep(b"abcdef");
        ahead.consume(2);
        ahead.keep(b"gh");
        assert_eq!(ahead.bytes(), b"cdefgh");
        ahead.consume(1);
        ahead.keep(b"");
        assert_eq!(ahead.bytes(), b"defgh");
        ahead.consume(100);
        assert_eq!((ahead.bytes(), ahead.bytes.capacity()), (&b""[..], 0));
    }
}
