//! One batch of changes in one transaction: decisions, records, free map, usage, answers.
//!
//! A change is first decided without writing anything; only then it is applied. So a refusal leaves the transaction as it
//! was. An error out of [`Batch::apply`] is one of the transaction itself: all of the batch is then abandoned.

use crate::bucket::{Bucket, BucketState};
use crate::error::EngineError;
use crate::extent::Extent;
use crate::free_map::FreeMapEdit;
use crate::keys;
use crate::object::{DeleteOutcome, EtagMatch, ObjectInfo, PutOutcome, WriteCondition};
use crate::queue::{DeleteJob, Job, PutJob, Reply};
use crate::record::{OBJECT_RECORD_VERSION, ObjectRecord, PayloadForm, PayloadId};
use crate::slice::{SEQUENCE_KEY, SMALL_RECORD_VERSION, Slice, Tables, decode_usage};
use crate::space::Reservation;
use crate::writer::StagedParts;
use cairn_lmdb::WriteTxn;
use cairn_model::{Clock, VersionId};
use std::collections::HashMap;
use std::sync::Arc;

/// An answer that waits for the commit.
enum Answer {
    Put(Reply<PutOutcome>, PutOutcome),
    Delete(Reply<DeleteOutcome>, DeleteOutcome),
    Empty(Reply<bool>, bool),
}

/// Change of a bucket's usage in this batch; the numbers wrap.
struct UsageChange {
    bucket: Arc<Bucket>,
    objects: u64,
    bytes: u64,
}

/// The current object of a key, as the transaction sees it.
struct Current {
    encoded_key: Vec<u8>,
    record: ObjectRecord,
}

pub(crate) struct Batch<'s> {
    slice: &'s Slice,
    clock: &'s dyn Clock,
    tables: Tables,
    txn: WriteTxn<'s>,
    sequence: u64,
    first_sequence: u64,
    free_map: FreeMapEdit,
    usage: HashMap<u64, UsageChange>,
    answers: Vec<Answer>,
    /// Space of the batch's payloads: theirs when the commit succeeds, free again when it does not.
    reservations: Vec<Reservation>,
    /// Payloads that records of this batch no longer name.
    removed: Vec<(PayloadId, Vec<Extent>)>,
    body: Vec<u8>,
}

impl<'s> Batch<'s> {
    pub(crate) fn begin(slice: &'s Slice, clock: &'s dyn Clock, sequence: u64) -> Result<Self, EngineError> {
        Ok(Self {
            slice,
            clock,
            tables: slice.tables,
            txn: slice.environment.write()?,
            sequence,
            first_sequence: sequence,
            free_map: FreeMapEdit::default(),
            usage: HashMap::new(),
            answers: Vec::new(),
            reservations: Vec::new(),
            removed: Vec::new(),
            body: Vec::new(),
        })
    }

    /// The last sequence given out.
    pub(crate) const fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Decides and applies one change. A refusal is answered at once; an error breaks the whole batch.
    pub(crate) fn apply(&mut self, job: Job) -> Result<(), EngineError> {
        match job {
            Job::Put(put, reply) => match self.decide(&put.bucket, &put.key, &put.condition) {
                Ok((versions, current)) => {
                    let outcome = self.put(*put, &versions, current);
                    self.settle(outcome, reply, Answer::Put)
                }
                Err(refusal) => self.refuse(refusal, reply),
            },
            Job::Delete(delete, reply) => {
                let DeleteJob { bucket, key, condition } = *delete;
                match self.decide(&bucket, &key, &condition) {
                    Ok((_, current)) => {
                        let outcome = self.delete(&bucket, current);
                        self.settle(outcome, reply, Answer::Delete)
                    }
                    Err(refusal) => self.refuse(refusal, reply),
                }
            }
            Job::ProbeEmpty(bucket, reply) => {
                let prefix = keys::prefix_of(bucket, &[]);
                let found = self.txn.first_at_or_after(self.tables.objects, &prefix)?;
                let empty = !found.is_some_and(|(key, _)| key.starts_with(&prefix));
                self.answers.push(Answer::Empty(reply, empty));
                Ok(())
            }
        }
    }

