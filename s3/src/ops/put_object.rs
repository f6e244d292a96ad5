//! PutObject: streams a body of known length into the engine. Source: API Reference, PutObject.
//!
//! Every check that does not need the body comes before its first byte is read, and therefore before a waiting client
//! is told to continue.

use crate::body::declared;
use crate::body::digests::BodyDigests;
use crate::body::payload::{declared_size, receive_payload};
use crate::call::Call;
use crate::errors::S3Result;
use crate::headers::attributes;
use crate::headers::encryption;
use crate::headers::expiration;
use crate::headers::object_lock;
use crate::headers::version::VERSION_HEADER;
use crate::headers::write_conditions;
use crate::reply::Reply;
use cairn_engine::{Attributes, Cause, PutObject, WriteCondition};
use cairn_http1::StatusCode;
use cairn_net::RequestBody;
use std::sync::Arc;

pub(crate) async fn put_object(call: &Call<'_>, body: &mut RequestBody<'_>) -> S3Result<Reply> {
    let (bucket, key) = call.object()?;
    let size = declared_size(call)?;
    let condition = write_conditions::of_put(call.fields)?;
    let attributes = attributes::from_request(call.fields)?;
    let settings = bucket.settings();
    let lock = object_lock::of_new_version(call.fields, &settings, call.now)?;
    let declared = declared::from_request(call.fields, call.authentication.payload)?;
    let early = call.permitted(condition.clone());
    if early != WriteCondition::default() {
        // The commit decides. This check only avoids the transfer of a body that would be refused.
        write_conditions::check_early(&early, call.engine.head_object(&bucket, &key, None))?;
    }
    call.engine.check_quota(&bucket, &key, settings.quota, size)?;

    let digests = BodyDigests::new(declared);
    let (payload, checksum) = receive_payload(call, body, (&bucket, &key), size, digests).await?;

    let (etag, origin) = (payload.etag(), call.origin(Cause::Request));
    let attributes = Attributes { checksums: checksum.into_iter().collect(), ..attributes };
    store(call, PutObject { bucket, key, payload, etag, attributes, condition, lock, origin }).await
}

/// Makes the payload the current version of its key, and returns the answer of PutObject.
pub(super) async fn store(call: &Call<'_>, put: PutObject) -> S3Result<Reply> {
    // Only now: the rights of the client may have changed while the body was received.
    let put = PutObject { condition: call.permitted(put.condition), ..put };
    let condition = put.condition.clone();
    let mut reply = Reply::empty(StatusCode::OK);
    reply.head.header("etag", put.etag.quoted());
    encryption::write(&mut reply.head, call.compatibility, put.payload.is_encrypted());
    attributes::write_checksums(&mut reply.head, &put.attributes, 0);
    let (bucket, key, tags) = (Arc::clone(&put.bucket), put.key.clone(), put.attributes.tags.clone());
    let put = call.engine.put_object(put).await;
    let outcome = put.map_err(|error| write_conditions::write_error(error, &condition))?;
    if !outcome.is_null {
        reply.head.header(VERSION_HEADER, outcome.version.to_string());
    }
    let (head, store) = (&mut reply.head, call.engine.store());
    expiration::write_header(head, store, &bucket, &key, &tags, outcome.last_modified);
    Ok(reply)
}
