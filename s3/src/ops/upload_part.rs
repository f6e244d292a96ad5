//! UploadPart. Source: API Reference, UploadPart.
//!
//! The upload is looked up before the body is read, and therefore before a waiting client is told to continue. The
//! engine checks again when the part is complete.

use crate::body::declared;
use crate::body::digests::BodyDigests;
use crate::body::payload::{declared_size, receive_payload};
use crate::call::Call;
use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::headers::checksum;
use crate::headers::encryption;
use crate::headers::write_conditions;
use crate::multipart::{named_upload, parse_part_number, refuse_incomplete_name};
use crate::reply::Reply;
use cairn_engine::PutPart;
use cairn_http1::StatusCode;
use cairn_net::RequestBody;

pub(crate) async fn upload_part(call: &Call<'_>, body: &mut RequestBody<'_>) -> S3Result<Reply> {
    refuse_incomplete_name(call)?;
    let (bucket, key, id) = named_upload(call)?;
    write_conditions::refuse_on_upload_step(call.fields, call.operation)?;
    let number = parse_part_number(call.query.get("partNumber").unwrap_or_default())?;
    let size = declared_size(call)?;
    let declared = declared::from_request(call.fields, call.authentication.payload)?;
    let upload = call.engine.upload(&bucket, &key, id)?.upload;
    let algorithm = upload.checksum.map(|checksum| checksum.algorithm);
    if let (Some(expected), Some(actual)) = (algorithm, declared.algorithm())
        && expected != actual
    {
        let (expected, actual) = (checksum::name(expected), checksum::name(actual));
        let message = format!(
            "Checksum Type mismatch occurred, expected checksum Type: {expected}, actual checksum Type: {actual}"
        );
        return Err(S3Error::with_message(ErrorCode::InvalidRequest, message));
    }

    let digests = BodyDigests::computing(declared, algorithm);
    let (payload, checksum) = receive_payload(call, body, (&bucket, &key), size, digests).await?;
    let etag = payload.etag();
    let mut reply = Reply::empty(StatusCode::OK);
    reply.head.header("etag", etag.quoted());
    encryption::write(&mut reply.head, call.compatibility, payload.is_encrypted());
    if let Some((algorithm, digest)) = &checksum {
        reply.head.header(checksum::header(*algorithm), checksum::text(digest));
    }
    call.engine.put_part(PutPart { bucket, key, upload: id, number, payload, checksum }).await?;
    Ok(reply)
}
