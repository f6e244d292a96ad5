//! `PUT /api/v1/buckets/{bucket}/imported-objects/{key}`: imports one version or delete marker.

use std::rc::Rc;
use std::sync::Arc;

use cairn_api::{ImportOutcome as Outcome, ImportedVersion};
use cairn_engine::{Cause, Engine, ImportOutcome, ImportVersion, ImportedContent, ImportedIdentity};
use cairn_http1::RequestHead;
use cairn_model::{Etag, UploadId, VersionId, VersionName, u64_of};
use cairn_transfer::{BodyReader, MemoryBody};
use http::StatusCode;

use super::run::{IMPORT_ID, Import};
use super::{checksum, headers};
use crate::call::Call;
use crate::error::AdminError;
use crate::handlers::objects::{declared_size, receive_and_check, write_error};
use crate::operation::{QueryParameter, optional, required};
use crate::reply::Reply;
use crate::request::body::body_error;
use crate::request::query::given;

const VERSION_ID: &str = "version_id";
const LAST_MODIFIED: &str = "last_modified";
const ETAG: &str = "etag";
const OPAQUE_ETAG: &str = "opaque_etag";
const DELETE_MARKER: &str = "delete_marker";
pub(super) const UPLOAD_ID: &str = "upload_id";
/// The query parameters of an imported version.
pub(crate) static PARAMETERS: [QueryParameter; 7] = [
    required::<cairn_api::VersionId>(VERSION_ID),
    required::<cairn_api::Time>(LAST_MODIFIED),
    optional::<cairn_api::EntityTag>(ETAG),
    optional::<bool>(OPAQUE_ETAG),
    optional::<bool>(DELETE_MARKER),
    optional::<cairn_api::UploadId>(UPLOAD_ID),
    required::<cairn_api::Id>(IMPORT_ID),
];
/// Those of a version in a batch: the batch names the import, and has no uploads.
pub(super) static OF_VERSION: &[QueryParameter] = PARAMETERS.split_at(5).0;

pub(crate) async fn put(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let import = Import::of(&mut call)?;
    let (run, key) = (Arc::clone(&import.run), import.key.clone());
    let put = put_version(call, import).await;
    run.count(key.as_str(), &put);
    answer(put?.0)
}

/// Imports the version. Returns the bytes that this request has written, too.
async fn put_version(mut call: Call<'_, '_>, import: Import) -> Result<(Outcome, u64), AdminError> {
    let identity = identity(&import)?;
    let engine = Rc::clone(call.engine()?);
    let upload = import.parameters.text(UPLOAD_ID);
    let mut bytes = 0;
    let content = match (import.parameters.flag(DELETE_MARKER)?, upload) {
        (true, Some(_)) => return Err(AdminError::invalid("a delete marker has no upload")),
        (true, None) => {
            call.no_body().await?;
            marker(&identity)?
        }
        (false, Some(upload)) => {
            call.no_body().await?;
            let upload = UploadId::parse(upload).ok_or(AdminError::UploadNotFound)?;
            let declared = checksum::declared(call.head)?;
            let checksum = checksum::of_parts(&engine, &import, upload, declared).await?;
            ImportedContent::Upload { upload, checksum }
        }
        (false, None) => {
            // Only tests have no connection.
            let body = call.body.take().ok_or(AdminError::Internal)?;
            let object = (&import, &identity, call.head);
            let Some(content) = receive_content(&engine, object, body, |error| body_error(&error)).await?
            else {
                return Ok((Outcome::Unchanged, 0));
            };
            call.authenticate_again()?;
            bytes = declared_size(call.head)?;
            content
        }
    };
    Ok((place(&call, &engine, import, identity, content).await?, bytes))
}

/// Returns the content of a delete marker.
fn marker(identity: &ImportedIdentity) -> Result<ImportedContent, AdminError> {
    match identity.etag {
        None => Ok(ImportedContent::DeleteMarker),
        Some(_) => Err(AdminError::invalid("a delete marker has no entity tag")),
    }
}

