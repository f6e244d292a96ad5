//! Expiry of abandoned multipart uploads: aborts old ones and frees their space.
//!
//! One executor scans the uploads of all slices periodically, one page per snapshot. It sends an abort for each upload that
//! is too old, as a client would. An upload that is completed at that moment stays completed.

use crate::api::engine::Engine;
use crate::error::EngineError;
use crate::format::keys;
use crate::format::upload_record;
use crate::limits::{UPLOAD_EXPIRY_INTERVAL, WALK_PAGE_RECORDS};
use crate::slice::Slice;
use crate::store::background::{FirstFailure, wait};
use crate::types::event::Origin;
use cairn_model::{ObjectKey, Timestamp};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

impl Engine {
    /// Expires uploads periodically until `stopping` returns true. Runs on one executor of a store.
    pub async fn expire_uploads(self: &Rc<Self>, age: Duration, stopping: impl Fn() -> bool + 'static) {
        let engine = Rc::clone(self);
        let forever = self.in_background(async move {
            while !stopping() {
                match engine.expire_uploads_now(age, &stopping).await {
                    Ok(0) => {}
                    Ok(expired) => {
                        tracing::info!(target: "service::engine", expired, "abandoned multipart uploads were removed");
                    }
                    Err(error) => {
                        tracing::error!(target: "service::engine", %error, "abandoned multipart uploads could not be removed");
                    }
                }
                wait(UPLOAD_EXPIRY_INTERVAL, &stopping).await;
            }
            Ok(())
        });
        if let Err(error) = forever.await {
            tracing::error!(target: "service::engine", %error, "expiry of multipart uploads has stopped");
        }
    }

    /// Aborts the uploads that are older than `age`, and returns their number. Failed aborts are logged.
    ///
    /// # Errors
    /// [`EngineError::Io`] or [`EngineError::Corrupt`] when metadata of a slice cannot be read. Aborts stay in effect.
    pub async fn expire_uploads_now(
        &self,
        age: Duration,
        stopping: &impl Fn() -> bool,
    ) -> Result<u64, EngineError> {
        let begun_before = self.store().age_limit(age).oldest_kept();
        let (mut expired, mut failed) = (0, FirstFailure::default());
        for slice in &self.store().slices {
            // A slice that cannot be read must not prevent the others.
            expired += failed.note(self.expire_uploads_of(slice, begun_before, stopping).await)?;
        }
        failed.or_done(expired)
    }

    /// Aborts the uploads of a slice that were begun before `begun_before`, and returns their number.
    async fn expire_uploads_of(
        &self,
        slice: &Arc<Slice>,
        begun_before: Timestamp,
        stopping: &impl Fn() -> bool,
    ) -> Result<u64, EngineError> {
        let (mut expired, mut after) = (0, None);
        while !stopping() {
            let page = old_uploads(slice, after.as_deref(), begun_before)?;
            for encoded in page.abandoned {
                // One failed abort must not prevent the others.
                match self.abort_abandoned(&encoded).await {
                    Ok(removed) => expired += u64::from(removed),
                    Err(EngineError::ShuttingDown) => return Err(EngineError::ShuttingDown),
                    Err(error) => {
                        tracing::error!(target: "service::engine", %error, "an abandoned multipart upload could not be removed");
                    }
                }
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        Ok(expired)
    }

    /// Aborts an upload, given its encoded key; returns whether it still existed.
    async fn abort_abandoned(&self, encoded: &[u8]) -> Result<bool, EngineError> {
        let Some((id, key, upload)) = keys::decode_upload(encoded) else { return Ok(false) };
        let key = std::str::from_utf8(&key).ok().and_then(|key| ObjectKey::parse(key).ok());
        let bucket = self.store().buckets().into_iter().find(|bucket| bucket.id == id);
        // Inspection reports records whose bucket or key is unknown.
        let Some((bucket, key)) = bucket.zip(key) else { return Ok(false) };
        match self.abort_upload(&bucket, &key, upload, Origin::default()).await {
            Ok(()) => {
                let bucket = bucket.name.as_str();
                tracing::info!(target: "service::engine", bucket, %key, %upload, "an abandoned multipart upload was removed");
                Ok(true)
            }
            Err(EngineError::NoSuchUpload | EngineError::NoSuchBucket | EngineError::Conflict) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// One page of a scan for old uploads.
struct Page {
    /// Encoded keys of the uploads that are too old.
    abandoned: Vec<Vec<u8>>,
    /// Encoded key before the next page; `None` at the end.
    next: Option<Vec<u8>>,
}

/// Reads one page of uploads and finds those that were begun before `begun_before`.
fn old_uploads(
    slice: &Arc<Slice>,
    after: Option<&[u8]>,
    begun_before: Timestamp,
) -> Result<Page, EngineError> {
    let txn = slice.environment.read()?;
    let mut page = Page { abandoned: Vec::new(), next: None };
    for (read, entry) in txn.entries(slice.tables.uploads, after)?.enumerate() {
        let entry = entry?;
        if read == WALK_PAGE_RECORDS {
            return Ok(page);
        }
        page.next = Some(entry.key.to_vec());
        let (Ok(record), Some((_, _, id))) = (entry.record, keys::decode_upload(entry.key)) else { continue };
        let upload = upload_record::decode(record.version, record.body, id);
        if upload.is_ok_and(|upload| upload.initiated < begun_before) {
            page.abandoned.push(entry.key.to_vec());
        }
    }
    page.next = None;
    Ok(page)
}
