//! Copies of objects that were uploaded in parts: part by part, so that the copy has the parts, the entity tag and the checksums
//! of its source, and may be as large.
//!
//! It is an upload like any other until it is completed. One that is given up is aborted; one that the end of the process cuts
//! off is aborted as all unfinished uploads are.

use std::rc::Rc;
use std::sync::Arc;

use cairn_engine::{
    Attributes, Bucket, CompleteUpload, Engine, NewUpload, ObjectInfo, ObjectLock, PutPart, UploadChecksum,
    WriteCondition,
};
use cairn_model::{ObjectKey, UploadId};

use super::named::NamedObject;
use super::put;
use crate::call::Call;
use crate::error::AdminError;
use crate::reply::Reply;

/// Where the parts go.
struct Target {
    bucket: Arc<Bucket>,
    key: ObjectKey,
    upload: UploadId,
}

/// Copies the version `info` of `source`.
///
/// # Errors
/// What keeps the source from being read, and the copy from being written.
pub(crate) async fn carry_out(
    call: &Call<'_, '_>,
    source: &NamedObject,
    info: &ObjectInfo,
    (bucket, key): (Arc<Bucket>, ObjectKey),
) -> Result<Reply, AdminError> {
    let engine = call.engine()?;
    let Attributes { headers, checksums, checksum_kind: kind } = info.attributes.clone();
    let new = NewUpload {
        attributes: Attributes { headers, ..Attributes::default() },
        lock: ObjectLock::default(),
        checksum: checksums.first().map(|(algorithm, _)| UploadChecksum { algorithm: *algorithm, kind }),
    };
    let upload = engine.create_upload(&bucket, &key, new).await.map_err(put::write_error)?.id;
    let target = Target { bucket, key, upload };
    let copied = call.while_wanted(copy_parts(engine, source, info, &target)).await;
    let completed = match copied {
        Ok(parts) => {
            let (bucket, key) = (Arc::clone(&target.bucket), target.key.clone());
            let condition = WriteCondition::default();
            let complete = CompleteUpload { bucket, key, upload, parts, checksums, condition };
            engine.complete_upload(complete).await.map_err(put::write_error)
        }
        Err(error) => Err(error),
    };
    if completed.is_err()
        && let Err(error) = engine.abort_upload(&target.bucket, &target.key, upload).await
    {
        tracing::warn!(target: "service", %error, "the upload of a copy could not be aborted; it is as other unfinished ones are");
    }
    let completed = completed?;
    let made = ObjectInfo { etag: completed.etag, lock: ObjectLock::default(), ..info.clone() };
    put::created(engine, (&target.bucket, &target.key), made, completed.put)
}

/// Numbers and MD5 of the parts that were copied.
async fn copy_parts(
    engine: &Rc<Engine>,
    source: &NamedObject,
    info: &ObjectInfo,
    target: &Target,
) -> Result<Vec<(u16, [u8; 16])>, AdminError> {
    let mut copied = Vec::new();
    for run in &info.parts {
        for number in run.first..=run.first.saturating_add(run.count - 1) {
            let range = info.part_range(number).ok_or(AdminError::Internal)?;
            let version = Some(info.version_name());
            let opened = engine.open_object(&source.bucket, &source.key, version, |found| {
                // A null version may have given way to another one.
                (if found.version == info.version { range.clone() } else { 0..0 }, found.version)
            });
            let (part, found) = opened.map_err(|error| source.missing(error))?;
            if found != info.version {
                return Err(AdminError::NotReady("the object was replaced while it was copied; try again"));
            }
            let payload = engine.copy_payload(part, &target.bucket, &target.key).await;
            let put = PutPart {
                bucket: Arc::clone(&target.bucket),
                key: target.key.clone(),
                upload: target.upload,
                number,
                payload: payload.map_err(put::write_error)?,
                checksum: None,
            };
            copied.push((number, engine.put_part(put).await?.md5));
        }
    }
    Ok(copied)
}
