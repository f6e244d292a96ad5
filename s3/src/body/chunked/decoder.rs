//! Removes `aws-chunked` framing in place, and verifies the signatures of chunks.
//!
//! The content is read into its destination together with the framing. Where a read ends with a chunk's framing, nothing has
//! to be moved; otherwise the content behind the framing moves by some bytes. [`Decoder::read_size`] chooses reads
//! so that large chunks need no move.
//!
//! Invariants: the same bytes give the same result wherever they are cut. No more content comes out than was declared. Memory
//! is constant; the work for a byte of the body is bounded, because chunks that are small on average are refused.

use super::error::ChunkedError;
use super::trailer::{TRAILER_BYTES_MAX, Trailer};
use cairn_engine::ChecksumAlgorithm;
use cairn_identity::ChunkSignatures;
use cairn_model::{u64_of, usize_of};
use sha2::{Digest as _, Sha256};

/// Longest line in front of a chunk, in bytes: 16 digits, a signature, and CR LF make 99.
pub(crate) const LINE_BYTES_MAX: usize = 128;
/// Most digits of a size, leading zeros included.
const SIZE_DIGITS_MAX: usize = 16;
const SIGNATURE_PREFIX: &[u8] = b"chunk-signature=";
const SIGNATURE_DIGITS: usize = 64;
const CRLF_BYTES: usize = 2;
/// Chunks of any size that a body may have. AWS requires 8 KiB of every chunk but the last, but clients that stream what they
/// get from elsewhere send smaller ones.
const SMALL_CHUNKS_MAX: u64 = 1000;
/// Bytes that chunks must have on average beyond those. A signature costs as much as the SHA-256 of about so many bytes.
const AVERAGE_BYTES_MIN: u64 = 512;
/// From this size of chunks on, reads end with the framing of a chunk. A read costs less than to move so many bytes.
const SEPARATE_READ_BYTES_MIN: u64 = 32 * 1024;
/// Bytes to read at a time if chunks are smaller.
const BATCH_BYTES: usize = 64 * 1024;

/// The state of the decoder: what is expected next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// The rest of the line in front of a chunk.
    Line,
    /// Content.
    Data { remaining: u64 },
    /// CR after content.
    DataReturn,
    /// LF after content.
    DataLineFeed,
    /// The trailer: everything after the last chunk.
    Trailer,
}

/// Verifies the signatures of chunks.
struct Verifier {
    signatures: Box<ChunkSignatures>,
    /// SHA-256 of the chunk so far.
    sha256: Sha256,
    /// The signature that the chunk must have.
    signature: [u8; SIGNATURE_DIGITS],
}

/// Decodes one body.
pub(crate) struct Decoder {
    /// The declared size of the content in bytes.
    size: u64,
    /// Bytes of content so far, including the rest of the present chunk.
    announced: u64,
    chunks: u64,
    verifier: Option<Verifier>,
    state: State,
    line: [u8; LINE_BYTES_MAX],
    line_bytes: usize,
    /// Length of the last complete line, and the size of its chunk.
    last_line: (usize, u64),
    declared: Option<ChecksumAlgorithm>,
    trailer: Vec<u8>,
}

impl Decoder {
    /// Makes a decoder for content of `size` bytes. Chunks are signed if there are `signatures`. `declared` is the checksum
    /// in the trailer.
    pub(crate) fn new(
        size: u64,
        signatures: Option<Box<ChunkSignatures>>,
        declared: Option<ChecksumAlgorithm>,
    ) -> Self {
        Self {
            size,
            announced: 0,
            chunks: 0,
            verifier: signatures.map(|signatures| Verifier {
                signatures,
                sha256: Sha256::new(),
                signature: [0; SIGNATURE_DIGITS],
            }),
            state: State::Line,
            line: [0; LINE_BYTES_MAX],
            line_bytes: 0,
            last_line: (0, 0),
            declared,
            trailer: Vec::new(),
        }
    }

    /// Returns how many bytes of framing certainly come before content or the trailer.
    pub(crate) fn framing_at_least(&self) -> usize {
        let line = self.line_at_least();
        match self.state {
            State::Line => line,
            State::DataReturn => CRLF_BYTES + line,
            State::DataLineFeed => 1 + line,
            State::Data { .. } | State::Trailer => 0,
        }
    }

