//! The content of an object as the connection asks for it. Damage behind the first piece cuts the connection: the declared
//! length is then not reached, and no client takes the bytes for whole.

use std::future::Future;
use std::io;
use std::pin::Pin;

use cairn_engine::{OpenObject, PayloadChunk, PayloadReader};
use cairn_net::{BodySource, Chunk};

use super::named::NamedObject;
use crate::audit::ReadTrail;
use crate::call::Call;
use crate::error::AdminError;
use crate::reply::ReplyBody;

struct ObjectSource {
    /// Read before the head was sent.
    first: Option<PayloadChunk>,
    reader: PayloadReader,
    /// Where damage is recorded that is found behind the head.
    trail: ReadTrail,
}

/// The body of an answer with the `length` bytes that an object was opened for. The first piece is read and checked here, so
/// that damage at the beginning is an error.
///
/// # Errors
/// `INTERNAL_ERROR` for damage and failures of the device, in log and audit trail.
pub(crate) async fn stream(
    call: &Call<'_, '_>,
    named: &NamedObject,
    object: OpenObject,
    length: u64,
) -> Result<ReplyBody, AdminError> {
    if length == 0 {
        return Ok(ReplyBody::Full(Vec::new()));
    }
    if *call.head.method() == http::Method::HEAD {
        return Ok(ReplyBody::Omitted(length));
    }
    let mut reader = object.read();
    let first = reader.next().await.map_err(|error| named.read_error(call, error))?;
    let source = ObjectSource { first, reader, trail: call.read_trail() };
    Ok(ReplyBody::Stream { length, source: Box::new(source) })
}

impl BodySource for ObjectSource {
    fn next<'a>(&'a mut self) -> Pin<Box<dyn Future<Output = io::Result<Option<Chunk>>> + 'a>> {
        Box::pin(async {
            let chunk = match self.first.take() {
                Some(first) => Some(first),
                None => self.reader.next().await.map_err(|error| {
                    self.trail.failed(format!("{error}; the response was cut"));
                    io::Error::other(error)
                })?,
            };
            Ok(chunk.map(|chunk| Box::new(chunk) as Chunk))
        })
    }
}
