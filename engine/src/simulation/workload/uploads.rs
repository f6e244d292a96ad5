//! What is done to multipart uploads: begin, parts, parts again, completion of all parts or some, twice, and removal.

use super::{SMALL_SIZES, Workload, bytes, parsed};
use crate::error::EngineError;
use crate::lock::ObjectLock;
use crate::md5::md5_digest;
use crate::object::{PartRun, WriteCondition};
use crate::simulation::Random;
use crate::simulation::history::Place;
use crate::simulation::state::{Change, Content, Parts};
use crate::upload::{CompleteUpload, NewUpload, PutPart, composite_etag};
use cairn_model::UploadId;
use std::rc::Rc;
use std::sync::Arc;

/// Unfinished uploads of a key, and numbers of their parts, at most.
const UPLOADS_MAX: usize = 2;
const NUMBERS_MAX: u64 = 4;

impl Workload {
    /// A few operations on the uploads of a key that the task owns.
    pub(super) async fn upload(self: &Rc<Self>, place: &Place, random: &mut Random) {
        for _ in 0..2 + random.below(6) {
            let Some(state) = self.history.borrow().certain(place) else { return };
            if self.stopped.get() {
                return;
            }
            let chosen = random.index(state.uploads.len());
            let may_begin = state.uploads.len() < UPLOADS_MAX;
            match (state.uploads.into_iter().nth(chosen), random.below(12)) {
                (None, _) => self.begin_upload(place).await,
                (_, 0) if may_begin => self.begin_upload(place).await,
                (Some((id, _)), 1) => self.abort(place, id).await,
                (Some((id, parts)), 2..=5) if !parts.is_empty() => {
                    return self.complete(place, id, &parts, random).await;
                }
                (Some((id, _)), _) => self.put_part(place, id, random).await,
            }
        }
    }

    async fn begin_upload(&self, place: &Place) {
        let Ok(key) = parsed(place) else { return };
        let begun = self.engine.create_upload(self.bucket(place), &key, NewUpload::default());
        drop(self.change(place, Change::CreateUpload, begun, |upload| (upload.id.0, false)).await);
    }

    async fn put_part(&self, place: &Place, upload: u64, random: &mut Random) {
        let bytes = bytes(random, &SMALL_SIZES);
        let number = u16::try_from(1 + random.below(NUMBERS_MAX)).unwrap_or(1);
        let change = Change::PutPart { upload, number, md5: md5_digest(&bytes), bytes: Arc::clone(&bytes) };
        let put = async {
            let payload = self.stage_all(place, &bytes).await?;
            let (bucket, key, upload) = (Arc::clone(self.bucket(place)), parsed(place)?, UploadId(upload));
            self.engine.put_part(PutPart { bucket, key, upload, number, payload, checksum: None }).await
        };
        drop(self.change(place, change, put, |_| (0, false)).await);
    }

    async fn abort(&self, place: &Place, upload: u64) {
        let Ok(key) = parsed(place) else { return };
        let aborted = self.engine.abort_upload(self.bucket(place), &key, UploadId(upload));
        let outcome = self.change(place, Change::AbortUpload(upload), aborted, |()| (0, false)).await;
        if outcome.is_ok() {
            let again = self.engine.abort_upload(self.bucket(place), &key, UploadId(upload)).await;
            self.expect_refusal("a second removal of an upload", place, &again, &EngineError::NoSuchUpload);
        }
    }

    async fn complete(&self, place: &Place, upload: u64, parts: &Parts, random: &mut Random) {
        let Ok(key) = parsed(place) else { return };
        let mut named = parts.clone();
        if random.below(2) == 0 {
            // Not the last that is left.
            named.retain(|_, _| random.below(2) == 0);
            if named.is_empty() {
                named.clone_from(parts);
            }
        }
        let numbers: Vec<_> = named.iter().map(|(number, (md5, _))| (*number, *md5)).collect();
        let complete = |parts: &[(u16, [u8; 16])]| {
            self.engine.complete_upload(CompleteUpload {
                bucket: Arc::clone(self.bucket(place)),
                key: key.clone(),
                upload: UploadId(upload),
                parts: parts.to_vec(),
                checksums: Vec::new(),
                condition: WriteCondition::default(),
            })
        };
        if random.below(6) == 0 {
            let wrong: Vec<_> = numbers.iter().map(|(number, _)| (*number, [0; 16])).collect();
            let refusal = EngineError::InvalidPart(wrong[0].0);
            self.expect_refusal("a completion with wrong parts", place, &complete(&wrong).await, &refusal);
        }
        let change = self.write_of(place, assembled(&named), ObjectLock::default(), Some(upload));
        let made = |done: &crate::object::CompleteOutcome| (done.put.version.0, done.put.is_null);
        let Ok(done) = self.change(place, change, complete(&numbers), made).await else { return };
        if random.below(3) == 0 {
            match complete(&numbers).await {
                Ok(again) if (again.put.version, again.etag) == (done.put.version, done.etag) => {}
                Err(EngineError::Io(_) | EngineError::StorageFull) if self.failing => {}
                other => self.find(format!("a completion of {place} that was sent again gave {other:?}")),
            }
        }
    }
}

/// The object that is made of parts.
fn assembled(parts: &Parts) -> Content {
    let bytes: Vec<u8> = parts.values().flat_map(|(_, bytes)| bytes.iter().copied()).collect();
    let mut runs: Vec<PartRun> = Vec::new();
    for (number, (_, bytes)) in parts {
        let size = bytes.len() as u64;
        match runs.last_mut() {
            Some(run) if run.size == size && run.first + run.count == *number => run.count += 1,
            _ => runs.push(PartRun { first: *number, count: 1, size }),
        }
    }
    let etag = composite_etag(parts.values().map(|(md5, _)| *md5));
    Content { etag, bytes: Arc::new(bytes), parts: runs }
}
