//! CopyObject. Source: API Reference, CopyObject.
//!
//! The bytes are copied inside the engine. The copy is one piece, whatever its source was: its entity tag is the MD5 of its
//! bytes, and of the source's checksums those of the full object are its own.

use crate::account;
use crate::attributes;
use crate::auth;
use crate::body::declared::named_algorithm;
use crate::call::Call;
use crate::checksum::{self, Running};
use crate::conditions;
use crate::copy_source::{CopySource, judge};
use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::fields::Fields;
use crate::late;
use crate::lock_headers;
use crate::reply::Reply;
use crate::version::VERSION_HEADER;
use crate::xml::writer::XmlWriter;
use cairn_engine::{
    Attributes, Bucket, ChecksumAlgorithm, ChecksumKind, Engine, EngineError, ObjectInfo, ObjectLock,
    OpenObject, PutObject, PutOutcome, Versioning, WriteCondition,
};
use cairn_http1::{BodyFraming, iso8601_millis};
use cairn_model::{Etag, ObjectKey};
use cairn_net::Turns;
use std::rc::Rc;
use std::sync::Arc;

/// The version that was copied.
const SOURCE_VERSION_HEADER: &str = "x-amz-copy-source-version-id";

/// How often a source is opened that is another one each time.
const OPENINGS_MAX: usize = 3;

/// Where the copy's headers come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum MetadataDirective {
    Copy,
    Replace,
}

pub(crate) async fn copy_object(call: &Call<'_>) -> S3Result<Reply> {
    if matches!(call.head.framing(), BodyFraming::Length(1..)) {
        let message = "CopyObject takes no body: its content is that of the copy source.";
        return Err(S3Error::with_message(ErrorCode::InvalidRequest, message));
    }
    let (bucket, key) = call.object()?;
    let source = CopySource::from_request(call.fields)?;
    let directive = metadata_directive(call.fields)?;
    let condition = conditions::of_put(call.fields)?;
    let lock = lock_headers::from_request(call.fields, &bucket.settings(), call.now)?;
    let algorithm = checksum_algorithm(call.fields)?;
    auth::authorize_copy_source(&call.authentication.principal, &source)?;
    account::check_expected_source_owner(call.fields)?;
    let source_bucket = call.engine.store().bucket(&source.bucket);
    let source_bucket = source_bucket.ok_or_else(|| source.named(ErrorCode::NoSuchBucket.into()))?;
    let opened = open_source(call, &source_bucket, &source, algorithm);
    let (object, computed) =
        opened.map_err(|error| auth::hide_missing_source(&call.authentication.principal, &source, error))?;
    if condition != WriteCondition::default() {
        // The commit decides; this only spares a copy that would be refused in the end.
        conditions::check_early(&condition, call.engine.head_object(&bucket, &key, None))?;
    }
    if directive == MetadataDirective::Copy && source.is(&bucket.name, &key) {
        refuse_pointless(call, &bucket, &key, &object.info, &source)?;
    }
    let headers = match directive {
        MetadataDirective::Copy => object.info.attributes.headers.clone(),
        MetadataDirective::Replace => attributes::from_request(call.fields)?.headers,
    };
    let source_version = (source_bucket.versioning() != Versioning::Unversioned)
        .then(|| object.info.version_name().to_string());
    let checksums = carried_over(&object.info.attributes, algorithm);
    let attributes = Attributes { headers, checksums, checksum_kind: ChecksumKind::FullObject };
    let copy = Copy {
        engine: Rc::clone(call.engine),
        object,
        computed,
        bucket,
        key,
        attributes,
        condition,
        lock,
        source_version: source_version.clone(),
    };
    let (principal, bucket) = (call.authentication.principal.clone(), call.target.bucket_text().to_owned());
    // An error in a late answer passes nobody else who would hide what is missing.
    let work =
        async move { copy.carry_out().await.map_err(|error| auth::hide_missing(&principal, &bucket, error)) };
    late::answer(call, Box::pin(work), |head| {
        if let Some(version) = source_version {
            head.header(SOURCE_VERSION_HEADER, version);
        }
    })
    .await
}

/// Opens the source; twice when its checksum is to be computed, for it is read once for that before it is copied. Two looks
/// may find two versions, for a `null` version can be replaced between them; both have to be of the same one.
///
/// # Errors
/// Those of the source and its conditions; `OperationAborted` for a source that is replaced faster than it can be opened.
fn open_source(
    call: &Call<'_>,
    bucket: &Arc<Bucket>,
    source: &CopySource,
    algorithm: Option<ChecksumAlgorithm>,
) -> S3Result<(OpenObject, Option<(ChecksumAlgorithm, OpenObject)>)> {
    for _ in 0..OPENINGS_MAX {
        let judged = |info: &ObjectInfo| (0..info.size, judge(call.fields, info));
        let opened = call.engine.open_object(bucket, &source.key, source.version, judged);
        let (object, judged) = opened.map_err(|error| source.read_error(error))?;
        judged?;
        let is_missing = |algorithm: &ChecksumAlgorithm| {
            carried_over(&object.info.attributes, Some(*algorithm)).is_empty()
        };
        let Some(algorithm) = algorithm.filter(is_missing) else { return Ok((object, None)) };
        let whole = |info: &ObjectInfo| (0..info.size, ());
        let version = Some(object.info.version_name());
        match call.engine.open_object(bucket, &source.key, version, whole) {
            Ok((again, ())) if again.info.version == object.info.version => {
                return Ok((object, Some((algorithm, again))));
            }
            Ok(_) | Err(EngineError::NoSuchVersion | EngineError::DeleteMarker { .. }) => {}
            Err(error) => return Err(source.read_error(error)),
        }
    }
    Err(ErrorCode::OperationAborted.into())
}

