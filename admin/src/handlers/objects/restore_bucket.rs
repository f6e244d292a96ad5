//! `POST /api/v1/buckets/{bucket}/restore`: makes the current objects equal to those of a moment.
//!
//! Objects of that moment are copied to new versions, and others get delete markers. No version is deleted, so a restoration to
//! the moment before it brings back everything. While versioning is suspended, a write replaces the `null` version of its key,
//! so a restoration is refused.

use std::rc::Rc;
use std::sync::Arc;

use cairn_api::{RestoreAction, RestoreBucket, RestoredBucket, RestoredKey};
use cairn_engine::{
    Bucket, Cause, ChangedObject, DeleteOptions, Engine, EngineError, EtagMatch, ListObjects, ObjectInfo,
    Versioning, WriteCondition,
};
use cairn_http1::{iso8601_millis, parse_rfc3339_millis};
use cairn_model::{Clock, SystemClock, Timestamp};
use cairn_transfer::join_all;
use futures_lite::future::yield_now;
use http::StatusCode;

use super::copy::copy_version;
use super::moment::{check_prefix, require_versions};
use super::new_version::Destination;
use super::object_ref::ObjectRef;
use crate::call::Call;
use crate::error::AdminError;
use crate::limits::{LIST_ENTRIES_MAX, RESTORE_COPIES_MAX, RUN_KEYS_MAX};
use crate::reply::Reply;
use crate::request::names::object_key;

/// Most keys of the sample.
const SAMPLE_MAX: usize = 100;

/// The step that restores one key.
enum Step {
    Restore(ObjectRef, u64),
    Delete(ObjectRef),
    Nothing,
}

pub(crate) async fn restore_bucket(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let bucket = call.bucket()?;
    let RestoreBucket { at, prefix, dry_run, keep_newer } = call.json().await?;
    check_prefix(&prefix)?;
    require_versions(&bucket)?;
    refuse_suspended(&bucket)?;
    let at = parse_rfc3339_millis(&at)
        .map(Timestamp)
        .ok_or_else(|| AdminError::invalid("at: must be a time (RFC 3339)"))?;
    let now = SystemClock.now();
    if at >= now {
        return Err(AdminError::invalid("at: must be in the past"));
    }
    // What is there now belongs to the moment that undoes the restoration, and nothing that it writes does.
    while !dry_run && SystemClock.now() <= now {
        yield_now().await;
    }
    let (engine, mut after) = (Rc::clone(call.engine()?), None);
    let done = RestoredBucket {
        complete: true,
        restored: 0,
        deleted: 0,
        unchanged: 0,
        bytes: 0,
        failed: 0,
        undo_at: now.into(),
        sample: Vec::new(),
    };
    let mut run = Run { engine, bucket, is_dry: dry_run, keeps_newer: keep_newer, done };
    loop {
        let list = ListObjects { prefix: prefix.as_bytes(), delimiter: None, after, max: LIST_ENTRIES_MAX };
        let page = run.engine.list_changed(&run.bucket, &list, at)?;
        run.done.unchanged += page.unchanged;
        for group in page.changed.chunks(RESTORE_COPIES_MAX) {
            refuse_suspended(&run.bucket)?;
            run.change(&call, group).await?;
        }
        after = page.next;
        let changed = run.done.restored + run.done.deleted + run.done.failed;
        run.done.complete = after.is_none();
        if after.is_none() || (changed >= RUN_KEYS_MAX && !dry_run) {
            break;
        }
        call.until_disconnect(async {
            yield_now().await;
            Ok(())
        })
        .await?;
        call.authenticate_again()?;
    }
    let RestoredBucket { restored, deleted, unchanged, failed, .. } = &run.done;
    let what = if dry_run { "trial: " } else { "" };
    let place = if prefix.is_empty() { String::new() } else { format!(", prefix {prefix:?}") };
    let moment = iso8601_millis(at.0);
    let detail = format!(
        "{what}to {moment}{place}: {restored} restored, {deleted} deleted, {unchanged} unchanged, {failed} failed"
    );
    Ok(Reply::json(StatusCode::OK, &run.done)?.detail(detail))
}

/// Refuses a bucket in which a write would replace a version.
fn refuse_suspended(bucket: &Bucket) -> Result<(), AdminError> {
    if bucket.versioning() == Versioning::Suspended {
        return Err(AdminError::InvalidBucketState(
            "versioning is suspended, so a restoration would replace versions and could not be undone: enable \
             versioning first",
        ));
    }
    Ok(())
}

