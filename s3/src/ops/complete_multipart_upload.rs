//! CompleteMultipartUpload. Source: API Reference, CompleteMultipartUpload.
//!
//! The parts that the client names are compared with the uploaded ones, page by page. The engine then links them into
//! an object, and compares them again.
//!
//! A completion may be repeated after it has succeeded. The upload is then gone, but the engine finds the object that
//! was made of it by the named parts. What the client declares is compared with this object, and the response is the
//! same. Upload or object is looked up before the body is read, and therefore before a waiting client is told to
//! continue.

use crate::body::declared;
use crate::body::digests::{BodyDigests, checksum_mismatch};
use crate::body::read_small_body;
use crate::call::Call;
use crate::compatibility::Compatibility;
use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::headers::checksum;
use crate::headers::encryption;
use crate::headers::expiration;
use crate::headers::version::VERSION_HEADER;
use crate::headers::write_conditions;
use crate::multipart::assembly::{Assembled, Assembly};
use crate::multipart::named_parts::{self, NamedPart, invalid_part};
use crate::multipart::named_upload;
use crate::reply::Reply;
use crate::request::fields::Fields;
use crate::xml::writer::XmlWriter;
use cairn_engine::{
    Attributes, Bucket, Cause, ChecksumAlgorithm, ChecksumKind, CompleteOutcome, CompleteUpload, EngineError,
    ObjectInfo, Tags, UploadChecksum,
};
use cairn_model::{ObjectKey, UploadId};
use cairn_net::RequestBody;
use futures_lite::future::yield_now;
use std::sync::Arc;

/// Parts that are looked up before other tasks run.
const PARTS_PER_PAGE: usize = 1000;

/// The values that the client declares for the object.
#[derive(Debug, Default)]
struct Declared {
    /// `x-amz-mp-object-size`, bytes.
    size: Option<u64>,
    /// The `x-amz-checksum-*` header, as text. It is the object's checksum here, not the body's.
    checksum: Option<(ChecksumAlgorithm, String)>,
    /// `x-amz-checksum-type`.
    kind: Option<ChecksumKind>,
}

/// The object's checksum, for the response.
type ObjectChecksum = Option<(UploadChecksum, Vec<u8>)>;

pub(crate) async fn complete_multipart_upload(
    call: &Call<'_>,
    body: &mut RequestBody<'_>,
) -> S3Result<Reply> {
    let (bucket, key, id) = named_upload(call)?;
    let mut condition = write_conditions::of_put(call.fields)?;
    let conditional = condition != Default::default();
    if conditional && call.compatibility == Compatibility::Extended {
        condition.unchanged_since = Some(id);
    }
    let declared = declared(call.fields)?;
    let digests = declared::of_body(call.fields, call.authentication.payload)?;
    let tags = existing_tags(call, (&bucket, &key, id))?;
    let body = read_small_body(call, body, BodyDigests::new(digests), named_parts::BODY_BYTES_MAX).await?;
    if body.is_empty() && call.compatibility == Compatibility::Extended {
        return Err(S3Error::invalid_request("You must specify at least one part"));
    }
    let named = named_parts::parse(&body).await?;
    drop(body);

    let (upload, assembled) = match assemble(call, (&bucket, &key, id), &named).await? {
        Some(found) => found,
        None => completed(call.engine.completed_upload(&bucket, &key, id)?),
    };
    if call.compatibility == Compatibility::Extended {
        require_part_checksums(upload, &named)?;
    }
    let checksum = object_checksum(&declared, upload, assembled, named.len())?;
    let condition = call.permitted(condition);
    let complete = CompleteUpload {
        bucket: Arc::clone(&bucket),
        key: key.clone(),
        upload: id,
        parts: named.iter().map(|part| (part.number, part.etag.md5)).collect(),
        checksums: checksum.iter().map(|(upload, digest)| (upload.algorithm, digest.clone())).collect(),
        condition: condition.clone(),
        origin: call.origin(Cause::Request),
    };
    let outcome = call.engine.complete_upload(complete).await.map_err(|error| match error {
        EngineError::InvalidPart(number) => {
            let part = named.iter().find(|part| part.number == number);
            part.map_or_else(|| invalid_part(number), NamedPart::refusal)
        }
        EngineError::PayloadTooLarge => S3Error::with_message(
            ErrorCode::EntityTooLarge,
            "Your proposed upload exceeds the maximum allowed object size.",
        ),
        other => write_conditions::write_error(other, &condition),
    })?;
    Ok(reply(call, (&bucket, &key), &outcome, checksum, &tags))
}