    /// Returns how many bytes are missing of the present line at least, or of the next one if there is none.
    fn line_at_least(&self) -> usize {
        let line = &self.line[..self.line_bytes];
        let extension =
            if self.verifier.is_some() { 1 + SIGNATURE_PREFIX.len() + SIGNATURE_DIGITS } else { 0 };
        let before = match line.iter().position(|byte| *byte == b';') {
            Some(digits) => digits,
            None => line.iter().filter(|byte| **byte != b'\r').count().max(1),
        };
        (before + extension + CRLF_BYTES).saturating_sub(line.len()).max(1)
    }

    /// Returns whether the next bytes are framing that should be read alone, so that nothing has to be moved.
    pub(crate) fn reads_framing_alone(&self, room: usize) -> bool {
        self.framing_at_least() > 0 && (room < LINE_BYTES_MAX || self.last_line.1 >= SEPARATE_READ_BYTES_MIN)
    }

    /// Returns how many bytes to read next into a buffer with `room` for content.
    pub(crate) fn read_size(&self, room: usize) -> usize {
        let State::Data { remaining } = self.state else { return room.min(BATCH_BYTES) };
        let with_framing = usize_of(remaining).saturating_add(CRLF_BYTES + self.last_line.0);
        if self.last_line.1 >= SEPARATE_READ_BYTES_MIN {
            room.min(with_framing)
        } else {
            room.min(with_framing.max(BATCH_BYTES))
        }
    }

    /// Removes the framing from the next bytes of the body. Returns how much content is now at their front. After an error,
    /// the decoder must not be used again.
    ///
    /// # Errors
    /// [`ChunkedError`].
    pub(crate) fn decode(&mut self, bytes: &mut [u8]) -> Result<usize, ChunkedError> {
        let (mut read, mut content) = (0, 0);
        while read < bytes.len() {
            match self.state {
                State::Data { remaining } => {
                    let count = usize_of(remaining).min(bytes.len() - read);
                    if let Some(verifier) = &mut self.verifier {
                        verifier.sha256.update(&bytes[read..read + count]);
                    }
                    if read > content {
                        bytes.copy_within(read..read + count, content);
                    }
                    read += count;
                    content += count;
                    self.state = State::Data { remaining: remaining - u64_of(count) };
                    if remaining == u64_of(count) {
                        self.verify_chunk()?;
                        self.state = State::DataReturn;
                    }
                }
                State::DataReturn | State::DataLineFeed => {
                    let (expected, next) = match self.state {
                        State::DataReturn => (b'\r', State::DataLineFeed),
                        _ => (b'\n', State::Line),
                    };
                    if bytes[read] != expected {
                        return Err(ChunkedError::Malformed("a chunk is not followed by CR LF"));
                    }
                    self.state = next;
                    read += 1;
                }
                State::Line => read += self.read_line(&bytes[read..])?,
                State::Trailer => {
                    let rest = &bytes[read..];
                    if self.trailer.len() + rest.len() > TRAILER_BYTES_MAX {
                        return Err(ChunkedError::Trailer("it is longer than 1 KiB"));
                    }
                    self.trailer.extend_from_slice(rest);
                    read = bytes.len();
                }
            }
        }
        Ok(content)
    }

    /// Adds to the line in front of a chunk, and interprets it when it is complete. Returns the bytes that belong to it.
    fn read_line(&mut self, bytes: &[u8]) -> Result<usize, ChunkedError> {
        let room = LINE_BYTES_MAX - self.line_bytes;
        let window = &bytes[..bytes.len().min(room)];
        let end = window.iter().position(|byte| *byte == b'\n');
        let count = end.map_or(window.len(), |newline| newline + 1);
        self.line[self.line_bytes..self.line_bytes + count].copy_from_slice(&window[..count]);
        self.line_bytes += count;
        if end.is_some() {
            self.begin_chunk()?;
        } else if self.line_bytes == LINE_BYTES_MAX {
            return Err(ChunkedError::Malformed("the line in front of a chunk is longer than 128 bytes"));
        }
        Ok(count)
    }

