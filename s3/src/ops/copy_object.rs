//! CopyObject. Source: API Reference, CopyObject.
//!
//! The bytes are copied inside the engine. The copy is never multipart, even if its source was: its entity tag is the
//! MD5 of its bytes, and it keeps only the full-object checksums of its source.
//!
//! The engine admits copies, bounded for each account. A copy ends when its client disconnects.

use crate::access::auth;
use crate::body::declared::named_algorithm;
use crate::call::Call;
use crate::compatibility::Compatibility;
use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::headers::attributes;
use crate::headers::checksum::{self, RunningChecksum};
use crate::headers::copy_source::{CopySource, check_conditions, check_size};
use crate::headers::encryption;
use crate::headers::expiration;
use crate::headers::object_lock;
use crate::headers::tagging::{self, TaggingDirective};
use crate::headers::version::VERSION_HEADER;
use crate::headers::write_conditions;
use crate::ops::copies::{self, Rights};
use crate::reply::Reply;
use crate::request::fields::Fields;
use crate::xml::writer::XmlWriter;
use cairn_engine::{
    Attributes, Bucket, Cause, ChecksumAlgorithm, ChecksumKind, CopyPermit, Engine, EngineError, ObjectInfo,
    ObjectLock, OpenObject, Origin, PutObject, PutOutcome, Versioning, WriteCondition, inspect_in_turns,
};
use cairn_model::{Etag, ObjectKey, VersionName};
use cairn_net::RequestBody;
use std::rc::Rc;
use std::sync::Arc;

/// Most attempts to open the same version of a source twice.
const OPENINGS_MAX: usize = 3;

/// The source of a copy's headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum MetadataDirective {
    Copy,
    Replace,
}

pub(crate) async fn copy_object(call: &Call<'_>, body: &RequestBody<'_>) -> S3Result<Reply> {
    copies::refuse_body(call)?;
    let (bucket, key) = call.object()?;
    let source = CopySource::from_request(call.fields)?;
    let directive = metadata_directive(call.fields)?;
    let tagging = tagging::directive(call.fields)?;
    let condition = write_conditions::of_put(call.fields)?;
    let lock = object_lock::of_new_version(call.fields, &bucket.settings(), call.now)?;
    let algorithm = checksum_algorithm(call.fields)?;
    let source_bucket = copies::source_bucket(call, &source)?;
    let opened = open_source(call, &source_bucket, &source, algorithm);
    let (object, computed) =
        opened.map_err(|error| auth::hide_missing_source(call.requester(), &source, error))?;
    let early = call.permitted(condition.clone());
    if early != WriteCondition::default() {
        // The commit decides. This check only avoids a copy that would be refused.
        write_conditions::check_early(&early, call.engine.head_object(&bucket, &key, None))?;
    }
    // On AWS, a bucket whose encryption was set may encrypt the copy in another way.
    let sets_encryption =
        call.compatibility == Compatibility::Extended && bucket.settings().encryption.is_some();
    let may_change = names_attribute(call.fields) || sets_encryption;
    if directive == MetadataDirective::Copy && source.is(&bucket.name, &key) && !may_change {
        refuse_unchanged_copy(call, &bucket, &key, &object.info, &source)?;
    }
    let source_version = copies::source_version(call, &source_bucket, &object.info, &source);
    let attributes = copied_attributes(call.fields, &object.info.attributes, directive, tagging, algorithm)?;
    // Unlike a put, a copy on AWS names the null version that it makes in a suspended bucket.
    let names_null =
        call.compatibility == Compatibility::Extended && bucket.versioning() == Versioning::Suspended;
    let copy = Copy {
        compatibility: call.compatibility,
        names_null,
        rights: Rights::new(call, source),
        engine: Rc::clone(call.engine),
        client: call.authentication.principal.to_string(),
        object,
        computed,
        bucket,
        key,
        attributes,
        condition,
        lock,
        origin: call.origin(Cause::Copy),
        source_version: source_version.clone(),
    };
    copies::respond(call, body, source_version, copy.run()).await
}

