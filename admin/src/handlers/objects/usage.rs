//! `GET /api/v1/buckets/{bucket}/folder-usage`: what a prefix and its folders take up.

use std::rc::Rc;

use cairn_api::{FolderEntry, FolderUsage};
use cairn_engine::{Folder, SearchBounds};
use http::StatusCode;

use super::moment::check_prefix;
use crate::call::Call;
use crate::error::AdminError;
use crate::limits::{FOLDERS_MAX, USAGE_KEYS_MAX, USAGE_TIME_MAX};
use crate::reply::Reply;

pub(crate) async fn folder_usage(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let bucket = call.bucket()?;
    let query = call.parameters(&["prefix"])?;
    let prefix = query.text("prefix").unwrap_or_default();
    check_prefix(prefix)?;
    let (engine, prefix) = (Rc::clone(call.engine()?), prefix.as_bytes().to_vec());
    let bounds = SearchBounds { keys: USAGE_KEYS_MAX, time: USAGE_TIME_MAX };
    let counting = async { Ok(engine.folder_usage(&bucket, prefix, FOLDERS_MAX, bounds).await?) };
    let usage = call.wait_for_read(counting).await?;
    let entry = |Folder { prefix, objects, bytes }| FolderEntry { prefix, objects, bytes };
    let body = FolderUsage {
        folders: usage.folders.into_iter().map(entry).collect(),
        objects: usage.objects,
        bytes: usage.bytes,
        complete: usage.is_complete,
    };
    Reply::json(StatusCode::OK, &body)
}
