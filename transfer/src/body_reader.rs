//! Readers of request bodies, whose memory the engine may recall.

use cairn_engine::Recall;
use cairn_net::{BodyError, RequestBody};
use std::convert::Infallible;
use std::future::Future;

/// A source of the bytes of an upload: a request body, or the content of an encoded one.
pub trait BodyReader {
    /// The error of a failed read.
    type Error;

    /// Reads up to `out.len()` bytes into `out`, and at least one if `out` has room. Returns 0 at the end of a source whose
    /// size is not known before.
    ///
    /// # Errors
    /// The source has ended or failed. Later calls fail too.
    fn read(&mut self, out: &mut [u8]) -> impl Future<Output = Result<usize, Self::Error>>;

    /// Gives up the rest of the source. Later reads fail.
    fn abandon(&mut self);
}

impl BodyReader for RequestBody<'_> {
    type Error = BodyError;

    async fn read(&mut self, out: &mut [u8]) -> Result<usize, BodyError> {
        Self::read(self, out).await
    }

    fn abandon(&mut self) {
        Self::abandon(self);
    }
}

/// The rest of a body that is in memory.
pub struct MemoryBody<'b>(pub &'b [u8]);

impl BodyReader for MemoryBody<'_> {
    type Error = Infallible;

    async fn read(&mut self, out: &mut [u8]) -> Result<usize, Infallible> {
        let count = out.len().min(self.0.len());
        let (read, left) = self.0.split_at(count);
        out[..count].copy_from_slice(read);
        self.0 = left;
        Ok(count)
    }

    fn abandon(&mut self) {
        self.0 = &[];
    }
}

/// The reason why [`read_unless_recalled`] read nothing.
pub(crate) enum ReadError<E> {
    /// The source failed.
    Body(E),
    /// The engine recalled the memory. The rest of the source was given up.
    Recalled,
}

/// Reads from the source, unless the engine recalls the memory of the buffer first.
pub(crate) async fn read_unless_recalled<S: BodyReader>(
    source: &mut S,
    buffer: &mut [u8],
    recall: &Recall,
) -> Result<usize, ReadError<S::Error>> {
    let read = async { source.read(buffer).await.map_err(ReadError::Body) };
    let recalled = async {
        recall.asked().await;
        Err(ReadError::Recalled)
    };
    let result = futures_lite::future::or(read, recalled).await;
    if matches!(result, Err(ReadError::Recalled)) {
        source.abandon();
    }
    result
}
