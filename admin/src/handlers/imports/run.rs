//! Runs of imports: how one begins, what all other requests of it name, what has come, and pauses.

use std::sync::Arc;

use cairn_api::{BeginImport, BegunImport};
use cairn_engine::{Bucket, Feature};
use cairn_model::ObjectKey;
use http::StatusCode;

use crate::call::Call;
use crate::error::AdminError;
use crate::import_runs::ImportRun;
use crate::reply::Reply;
use crate::request::query::Parameters;

/// Bytes of the longest description of a source.
const SOURCE_BYTES_MAX: usize = 1024;
pub(super) const IMPORT_ID: &str = "import_id";

/// A request of a run about one key.
pub(super) struct Import {
    pub(super) run: Arc<ImportRun>,
    pub(super) bucket: Arc<Bucket>,
    pub(super) key: ObjectKey,
    pub(super) parameters: Parameters,
}

impl Import {
    /// Reads bucket, key and run of a request. Takes its parameters.
    pub(super) fn of(call: &mut Call<'_, '_>) -> Result<Self, AdminError> {
        let parameters = std::mem::take(&mut call.parameters);
        let (bucket, key) = (call.bucket()?, call.key()?);
        let run = run_of(call, &bucket, &parameters)?;
        Ok(Self { run, bucket, key, parameters })
    }
}

/// Returns the run that a request names.
///
/// # Errors
/// `INVALID_REQUEST`, `IMPORT_NOT_FOUND`.
pub(super) fn run_of(
    call: &Call<'_, '_>,
    bucket: &Bucket,
    parameters: &Parameters,
) -> Result<Arc<ImportRun>, AdminError> {
    let id = parameters.required(IMPORT_ID)?;
    call.context.imports.get(bucket, id)
}

/// `POST /api/v1/buckets/{bucket}/imports`: begins a run.
pub(crate) async fn begin(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let bucket = call.bucket()?;
    // Before anything of the source is copied. Each import checks it again.
    call.store()?.require(Feature::ImportedVersions)?;
    let BeginImport { source, events, paused } = call.json().await?;
    if source.is_empty()
        || source.len() > SOURCE_BYTES_MAX
        || !source.bytes().all(|byte| byte.is_ascii_graphic())
    {
        let message =
            format!("source: must be 1 to {SOURCE_BYTES_MAX} printable ASCII characters without spaces");
        return Err(AdminError::invalid(message));
    }
    let principal = call.caller()?.principal.to_string();
    let id = call.context.imports.begin(&bucket, (source.clone(), principal), events, paused)?;
    let detail = format!(
        "from {source}{}{}",
        if events { ", with storage events" } else { "" },
        if paused { ", paused" } else { "" }
    );
    Ok(Reply::json(StatusCode::CREATED, &BegunImport { import_id: id.to_string().into() })?.detail(detail))
}

/// `GET /api/v1/imports`: what has come in the latest runs.
pub(crate) async fn list(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    Reply::json(StatusCode::OK, &call.context.imports.list())
}

/// `GET /api/v1/imports/{id}`: what has come in a run, and whether it is paused.
pub(crate) async fn get(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    Reply::json(StatusCode::OK, &call.context.imports.with_id(&call.segment("id")?)?.body())
}

/// `POST /api/v1/imports/{id}/pause`: asks the importer to stop sending. Its requests are not refused.
pub(crate) async fn pause(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    set_paused(call, true).await
}

/// `POST /api/v1/imports/{id}/resume`: lets the importer go on.
pub(crate) async fn resume(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    set_paused(call, false).await
}

async fn set_paused(call: Call<'_, '_>, is_paused: bool) -> Result<Reply, AdminError> {
    let run = call.context.imports.with_id(&call.segment("id")?)?;
    let is_changed = run.set_paused(is_paused);
    let reply = Reply::json(StatusCode::OK, &run.body())?;
    Ok(if is_changed { reply.detail(run.described()) } else { reply.without_change() })
}
