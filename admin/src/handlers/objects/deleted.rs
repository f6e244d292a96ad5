//! Deleted objects that delete markers hide, and what brings them back.
//!
//! `GET /api/v1/buckets/{bucket}/deleted-objects` lists them. `POST …/undelete` removes the markers.

use std::rc::Rc;
use std::sync::Arc;

use cairn_api::{DeletedObject as Body, DeletedPage, Undelete, Undeleted};
use cairn_engine::{
    Bucket, Cause, DeleteOptions, DeletedObject, Engine, EngineError, EventQuery, EventType, EventTypes,
    ListObjects, ListPosition, Origin, Tick,
};
use cairn_http1::parse_rfc3339_millis;
use cairn_model::{ObjectKey, Timestamp, VersionName, u64_of};
use futures_lite::future::yield_now;
use http::StatusCode;

use super::list::{common_prefixes, list_parameters};
use super::moment::{check_prefix, require_versions};
use crate::call::Call;
use crate::error::AdminError;
use crate::limits::{LIST_ENTRIES_MAX, LIST_YIELD_ENTRIES, RUN_KEYS_MAX};
use crate::reply::Reply;
use crate::request::names::object_key;

/// Events of a key that are looked through for the one of a deletion.
const EVENTS_MAX: usize = 100;
/// The delays of the event of a delete marker, in milliseconds after the marker, as first and end. Both are written by one
/// change, which reads the clock twice. So nearly all events are of the same millisecond.
const EVENT_DELAYS: [(u64, u64); 2] = [(0, 1), (1, 1000)];
/// Delete markers over each other that are removed to reach an object.
const MARKERS_MAX: usize = 1000;

/// `GET /api/v1/buckets/{bucket}/deleted-objects`.
pub(crate) async fn list_deleted(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let bucket = call.bucket()?;
    require_versions(&bucket)?;
    let query = &call.parameters;
    let engine = call.engine()?;
    let page = engine.list_deleted(&bucket, &list_parameters(query)?)?;
    let mut objects = Vec::with_capacity(page.objects.len());
    for (index, deleted) in page.objects.into_iter().enumerate() {
        if index % LIST_YIELD_ENTRIES == LIST_YIELD_ENTRIES - 1 {
            yield_now().await;
        }
        objects.push(Body {
            deleted_by: deleted_by(engine, &bucket, &deleted)?,
            key: deleted.key.into(),
            version_id: deleted.version.to_string().into(),
            size: deleted.size,
            deleted_at: deleted.deleted_at.into(),
            marker_version_id: deleted.marker.to_string().into(),
        });
    }
    let common_prefixes = common_prefixes(page.common_prefixes);
    let next_continuation_token = page.next.as_ref().map(cairn_transfer::list_token::of_position);
    Reply::json(StatusCode::OK, &DeletedPage { objects, common_prefixes, next_continuation_token })
}

/// Returns who wrote a delete marker, from its event. `None` if that is no longer kept.
fn deleted_by(
    engine: &Engine,
    bucket: &Bucket,
    deleted: &DeletedObject,
) -> Result<Option<String>, AdminError> {
    for (first, end) in EVENT_DELAYS {
        let query = EventQuery {
            from: Tick::first_at(Timestamp(deleted.deleted_at.0 + first)),
            until: Tick::first_at(Timestamp(deleted.deleted_at.0 + end)),
            types: EventTypes::from_iter([EventType::ObjectDeleted]),
            bucket: Some(bucket.name.to_string()),
            prefix: Some(deleted.key.clone()),
            limit: EVENTS_MAX,
            ..EventQuery::default()
        };
        let mut events = engine.store().events(&query)?.events.into_iter();
        let of_marker = events.find(|event| {
            let object = event.object.as_ref();
            object.is_some_and(|object| {
                object.key == deleted.key && object.version == Some(deleted.first_marker)
            })
        });
        if let Some(event) = of_marker {
            return Ok(Some(event.principal).filter(|principal| !principal.is_empty()));
        }
    }
    Ok(None)
}

