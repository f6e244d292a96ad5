//! Copies of multipart objects, part by part.
//!
//! The copy has the parts, the entity tag and the checksums of its source, and may be as large. It is a multipart
//! upload until it is completed. A cancelled copy is aborted. A copy that a stop of the process interrupts is aborted
//! later, as all unfinished uploads are.

use std::rc::Rc;
use std::sync::Arc;

use cairn_engine::{
    Attributes, Bucket, Cause, CompleteUpload, CopyPermit, Engine, NewUpload, ObjectInfo, ObjectLock,
    PutPart, UploadChecksum,
};
use cairn_model::{ObjectKey, UploadId};

use super::new_version::{self, Destination};
use super::object_ref::ObjectRef;
use crate::call::Call;
use crate::error::AdminError;
use crate::reply::Reply;

/// The upload that the parts are copied to.
struct Target {
    bucket: Arc<Bucket>,
    key: ObjectKey,
    upload: UploadId,
}

/// Copies the version `info` of `source`, which has parts.
///
/// # Errors
/// Those of reading the source and of writing the copy.
pub(crate) async fn copy_multipart(
    call: &Call<'_, '_>,
    mut permit: CopyPermit,
    source: &ObjectRef,
    info: &ObjectInfo,
    Destination { bucket, key, condition }: Destination,
    cause: Cause,
) -> Result<Reply, AdminError> {
    let (engine, origin) = (call.engine()?, call.origin(cause));
    let Attributes { headers, checksums, checksum_kind: kind, tags } = info.attributes.clone();
    let new = NewUpload {
        attributes: Attributes { headers, tags, ..Attributes::default() },
        lock: ObjectLock::default(),
        checksum: checksums.first().map(|(algorithm, _)| UploadChecksum { algorithm: *algorithm, kind }),
    };
    let upload = engine.create_upload(&bucket, &key, new).await.map_err(new_version::write_error)?.id;
    let target = Target { bucket, key, upload };
    let copied = call.until_disconnect(copy_parts(engine, &mut permit, source, info, &target)).await;
    drop(permit);
    let copied = copied.and_then(|parts| {
        Ok((parts, new_version::condition_at_commit(call, &target.bucket, &target.key, condition)?))
    });
    let completed = match copied {
        Ok((parts, condition)) => {
            let (bucket, key) = (Arc::clone(&target.bucket), target.key.clone());
            let origin = origin.clone();
            let complete = CompleteUpload { bucket, key, upload, parts, checksums, condition, origin };
            engine.complete_upload(complete).await.map_err(new_version::write_error)
        }
        Err(error) => Err(error),
    };
    if completed.is_err()
        && let Err(error) = engine.abort_upload(&target.bucket, &target.key, upload, origin).await
    {
        tracing::warn!(target: "service", %error, "the upload of a failed copy could not be aborted; it remains as an unfinished upload");
    }
    let completed = completed?;
    let made = ObjectInfo { etag: completed.etag, lock: ObjectLock::default(), ..info.clone() };
    new_version::created(engine, (&target.bucket, &target.key), made, completed.put)
}

/// Copies all parts. Returns their numbers and MD5 digests.
async fn copy_parts(
    engine: &Rc<Engine>,
    permit: &mut CopyPermit,
    source: &ObjectRef,
    info: &ObjectInfo,
    target: &Target,
) -> Result<Vec<(u16, [u8; 16])>, AdminError> {
    let mut copied = Vec::new();
    for run in &info.parts {
        for number in run.first..=run.first.saturating_add(run.count - 1) {
            let range = info.part_range(number).ok_or(AdminError::Internal)?;
            let version = Some(info.version_name());
            let opened = engine.open_object(&source.bucket, &source.key, version, |found| {
                // The null version may have been replaced by another one.
                (if found.version == info.version { range.clone() } else { 0..0 }, found.version)
            });
            let (part, found) = opened.map_err(|error| source.source_error(error))?;
            if found != info.version {
                return Err(AdminError::NotReady(
                    "the object was replaced while it was being copied; try again",
                ));
            }
            let payload = engine.copy_payload(permit, part, &target.bucket, &target.key).await;
            let put = PutPart {
                bucket: Arc::clone(&target.bucket),
                key: target.key.clone(),
                upload: target.upload,
                number,
                payload: payload.map_err(new_version::write_error)?,
                checksum: None,
            };
            copied.push((number, engine.put_part(put).await?.md5));
        }
    }
    Ok(copied)
}
