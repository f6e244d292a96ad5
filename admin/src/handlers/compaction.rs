//! The routes of compaction: begin one, and show its progress or result.
//!
//! A compaction runs on a thread of the store and continues when the client disconnects. One runs at a time.

use cairn_api::{Compaction, Time};
use cairn_engine::CompactionStatus;
use http::StatusCode;

use crate::call::Call;
use crate::error::AdminError;
use crate::handlers::backup::other_environments;
use crate::reply::Reply;

fn body(status: CompactionStatus) -> Compaction {
    let state = match (status.started_at, status.finished_at, &status.error) {
        (None, ..) => "none",
        (Some(_), None, _) => "running",
        (Some(_), Some(_), None) => "done",
        (Some(_), Some(_), Some(_)) => "failed",
    };
    Compaction {
        state: state.into(),
        started_at: status.started_at.map(Time::from),
        finished_at: status.finished_at.map(Time::from),
        environments: status.environments,
        environments_done: status.environments_done,
        copied_bytes: status.copied_bytes,
        expected_bytes: status.expected_bytes,
        metadata_bytes_before: status.bytes_before,
        metadata_bytes_after: status.bytes_after,
        records_verified: status.records,
        volume_bytes_freed: status.volume_bytes_freed,
        write_pause_milliseconds: u64::try_from(status.pause_max.as_millis()).unwrap_or(u64::MAX),
        reason: status.error,
    }
}

/// `GET /api/v1/storage/compact`.
pub(crate) async fn status(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    Reply::json(StatusCode::OK, &body(call.store()?.compaction()))
}

/// `POST /api/v1/storage/compact`. Answers when the compaction has begun.
pub(crate) async fn begin(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let open = call.context.open()?;
    let store = open.engine.store();
    store.begin_compaction(other_environments(open))?;
    Reply::json(StatusCode::ACCEPTED, &body(store.compaction()))
}
