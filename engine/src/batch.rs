//! One batch of changes in one transaction: decisions, records, free map, usage, answers.
//!
//! A change is first decided, and all that can go wrong with it alone is found out (conditions, space in the free map, the
//! record's encoding), before the transaction is touched. So a refusal leaves the transaction as it was; an error out of
//! [`Batch::apply`] is one of the transaction itself, and all of the batch is then abandoned. Refusals are answered with the
//! commit too: they may rest on changes of the same batch, which must not have been seen if the commit fails.

use crate::bucket::{Bucket, BucketState};
use crate::changes::{Change, ChangeKind};
use crate::error::EngineError;
use crate::extent::Extent;
use crate::free_map::FreeMapEdit;
use crate::keys;
use crate::object::{DeleteOutcome, EtagMatch, ObjectInfo, PutOutcome, WriteCondition};
use crate::queue::{DeleteJob, FreeOrphansJob, Job, PutJob, Reply};
use crate::record::{OBJECT_RECORD_VERSION, ObjectRecord, PayloadForm, PayloadId};
#[cfg(feature = "simulation")]
use crate::simulation::{Flaw, stage::Point};
use crate::slice::{SEQUENCE_KEY, SMALL_RECORD_VERSION, Slice, Tables, decode_usage};
use crate::space::Reservation;
use crate::writer::StagedParts;
use cairn_lmdb::WriteTxn;
use cairn_model::{Clock, VersionId};
use std::collections::HashMap;
use std::sync::Arc;

/// An answer that waits for the commit.
enum Answer {
    Put(Reply<PutOutcome>, Result<PutOutcome, EngineError>),
    Delete(Reply<DeleteOutcome>, Result<DeleteOutcome, EngineError>),
    Empty(Reply<bool>, bool),
    Freed(Reply<Vec<Extent>>, Result<Vec<Extent>, EngineError>),
}

/// Why a change was not applied.
enum Failure {
    /// It alone is refused; the transaction is untouched.
    Refused(EngineError),
    /// The transaction cannot go on.
    Broken(EngineError),
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        Self::Refused(error)
    }
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
    /// Space that no record owned and that is not marked any more.
    freed_orphans: Vec<Extent>,
    /// What becomes of object records, while somebody follows the slice's changes.
    changes: Option<Vec<Change>>,
    body: Vec<u8>,
}

impl<'s> Batch<'s> {
    pub(crate) fn begin(slice: &'s Slice, clock: &'s dyn Clock, sequence: u64) -> Result<Self, EngineError> {
        let txn = slice.environment.write()?;
        Ok(Self {
            slice,
            clock,
            tables: slice.tables,
            // Asked under the writer lock: see [`crate::changes::ChangeLog::follow`].
            changes: slice.changes.is_followed().then(Vec::new),
            txn,
            sequence,
            first_sequence: sequence,
            free_map: FreeMapEdit::default(),
            usage: HashMap::new(),
            answers: Vec::new(),
            reservations: Vec::new(),
            removed: Vec::new(),
            freed_orphans: Vec::new(),
            body: Vec::new(),
        })
    }

    /// The last sequence given out.
    pub(crate) const fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Decides and applies one change. An error breaks the whole batch.
    pub(crate) fn apply(&mut self, job: Job) -> Result<(), EngineError> {
        match job {
            Job::Put(put, reply) => {
                let outcome = self.put(*put);
                self.settle(outcome, reply, Answer::Put)
            }
            Job::Delete(delete, reply) => {
                let outcome = self.delete(&delete);
                self.settle(outcome, reply, Answer::Delete)
            }
            Job::ProbeEmpty(bucket, reply) => {
                let prefix = keys::prefix_of(bucket, &[]);
                let found = self.txn.first_at_or_after(self.tables.objects, &prefix)?;
                let empty = !found.is_some_and(|(key, _)| key.starts_with(&prefix));
                self.answers.push(Answer::Empty(reply, empty));
                Ok(())
            }
            Job::FreeOrphans(orphans, reply) => {
                let outcome = self.free_orphans(&orphans).map_err(Failure::Refused);
                self.settle(outcome, reply, Answer::Freed)
            }
        }
    }

