//! UploadPartCopy: a part whose bytes are those of an object, or of a range of it. Source: API Reference, UploadPartCopy.
//!
//! The bytes are copied inside the engine, admitted and bounded as those of CopyObject. The version that the source has at
//! the beginning stays readable until its bytes have been copied. The checksum that the upload asks for is computed from
//! the bytes as they are copied.

use crate::access::auth;
use crate::call::Call;
use crate::compatibility::Compatibility;
use crate::errors::S3Result;
use crate::headers::checksum::{self, RunningChecksum};
use crate::headers::copy_source::{CopySource, check_conditions, check_size, range_to_copy};
use crate::headers::encryption;
use crate::headers::write_conditions;
use crate::multipart::{named_upload, parse_part_number, refuse_incomplete_name};
use crate::ops::copies::{self, Rights};
use crate::reply::Reply;
use crate::xml::writer::XmlWriter;
use cairn_engine::{Bucket, ChecksumAlgorithm, Engine, ObjectInfo, OpenObject, PartInfo, PutPart};
use cairn_model::{ObjectKey, UploadId};
use cairn_net::RequestBody;
use std::rc::Rc;
use std::sync::Arc;

/// A copy, independent of its request.
struct PartCopy {
    compatibility: Compatibility,
    rights: Rights,
    engine: Rc<Engine>,
    /// The client whose copies are bounded together.
    client: String,
    object: OpenObject,
    /// Number of bytes to copy.
    size: u64,
    bucket: Arc<Bucket>,
    key: ObjectKey,
    upload: UploadId,
    number: u16,
    algorithm: Option<ChecksumAlgorithm>,
    source_version: Option<String>,
}

pub(crate) async fn upload_part_copy(call: &Call<'_>, body: &RequestBody<'_>) -> S3Result<Reply> {
    copies::refuse_body(call)?;
    refuse_incomplete_name(call)?;
    let (bucket, key, upload) = named_upload(call)?;
    write_conditions::refuse_on_upload_step(call.fields, call.operation)?;
    let number = parse_part_number(call.query.get("partNumber").unwrap_or_default())?;
    let source = CopySource::from_request(call.fields)?;
    let source_bucket = copies::source_bucket(call, &source)?;
    let checksum = call.engine.upload(&bucket, &key, upload)?.upload.checksum;
    let (object, size) = open_source(call, &source_bucket, &source)
        .map_err(|error| auth::hide_missing_source(call.requester(), &source, error))?;
    let source_version = copies::source_version(call, &source_bucket, &object.info, &source);
    let copy = PartCopy {
        compatibility: call.compatibility,
        rights: Rights::new(call, source),
        engine: Rc::clone(call.engine),
        client: call.authentication.principal.to_string(),
        object,
        size,
        bucket,
        key,
        upload,
        number,
        algorithm: checksum.map(|checksum| checksum.algorithm),
        source_version: source_version.clone(),
    };
    copies::respond(call, body, source_version, copy.run()).await
}

/// Opens the bytes to copy, after checking conditions and range. Returns their number.
fn open_source(call: &Call<'_>, bucket: &Arc<Bucket>, source: &CopySource) -> S3Result<(OpenObject, u64)> {
    let wanted = |info: &ObjectInfo| {
        let range = check_conditions(call.fields, info, call.now).and_then(|()| {
            let range = range_to_copy(call.fields, info.size)?;
            check_size(range.end - range.start).map(|()| range)
        });
        match range {
            Ok(range) => (range.clone(), Ok(range.end - range.start)),
            Err(refused) => (0..0, Err(refused)),
        }
    };
    let opened = call.engine.open_object(bucket, &source.key, source.version, wanted);
    let (object, checked) = opened.map_err(|error| source.read_error(error))?;
    checked.map(|size| (object, size))
}

impl PartCopy {
    async fn run(self) -> S3Result<Reply> {
        let Self {
            compatibility,
            rights,
            engine,
            client,
            object,
            size,
            bucket,
            key,
            upload,
            number,
            algorithm,
            source_version,
        } = self;
        let mut permit = engine.admit_copy(&client, &bucket, &key, size).await?;
        let mut running = algorithm.map(|algorithm| (algorithm, RunningChecksum::new(algorithm)));
        let inspect = |bytes: &[u8]| {
            if let Some((_, running)) = &mut running {
                running.update(bytes);
            }
        };
        let payload = engine.copy_inspected(&mut permit, object, &bucket, &key, inspect).await?;
        // The commit needs no turn: it goes to the committer's queue, as that of an uploaded part.
        drop(permit);
        // The completion decides whether the key may have an object.
        let _ = rights.check_again()?;
        let checksum = running.map(|(algorithm, running)| (algorithm, running.finish()));
        let is_encrypted = payload.is_encrypted();
        let part = engine.put_part(PutPart { bucket, key, upload, number, payload, checksum }).await?;
        let mut reply = Reply::xml(document(&part));
        encryption::write(&mut reply.head, compatibility, is_encrypted);
        copies::write_source_version(&mut reply.head, source_version);
        Ok(reply)
    }
}

fn document(part: &PartInfo) -> XmlWriter {
    let mut xml = XmlWriter::with_capacity(512);
    xml.open_root("CopyPartResult");
    xml.time("LastModified", part.last_modified);
    xml.value("ETag", format_args!("&quot;{}&quot;", part.etag()));
    if let Some((algorithm, digest)) = &part.checksum {
        xml.text(checksum::element(*algorithm), &checksum::text(digest));
    }
    xml.close("CopyPartResult");
    xml
}