/// Checks that each part of a composite checksum is named with its checksum.
///
/// # Errors
/// `InvalidRequest`.
fn require_part_checksums(upload: Option<UploadChecksum>, named: &[NamedPart]) -> S3Result<()> {
    let Some(UploadChecksum { algorithm, kind: ChecksumKind::Composite }) = upload else { return Ok(()) };
    let has_checksum = |part: &NamedPart| part.checksums.iter().any(|(named, _)| *named == algorithm);
    match named.iter().find(|part| !has_checksum(part)) {
        None => Ok(()),
        Some(part) => Err(S3Error::invalid_request(format!(
            "The upload was created using a {} checksum. The complete request must include the checksum for each part. \
             It was missing for part {} in the request.",
            checksum::name(algorithm).to_ascii_lowercase(),
            part.number
        ))),
    }
}

/// Checks that the upload exists, or else the object that was made of it. Returns the tags of the object.
///
/// # Errors
/// `NoSuchUpload`, and errors of the engine.
fn existing_tags(call: &Call<'_>, (bucket, key, id): (&Arc<Bucket>, &ObjectKey, UploadId)) -> S3Result<Tags> {
    match call.engine.upload(bucket, key, id) {
        Ok(found) => Ok(found.upload.attributes.tags),
        Err(EngineError::NoSuchUpload) => Ok(call.engine.completed_upload(bucket, key, id)?.attributes.tags),
        Err(error) => Err(error.into()),
    }
}

/// Returns the checksum of an upload and its result, taken from the object that was made of it.
fn completed(object: ObjectInfo) -> (Option<UploadChecksum>, Assembled) {
    let Attributes { checksums, checksum_kind: kind, .. } = object.attributes;
    let checksum = checksums.into_iter().next();
    let upload = checksum.as_ref().map(|(algorithm, _)| UploadChecksum { algorithm: *algorithm, kind });
    (upload, Assembled { size: object.size, checksum })
}

/// Parses what the client declares about the object.
fn declared(fields: Fields<'_>) -> S3Result<Declared> {
    const SIZE: &str = "x-amz-mp-object-size";
    let invalid = |message: String| S3Error::with_message(ErrorCode::InvalidRequest, message);
    let size = match fields.amz(SIZE) {
        None => None,
        Some(text) => {
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            let size = digits.then(|| text.parse().ok()).flatten();
            Some(size.ok_or_else(|| invalid(format!("Value for {SIZE} header is invalid.")))?)
        }
    };
    let mut checksum = None;
    for algorithm in ChecksumAlgorithm::ALL {
        let Some(text) = fields.text(checksum::header(algorithm)) else { continue };
        if checksum.is_some() {
            let message =
                "Expecting a single x-amz-checksum- header. Multiple checksum types are not allowed.";
            return Err(invalid(message.to_owned()));
        }
        let digest = text.rsplit_once('-').map_or(text, |(digest, _)| digest);
        if checksum::parse_digest(algorithm, digest).is_none() {
            return Err(invalid(format!("Value for {} header is invalid.", checksum::header(algorithm))));
        }
        checksum = Some((algorithm, text.to_owned()));
    }
    let kind = match fields.text("x-amz-checksum-type") {
        None => None,
        Some(text) => Some(
            checksum::of_kind_name(text)
                .ok_or_else(|| invalid("Value for x-amz-checksum-type header is invalid.".to_owned()))?,
        ),
    };
    Ok(Declared { size, checksum, kind })
}

