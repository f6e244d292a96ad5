//! DeleteObjects: up to 1000 objects or versions in one request. Source: API Reference, DeleteObjects.
//!
//! Each object is authorized, recorded and deleted as DeleteObject would do it. A refusal concerns its object only: the
//! response is 200 and says for each object what became of it. The engine gets all deletes together, so that they take few
//! commits.

use crate::access::auth::{self, Requester, RequiredRights};
use crate::access::recording::{Effect, RecordKind, Recording};
use crate::body::declared;
use crate::body::digests::BodyDigests;
use crate::body::read_small_body;
use crate::call::Call;
use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::headers::version::{self, MARKER_HEADER, VERSION_HEADER};
use crate::headers::write_conditions::{self, EntryConditions};
use crate::ops::named_objects::{self, DeleteRequest, NamedObject};
use crate::reply::Reply;
use crate::request::target::Target;
use crate::xml::writer::XmlWriter;
use cairn_engine::{Bucket, Cause, DeleteOptions, DeleteOutcome, EngineError, WriteCondition};
use cairn_http1::{ResponseHead, StatusCode};
use cairn_identity::Principal;
use cairn_identity::policy::Action;
use cairn_model::{ObjectKey, VersionName, u64_of};
use cairn_net::RequestBody;
use cairn_transfer::CONNECTION_BODY_BYTES;
use cairn_transfer::{JOINED_MAX, join_all};
use futures_lite::future::yield_now;
use std::sync::Arc;

/// Objects that are authorized before other tasks run.
const OBJECTS_PER_YIELD: usize = 64;
/// Estimated bytes of XML for one object.
const ENTRY_BYTES: usize = 128;

/// An object that may be deleted.
struct Permitted {
    /// Its place in the document.
    at: usize,
    target: Target,
    key: ObjectKey,
    version: Option<VersionName>,
    condition: WriteCondition,
}

/// The deletion of an object.
struct Deleted {
    /// The version that was named or created.
    version: Option<VersionName>,
    is_delete_marker: bool,
}

pub(crate) async fn delete_objects(call: &Call<'_>, body: &mut RequestBody<'_>) -> S3Result<Reply> {
    write_conditions::refuse_on_batch(call.fields, call.operation)?;
    // An account that may delete nothing there gets no memory beyond that of its connection.
    if body.remaining() > u64_of(CONNECTION_BODY_BYTES) {
        auth::authorize_any(call.requester(), Action::DeleteObject, call.target)?;
    }
    let digests = declared::from_request(call.fields, call.authentication.payload)?;
    let body = read_small_body(call, body, BodyDigests::new(digests), named_objects::BODY_BYTES_MAX).await?;
    let request = named_objects::parse(&body).await?;
    drop(body);
    let mut results: Vec<Option<S3Result<Deleted>>> = request.objects.iter().map(|_| None).collect();
    let permitted = permitted(call, &request.objects, &mut results).await?;
    // A client that may delete none of the objects does not learn whether the bucket exists.
    if !permitted.is_empty() {
        let bucket = call.bucket()?;
        let bypass_governance = call.bypasses_governance(&bucket.settings())?;
        delete(call, &bucket, bypass_governance, permitted, &mut results).await;
    }
    log_failure(call, &results);
    Ok(Reply::xml(document(&request, &results)))
}

/// Returns the objects that the client may delete. The errors of the others go to `results` and to the audit trail.
///
/// # Errors
/// `InvalidAccessKeyId` if the credential was revoked meanwhile.
async fn permitted(
    call: &Call<'_>,
    objects: &[NamedObject],
    results: &mut [Option<S3Result<Deleted>>],
) -> S3Result<Vec<Permitted>> {
    let changed = auth::changed_principal(call.authenticator, call.authentication)?;
    let principal = changed.as_ref().unwrap_or(&call.authentication.principal);
    let mut permitted = Vec::with_capacity(objects.len());
    for (at, object) in objects.iter().enumerate() {
        if at % OBJECTS_PER_YIELD == OBJECTS_PER_YIELD - 1 {
            yield_now().await;
        }
        match check(call, principal, at, object) {
            Ok(object) => permitted.push(object),
            Err(error) => results[at] = Some(Err(error)),
        }
    }
    Ok(permitted)
}

/// Parses what the client says about an object, and checks that it may delete it.
fn check(call: &Call<'_>, principal: &Principal, at: usize, object: &NamedObject) -> S3Result<Permitted> {
    let target = Target::new(call.target.bucket_text(), &object.key);
    let NamedObject { version, etag, size, last_modified, .. } = object;
    let reveals_stored_object = etag.is_some() || size.is_some() || last_modified.is_some();
    let required =
        RequiredRights { action: Some(Action::DeleteObject), creates_object: false, reveals_stored_object };
    // Deletions are allowed without a restriction, or not at all.
    let _ = auth::authorize_request(Requester { principal, ..call.requester() }, required, &target)
        .inspect_err(|denied| call.audit_context_of(&target).refused(denied))?;
    call.check_change(&target)?;
    let key = target.key()?;
    // AWS treats a malformed id as a version that does not exist.
    let known = |text: &str| match VersionName::parse(text) {
        None if !text.is_empty() => Err(S3Error::from(ErrorCode::NoSuchVersion)),
        _ => version::parse("VersionId", text),
    };
    let version = version.as_deref().map(known).transpose()?;
    let condition = write_conditions::of_entry(EntryConditions {
        etag: etag.as_deref(),
        size: size.as_deref(),
        last_modified: last_modified.as_deref(),
    })?;
    Ok(Permitted { at, target, key, version, condition })
}

