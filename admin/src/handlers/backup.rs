//! The routes of backups: hold, status, end.
//!
//! A hold belongs to the store, not to a connection: it lasts until it is ended or its time is over.

use std::time::Duration;

use cairn_api::{Backup, BeginBackup, Time};
use cairn_engine::{EngineError, HoldState, HoldStatus, OtherEnvironment, limits::HOLD_TIME_MAX};
use http::StatusCode;

use crate::call::Call;
use crate::context::OpenStore;
use crate::error::AdminError;
use crate::reply::Reply;

/// Time after which a hold ends by itself, unless the client says otherwise.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(2 * 3600);

fn body(status: HoldStatus) -> Backup {
    let was_begun = status.state != HoldState::None;
    let folder = |path: std::path::PathBuf| was_begun.then(|| path.to_string_lossy().into_owned());
    Backup {
        state: status.state.name().into(),
        id: was_begun.then_some(status.id),
        begun_at: status.begun_at.map(Time::from),
        held_at: status.held_at.map(Time::from),
        expires_at: status.expires_at.map(Time::from),
        ended_at: status.ended_at.map(Time::from),
        reason: status.reason,
        copied_bytes: status.copied_bytes,
        expected_bytes: status.expected_bytes,
        held_bytes: status.held_bytes,
        data_dir: folder(status.data_dir),
        backup_dir: folder(status.backup_dir),
    }
}

/// Returns the environments of the store that are not the engine's.
pub(crate) fn other_environments(open: &OpenStore) -> Vec<OtherEnvironment> {
    let OpenStore { directory, audit, webhooks, sharing, .. } = open;
    vec![
        ("audit", audit.environment()),
        ("identity", directory.environment()),
        ("webhooks", webhooks.environment()),
        ("sharing", sharing.environment()),
    ]
}

/// `GET /api/v1/storage/backup`.
pub(crate) async fn status(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    Reply::json(StatusCode::OK, &body(call.store()?.hold()))
}

/// `POST /api/v1/storage/backup`. Answers when the copy of the metadata has begun.
pub(crate) async fn begin(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    let BeginBackup { timeout_seconds } = call.optional_json().await?;
    let timeout = timeout_seconds.map_or(DEFAULT_TIMEOUT, Duration::from_secs);
    if timeout.is_zero() || timeout > HOLD_TIME_MAX {
        return Err(AdminError::invalid("timeout_seconds must be 1 to 604800"));
    }
    let open = call.context.open()?;
    let begun = open.engine.store().begin_hold(other_environments(open), timeout);
    let status = begun.map_err(|error| match error {
        EngineError::Overloaded => AdminError::TooManyRequests("a backup is already in progress"),
        error => error.into(),
    })?;
    Reply::json(StatusCode::ACCEPTED, &body(status))
}

/// `DELETE /api/v1/storage/backup`.
pub(crate) async fn end(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_body().await?;
    let id = call.parameters(&["id"])?.text("id").map(str::to_owned);
    let ended = call.store()?.end_hold(id.as_deref());
    Reply::json(StatusCode::OK, &body(ended.ok_or(AdminError::BackupNotFound)?))
}
