//! GetObject. Source: API Reference, GetObject.
//!
//! The first piece of the payload is read and checked before the head is sent, so that damage at the beginning is a
//! 500. Damage further on cuts the connection: the declared length is then not reached and no client takes the bytes
//! for whole. The payload stays pinned until the last piece has been sent.

use crate::audit::RequestTrail;
use crate::call::Call;
use crate::errors::{S3Error, S3Result};
use crate::ops::object_answer::{ObjectAnswer, answer};
use crate::reply::Reply;
use crate::version;
use cairn_engine::{PayloadChunk, PayloadReader};
use cairn_net::{BodySource, Chunk, ResponseBody};
use std::future::Future;
use std::io;
use std::pin::Pin;

/// Bodies up to this size, which are inline payloads, leave as one buffer: cheaper than the boxes of a stream. Either
/// leaves together with the head.
const ONE_BUFFER_BYTES_MAX: u64 = cairn_engine::limits::INLINE_BYTES_MAX;

pub(crate) async fn get_object(call: &Call<'_>) -> S3Result<Reply> {
    let (bucket, key) = call.object()?;
    let version = version::asked(call.query)?;
    let opened = call.engine.open_object(&bucket, &key, version, |info| {
        let answer = answer(call, &bucket, info);
        let range = match &answer {
            Ok(ObjectAnswer::Content { range, .. }) => range.clone(),
            Ok(ObjectAnswer::NotModified { .. }) | Err(_) => 0..0,
        };
        (range, answer)
    });
    let (object, answer) = opened.map_err(|error| version::read_error(error, version, call.head.method()))?;
    let (head, range) = match answer? {
        ObjectAnswer::NotModified { head } => {
            return Ok(Reply { head, body: ResponseBody::Omitted { length: None } });
        }
        ObjectAnswer::Content { head, range } => (head, range),
    };
    let length = range.end - range.start;
    if length == 0 {
        return Ok(Reply { head, body: ResponseBody::Full(Vec::new()) });
    }
    let mut reader = object.read();
    let first =
        reader.next().await?.ok_or_else(|| S3Error::internal("a payload ended before its first byte"))?;
    let body = if length <= ONE_BUFFER_BYTES_MAX && first.as_ref().len() as u64 == length {
        ResponseBody::Full(first.into_vec())
    } else {
        let source = ObjectSource { first: Some(first), reader, trail: call.trail() };
        ResponseBody::Stream { length, source: Box::new(source) }
    };
    Ok(Reply { head, body })
}

/// The payload as the connection asks for it.
struct ObjectSource {
    /// Read before the head was sent.
    first: Option<PayloadChunk>,
    reader: PayloadReader,
    /// Where damage is recorded that is found behind the head.
    trail: RequestTrail,
}

impl BodySource for ObjectSource {
    fn next<'a>(&'a mut self) -> Pin<Box<dyn Future<Output = io::Result<Option<Chunk>>> + 'a>> {
        Box::pin(async {
            let chunk = match self.first.take() {
                Some(first) => Some(first),
                None => self.reader.next().await.map_err(|error| {
                    self.trail.failed(&format!("{error}; the response was cut"));
                    io::Error::other(error)
                })?,
            };
            Ok(chunk.map(|chunk| Box::new(chunk) as Chunk))
        })
    }
}