fn metadata_directive(fields: Fields<'_>) -> S3Result<MetadataDirective> {
    const HEADER: &str = "x-amz-metadata-directive";
    match fields.amz(HEADER) {
        None | Some("COPY") => Ok(MetadataDirective::Copy),
        Some("REPLACE") => Ok(MetadataDirective::Replace),
        Some(other) => Err(S3Error::invalid_argument(HEADER, other, "Unknown metadata directive.")),
    }
}

/// The checksum that the copy is to have beside those of its source.
fn checksum_algorithm(fields: Fields<'_>) -> S3Result<Option<ChecksumAlgorithm>> {
    const HEADER: &str = "x-amz-checksum-algorithm";
    let named = fields.text(HEADER).filter(|named| !named.is_empty());
    named.map(|named| named_algorithm(HEADER, named)).transpose()
}

/// The checksums of the source that are the copy's too: those of all its bytes, and of the algorithm asked for, if one is.
fn carried_over(
    source: &Attributes,
    algorithm: Option<ChecksumAlgorithm>,
) -> Vec<(ChecksumAlgorithm, Vec<u8>)> {
    if source.checksum_kind == ChecksumKind::Composite {
        return Vec::new();
    }
    let wanted = |found: &ChecksumAlgorithm| algorithm.is_none_or(|algorithm| algorithm == *found);
    source.checksums.iter().filter(|(found, _)| wanted(found)).cloned().collect()
}

/// Refuses a copy of an object onto itself that would change nothing; one of a version that is not the current one, for
/// example because a delete marker is, restores it.
///
/// # Errors
/// `InvalidRequest`, and failures of the engine.
fn refuse_pointless(
    call: &Call<'_>,
    bucket: &Arc<Bucket>,
    key: &ObjectKey,
    object: &ObjectInfo,
    source: &CopySource,
) -> S3Result<()> {
    if source.version.is_some() {
        match call.engine.head_object(bucket, key, None) {
            Ok(current) if current.version == object.version => {}
            Ok(_) | Err(EngineError::NoSuchKey | EngineError::DeleteMarker { .. }) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
    Err(S3Error::with_message(
        ErrorCode::InvalidRequest,
        "This copy request is illegal because it is trying to copy an object to itself without changing the object's \
         metadata, storage class, website redirect location or encryption attributes.",
    ))
}

/// A copy, apart from the request that it was asked for by.
struct Copy {
    engine: Rc<Engine>,
    object: OpenObject,
    /// The checksum to compute, and the source opened once more for that.
    computed: Option<(ChecksumAlgorithm, OpenObject)>,
    bucket: Arc<Bucket>,
    key: ObjectKey,
    attributes: Attributes,
    condition: WriteCondition,
    lock: ObjectLock,
    source_version: Option<String>,
}

impl Copy {
    async fn carry_out(self) -> S3Result<Reply> {
        let Self { engine, object, computed, bucket, key, mut attributes, condition, lock, source_version } =
            self;
        if let Some((algorithm, object)) = computed {
            attributes.checksums.push((algorithm, digest_of(algorithm, object).await?));
        }
        let payload = engine.copy_payload(object, &bucket, &key).await?;
        let etag = Etag::single(payload.md5());
        let conditional = condition != WriteCondition::default();
        let reply_attributes = attributes.clone();
        let put = PutObject { bucket, key, payload, etag, attributes, condition, lock };
        let outcome =
            engine.put_object(put).await.map_err(|error| conditions::write_error(error, conditional))?;
        let mut reply = Reply::xml(document(etag, &outcome, &reply_attributes));
        if !outcome.is_null {
            reply.head.header(VERSION_HEADER, outcome.version.to_string());
        }
        if let Some(version) = source_version {
            reply.head.header(SOURCE_VERSION_HEADER, version);
        }
        Ok(reply)
    }
}

async fn digest_of(algorithm: ChecksumAlgorithm, object: OpenObject) -> S3Result<Vec<u8>> {
    let mut reader = object.read();
    let mut running = Running::new(algorithm);
    let mut turns = Turns::default();
    while let Some(chunk) = reader.next().await? {
        let bytes = chunk.as_ref();
        running.update(bytes);
        turns.took(bytes.len()).await;
    }
    Ok(running.finish())
}

fn document(etag: Etag, outcome: &PutOutcome, attributes: &Attributes) -> XmlWriter {
    let mut xml = XmlWriter::with_capacity(512);
    xml.open_root("CopyObjectResult");
    xml.value("LastModified", iso8601_millis(outcome.last_modified.0));
    xml.value("ETag", format_args!("&quot;{etag}&quot;"));
    for (algorithm, digest) in &attributes.checksums {
        xml.text(checksum::element(*algorithm), &checksum::text(digest));
        xml.text("ChecksumType", checksum::kind_name(attributes.checksum_kind));
    }
    xml.close("CopyObjectResult");
    xml
}
