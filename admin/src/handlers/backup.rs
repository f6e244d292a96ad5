//! The routes of backups: hold, status, end.
//!
//! A hold lasts until it is ended or its time is over. With a lease it also ends when its client has not asked for it for long.

use std::time::Duration;

use cairn_api::{Backup, BeginBackup, Time};
use cairn_engine::{HoldRequest, HoldState, HoldStatus, OtherEnvironment, limits::HOLD_TIME_MAX};
use cairn_identity::Role;
use http::StatusCode;

use crate::call::Call;
use crate::context::OpenStore;
use crate::error::AdminError;
use crate::reply::Reply;

/// Time after which a hold ends by itself, unless the client says otherwise.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(2 * 3600);

fn body(status: HoldStatus) -> Backup {
    let (was_begun, is_active) = (status.state != HoldState::None, status.state.is_active());
    // The client may have another working directory.
    let absolute = |path: std::path::PathBuf| std::path::absolute(&path).unwrap_or(path);
    let folder = |path| was_begun.then(|| absolute(path).to_string_lossy().into_owned());
    Backup {
        state: status.state.name().into(),
        held: status.state == HoldState::Held,
        since: status.begun_at.filter(|_| is_active).map(Time::from),
        ends_at: status.expires_at.filter(|_| is_active).map(Time::from),
        by: is_active.then_some(status.principal),
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

/// `GET /api/v1/storage/backup`. With `id`, renews the lease of that hold.
pub(crate) async fn status(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let store = call.store()?;
    // Auditors only read.
    let is_auditor = call.caller()?.standing.role() == Some(Role::Auditor);
    if let Some(id) = call.parameters.text("id").filter(|_| !is_auditor) {
        store.renew_hold(id);
    }
    Reply::json(StatusCode::OK, &body(store.hold()))
}

/// `POST /api/v1/storage/backup`. Answers when the copy of the metadata has begun.
pub(crate) async fn begin(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let BeginBackup { timeout_seconds, lease_seconds } = call.optional_json().await?;
    let timeout = duration("timeout_seconds", timeout_seconds)?.unwrap_or(DEFAULT_TIMEOUT);
    let lease = duration("lease_seconds", lease_seconds)?;
    let request = HoldRequest { timeout, lease, principal: call.caller()?.principal.to_string() };
    let open = call.context.open()?;
    let status = open.engine.store().begin_hold(other_environments(open), request)?;
    Reply::json(StatusCode::ACCEPTED, &body(status))
}

/// Checks a time of a request.
fn duration(name: &str, seconds: Option<u64>) -> Result<Option<Duration>, AdminError> {
    let duration = seconds.map(Duration::from_secs);
    if duration.is_some_and(|duration| duration.is_zero() || duration > HOLD_TIME_MAX) {
        return Err(AdminError::invalid(format!("{name}: must be 1 to {}", HOLD_TIME_MAX.as_secs())));
    }
    Ok(duration)
}

/// `DELETE /api/v1/storage/backup`.
pub(crate) async fn end(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let ended = call.store()?.end_hold(call.parameters.text("id"));
    Reply::json(StatusCode::OK, &body(ended.ok_or(AdminError::BackupNotFound)?))
}