/// Opens the source. If a checksum must be computed, opens it twice: the source is read once for the checksum before it
/// is copied. A `null` version can be replaced in between, so both must be of the same version.
///
/// # Errors
/// Those of the source and its conditions; `OperationAborted` if the source is replaced at each attempt.
fn open_source(
    call: &Call<'_>,
    bucket: &Arc<Bucket>,
    source: &CopySource,
    algorithm: Option<ChecksumAlgorithm>,
) -> S3Result<(OpenObject, Option<(ChecksumAlgorithm, OpenObject)>)> {
    for _ in 0..OPENINGS_MAX {
        let checked = |info: &ObjectInfo| {
            let checked = check_conditions(call.fields, info, call.now).and_then(|()| check_size(info.size));
            (0..info.size, checked)
        };
        let opened = call.engine.open_object(bucket, &source.key, source.version, checked);
        let (object, checked) = opened.map_err(|error| source.read_error(error))?;
        checked?;
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

/// Parses the algorithm of the checksum that the copy must have.
fn checksum_algorithm(fields: Fields<'_>) -> S3Result<Option<ChecksumAlgorithm>> {
    const HEADER: &str = "x-amz-checksum-algorithm";
    let named = fields.text(HEADER).filter(|named| !named.is_empty());
    named.map(|named| named_algorithm(HEADER, named)).transpose()
}

/// Returns the attributes of the copy: headers and tags of the source or of the request, as the directives say, and the
/// checksums that it keeps.
fn copied_attributes(
    fields: Fields<'_>,
    source: &Attributes,
    metadata: MetadataDirective,
    tagging: TaggingDirective,
    algorithm: Option<ChecksumAlgorithm>,
) -> S3Result<Attributes> {
    let headers = match metadata {
        MetadataDirective::Copy => source.headers.clone(),
        MetadataDirective::Replace => attributes::from_request(fields)?.headers,
    };
    let tags = match tagging {
        TaggingDirective::Copy => source.tags.clone(),
        TaggingDirective::Replace => tagging::from_request(fields)?,
    };
    let checksums = carried_over(source, algorithm);
    Ok(Attributes { headers, checksums, checksum_kind: ChecksumKind::FullObject, tags })
}

/// Returns the checksums of the source that the copy keeps: full-object ones, and only that of `algorithm` if there is
/// one.
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

/// Returns whether the request names a storage class or an encryption. AWS allows the copy of an object onto itself then, even
/// if it names what the object has.
fn names_attribute(fields: Fields<'_>) -> bool {
    ["x-amz-storage-class", "x-amz-server-side-encryption"].iter().any(|name| fields.amz(name).is_some())
}

/// Refuses a copy of an object onto itself that would change nothing. A copy of a version that is not the current one,
/// for example because a delete marker is, restores it.
///
/// # Errors
/// `InvalidRequest`, and errors of the engine.
fn refuse_unchanged_copy(
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

/// A copy, independent of its request.
struct Copy {
    compatibility: Compatibility,
    /// Whether the response names the `null` version that the copy makes.
    names_null: bool,
    rights: Rights,
    engine: Rc<Engine>,
    /// The client whose copies are bounded together.
    client: String,
    object: OpenObject,
    /// The checksum to compute, and the source opened a second time for it.
    computed: Option<(ChecksumAlgorithm, OpenObject)>,
    bucket: Arc<Bucket>,
    key: ObjectKey,
    attributes: Attributes,
    condition: WriteCondition,
    lock: ObjectLock,
    origin: Origin,
    source_version: Option<String>,
}

impl Copy {
    async fn run(self) -> S3Result<Reply> {
        let Self {
            compatibility,
            names_null,
            rights,
            engine,
            client,
            object,
            computed,
            bucket,
            key,
            mut attributes,
            condition,
            lock,
            origin,
            source_version,
        } = self;
        let mut permit = engine.admit_copy(&client, &bucket, &key, object.info.size).await?;
        if let Some((algorithm, object)) = computed {
            attributes.checksums.push((algorithm, digest_of(&mut permit, algorithm, object).await?));
        }
        let payload = engine.copy_payload(&mut permit, object, &bucket, &key).await?;
        // The commit needs no turn: it goes to the committer's queue, as that of a put.
        drop(permit);
        let must_be_absent = rights.check_again()?.must_be_absent();
        let condition = WriteCondition { must_be_absent, ..condition };
        let (etag, is_encrypted) = (payload.etag(), payload.is_encrypted());
        let conditions = condition.clone();
        let reply_attributes = attributes.clone();
        let (put_bucket, put_key) = (Arc::clone(&bucket), key.clone());
        let put = PutObject {
            bucket: put_bucket,
            key: put_key,
            payload,
            etag,
            attributes,
            condition,
            lock,
            origin,
        };
        let outcome = engine
            .put_object(put)
            .await
            .map_err(|error| write_conditions::write_error(error, &conditions))?;
        let mut reply = Reply::xml(document(etag, &outcome, &reply_attributes));
        encryption::write(&mut reply.head, compatibility, is_encrypted);
        if !outcome.is_null {
            reply.head.header(VERSION_HEADER, outcome.version.to_string());
        } else if names_null {
            reply.head.header(VERSION_HEADER, VersionName::Null.to_string());
        }
        copies::write_source_version(&mut reply.head, source_version);
        let (head, store) = (&mut reply.head, engine.store());
        let tags = &reply_attributes.tags;
        expiration::write_header(head, store, &bucket, &key, tags, outcome.last_modified);
        Ok(reply)
    }
}

async fn digest_of(
    permit: &mut CopyPermit,
    algorithm: ChecksumAlgorithm,
    object: OpenObject,
) -> S3Result<Vec<u8>> {
    let mut running = RunningChecksum::new(algorithm);
    inspect_in_turns(permit, object, |bytes| running.update(bytes)).await?;
    Ok(running.finish())
}

fn document(etag: Etag, outcome: &PutOutcome, attributes: &Attributes) -> XmlWriter {
    let mut xml = XmlWriter::with_capacity(512);
    xml.open_root("CopyObjectResult");
    xml.time("LastModified", outcome.last_modified);
    xml.value("ETag", format_args!("&quot;{etag}&quot;"));
    for (algorithm, digest) in &attributes.checksums {
        xml.text(checksum::element(*algorithm), &checksum::text(digest));
        xml.text("ChecksumType", checksum::kind_name(attributes.checksum_kind));
    }
    xml.close("CopyObjectResult");
    xml
}