/// Compares the named parts with the uploaded ones; `None` if the upload no longer exists.
///
/// # Errors
/// `InvalidPart`, `EntityTooSmall`, and errors of the engine.
async fn assemble(
    call: &Call<'_>,
    (bucket, key, id): (&Arc<Bucket>, &ObjectKey, UploadId),
    named: &[NamedPart],
) -> S3Result<Option<(Option<UploadChecksum>, Assembled)>> {
    let upload = match call.engine.upload(bucket, key, id) {
        Ok(upload) => upload.upload.checksum,
        Err(EngineError::NoSuchUpload) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mut assembly = Assembly::new(upload)?;
    let mut wanted = named.iter().peekable();
    let mut after = 0;
    loop {
        let page = match call.engine.list_parts(bucket, key, id, after, PARTS_PER_PAGE) {
            Ok(page) => page,
            Err(EngineError::NoSuchUpload) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        after = page.parts.last().map_or(after, |last| last.number);
        for stored in page.parts {
            if let Some(part) = wanted.next_if(|part| part.number <= stored.number) {
                assembly.add(part, stored)?;
            }
        }
        match wanted.peek() {
            None => return Ok(Some((upload, assembly.finish()))),
            Some(missing) if !page.is_truncated => return Err(missing.refusal()),
            Some(_) => yield_now().await,
        }
    }
}

/// Compares size and checksum with what the client declares, and returns the checksum if the upload has one. `parts` is
/// the number of parts.
///
/// # Errors
/// `InvalidRequest` for another size, type or algorithm, `BadDigest` for another checksum.
fn object_checksum(
    declared: &Declared,
    upload: Option<UploadChecksum>,
    assembled: Assembled,
    parts: usize,
) -> S3Result<ObjectChecksum> {
    let invalid = |message: String| Err(S3Error::with_message(ErrorCode::InvalidRequest, message));
    if let Some(size) = declared.size.filter(|size| *size != assembled.size) {
        return invalid(format!(
            "The provided 'x-amz-mp-object-size' header value {size} does not match what was computed: {}",
            assembled.size
        ));
    }
    let kind = upload.map_or(ChecksumKind::FullObject, |upload| upload.kind);
    if declared.kind.is_some_and(|declared| declared != kind) {
        return invalid(format!("The checksum type of the upload is {}.", checksum::kind_name(kind)));
    }
    let checksum = upload.zip(assembled.checksum.map(|(_, digest)| digest));
    match (&declared.checksum, &checksum) {
        (None, _) => {}
        (Some((algorithm, text)), Some((upload, digest))) if *algorithm == upload.algorithm => {
            // Clients send the checksum of a composite with or without the number of parts.
            let parts = u32::try_from(parts).expect("the list of parts is bounded");
            let whole = checksum::object_text(digest, kind, parts);
            if *text != whole && *text != checksum::text(digest) {
                return Err(checksum_mismatch(*algorithm));
            }
        }
        (Some((algorithm, _)), _) => {
            return invalid(format!(
                "The upload was not created with x-amz-checksum-algorithm: {}, so this checksum of the object cannot be checked.",
                checksum::name(*algorithm)
            ));
        }
    }
    Ok(checksum)
}

fn reply(
    call: &Call<'_>,
    (bucket, key): (&Arc<Bucket>, &ObjectKey),
    outcome: &CompleteOutcome,
    checksum: ObjectChecksum,
    tags: &Tags,
) -> Reply {
    let (name, object) = (bucket.name.as_str(), key.as_str());
    let mut xml = XmlWriter::with_capacity(1024);
    xml.open_root("CompleteMultipartUploadResult");
    xml.text("Location", &call.location(name, key));
    xml.text("Bucket", name);
    xml.text("Key", object);
    xml.value("ETag", format_args!("&quot;{}&quot;", outcome.etag));
    if let Some((UploadChecksum { algorithm, kind }, digest)) = checksum {
        let text = checksum::object_text(&digest, kind, outcome.etag.parts);
        xml.text(checksum::element(algorithm), &text);
        xml.text("ChecksumType", checksum::kind_name(kind));
    }
    xml.close("CompleteMultipartUploadResult");
    let mut reply = Reply::xml(xml);
    encryption::write(&mut reply.head, call.compatibility, outcome.encrypted);
    // Without versioning, or with suspended versioning, the version is `null`, which has no id.
    if !outcome.put.is_null {
        reply.head.header(VERSION_HEADER, outcome.put.version.to_string());
    }
    let (head, store) = (&mut reply.head, call.engine.store());
    expiration::write_header(head, store, bucket, key, tags, outcome.put.last_modified);
    reply
}

#[cfg(test)]
mod tests {
    use super::{declared, object_checksum};
    use crate::errors::S3Result;
    use crate::multipart::assembly::Assembled;
    use crate::request::fields::Fields;
    use crate::request::query::Query;
    use cairn_engine::ChecksumAlgorithm::{self, Crc32};
    use cairn_engine::ChecksumKind::{self, Composite, FullObject};
    use cairn_engine::UploadChecksum;

    /// Checks headers against an object of 10 bytes in two parts whose CRC-32 is 1.
    fn checked(kind: Option<ChecksumKind>, headers: &[(&str, &str)]) -> S3Result<()> {
        let headers: Vec<(&str, &[u8])> =
            headers.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
        let declared = declared(Fields::new(&headers, &Query::default()))?;
        let algorithm: ChecksumAlgorithm = Crc32;
        let upload = kind.map(|kind| UploadChecksum { algorithm, kind });
        let checksum = kind.map(|_| (algorithm, vec![0, 0, 0, 1]));
        object_checksum(&declared, upload, Assembled { size: 10, checksum }, 2).map(|_| ())
    }

    #[test]
    fn declared_size_and_checksum_are_checked() {
        for (kind, name, value, code) in [
            (None, "x-amz-mp-object-size", "10", None),
            (None, "x-amz-mp-object-size", "11", Some("InvalidRequest")),
            (None, "x-amz-mp-object-size", "-1", Some("InvalidRequest")),
            (None, "x-amz-mp-object-size", "", Some("InvalidRequest")),
            (Some(Composite), "x-amz-checksum-crc32", "AAAAAQ==-2", None),
            (Some(Composite), "x-amz-checksum-crc32", "AAAAAQ==", None),
            (Some(Composite), "x-amz-checksum-crc32", "AAAAAQ==-3", Some("BadDigest")),
            (Some(Composite), "x-amz-checksum-crc32", "AAAAAg==-2", Some("BadDigest")),
            (Some(Composite), "x-amz-checksum-crc32", "x", Some("InvalidRequest")),
            (Some(Composite), "x-amz-checksum-crc32c", "AAAAAQ==", Some("InvalidRequest")),
            (Some(FullObject), "x-amz-checksum-crc32", "AAAAAQ==", None),
            (Some(FullObject), "x-amz-checksum-crc32", "AAAAAQ==-2", Some("BadDigest")),
            (None, "x-amz-checksum-crc32", "AAAAAQ==", Some("InvalidRequest")),
            (Some(FullObject), "x-amz-checksum-type", "FULL_OBJECT", None),
            (Some(Composite), "x-amz-checksum-type", "FULL_OBJECT", Some("InvalidRequest")),
            (Some(Composite), "x-amz-checksum-type", "OTHER", Some("InvalidRequest")),
        ] {
            let refused = checked(kind, &[(name, value)]).err();
            assert_eq!(refused.as_ref().map(|error| error.code()), code, "{kind:?} {name}: {value}");
        }
        let two = [("x-amz-checksum-crc32", "AAAAAQ=="), ("x-amz-checksum-crc32c", "AAAAAQ==")];
        assert_eq!(checked(Some(FullObject), &two).expect_err("two").code(), "InvalidRequest");
    }
}