/// Records and deletes the objects.
async fn delete(
    call: &Call<'_>,
    bucket: &Arc<Bucket>,
    bypass_governance: bool,
    permitted: Vec<Permitted>,
    results: &mut [Option<S3Result<Deleted>>],
) {
    let kind = RecordKind::of(Effect::ObjectChange, true, call.fields, call.audit.data_events());
    let (permitted, recordings) = begin_records(call, kind, permitted, results).await;
    let origin = call.origin(Cause::Request);
    let deletes = permitted.iter().map(|object| {
        let (version, condition, origin) = (object.version, object.condition.clone(), origin.clone());
        (
            object.key.clone(),
            DeleteOptions { version, condition, bypass_governance, origin, ..DeleteOptions::default() },
        )
    });
    let outcomes = call.engine.delete_objects(bucket, deletes.collect()).await;
    for (object, outcome) in permitted.iter().zip(outcomes) {
        let result = deleted(object.version, outcome, &object.condition);
        if let Err(error) = &result
            && error.is_internal()
            && recordings.is_empty()
        {
            call.audit_context_of(&object.target).failed(error.failure_cause().unwrap_or_default());
        }
        results[object.at] = Some(result);
    }
    end_records(&permitted, recordings, results).await;
}

fn deleted(
    named: Option<VersionName>,
    outcome: Result<DeleteOutcome, EngineError>,
    condition: &WriteCondition,
) -> S3Result<Deleted> {
    match outcome {
        // As for a malformed id: only an imported version could have this one.
        Ok(DeleteOutcome { existed: false, .. }) if named.is_some_and(|name| !name.is_expected()) => {
            Err(S3Error::from(ErrorCode::NoSuchVersion))
        }
        Ok(DeleteOutcome { version, is_delete_marker, .. }) => {
            Ok(Deleted { version: version.or(named), is_delete_marker })
        }
        // A missing object need not be deleted, whatever the conditions.
        Err(EngineError::NoSuchKey | EngineError::NoSuchVersion) => {
            Ok(Deleted { version: named, is_delete_marker: false })
        }
        Err(error) => Err(write_conditions::write_error(error, condition)),
    }
}

/// Begins the audit record of each object, if deletes are recorded. Returns the objects that could be recorded; the others
/// must not be deleted.
async fn begin_records(
    call: &Call<'_>,
    kind: RecordKind,
    permitted: Vec<Permitted>,
    results: &mut [Option<S3Result<Deleted>>],
) -> (Vec<Permitted>, Vec<Recording>) {
    if kind == RecordKind::Nothing {
        return (permitted, Vec::new());
    }
    let mut recorded = Vec::with_capacity(permitted.len());
    let mut recordings = Vec::with_capacity(permitted.len());
    let mut waiting = permitted.into_iter();
    loop {
        let group: Vec<Permitted> = waiting.by_ref().take(JOINED_MAX).collect();
        if group.is_empty() {
            return (recorded, recordings);
        }
        let begin = |object: &Permitted| {
            let context = call.audit_context_of(&object.target);
            Recording::begin(kind, || context)
        };
        let begun = join_all(group.iter().map(begin).collect()).await;
        for (object, begun) in group.into_iter().zip(begun) {
            match begun {
                Ok(recording) => {
                    recordings.push(recording);
                    recorded.push(object);
                }
                Err(error) => results[object.at] = Some(Err(error)),
            }
        }
    }
}

/// Records what became of each object.
async fn end_records(
    permitted: &[Permitted],
    recordings: Vec<Recording>,
    results: &[Option<S3Result<Deleted>>],
) {
    let mut ending = permitted.iter().zip(recordings);
    loop {
        let group: Vec<_> = ending.by_ref().take(JOINED_MAX).collect();
        if group.is_empty() {
            return;
        }
        let end = |(object, recording): (&Permitted, Recording)| {
            let result = results[object.at].as_ref().expect("every object has a result");
            end_record(recording, result)
        };
        join_all(group.into_iter().map(end).collect()).await;
    }
}