    fn settle<T>(
        &mut self,
        outcome: Result<T, EngineError>,
        reply: Reply<T>,
        answer: fn(Reply<T>, T) -> Answer,
    ) -> Result<(), EngineError> {
        match outcome {
            Ok(outcome) => {
                self.answers.push(answer(reply, outcome));
                Ok(())
            }
            Err(error) => {
                let _ = reply.send(Err(error.clone()));
                Err(error)
            }
        }
    }

    /// Answers a change that was refused before anything was written.
    #[expect(
        clippy::unnecessary_wraps,
        clippy::unused_self,
        reason = "it stands beside settle in the same match"
    )]
    fn refuse<T>(&self, refusal: EngineError, reply: Reply<T>) -> Result<(), EngineError> {
        let _ = reply.send(Err(refusal));
        Ok(())
    }

    /// Looks the current object up and decides the conditions on it.
    fn decide(
        &self,
        bucket: &Bucket,
        key: &cairn_model::ObjectKey,
        condition: &WriteCondition,
    ) -> Result<(Vec<u8>, Option<Current>), EngineError> {
        match bucket.state() {
            BucketState::Active => {}
            BucketState::Deleting => return Err(EngineError::Conflict),
            BucketState::Deleted => return Err(EngineError::NoSuchBucket),
        }
        let versions = keys::versions_of(bucket.id, key.as_bytes()).ok_or(EngineError::KeyTooLong)?;
        let found = self.txn.first_at_or_after(self.tables.objects, &versions)?;
        let current = match found.filter(|(key, _)| key.starts_with(&versions)) {
            Some((encoded_key, record)) => {
                let record = ObjectRecord::decode(record.version, record.body)?;
                Some(Current { encoded_key: encoded_key.to_vec(), record })
            }
            None => None,
        };
        check_condition(condition, current.as_ref().map(|current| &current.record.info))?;
        Ok((versions, current))
    }

    fn put(
        &mut self,
        put: PutJob,
        versions: &[u8],
        current: Option<Current>,
    ) -> Result<PutOutcome, EngineError> {
        let replaced = current.is_some();
        if let Some(current) = current {
            self.remove(&put.bucket, &current)?;
        }
        self.sequence += 1;
        let StagedParts { size, form, inline, reservation, .. } = put.payload.into_parts();
        let info = ObjectInfo {
            size,
            etag: put.etag,
            last_modified: self.clock.now(),
            version: VersionId(self.sequence),
            attributes: put.attributes,
        };
        let outcome = PutOutcome { version: info.version, last_modified: info.last_modified, replaced };
        let record = ObjectRecord { info, payload: form };
        if let PayloadForm::Volume(payload) = &record.payload {
            let owned: Vec<Extent> = payload.owned().collect();
            self.free_map.mark(&self.txn, self.tables.free_map, &owned, true)?;
        }
        self.reservations.extend(reservation);
        self.body.clear();
        record.encode(&mut self.body)?;
        let key = keys::with_sequence(versions, self.sequence);
        self.txn.insert(self.tables.objects, &key, OBJECT_RECORD_VERSION, &self.body, &inline)?;
        self.change_usage(&put.bucket, 1, size);
        Ok(outcome)
    }

    fn delete(
        &mut self,
        bucket: &Arc<Bucket>,
        current: Option<Current>,
    ) -> Result<DeleteOutcome, EngineError> {
        let Some(current) = current else { return Ok(DeleteOutcome { existed: false }) };
        self.remove(bucket, &current)?;
        Ok(DeleteOutcome { existed: true })
    }

    fn remove(&mut self, bucket: &Arc<Bucket>, current: &Current) -> Result<(), EngineError> {
        self.txn.remove(self.tables.objects, &current.encoded_key)?;
        if let PayloadForm::Volume(payload) = &current.record.payload {
            let owned: Vec<Extent> = payload.owned().collect();
            self.free_map.mark(&self.txn, self.tables.free_map, &owned, false)?;
            self.removed.push((payload.id, owned));
        }
        self.change_usage(bucket, 1u64.wrapping_neg(), current.record.info.size.wrapping_neg());
        Ok(())
    }

    fn change_usage(&mut self, bucket: &Arc<Bucket>, objects: u64, bytes: u64) {
        let entry = self.usage.entry(bucket.id).or_insert_with(|| UsageChange {
            bucket: Arc::clone(bucket),
            objects: 0,
            bytes: 0,
        });
        entry.objects = entry.objects.wrapping_add(objects);
        entry.bytes = entry.bytes.wrapping_add(bytes);
    }

    /// Commits; then, and only then, gives space over and answers.
    pub(crate) fn commit(mut self) -> Result<(), EngineError> {
        if let Err(error) = self.write_totals() {
            self.abandon(&error);
            return Err(error);
        }
        let Self { slice, txn, usage, answers, reservations, removed, .. } = self;
        if let Err(error) = txn.commit() {
            let error = EngineError::from(error);
            fail_all(answers, &error);
            // Whether the device holds the commit may be unknown: unless it certainly does not, the space must not be
            // given to anyone else before the store is opened again.
            if !matches!(error, EngineError::StorageFull) {
                reservations.into_iter().for_each(Reservation::commit);
            }
            return Err(error);
        }
        reservations.into_iter().for_each(Reservation::commit);
        slice.space.release_removed(removed);
        for change in usage.values() {
            change.bucket.add_usage(change.objects, change.bytes);
        }
        for answer in answers {
            match answer {
                Answer::Put(reply, outcome) => drop(reply.send(Ok(outcome))),
                Answer::Delete(reply, outcome) => drop(reply.send(Ok(outcome))),
                Answer::Empty(reply, empty) => drop(reply.send(Ok(empty))),
            }
        }
        Ok(())
    }

    /// Sequence, free map and usage: once for each batch.
    fn write_totals(&mut self) -> Result<(), EngineError> {
        if self.sequence != self.first_sequence {
            let sequence = self.sequence.to_le_bytes();
            self.txn.put(self.tables.slice, SEQUENCE_KEY, SMALL_RECORD_VERSION, &sequence, &[])?;
        }
        std::mem::take(&mut self.free_map).write(&mut self.txn, self.tables.free_map)?;
        for (bucket, change) in &self.usage {
            let key = bucket.to_be_bytes();
            let before = match self.txn.get(self.tables.usage, &key)? {
                Some(record) => decode_usage(record.body)
                    .ok_or_else(|| EngineError::Corrupt("a usage record of a wrong form".to_owned()))?,
                None => (0, 0),
            };
            let objects = before.0.wrapping_add(change.objects);
            let bytes = before.1.wrapping_add(change.bytes);
            if objects == 0 && bytes == 0 {
                self.txn.remove(self.tables.usage, &key)?;
            } else {
                let mut body = [0u8; 16];
                body[..8].copy_from_slice(&objects.to_le_bytes());
                body[8..].copy_from_slice(&bytes.to_le_bytes());
                self.txn.put(self.tables.usage, &key, SMALL_RECORD_VERSION, &body, &[])?;
            }
        }
        Ok(())
    }

    /// Drops the transaction and fails every change in it; their space is free again.
    pub(crate) fn abandon(self, error: &EngineError) {
        fail_all(self.answers, error);
    }
}