    fn settle<T>(
        &mut self,
        outcome: Result<T, Failure>,
        reply: Reply<T>,
        answer: fn(Reply<T>, Result<T, EngineError>) -> Answer,
    ) -> Result<(), EngineError> {
        let outcome = match outcome {
            Ok(outcome) => Ok(outcome),
            Err(Failure::Refused(refusal)) => Err(refusal),
            Err(Failure::Broken(error)) => {
                // The one who asked may have gone: then there is nobody to tell.
                let _ = reply.send(Err(error.clone()));
                return Err(error);
            }
        };
        self.answers.push(answer(reply, outcome));
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

    fn put(&mut self, put: PutJob) -> Result<PutOutcome, Failure> {
        let (versions, current) = self.decide(&put.bucket, &put.key, &put.condition)?;
        let sequence = self.sequence + 1;
        let StagedParts { size, form, sealed, inline, reservation, .. } = put.payload.into_parts();
        let info = ObjectInfo {
            size,
            etag: put.etag,
            last_modified: self.clock.now(),
            version: VersionId(sequence),
            attributes: put.attributes,
            encrypted: sealed.is_some(),
            is_null: true,
            lock: put.lock,
            parts: Vec::new(),
        };
        let (version, last_modified, replaced) = (info.version, info.last_modified, current.is_some());
        let record = ObjectRecord { info, payload: form, sealed };
        self.body.clear();
        record.encode(&mut self.body).map_err(EngineError::from)?;
        let taken = owned_space(&record);
        if let Err(error) = self.move_space(&taken, current.as_ref()) {
            // The map says that somebody owns units which were handed out as free. Whoever is right, nobody else gets them.
            reservation.into_iter().for_each(Reservation::commit);
            return Err(Failure::Refused(error));
        }
        self.reservations.extend(reservation);
        self.sequence = sequence;
        let key = keys::with_sequence(&versions, sequence);
        self.remove_record(&put.bucket, current)?;
        let before = self.txn.totals().hash;
        self.txn
            .insert(self.tables.objects, &key, OBJECT_RECORD_VERSION, &self.body, &inline)
            .map_err(|error| Failure::Broken(error.into()))?;
        let hash = self.txn.totals().hash.wrapping_sub(before);
        self.note_change(ChangeKind::Added, put.bucket.id, &key, &record, hash);
        self.change_usage(&put.bucket, 1, size);
        Ok(PutOutcome { version, is_null: true, last_modified, replaced })
    }

    fn delete(&mut self, delete: &DeleteJob) -> Result<DeleteOutcome, Failure> {
        let (_, current) = self.decide(&delete.bucket, &delete.key, &delete.options.condition)?;
        self.move_space(&[], current.as_ref())?;
        let existed = current.is_some();
        self.remove_record(&delete.bucket, current)?;
        Ok(DeleteOutcome { existed, version: None, is_delete_marker: false })
    }

    /// Marks `taken` as owned and the current object's space as free; on an error nothing has changed.
    fn move_space(&mut self, taken: &[Extent], current: Option<&Current>) -> Result<(), EngineError> {
        let given = current.map(|current| owned_space(&current.record)).unwrap_or_default();
        self.free_map.mark(&self.txn, self.tables.free_map, taken, true)?;
        #[cfg(feature = "simulation")]
        let given = if self.slice.files.is_flawed(Flaw::KeepRemovedMarked) { Vec::new() } else { given };
        let freed = self.free_map.mark(&self.txn, self.tables.free_map, &given, false);
        if freed.is_err() {
            self.free_map.mark(&self.txn, self.tables.free_map, taken, false)?;
        }
        freed
    }

    fn remove_record(&mut self, bucket: &Arc<Bucket>, current: Option<Current>) -> Result<(), Failure> {
        let Some(Current { encoded_key, record }) = current else { return Ok(()) };
        let before = self.txn.totals().hash;
        let removed = self.txn.remove(self.tables.objects, &encoded_key);
        removed.map_err(|error| Failure::Broken(error.into()))?;
        let hash = before.wrapping_sub(self.txn.totals().hash);
        self.note_change(ChangeKind::Removed, bucket.id, &encoded_key, &record, hash);
        self.change_usage(bucket, 1u64.wrapping_neg(), record.info.size.wrapping_neg());
        if let PayloadForm::Volume(payload) = &record.payload {
            self.removed.push((payload.id, payload.owned().collect()));
        }
        Ok(())
    }

    fn note_change(&mut self, kind: ChangeKind, bucket: u64, key: &[u8], record: &ObjectRecord, hash: u64) {
        if let Some(changes) = &mut self.changes {
            let (key, bytes, extents) = (key.to_vec(), record.info.size, owned_space(record));
            changes.push(Change { kind, key, bucket, bytes, extents, hash });
        }
    }

    /// Unmarks those runs that no record owns. The job says in which snapshot that was so for all of them; here it is
    /// decided again. A record can have come to own a run since then only by a change that the log has, or that this batch
    /// makes, and a run that is not marked as a whole any more is none of ours.
    fn free_orphans(&mut self, job: &FreeOrphansJob) -> Result<Vec<Extent>, EngineError> {
        let mut taken = self.slice.changes.taken_after(job.snapshot)?;
        let of_batch = self.changes.iter().flatten().filter(|change| change.kind == ChangeKind::Added);
        taken.extend(of_batch.flat_map(|change| change.extents.iter().copied()));
        taken.sort_unstable_by_key(Extent::address);
        let mut freed = Vec::new();
        for run in &job.runs {
            let behind =
                taken.partition_point(|extent| extent.address() < run.address() + u64::from(run.units));
            let is_owned = taken[..behind].iter().any(|extent| extent.overlaps(run));
            if !is_owned && self.free_map.mark(&self.txn, self.tables.free_map, &[*run], false).is_ok() {
                freed.push(*run);
            }
        }
        self.freed_orphans.extend(&freed);
        Ok(freed)
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
        let Self { slice, txn, usage, answers, reservations, removed, freed_orphans, changes, .. } = self;
        let number = txn.id();
        if let Some(changes) = changes {
            slice.changes.append(number, changes);
        }
        #[cfg(feature = "simulation")]
        let (answers, removed) = before_commit(slice, answers, removed);
        if let Err(error) = txn.commit() {
            let error = EngineError::from(error);
            slice.changes.withdraw(number);
            fail_all(answers, &error);
            // Whether the device holds the commit is unknown, so the space must not be given to anyone else before the
            // store is opened again.
            reservations.into_iter().for_each(Reservation::commit);
            return Err(error);
        }
        #[cfg(feature = "simulation")]
        slice.files.reach(Point::Committed);
        reservations.into_iter().for_each(Reservation::commit);
        slice.space.release_removed(removed);
        slice.space.release_orphans(freed_orphans);
        for change in usage.values() {
            let added =
                crate::bucket::Usage { objects: change.objects, bytes: change.bytes, ..Default::default() };
            change.bucket.add_usage(&added);
        }
        send_all(answers);
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

/// Space that a record owns.
fn owned_space(record: &ObjectRecord) -> Vec<Extent> {
    match &record.payload {
        PayloadForm::Volume(payload) => payload.owned().collect(),
        PayloadForm::Inline { .. } => Vec::new(),
    }
}

fn send_all(answers: Vec<Answer>) {
    for answer in answers {
        match answer {
            Answer::Put(reply, outcome) => drop(reply.send(outcome)),
            Answer::Delete(reply, outcome) => drop(reply.send(outcome)),
            Answer::Empty(reply, empty) => drop(reply.send(Ok(empty))),
            Answer::Freed(reply, outcome) => drop(reply.send(outcome)),
        }
    }
}

/// Waits on the stage with the transaction not committed; makes the mistakes that are to be made here.
#[cfg(feature = "simulation")]
fn before_commit(
    slice: &Slice,
    mut answers: Vec<Answer>,
    mut removed: Vec<(PayloadId, Vec<Extent>)>,
) -> (Vec<Answer>, Vec<(PayloadId, Vec<Extent>)>) {
    if slice.files.is_flawed(Flaw::AnswerBeforeCommit) {
        send_all(std::mem::take(&mut answers));
    }
    if slice.files.is_flawed(Flaw::ReleaseBeforeCommit) {
        slice.space.release_removed(std::mem::take(&mut removed));
    }
    if slice.files.is_flawed(Flaw::ReleaseDespiteReaders) {
        // Nobody has this one pinned.
        removed.iter_mut().for_each(|(id, _)| *id = PayloadId([0; 16]));
    }
    slice.files.reach(Point::Committing);
    (answers, removed)
}

fn fail_all(answers: Vec<Answer>, error: &EngineError) {
    for answer in answers {
        match answer {
            Answer::Put(reply, _) => drop(reply.send(Err(error.clone()))),
            Answer::Delete(reply, _) => drop(reply.send(Err(error.clone()))),
            Answer::Empty(reply, _) => drop(reply.send(Err(error.clone()))),
            Answer::Freed(reply, _) => drop(reply.send(Err(error.clone()))),
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