/// A restoration.
struct Run {
    engine: Rc<Engine>,
    bucket: Arc<Bucket>,
    is_dry: bool,
    keeps_newer: bool,
    done: RestoredBucket,
}

impl Run {
    /// Restores or deletes these keys, at the same time.
    async fn change(&mut self, call: &Call<'_, '_>, changed: &[ChangedObject]) -> Result<(), AdminError> {
        let steps = changed.iter().map(|changed| self.step(changed)).collect::<Result<Vec<_>, _>>()?;
        let results = if self.is_dry {
            steps.iter().map(|_| Ok(())).collect()
        } else {
            join_all(steps.iter().map(|step| self.carry_out(call, step)).collect()).await
        };
        for (step, result) in steps.into_iter().zip(results) {
            let (source, action, bytes) = match step {
                Step::Nothing => {
                    self.done.unchanged += 1;
                    continue;
                }
                Step::Restore(source, bytes) => (source, RestoreAction::Restore, bytes),
                Step::Delete(source) => (source, RestoreAction::Delete, 0),
            };
            match (result, action) {
                // The client has gone, or may no longer do this.
                (Err(error @ (AdminError::ClientDisconnected | AdminError::Unauthenticated)), _) => {
                    return Err(error);
                }
                (Err(error), _) => {
                    tracing::warn!(target: "service", bucket = %self.bucket.name, key = %source.key, error = %error.message(), "an object could not be restored");
                    self.done.failed += 1;
                    continue;
                }
                (Ok(()), RestoreAction::Restore) => self.done.restored += 1,
                (Ok(()), RestoreAction::Delete) => self.done.deleted += 1,
            }
            self.done.bytes += bytes;
            if self.done.sample.len() < SAMPLE_MAX {
                let version = source.version.map(|version| version.to_string()).unwrap_or_default();
                let key = source.key.to_string().into();
                self.done.sample.push(RestoredKey { key, action, version_id: version.into() });
            }
        }
        Ok(())
    }

    fn step(&self, changed: &ChangedObject) -> Result<Step, AdminError> {
        let key = object_key(&changed.key)?;
        let object = |version| ObjectRef {
            bucket: Arc::clone(&self.bucket),
            key: key.clone(),
            version: Some(version),
        };
        Ok(match (changed.now, changed.then) {
            (None, None) => Step::Nothing,
            (Some(_), None) if self.keeps_newer => Step::Nothing,
            (Some(now), None) => Step::Delete(object(now)),
            (Some(now), Some((then, _))) if self.are_equal(&object(now), &object(then))? => Step::Nothing,
            (_, Some((then, size))) => Step::Restore(object(then), size),
        })
    }

    /// Returns whether two versions have the same content, headers and tags, as after an earlier restoration.
    fn are_equal(&self, one: &ObjectRef, other: &ObjectRef) -> Result<bool, AdminError> {
        let read =
            |object: &ObjectRef| match self.engine.head_object(&object.bucket, &object.key, object.version) {
                Ok(info) => Ok(Some(info)),
                // It was removed since the list was read.
                Err(
                    EngineError::NoSuchKey | EngineError::NoSuchVersion | EngineError::DeleteMarker { .. },
                ) => Ok(None),
                Err(error) => Err(AdminError::from(error)),
            };
        let facts = |info: ObjectInfo| (info.size, info.etag, info.attributes, info.parts);
        let (one, other) = (read(one)?.map(facts), read(other)?.map(facts));
        Ok(one.is_some() && one == other)
    }

    async fn carry_out(&self, call: &Call<'_, '_>, step: &Step) -> Result<(), AdminError> {
        match step {
            Step::Nothing => Ok(()),
            Step::Restore(source, _) => {
                let (bucket, key) = (Arc::clone(&source.bucket), source.key.clone());
                let destination = Destination { bucket, key, condition: WriteCondition::default() };
                copy_version(call, source, destination, Cause::Restore).await.map(drop)
            }
            Step::Delete(current) => {
                let info = self.engine.head_object(&current.bucket, &current.key, current.version)?;
                // What a client writes meanwhile stays.
                let if_match = Some(EtagMatch::OneOf(vec![info.etag.to_string()]));
                let condition = WriteCondition { if_match, ..WriteCondition::default() };
                let origin = call.origin(Cause::Restore);
                let options = DeleteOptions { condition, origin, ..DeleteOptions::default() };
                self.engine.delete_object(&current.bucket, &current.key, options).await?;
                Ok(())
            }
        }
    }
}
