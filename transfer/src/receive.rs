//! Reads a request body into a payload.
//!
//! Bytes go from the socket straight into the engine's write buffer. If anything fails, the staged payload is dropped
//! and its space is released.

use crate::body_reader::{BodyReader, ReadError, read_unless_recalled};
use cairn_engine::{Bucket, Engine, EngineError, PayloadWriter, StagedPayload};
use cairn_model::{ObjectKey, u64_of};
use cairn_net::{BodyError, YieldBudget};
use std::rc::Rc;
use std::sync::Arc;

/// The error of a body that did not become a payload. The rest of the body has not been read then.
#[derive(Debug)]
pub enum ReceiveError<E = BodyError> {
    /// The engine refused or failed the write.
    Engine(EngineError),
    /// The body could not be read to its end.
    Body(E),
    /// The body arrived too slowly while other uploads waited for memory. The connection is closed after the response.
    TooSlow,
}

impl<E> From<ReadError<E>> for ReceiveError<E> {
    fn from(error: ReadError<E>) -> Self {
        match error {
            ReadError::Body(error) => Self::Body(error),
            ReadError::Recalled => Self::TooSlow,
        }
    }
}

impl<E> From<EngineError> for ReceiveError<E> {
    fn from(error: EngineError) -> Self {
        Self::Engine(error)
    }
}

/// Reads a payload of `size` bytes for `key` in `bucket`: the whole body, or the content of an encoded one. `observe` sees
/// every byte once, in order. The MD5 is computed if `wants_md5`, whatever entity tags the store makes.
///
/// # Errors
/// [`ReceiveError`].
pub async fn receive_payload<S: BodyReader>(
    engine: &Rc<Engine>,
    source: &mut S,
    (bucket, key): (&Arc<Bucket>, &ObjectKey),
    size: u64,
    wants_md5: bool,
    mut observe: impl FnMut(&[u8]),
) -> Result<StagedPayload, ReceiveError<S::Error>> {
    let mut writer = begin(engine, (bucket, key), size, wants_md5).await?;
    let recall = writer.recall();
    let mut yield_budget = YieldBudget::default();
    let mut missing = size;
    while missing > 0 {
        let buffer = writer.buffer().await?;
        let count = read_unless_recalled(source, buffer, &recall).await?;
        assert!(count > 0, "a read returns bytes or fails while bytes are missing");
        observe(&buffer[..count]);
        writer.advance(count)?;
        missing -= u64_of(count);
        yield_budget.spend(count).await;
    }
    let payload = writer.finish().await?;
    assert_eq!(payload.size(), size, "every byte of the body was written");
    Ok(payload)
}

/// Like [`receive_payload`], for a source whose size is not known: it ends by itself, after at most `size_max` bytes. Space for
/// them is reserved as they arrive, and what the payload did not need is freed.
///
/// # Errors
/// [`ReceiveError`].
///
/// # Panics
/// If the source has more bytes.
pub async fn receive_payload_to_end<S: BodyReader>(
    engine: &Rc<Engine>,
    source: &mut S,
    (bucket, key): (&Arc<Bucket>, &ObjectKey),
    size_max: u64,
    wants_md5: bool,
    mut observe: impl FnMut(&[u8]),
) -> Result<StagedPayload, ReceiveError<S::Error>> {
    let mut writer = begin(engine, (bucket, key), size_max, wants_md5).await?;
    let recall = writer.recall();
    let mut yield_budget = YieldBudget::default();
    loop {
        let buffer = writer.buffer().await?;
        let is_full = buffer.is_empty();
        // A source that has returned all that it may have still has to find its end.
        let mut end = [0; 1];
        let buffer = if is_full { &mut end[..] } else { buffer };
        let count = read_unless_recalled(source, buffer, &recall).await?;
        if count == 0 {
            break;
        }
        assert!(!is_full, "a source has no more bytes than it may have");
        observe(&buffer[..count]);
        writer.advance(count)?;
        yield_budget.spend(count).await;
    }
    Ok(writer.finish_shorter().await?)
}

/// Begins a payload of up to `size` bytes.
async fn begin(
    engine: &Rc<Engine>,
    (bucket, key): (&Arc<Bucket>, &ObjectKey),
    size: u64,
    wants_md5: bool,
) -> Result<PayloadWriter, EngineError> {
    if wants_md5 {
        engine.write_hashed_payload(bucket, key, size).await
    } else {
        engine.write_payload(bucket, key, size).await
    }
}