async fn end_record(recording: Recording, result: &S3Result<Deleted>) {
    let Some(begun) = recording.take() else { return };
    let head = result.as_ref().map(|deleted| {
        let mut head = ResponseHead::new(StatusCode::NO_CONTENT);
        if let Some(version) = deleted.version {
            head.header(VERSION_HEADER, version.to_string());
        }
        if deleted.is_delete_marker {
            head.header(MARKER_HEADER, "true");
        }
        head
    });
    // Only the record of a read can fail here.
    let _ = begun.end(head.as_ref().map_err(|error| *error)).await;
}

/// Writes the first failure of this server to the log. The response says 200.
fn log_failure(call: &Call<'_>, results: &[Option<S3Result<Deleted>>]) {
    let mut errors = results.iter().flatten().filter_map(|result| result.as_ref().err());
    if let Some((error, cause)) = errors.find_map(|error| Some((error, error.failure_cause()?))) {
        tracing::error!(target: "service::s3", request_id = call.request.id, code = error.code(), cause, "an object of a request could not be deleted");
    }
}

fn document(request: &DeleteRequest, results: &[Option<S3Result<Deleted>>]) -> XmlWriter {
    let mut xml = XmlWriter::with_capacity(ENTRY_BYTES * results.len());
    xml.open_root("DeleteResult");
    for (object, result) in request.objects.iter().zip(results) {
        match result.as_ref().expect("every object has a result") {
            Ok(_) if request.is_quiet => {}
            Ok(deleted) => write_deleted(&mut xml, object, deleted),
            Err(error) => write_error(&mut xml, object, error),
        }
    }
    xml.close("DeleteResult");
    xml
}

/// Writes an object that was deleted. The version of a delete marker has its own element, whether it was created or removed.
fn write_deleted(xml: &mut XmlWriter, object: &NamedObject, deleted: &Deleted) {
    xml.open("Deleted");
    xml.text("Key", &object.key);
    if let Some(version) = &object.version {
        xml.text("VersionId", version);
    }
    if deleted.is_delete_marker {
        xml.value("DeleteMarker", true);
        if let Some(version) = deleted.version {
            xml.value("DeleteMarkerVersionId", version);
        }
    }
    xml.close("Deleted");
}

fn write_error(xml: &mut XmlWriter, object: &NamedObject, error: &S3Error) {
    xml.open("Error");
    xml.text("Key", &object.key);
    if let Some(version) = &object.version {
        xml.text("VersionId", version);
    }
    xml.text("Code", error.code());
    xml.text("Message", error.message());
    xml.close("Error");
}

#[cfg(test)]
mod tests {
    use super::{Deleted, deleted, document};
    use crate::errors::{ErrorCode, S3Error};
    use crate::ops::named_objects::{DeleteRequest, NamedObject};
    use crate::xml::reader::parse;
    use cairn_engine::{EngineError, WriteCondition};
    use cairn_model::{VersionId, VersionName};

    fn named(key: &str, version: Option<&str>) -> NamedObject {
        NamedObject { key: key.to_owned(), version: version.map(str::to_owned), ..NamedObject::default() }
    }

    #[test]
    fn response_says_what_became_of_each_object() {
        let version = Some(VersionName::Id(VersionId(10)));
        let results = || {
            vec![
                Some(Ok(Deleted { version: None, is_delete_marker: false })),
                Some(Ok(Deleted { version, is_delete_marker: true })),
                Some(Ok(Deleted { version, is_delete_marker: false })),
                Some(Err(S3Error::new(ErrorCode::AccessDenied))),
            ]
        };
        let id = "000000000000000a";
        let objects =
            || vec![named("a&b", None), named("b", None), named("c", Some(id)), named("d", Some("x"))];
        let written = |is_quiet| {
            let request = DeleteRequest { is_quiet, objects: objects() };
            parse(&document(&request, &results()).finish()).expect("well-formed")
        };
        let root = written(false);
        let lines: Vec<String> = root
            .children()
            .iter()
            .map(|entry| {
                let texts = entry.children().iter().map(|child| format!("{}={}", child.name(), child.text()));
                format!("{} {}", entry.name(), texts.collect::<Vec<_>>().join(" "))
            })
            .collect();
        assert_eq!(
            lines,
            [
                "Deleted Key=a&b",
                "Deleted Key=b DeleteMarker=true DeleteMarkerVersionId=000000000000000a",
                "Deleted Key=c VersionId=000000000000000a",
                "Error Key=d VersionId=x Code=AccessDenied Message=Access Denied",
            ]
        );
        let quiet = written(true);
        assert_eq!(quiet.children().iter().map(|entry| entry.name()).collect::<Vec<_>>(), ["Error"]);
    }

    #[test]
    fn missing_object_counts_as_deleted_and_a_conflict_has_its_code() {
        let conditional = WriteCondition { if_size: Some(1), ..WriteCondition::default() };
        for missing in [EngineError::NoSuchKey, EngineError::NoSuchVersion] {
            assert!(deleted(None, Err(missing), &conditional).is_ok());
        }
        let refused = deleted(None, Err(EngineError::Conflict), &conditional).err().expect("refused");
        assert_eq!(refused.code(), "ConditionalRequestConflict");
    }
}
