//! The payload of an object as the body of a response.
//!
//! The first chunk is read and checked before the head is sent, so that damage at the beginning becomes an error
//! response. Damage further on cuts the connection: the declared length is then not reached, and no client takes the
//! bytes for complete. The payload stays pinned until its last chunk has been sent.

use cairn_engine::{EngineError, OpenObject, PayloadChunk, PayloadReader};
use cairn_net::{BodySource, Chunk, ResponseBody};
use std::future::Future;
use std::io;
use std::pin::Pin;

/// Bodies of up to this many bytes, which are inline payloads, are sent as one buffer.
const ONE_BUFFER_BYTES_MAX: u64 = cairn_engine::limits::INLINE_BYTES_MAX;

/// A payload whose first chunk has been read and checked.
pub struct StartedPayload {
    first: PayloadChunk,
    reader: PayloadReader,
}

impl StartedPayload {
    /// Reads the first chunk of the bytes that `object` was opened for, of which there must be at least one.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] or [`EngineError::Io`].
    pub async fn start(object: OpenObject) -> Result<Self, EngineError> {
        let mut reader = object.read();
        match reader.next().await? {
            Some(first) => Ok(Self { first, reader }),
            None => Err(EngineError::Corrupt("a payload ended before its first byte".to_owned())),
        }
    }

    /// The bytes of the first chunk.
    #[must_use]
    pub fn first_chunk(&self) -> &[u8] {
        self.first.as_ref()
    }

    /// Returns the first chunk and drops the rest.
    #[must_use]
    pub fn into_first_chunk(self) -> Vec<u8> {
        self.first.into_vec()
    }

    /// Returns the body of a response with these bytes, which are `length`. Small ones are one buffer: this is cheaper than the
    /// boxes of a stream, and both are sent together with the head. `report` makes what is told why, if a later chunk of a
    /// stream cannot be read and the response is cut.
    #[must_use]
    pub fn into_body<R: Fn(String) + 'static>(self, length: u64, report: impl FnOnce() -> R) -> ResponseBody {
        if length <= ONE_BUFFER_BYTES_MAX && self.first_chunk().len() as u64 == length {
            return ResponseBody::Full(self.into_first_chunk());
        }
        ResponseBody::Stream { length, source: self.into_source(report()) }
    }

    /// Streams the payload. `report` is told why, if a later chunk cannot be read and the response is cut.
    #[must_use]
    pub fn into_source(self, report: impl Fn(String) + 'static) -> Box<dyn BodySource> {
        let Self { first, reader } = self;
        Box::new(PayloadBody { first: Some(first), reader, report })
    }
}

/// The body of a response, read from a payload chunk by chunk.
struct PayloadBody<R> {
    /// Read before the head was sent.
    first: Option<PayloadChunk>,
    reader: PayloadReader,
    report: R,
}

impl<R: Fn(String)> BodySource for PayloadBody<R> {
    fn next<'a>(&'a mut self) -> Pin<Box<dyn Future<Output = io::Result<Option<Chunk>>> + 'a>> {
        Box::pin(async {
            let chunk = match self.first.take() {
                Some(first) => Some(first),
                None => self.reader.next().await.map_err(|error| {
                    (self.report)(format!("{error}; the response was cut"));
                    io::Error::other(error)
                })?,
            };
            Ok(chunk.map(|chunk| Box::new(chunk) as Chunk))
        })
    }
}
