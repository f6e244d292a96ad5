//! PutObject: a body of known length streams into the engine. Source: API Reference, PutObject.
//!
//! Every refusal that does not need the body comes before the first byte of it is read, which is also before a
//! waiting client is told to continue.

use crate::attributes;
use crate::body::declared;
use crate::body::digests::BodyDigests;
use crate::body::payload::{declared_size, receive_payload};
use crate::call::Call;
use crate::conditions;
use crate::errors::S3Result;
use crate::lock_headers;
use crate::reply::Reply;
use crate::version::VERSION_HEADER;
use cairn_engine::{Attributes, PutObject};
use cairn_http1::StatusCode;
use cairn_model::Etag;
use cairn_net::RequestBody;

pub(crate) async fn put_object(call: &Call<'_>, body: &mut RequestBody<'_>) -> S3Result<Reply> {
    let (bucket, key) = call.object()?;
    let size = declared_size(call)?;
    let condition = conditions::of_put(call.fields)?;
    let attributes = attributes::from_request(call.fields)?;
    let lock = lock_headers::from_request(call.fields, &bucket.settings(), call.now)?;
    lock_headers::check_declared_digest(call.fields)?;
    let declared = declared::from_request(call.fields, call.authentication.payload)?;
    let conditional = condition != Default::default();
    if conditional {
        // The commit decides; this only spares a body that would be refused in the end.
        conditions::check_early(&condition, call.engine.head_object(&bucket, &key, None))?;
    }

    let digests = BodyDigests::new(declared);
    let (payload, checksum) = receive_payload(call, body, (&bucket, &key), size, digests).await?;

    let etag = Etag::single(payload.md5());
    let attributes = Attributes { checksums: checksum.into_iter().collect(), ..attributes };
    let mut reply = Reply::empty(StatusCode::OK);
    reply.head.header("etag", etag.quoted());
    attributes::write_checksums(&mut reply.head, &attributes, 0);
    let put = PutObject { bucket, key, payload, etag, attributes, condition, lock };
    let put = call.engine.put_object(put).await;
    let outcome = put.map_err(|error| conditions::write_error(error, conditional))?;
    if !outcome.is_null {
        reply.head.header(VERSION_HEADER, outcome.version.to_string());
    }
    Ok(reply)
}