fn fail_all(answers: Vec<Answer>, error: &EngineError) {
    for answer in answers {
        match answer {
            Answer::Put(reply, _) => drop(reply.send(Err(error.clone()))),
            Answer::Delete(reply, _) => drop(reply.send(Err(error.clone()))),
            Answer::Empty(reply, _) => drop(reply.send(Err(error.clone()))),
        }
    }
}

/// Decides a condition on the current object, if there is one.
fn check_condition(condition: &WriteCondition, current: Option<&ObjectInfo>) -> Result<(), EngineError> {
    let Some(info) = current else {
        let needs_one = condition.if_match.is_some()
            || condition.if_size.is_some()
            || condition.if_last_modified_seconds.is_some();
        return if needs_one { Err(EngineError::NoSuchKey) } else { Ok(()) };
    };
    let tag_fits = match &condition.if_match {
        None | Some(EtagMatch::Any) => true,
        Some(EtagMatch::OneOf(tags)) => tags.contains(&info.etag.to_string()),
    };
    let holds = !condition.must_be_absent
        && tag_fits
        && condition.if_size.is_none_or(|size| size == info.size)
        && condition.if_last_modified_seconds.is_none_or(|seconds| seconds == info.last_modified.seconds());
    if holds { Ok(()) } else { Err(EngineError::PreconditionFailed) }
}