/// `POST /api/v1/buckets/{bucket}/undelete`: removes the delete markers on top of objects.
pub(crate) async fn undelete(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let bucket = call.bucket()?;
    let Undelete { keys, prefix, deleted_since } = call.json().await?;
    prefix.as_deref().map(check_prefix).transpose()?;
    require_versions(&bucket)?;
    let since = deleted_since.map(|text| parse_rfc3339_millis(&text).map(Timestamp));
    let since = since
        .map(|since| since.ok_or_else(|| AdminError::invalid("deleted_since: must be a time (RFC 3339)")));
    let (engine, origin) = (Rc::clone(call.engine()?), call.origin(Cause::Restore));
    let mut run = Run {
        engine,
        bucket,
        origin,
        done: Undeleted { complete: true, undeleted: 0, skipped: 0, failed: 0 },
    };
    let what = match (keys, prefix, since.transpose()?) {
        (Some(keys), None, None) if !keys.is_empty() && keys.len() <= LIST_ENTRIES_MAX => {
            let keys = keys.iter().map(|key| object_key(key)).collect::<Result<Vec<_>, _>>()?;
            run.keys(&keys).await?;
            let others = keys.len() - 1;
            let more = if others > 0 { format!(" and {others} more") } else { String::new() };
            format!("{:?}{more}", keys[0].as_str())
        }
        (None, Some(prefix), since) => {
            run.prefix(&call, &prefix, since.unwrap_or(Timestamp(0))).await?;
            format!("prefix {prefix:?}")
        }
        _ => {
            let message = format!(
                "give either keys, 1 to {LIST_ENTRIES_MAX}, or prefix, with deleted_since if you like"
            );
            return Err(AdminError::invalid(message));
        }
    };
    let Undeleted { undeleted, skipped, failed, .. } = run.done;
    let detail = format!("{what}: {undeleted} undeleted, {skipped} skipped, {failed} failed");
    Ok(Reply::json(StatusCode::OK, &run.done)?.detail(detail))
}

/// An undeletion.
struct Run {
    engine: Rc<Engine>,
    bucket: Arc<Bucket>,
    origin: Origin,
    done: Undeleted,
}

impl Run {
    async fn keys(&mut self, keys: &[ObjectKey]) -> Result<(), AdminError> {
        let mut found = Vec::with_capacity(keys.len());
        for key in keys {
            let list = ListObjects { prefix: key.as_bytes(), delimiter: None, after: None, max: 1 };
            let page = self.engine.list_deleted(&self.bucket, &list)?;
            match page.objects.into_iter().next().filter(|deleted| deleted.key == key.as_str()) {
                Some(deleted) => found.push((key.clone(), deleted.marker)),
                None => self.done.skipped += 1,
            }
        }
        self.remove(found).await;
        Ok(())
    }

    async fn prefix(
        &mut self,
        call: &Call<'_, '_>,
        prefix: &str,
        since: Timestamp,
    ) -> Result<(), AdminError> {
        let mut after: Option<ListPosition> = None;
        loop {
            let list =
                ListObjects { prefix: prefix.as_bytes(), delimiter: None, after, max: LIST_ENTRIES_MAX };
            let page = self.engine.list_deleted(&self.bucket, &list)?;
            let mut found = Vec::with_capacity(page.objects.len());
            for deleted in page.objects {
                if deleted.deleted_at < since {
                    self.done.skipped += 1;
                } else {
                    found.push((object_key(&deleted.key)?, deleted.marker));
                }
            }
            self.remove(found).await;
            after = page.next;
            if after.is_none() {
                return Ok(());
            }
            if self.done.undeleted + self.done.failed >= RUN_KEYS_MAX {
                self.done.complete = false;
                return Ok(());
            }
            // The client may have gone, and the token may have been deleted.
            call.until_disconnect(async {
                yield_now().await;
                Ok(())
            })
            .await?;
            call.authenticate_again()?;
        }
    }

    /// Removes the markers of these keys, and those below them.
    async fn remove(&mut self, mut markers: Vec<(ObjectKey, VersionName)>) {
        for _ in 0..MARKERS_MAX {
            if markers.is_empty() {
                return;
            }
            let deletes = markers.iter().map(|(key, marker)| {
                let (version, origin) = (Some(*marker), self.origin.clone());
                (
                    key.clone(),
                    DeleteOptions { version, only_newest: true, origin, ..DeleteOptions::default() },
                )
            });
            let outcomes = self.engine.delete_objects(&self.bucket, deletes.collect()).await;
            let mut below = Vec::new();
            for ((key, _), outcome) in markers.into_iter().zip(outcomes) {
                match outcome.map(|_| self.engine.head_object(&self.bucket, &key, None)) {
                    Ok(Err(EngineError::DeleteMarker { version, .. })) => below.push((key, version)),
                    Ok(Ok(_)) => self.done.undeleted += 1,
                    Ok(Err(EngineError::NoSuchKey)) => self.done.skipped += 1,
                    Ok(Err(error)) | Err(error) => {
                        tracing::warn!(target: "service", bucket = %self.bucket.name, %key, %error, "an object could not be undeleted");
                        self.done.failed += 1;
                    }
                }
            }
            markers = below;
        }
        self.done.failed += u64_of(markers.len());
    }
}
