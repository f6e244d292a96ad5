//! `GET /api/v1/buckets/{bucket}/folder-usage`: what a prefix and its folders take up.

use std::rc::Rc;

use cairn_api::{FolderEntry, FolderUsage};
use cairn_engine::{CountFolders, Folder, ListPosition, SearchBounds};
use cairn_transfer::list_token;
use http::StatusCode;

use super::list::continuation;
use super::moment::check_prefix;
use crate::call::Call;
use crate::error::AdminError;
use crate::limits::{FOLDERS_MAX, USAGE_KEYS_MAX, USAGE_TIME_MAX};
use crate::reply::Reply;

pub(crate) async fn folder_usage(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let bucket = call.bucket()?;
    let query = &call.parameters;
    let prefix = query.text("prefix").unwrap_or_default();
    check_prefix(prefix)?;
    let keys = query.number("max_keys", 1..=USAGE_KEYS_MAX)?.unwrap_or(USAGE_KEYS_MAX);
    let after = continuation(query)?;
    if after.as_ref().is_some_and(|position| !is_below(position, prefix)) {
        return Err(AdminError::invalid("continuation_token is that of another prefix"));
    }
    let count = CountFolders {
        prefix: prefix.as_bytes().to_vec(),
        after,
        folders_max: FOLDERS_MAX,
        bounds: SearchBounds { keys, time: USAGE_TIME_MAX },
    };
    let engine = Rc::clone(call.engine()?);
    let usage = call.wait_for_read(async { Ok(engine.folder_usage(&bucket, count).await?) }).await?;
    let entry = |Folder { prefix, objects, bytes }| FolderEntry { prefix, objects, bytes };
    let body = FolderUsage {
        folders: usage.folders.into_iter().map(entry).collect(),
        folders_left_out: usage.left_out,
        objects: usage.objects,
        bytes: usage.bytes,
        complete: usage.next.is_none() && usage.left_out == 0,
        next_continuation_token: usage.next.as_ref().map(list_token::of_position),
    };
    Reply::json(StatusCode::OK, &body)
}

/// Returns whether a position is one of a count below this prefix.
fn is_below(position: &ListPosition, prefix: &str) -> bool {
    let (ListPosition::AfterKey(key) | ListPosition::AfterPrefix(key)) = position;
    key.starts_with(prefix.as_bytes())
}
