//! Reads a request body into a payload.
//!
//! Bytes go from the socket straight into the engine's write buffer. If anything fails, the staged payload is dropped
//! and its space is released.

use cairn_engine::{Bucket, Engine, EngineError, Recall, StagedPayload};
use cairn_model::ObjectKey;
use cairn_net::{BodyError, RequestBody, YieldBudget};
use std::rc::Rc;
use std::sync::Arc;

/// Why a body did not become a payload. The rest of the body has not been read then.
#[derive(Debug)]
pub enum ReceiveError {
    /// The engine refused or failed the write.
    Engine(EngineError),
    /// The body could not be read to its end.
    Body(BodyError),
    /// The body arrived too slowly while other uploads waited for memory. The connection is closed after the response.
    TooSlow,
}

impl From<EngineError> for ReceiveError {
    fn from(error: EngineError) -> Self {
        Self::Engine(error)
    }
}

impl From<BodyError> for ReceiveError {
    fn from(error: BodyError) -> Self {
        Self::Body(error)
    }
}

/// Reads the whole body into a payload of `size` bytes for `key` in `bucket`. `size` is the declared length of the
/// body. `observe` sees every byte once, in order.
///
/// # Errors
/// [`ReceiveError`].
pub async fn receive_payload(
    engine: &Rc<Engine>,
    body: &mut RequestBody<'_>,
    (bucket, key): (&Arc<Bucket>, &ObjectKey),
    size: u64,
    mut observe: impl FnMut(&[u8]),
) -> Result<StagedPayload, ReceiveError> {
    assert_eq!(body.remaining(), size, "the payload is the whole body");
    let mut writer = engine.write_payload(bucket, key, size).await?;
    let recall = writer.recall();
    let mut yield_budget = YieldBudget::default();
    while body.remaining() > 0 {
        let buffer = writer.buffer().await?;
        let count = read_unless_recalled(body, buffer, &recall).await?;
        assert!(count > 0, "a read returns bytes or fails while bytes are missing");
        observe(&buffer[..count]);
        writer.advance(count)?;
        yield_budget.spend(count).await;
    }
    let payload = writer.finish().await?;
    assert_eq!(payload.size(), size, "every byte of the body was written");
    Ok(payload)
}

/// Reads from the body. Ends the upload when the engine recalls the memory of its buffer.
async fn read_unless_recalled(
    body: &mut RequestBody<'_>,
    buffer: &mut [u8],
    recall: &Recall,
) -> Result<usize, ReceiveError> {
    let read = async { Ok(body.read(buffer).await?) };
    let recalled = async {
        recall.asked().await;
        Err(ReceiveError::TooSlow)
    };
    let result = futures_lite::future::or(read, recalled).await;
    if matches!(result, Err(ReceiveError::TooSlow)) {
        body.abandon();
    }
    result
}
