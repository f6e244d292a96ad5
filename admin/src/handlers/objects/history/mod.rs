//! `GET /api/v1/buckets/{bucket}/object-history/{key}`: what has happened to an object.
//!
//! It joins what is kept in several places: versions, storage events with the lifecycle rules that acted, shares and embeds,
//! and the audit trail. Each may have lost what another one still has.

mod audit;
mod entries;

use std::rc::Rc;

use cairn_api::ObjectHistory;
use cairn_engine::{EventType, ListVersions, ListedVersion, SearchBounds};
use cairn_model::{ObjectKey, Timestamp};
use cairn_sharing::{Embed, LinkObject, Share};
use http::StatusCode;

use self::entries::Entry;
use crate::call::Call;
use crate::error::AdminError;
use crate::limits::{HISTORY_ENTRIES_MAX, HISTORY_EVENTS_MAX, HISTORY_TIME_MAX};
use crate::reply::Reply;

pub(crate) async fn history(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let history = call.wait_for_read(collect(&call)).await?;
    if history.entries.is_empty() && history.complete {
        return Err(AdminError::ObjectNotFound);
    }
    Reply::json(StatusCode::OK, &history)
}

async fn collect(call: &Call<'_, '_>) -> Result<ObjectHistory, AdminError> {
    let (bucket, key) = (call.bucket()?, call.key()?);
    let engine = Rc::clone(call.engine()?);
    let (versions, mut complete) = versions_of(call, &key)?;
    let dates = versions.iter().map(|version| (version.name, version.object.last_modified)).collect();
    let bounds = SearchBounds { keys: HISTORY_EVENTS_MAX, time: HISTORY_TIME_MAX };
    let found = engine.object_events(&bucket, &key, dates, HISTORY_ENTRIES_MAX, bounds).await?;
    complete &= found.is_complete;
    // The completion of an upload is an event besides that of its object, and an upload is not the object yet.
    let is_of_object = |kind| !matches!(kind, EventType::MultipartCompleted | EventType::MultipartAborted);
    let events = found.events.into_iter().filter(|event| is_of_object(event.kind));
    let mut history: Vec<Entry> = events.filter_map(Entry::of_event).collect();
    history.extend(entries::of_versions(&versions, &history));
    let sharing = &call.context.open()?.sharing;
    let object =
        LinkObject { bucket: bucket.name.clone(), bucket_id: bucket.id(), key: key.clone(), version: None };
    history.extend(sharing.of_object::<Share>(object.clone()).await?.iter().map(Entry::of_share));
    history.extend(sharing.of_object::<Embed>(object).await?.iter().map(Entry::of_embed));
    complete &= entries::keep_latest(&mut history, HISTORY_ENTRIES_MAX);
    let since = history.last().map(Entry::time);
    if audit::may_read(call) && since.is_some() {
        complete &= audit::add(call, &bucket.name, &key, since.unwrap_or(Timestamp(0)), &mut history).await?;
        complete &= entries::keep_latest(&mut history, HISTORY_ENTRIES_MAX);
    }
    Ok(ObjectHistory { entries: history.into_iter().map(Entry::body).collect(), complete })
}

/// Returns the versions of a key, the newest first, and whether these are all.
fn versions_of(call: &Call<'_, '_>, key: &ObjectKey) -> Result<(Vec<ListedVersion>, bool), AdminError> {
    let list =
        ListVersions { prefix: key.as_bytes(), delimiter: None, after: None, max: HISTORY_ENTRIES_MAX };
    let page = call.engine()?.list_versions(&call.bucket()?, &list)?;
    let has_others = page.versions.last().is_some_and(|last| last.object.key != key.as_str());
    let is_complete = page.next.is_none() || has_others;
    // A key is before all others that begin with it.
    let versions = page.versions.into_iter().take_while(|version| version.object.key == key.as_str());
    Ok((versions.collect(), is_complete))
}
