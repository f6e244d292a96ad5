//! Reads the content of an `aws-chunked` body from the connection.

use super::decoder::{Decoder, LINE_BYTES_MAX};
use crate::errors::{S3Error, S3Result};
use cairn_net::RequestBody;
use cairn_transfer::BodyReader;

/// Bytes to read at a time after the last chunk. A trailer is shorter.
const TRAILER_READ_BYTES: usize = 512;

/// The content of a body, as a payload.
pub(crate) struct ChunkedSource<'b, 'c> {
    body: &'b mut RequestBody<'c>,
    decoder: Decoder,
}

impl<'b, 'c> ChunkedSource<'b, 'c> {
    /// Makes a source of what `decoder` returns for `body`. The body may have the chunked transfer coding, too.
    pub(crate) fn new(body: &'b mut RequestBody<'c>, decoder: Decoder) -> Self {
        body.accept_chunked();
        Self { body, decoder }
    }

    /// Reads the body to its end, when all content has been read. Returns the checksum in the trailer.
    ///
    /// # Errors
    /// Those of the decoder and the connection.
    pub(crate) async fn finish(mut self) -> S3Result<Option<Vec<u8>>> {
        let mut bytes = [0; TRAILER_READ_BYTES];
        loop {
            let count = self.body.read(&mut bytes).await?;
            if count == 0 {
                return Ok(self.decoder.finish()?);
            }
            let content = self.decoder.decode(&mut bytes[..count])?;
            assert_eq!(content, 0, "the decoder returns no more content than was declared");
        }
    }

    /// Reads framing that certainly comes before content.
    async fn read_framing(&mut self) -> S3Result<()> {
        let mut bytes = [0; LINE_BYTES_MAX];
        let wanted = self.decoder.framing_at_least().min(bytes.len());
        let count = self.body.read(&mut bytes[..wanted]).await?;
        self.check_not_ended(count)?;
        let content = self.decoder.decode(&mut bytes[..count])?;
        assert_eq!(content, 0, "only framing was read");
        Ok(())
    }

    fn check_not_ended(&self, count: usize) -> S3Result<()> {
        if count > 0 { Ok(()) } else { Err(self.decoder.ended_early().into()) }
    }
}

impl BodyReader for ChunkedSource<'_, '_> {
    type Error = S3Error;

    async fn read(&mut self, out: &mut [u8]) -> S3Result<usize> {
        loop {
            if self.decoder.reads_framing_alone(out.len()) {
                self.read_framing().await?;
                continue;
            }
            let wanted = self.decoder.read_size(out.len());
            let count = self.body.read(&mut out[..wanted]).await?;
            self.check_not_ended(count)?;
            let content = self.decoder.decode(&mut out[..count])?;
            if content > 0 {
                return Ok(content);
            }
        }
    }

    fn abandon(&mut self) {
        self.body.abandon();
    }
}
