//! Operations on multipart uploads: creation, parts, replaced parts, completion with all or some parts, repeated, and abortion.

use super::{SMALL_SIZES, Workload, object_key, random_bytes};
use crate::error::EngineError;
use crate::fault::Random;
use crate::simulation::history::BucketKey;
use crate::simulation::key_state::{Change, Content, Parts};
use crate::slice::command::CompleteUpload;
use crate::slice::command::PutPart;
use crate::types::event::Origin;
use crate::types::object::{PartRun, WriteCondition};
use crate::types::object_lock::ObjectLock;
use crate::types::upload::{NewUpload, composite_etag};
use cairn_md5::md5_digest;
use cairn_model::UploadId;
use std::rc::Rc;
use std::sync::Arc;

/// Unfinished uploads of a key at most.
const UPLOADS_MAX: usize = 2;
/// Highest part number.
const PART_NUMBER_MAX: u64 = 4;

impl Workload {
    /// Runs a few operations on the uploads of the task's own key.
    pub(super) async fn upload(self: &Rc<Self>, key: &BucketKey, random: &mut Random) {
        for _ in 0..2 + random.below(6) {
            let Some(state) = self.history.borrow().known_state(key) else { return };
            if self.stopped.get() {
                return;
            }
            let chosen = random.index(state.uploads.len());
            let may_create = state.uploads.len() < UPLOADS_MAX;
            match (state.uploads.into_iter().nth(chosen), random.below(12)) {
                (None, _) => self.create_upload(key).await,
                (_, 0) if may_create => self.create_upload(key).await,
                (Some((id, _)), 1) => self.abort(key, id).await,
                (Some((id, parts)), 2..=5) if !parts.is_empty() => {
                    return self.complete(key, id, &parts, random).await;
                }
                (Some((id, _)), _) => self.put_part(key, id, random).await,
            }
        }
    }

    async fn create_upload(&self, key: &BucketKey) {
        let object = object_key(key);
        let created = self.engine.create_upload(self.bucket(key), &object, NewUpload::default());
        drop(self.change(key, Change::CreateUpload, created, |upload| (upload.id.0, false)).await);
    }

    async fn put_part(&self, key: &BucketKey, upload: u64, random: &mut Random) {
        let bytes = random_bytes(random, &SMALL_SIZES);
        let number = u16::try_from(1 + random.below(PART_NUMBER_MAX)).expect("part numbers are small");
        let change = Change::PutPart { upload, number, md5: md5_digest(&bytes), bytes: Arc::clone(&bytes) };
        let put = async {
            let payload = self.stage_all(key, &bytes).await?;
            let (bucket, key, upload) = (Arc::clone(self.bucket(key)), object_key(key), UploadId(upload));
            self.engine.put_part(PutPart { bucket, key, upload, number, payload, checksum: None }).await
        };
        drop(self.change(key, change, put, |_| (0, false)).await);
    }

    async fn abort(&self, key: &BucketKey, upload: u64) {
        let object_key = object_key(key);
        let abort =
            || self.engine.abort_upload(self.bucket(key), &object_key, UploadId(upload), Origin::default());
        let outcome = self.change(key, Change::AbortUpload(upload), abort(), |()| (0, false)).await;
        if outcome.is_ok() {
            self.expect_refusal("a repeated abortion", key, &abort().await, &EngineError::NoSuchUpload);
        }
    }

    async fn complete(&self, key: &BucketKey, upload: u64, parts: &Parts, random: &mut Random) {
        let mut named = parts.clone();
        if random.below(2) == 0 {
            // At least one part must remain.
            named.retain(|_, _| random.below(2) == 0);
            if named.is_empty() {
                named.clone_from(parts);
            }
        }
        let numbers: Vec<_> = named.iter().map(|(number, (md5, _))| (*number, *md5)).collect();
        let complete = |parts: &[(u16, [u8; 16])]| {
            self.engine.complete_upload(CompleteUpload {
                bucket: Arc::clone(self.bucket(key)),
                key: object_key(key),
                upload: UploadId(upload),
                parts: parts.to_vec(),
                checksums: Vec::new(),
                condition: WriteCondition::default(),
                origin: Origin::default(),
            })
        };
        if random.below(6) == 0 {
            let wrong: Vec<_> = numbers.iter().map(|(number, _)| (*number, [0; 16])).collect();
            let refusal = EngineError::InvalidPart(wrong[0].0);
            self.expect_refusal("a completion with wrong parts", key, &complete(&wrong).await, &refusal);
        }
        let change = self.write_of(key, assembled(&named), ObjectLock::default(), Some(upload));
        let created = |done: &crate::types::object::CompleteOutcome| (done.put.version.0, done.put.is_null);
        let Ok(done) = self.change(key, change, complete(&numbers), created).await else { return };
        if random.below(3) == 0 {
            match complete(&numbers).await {
                Ok(again) if (again.put.version, again.etag) == (done.put.version, done.etag) => {}
                Err(EngineError::Io(_) | EngineError::StorageFull) if self.has_failing_disk => {}
                other => self.report_wrong_outcome(format!("a repeated completion of {key} gave {other:?}")),
            }
        }
    }
}

/// Returns the content of the object that these parts make.
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