    /// Interprets the line in front of a chunk.
    fn begin_chunk(&mut self) -> Result<(), ChunkedError> {
        let line = &self.line[..self.line_bytes];
        let Some(line) = line.strip_suffix(b"\r\n") else {
            return Err(ChunkedError::Malformed("the line in front of a chunk does not end in CR LF"));
        };
        let digits = line.split(|byte| *byte == b';').next().unwrap_or_default();
        let size = parse_size(digits)?;
        let extension = &line[digits.len()..];
        match &mut self.verifier {
            Some(verifier) => verifier.signature = parse_signature(extension)?,
            None if extension.is_empty() => {}
            None => return Err(ChunkedError::Malformed("a chunk of an unsigned body has an extension")),
        }
        self.last_line = (self.line_bytes, size);
        self.line_bytes = 0;
        self.announced = self.announced.saturating_add(size);
        if self.announced > self.size || (size == 0 && self.announced < self.size) {
            return Err(ChunkedError::WrongSize { declared: self.size, provided: self.announced });
        }
        if size == 0 {
            self.verify_chunk()?;
            self.state = State::Trailer;
            return Ok(());
        }
        self.chunks += 1;
        let before = self.announced - size;
        if self.chunks > SMALL_CHUNKS_MAX + before / AVERAGE_BYTES_MIN {
            return Err(ChunkedError::SmallChunks { chunk: self.chunks, size });
        }
        self.state = State::Data { remaining: size };
        Ok(())
    }

    fn verify_chunk(&mut self) -> Result<(), ChunkedError> {
        let Some(verifier) = &mut self.verifier else { return Ok(()) };
        let digest = verifier.sha256.finalize_reset().into();
        Ok(verifier.signatures.verify_chunk(&digest, &verifier.signature)?)
    }

    /// Returns the error for a body that ends before all of its content.
    pub(crate) fn ended_early(&self) -> ChunkedError {
        ChunkedError::Malformed("it ends before its last chunk")
    }

    /// Ends the body, and returns the checksum in its trailer.
    ///
    /// # Errors
    /// [`ChunkedError`] if the body is not complete, or its trailer is not the declared one.
    pub(crate) fn finish(self) -> Result<Option<Vec<u8>>, ChunkedError> {
        if self.state != State::Trailer {
            return Err(self.ended_early());
        }
        let trailer = Trailer::parse(&self.trailer, self.declared)?;
        match (self.verifier, trailer.signature) {
            (Some(mut verifier), Some(signature)) => {
                verifier.signatures.verify_trailer(&trailer.signed_text, signature)?;
            }
            (Some(_), None) if trailer.checksum.is_some() => {
                return Err(ChunkedError::Trailer("x-amz-trailer-signature is missing"));
            }
            (None, Some(_)) => {
                return Err(ChunkedError::Trailer("the trailer of an unsigned body has a signature"));
            }
            (_, None) => {}
        }
        Ok(trailer.checksum)
    }
}

fn parse_size(digits: &[u8]) -> Result<u64, ChunkedError> {
    const MALFORMED: ChunkedError =
        ChunkedError::Malformed("a chunk does not begin with its size in hexadecimal digits");
    if digits.is_empty() || digits.len() > SIZE_DIGITS_MAX {
        return Err(MALFORMED);
    }
    digits.iter().try_fold(0, |size: u64, byte| {
        let digit = char::from(*byte).to_digit(16).ok_or(MALFORMED)?;
        Ok(size << 4 | u64::from(digit))
    })
}

fn parse_signature(extension: &[u8]) -> Result<[u8; SIGNATURE_DIGITS], ChunkedError> {
    let signature = extension.strip_prefix(b";").and_then(|text| text.strip_prefix(SIGNATURE_PREFIX));
    signature
        .and_then(|digits| digits.try_into().ok())
        .ok_or(ChunkedError::Malformed("a chunk of a signed body has no chunk-signature of 64 digits"))
}

/// Decodes a whole body that arrives in pieces of `step` bytes. Returns its content and the checksum in its trailer.
///
/// # Errors
/// [`ChunkedError`].
///
/// # Panics
/// If a property of the decoder does not hold.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn decode_in_pieces(
    mut decoder: Decoder,
    body: &[u8],
    step: usize,
) -> Result<(Vec<u8>, Option<Vec<u8>>), ChunkedError> {
    let mut decoded = Vec::new();
    for piece in body.chunks(step.max(1)) {
        let mut piece = piece.to_vec();
        let framing = decoder.framing_at_least();
        assert!((1..=1 << 20).contains(&decoder.read_size(1 << 20)) && decoder.read_size(1) == 1);
        let content = decoder.decode(&mut piece)?;
        assert!(content + framing.min(piece.len()) <= piece.len(), "certain framing is no content");
        decoded.extend_from_slice(&piece[..content]);
        assert!(u64_of(decoded.len()) <= decoder.size, "no more than was declared");
    }
    let checksum = decoder.finish()?;
    Ok((decoded, checksum))
}

#[cfg(test)]
#[path = "decoder_tests.rs"]
mod tests;
