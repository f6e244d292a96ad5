//! Reads small request bodies, such as XML, JSON and forms, into memory.
//!
//! What a connection may hold anyway is not counted ([`CONNECTION_BODY_BYTES`]). A larger body needs memory from a budget that
//! all larger bodies of the executor share. While none is free, it waits. Meanwhile bodies that hold memory and have been too
//! slow are refused, as uploads are.

use crate::body_reader::{ReadError, read_unless_recalled};
use cairn_engine::{Engine, MemoryPermit, Recall};
use cairn_model::{u64_of, usize_of};
use cairn_net::{BodyError, RequestBody, YieldBudget};
use std::ops::Deref;
use zeroize::Zeroizing;

/// Bytes of a body that need no memory from the budget. The memory of a connection includes two blocks for a response, which
/// has not begun while a body is read.
pub const CONNECTION_BODY_BYTES: usize = 64 << 10;
/// Bytes that are read at a time.
const PIECE_BYTES: usize = 64 << 10;

/// A body in memory; empty by default. It may contain a secret, and is overwritten when it is dropped.
#[derive(Default)]
pub struct SmallBody {
    bytes: Zeroizing<Vec<u8>>,
    /// The memory returns after it was freed: fields are dropped in their order.
    _permit: Option<MemoryPermit>,
}

impl Deref for SmallBody {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The error of a body that was not read. The rest of it has not been read then.
#[derive(Debug)]
pub enum SmallBodyError {
    /// It has too many bytes.
    TooLarge,
    /// It could not be read to its end.
    Body(BodyError),
    /// It arrived too slowly while other requests waited for memory. The connection is closed after the response.
    TooSlow,
}

impl From<ReadError<BodyError>> for SmallBodyError {
    fn from(error: ReadError<BodyError>) -> Self {
        match error {
            ReadError::Body(error) => Self::Body(error),
            ReadError::Recalled => Self::TooSlow,
        }
    }
}

/// Reads a body of at most `bytes_max` bytes. Call [`RequestBody::accept_chunked`] before where the chunked transfer coding is
/// allowed. `observe` sees every byte once, in order.
///
/// # Errors
/// [`SmallBodyError`].
pub async fn read_small_body(
    engine: &Engine,
    body: &mut RequestBody<'_>,
    bytes_max: usize,
    mut observe: impl FnMut(&[u8]),
) -> Result<SmallBody, SmallBodyError> {
    let declared = body.remaining();
    if declared > u64_of(bytes_max) {
        return Err(SmallBodyError::TooLarge);
    }
    // A body with the chunked transfer coding declares no length. It begins with what a connection may hold.
    let is_chunked = body.is_chunked();
    let length_max = if is_chunked { bytes_max } else { usize_of(declared) };
    let unpermitted = length_max.min(CONNECTION_BODY_BYTES);
    let recall = Recall::default();
    let mut permit = None;
    let mut bytes = Zeroizing::new(Vec::new());
    if !is_chunked && length_max > unpermitted {
        permit = Some(engine.small_body_memory(length_max, &recall).await);
    }
    bytes.reserve_exact(if permit.is_some() { length_max } else { unpermitted });
    let mut yield_budget = YieldBudget::default();
    loop {
        let filled = bytes.len();
        if filled == length_max {
            return match is_chunked && read_unless_recalled(body, &mut [0; 1], &recall).await? > 0 {
                true => Err(SmallBodyError::TooLarge),
                false => Ok(finished(bytes, permit)),
            };
        }
        if filled == bytes.capacity() {
            permit = Some(engine.small_body_memory(length_max, &recall).await);
            let mut larger = Zeroizing::new(Vec::with_capacity(length_max));
            larger.extend_from_slice(&bytes);
            bytes = larger;
        }
        let end = bytes.capacity().min(length_max).min(filled + PIECE_BYTES);
        bytes.resize(end, 0);
        let count = read_unless_recalled(body, &mut bytes[filled..], &recall).await?;
        bytes.truncate(filled + count);
        if count == 0 {
            assert!(
                is_chunked,
                "a read returns bytes or fails while bytes of the declared length are missing"
            );
            return Ok(finished(bytes, permit));
        }
        observe(&bytes[filled..]);
        yield_budget.spend(count).await;
    }
}

/// Returns a complete body, whose memory is not recalled any more.
fn finished(bytes: Zeroizing<Vec<u8>>, permit: Option<MemoryPermit>) -> SmallBody {
    if let Some(permit) = &permit {
        permit.filled();
    }
    SmallBody { bytes, _permit: permit }
}
