//! GetObject. Source: API Reference, GetObject.
//!
//! Damage at the beginning of the payload is answered with 500. Damage further on cuts the connection.

use crate::call::Call;
use crate::errors::S3Result;
use crate::headers::version;
use crate::ops::object_response::{ObjectResponse, object_response, write_part_checksum};
use crate::ops::system_objects::{MadeObject, made_object};
use crate::reply::Reply;
use cairn_model::usize_of;
use cairn_net::ResponseBody;
use cairn_transfer::StartedPayload;

pub(crate) async fn get_object(call: &Call<'_>) -> S3Result<Reply> {
    let (bucket, key) = call.object()?;
    let version = version::requested(call.query)?;
    if let Some(MadeObject { info, content }) = made_object(call, &bucket) {
        return Ok(match object_response(call, &bucket, &info)? {
            ObjectResponse::NotModified { head } => {
                Reply { head, body: ResponseBody::Omitted { length: None } }
            }
            ObjectResponse::Content { head, range, .. } => {
                let piece = content.get(usize_of(range.start)..usize_of(range.end)).unwrap_or_default();
                Reply { head, body: ResponseBody::Full(piece.to_vec()) }
            }
        });
    }
    let opened = call.engine.open_object(&bucket, &key, version, |info| {
        let answer = object_response(call, &bucket, info);
        let range = match &answer {
            Ok(ObjectResponse::Content { range, .. }) => range.clone(),
            Ok(ObjectResponse::NotModified { .. }) | Err(_) => 0..0,
        };
        (range, answer)
    });
    let (object, answer) = opened.map_err(|error| version::read_error(error, version, call.head.method()))?;
    let (mut head, range, part) = match answer? {
        ObjectResponse::NotModified { head } => {
            return Ok(Reply { head, body: ResponseBody::Omitted { length: None } });
        }
        ObjectResponse::Content { head, range, part } => (head, range, part),
    };
    if let Some(number) = part {
        write_part_checksum(call, &mut head, (&bucket, &key), object.info.version_name(), number)?;
    }
    let length = range.end - range.start;
    if length == 0 {
        return Ok(Reply { head, body: ResponseBody::Full(Vec::new()) });
    }
    let payload = StartedPayload::start(object).await?;
    let body = payload.into_body(length, || {
        let audit = call.audit_context();
        move |cause| audit.failed(&cause)
    });
    Ok(Reply { head, body })
}
