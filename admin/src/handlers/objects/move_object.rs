//! `POST /api/v1/buckets/{bucket}/object-move/{key}`: moves the current object to another key or bucket.
//!
//! The object is copied first, as `object-copy` does. Then that very version of the source is deleted, with a delete marker if
//! its bucket keeps versions. What a client writes to the source in between stays, tags too: it came after the move. If the
//! deletion fails, or the process ends before it, there are two objects, and the request can be sent again.

use std::rc::Rc;
use std::sync::Arc;

use cairn_api::MoveObject;
use cairn_engine::{Cause, DeleteOptions, EngineError};
use cairn_identity::policy::Action;

use super::copy::{copy_found, destination, taken};
use super::headers::{CONDITIONS, refuse_conditions};
use super::object_ref::ObjectRef;
use crate::call::Call;
use crate::error::AdminError;
use crate::reply::Reply;

pub(crate) async fn move_object(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let (bucket, key) = (call.bucket()?, call.key()?);
    refuse_conditions(call.head, &CONDITIONS)?;
    let request: MoveObject = call.json().await?;
    let _ = call.authorize_object(Action::DeleteObject, &bucket.name, &key)?;
    let destination =
        destination(&call, &request.destination_bucket, &request.destination_key, request.if_absent)?;
    if (bucket.id(), &key) == (destination.bucket.id(), &destination.key) {
        return Err(AdminError::invalid(
            "the destination is the source: an object cannot be moved onto itself",
        ));
    }
    let source = ObjectRef { bucket: Arc::clone(&bucket), key: key.clone(), version: None };
    let place = destination.place();
    let (mut reply, unchanged) = copy_found(&call, &source, destination, Cause::Copy).await.map_err(taken)?;
    let _ = call.authorize_object(Action::DeleteObject, &bucket.name, &key)?;
    let origin = call.origin(Cause::Request);
    let options = DeleteOptions { condition: unchanged, origin, ..DeleteOptions::default() };
    let stays = match Rc::clone(call.engine()?).delete_object(&bucket, &key, options).await {
        Ok(_) => "",
        // It was overwritten, deleted or tagged after it was copied.
        Err(EngineError::PreconditionFailed(_) | EngineError::NoSuchKey) => {
            ", the source was changed meanwhile"
        }
        Err(error) => {
            tracing::warn!(target: "service", bucket = %bucket.name, %key, %error, "an object was copied but not deleted; move it again");
            return Err(error.into());
        }
    };
    reply.record.detail = format!("to {place}, {}{stays}", reply.record.detail);
    Ok(reply)
}