/// Receives content with what the head says of it, and checks its entity tag and checksum. Returns `None` without reading it if
/// the version is here already.
async fn receive_content<S: BodyReader>(
    engine: &Rc<Engine>,
    (import, identity, head): (&Import, &ImportedIdentity, &RequestHead),
    source: &mut S,
    of_body: impl FnOnce(S::Error) -> AdminError,
) -> Result<Option<ImportedContent>, AdminError> {
    let size = declared_size(head)?;
    let (mut attributes, lock) = headers::of_version(head)?;
    let declared = checksum::declared_of_body(head)?;
    if exists(engine, import, identity, size) {
        // The commit decides for the others. This check avoids the transfer of a body that changes nothing.
        return Ok(None);
    }
    let is_checked = identity.etag.is_some() && !identity.is_etag_opaque;
    let (object, algorithm) =
        ((&import.bucket, &import.key), declared.as_ref().map(|declared| declared.algorithm));
    let wanted = (size, is_checked, algorithm);
    let (payload, computed) = receive_and_check(engine, source, object, wanted, of_body).await?;
    if is_checked && payload.md5().map(Etag::single) != identity.etag {
        return Err(AdminError::invalid(
            "the body does not have this entity tag; set opaque_etag if it is no MD5",
        ));
    }
    if let (Some(declared), Some((algorithm, digest))) = (declared, computed) {
        if declared.digest != digest {
            return Err(checksum::mismatch(algorithm));
        }
        attributes.checksums.push((algorithm, digest));
    }
    Ok(Some(ImportedContent::Payload { payload: Box::new(payload), attributes, lock }))
}

/// Commits a version in its place in the history of its key.
async fn place(
    call: &Call<'_, '_>,
    engine: &Engine,
    import: Import,
    identity: ImportedIdentity,
    content: ImportedContent,
) -> Result<Outcome, AdminError> {
    let Import { run, bucket, key, .. } = import;
    let (emits_events, origin) = (run.emits_events, call.origin(Cause::Request));
    let import = ImportVersion { bucket, key, identity, content, emits_events, origin };
    Ok(match engine.import_version(import).await.map_err(write_error)? {
        ImportOutcome::Created => Outcome::Created,
        ImportOutcome::Replaced => Outcome::Replaced,
        ImportOutcome::Unchanged => Outcome::Unchanged,
        ImportOutcome::Kept => Outcome::Kept,
    })
}

/// Imports a version of a batch, whose body is in memory. Returns the bytes that were written, too.
pub(super) async fn put_of_batch(
    call: &Call<'_, '_>,
    import: Import,
    head: &RequestHead,
    body: &[u8],
) -> Result<(Outcome, u64), AdminError> {
    let identity = identity(&import)?;
    let engine = call.engine()?;
    let content = if import.parameters.flag(DELETE_MARKER)? {
        if !body.is_empty() {
            return Err(AdminError::invalid("a delete marker has no body"));
        }
        marker(&identity)?
    } else {
        let object = (&import, &identity, head);
        match receive_content(engine, object, &mut MemoryBody(body), |never| match never {}).await? {
            Some(content) => content,
            None => return Ok((Outcome::Unchanged, 0)),
        }
    };
    Ok((place(call, engine, import, identity, content).await?, u64_of(body.len())))
}

/// Makes the response.
pub(super) fn answer(outcome: Outcome) -> Result<Reply, AdminError> {
    let is_new = matches!(outcome, Outcome::Created | Outcome::Replaced);
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Reply::json(status, &ImportedVersion { outcome })
}

/// Parses the version that a request names: `null`, or the id that it had before.
pub(super) fn version_name(import: &Import) -> Result<VersionName, AdminError> {
    VersionName::parse(import.parameters.required(VERSION_ID)?).ok_or_else(|| {
        AdminError::invalid("version_id: must be null, or 1 to 64 characters of A-Z a-z 0-9 . _ -")
    })
}

fn identity(import: &Import) -> Result<ImportedIdentity, AdminError> {
    let id = version_name(import)?.imported_id();
    let last_modified = given(LAST_MODIFIED, import.parameters.time(LAST_MODIFIED)?)?;
    if VersionId::imported_at(last_modified.0).is_none() {
        return Err(AdminError::invalid("last_modified: must be from 1970 to 2248"));
    }
    let etag = import.parameters.text(ETAG).map(|text| {
        let form =
            "etag: must be 32 hexadecimal digits, and a dash and the number of parts if there were any";
        Etag::parse(text).ok_or_else(|| AdminError::invalid(form))
    });
    let (etag, is_etag_opaque) = (etag.transpose()?, import.parameters.flag(OPAQUE_ETAG)?);
    if is_etag_opaque && etag.is_none() {
        return Err(AdminError::invalid("opaque_etag: needs an etag"));
    }
    Ok(ImportedIdentity { id, last_modified, etag, is_etag_opaque })
}

/// Returns whether the version is there already, as far as its size, date and entity tag say.
fn exists(engine: &Engine, import: &Import, identity: &ImportedIdentity, size: u64) -> bool {
    let found = engine.head_object(&import.bucket, &import.key, Some(identity.version_name()));
    let is_same = |info: &cairn_engine::ObjectInfo| {
        info.version.is_imported()
            && (info.size, info.last_modified, Some(info.etag))
                == (size, identity.last_modified, identity.etag)
    };
    found.is_ok_and(|info| is_same(&info))
}
