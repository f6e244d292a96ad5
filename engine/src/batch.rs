//! One batch of changes in one transaction: decisions, records, free map, usage, answers. What objects and versions are
//! changed by is in `batch/versions.rs`, locks in `batch/locks.rs`, uploads and parts in `batch/uploads.rs`, quotas in
//! `batch/claims.rs`.
//!
//! A change is first decided, and all that can go wrong with it alone is found out (conditions, space in the free map, the
//! record's encoding), before the transaction is touched. So a refusal leaves the transaction as it was; an error out of
//! [`Batch::apply`] is one of the transaction itself, and all of the batch is then abandoned. Refusals are answered with the
//! commit too: they may rest on changes of the same batch, which must not have been seen if the commit fails.

mod claims;
mod locks;
mod uploads;
mod versions;

use self::claims::{Claim, unclaim};
use crate::bucket::{Bucket, BucketState, Usage};
use crate::changes::{Change, ChangeKind, FollowedTable};
use crate::codec::PayloadId;
use crate::error::EngineError;
use crate::extent::Extent;
use crate::free_map::FreeMapEdit;
use crate::keys;
use crate::limits::BATCH_PARTS_MAX;
use crate::queue::{FreeOrphansJob, Job, Reply};
#[cfg(feature = "simulation")]
use crate::simulation::{Flaw, stage::Point};
use crate::slice::{
    SEQUENCE_KEY, SMALL_RECORD_VERSION, Slice, Tables, USAGE_RECORD_VERSION, decode_usage, encode_usage,
};
use crate::space::Reservation;
use cairn_lmdb::WriteTxn;
use cairn_model::{Clock, ObjectKey};
use std::collections::HashMap;
use std::sync::Arc;

/// An answer that waits for the commit; it is told why there was none, if so.
type Answer = Box<dyn FnOnce(Option<&EngineError>)>;

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

/// The transaction itself failed.
fn broken(error: cairn_lmdb::Error) -> Failure {
    Failure::Broken(error.into())
}

/// A key in a bucket that takes changes.
struct Place {
    bucket: Arc<Bucket>,
    /// Beginning of the keys of all that belongs to the key.
    versions: Vec<u8>,
}

/// What a record counts for, and the space that it owns.
struct Counted {
    counts: Usage,
    extents: Vec<Extent>,
}

impl Counted {
    /// A record that counts for nothing.
    const NOTHING: Self = Self { counts: Usage::of_counters([0; Usage::COUNTERS]), extents: Vec::new() };
}

pub(crate) struct Batch<'s> {
    slice: &'s Slice,
    clock: &'s dyn Clock,
    tables: Tables,
    txn: WriteTxn<'s>,
    sequence: u64,
    first_sequence: u64,
    free_map: FreeMapEdit,
    /// Change of each bucket's usage; the numbers wrap.
    usage: HashMap<u64, (Arc<Bucket>, Usage)>,
    answers: Vec<Answer>,
    /// Space of the batch's payloads: theirs when the commit succeeds, free again when it does not.
    reservations: Vec<Reservation>,
    /// Payloads that records of this batch no longer name.
    removed: Vec<(PayloadId, Vec<Extent>)>,
    /// Space that no record owned and that is not marked any more.
    freed_orphans: Vec<Extent>,
    /// What counts against quotas more when the batch is committed ...
    claims: Vec<Claim>,
    /// ... and what less.
    released: Vec<Claim>,
    /// What becomes of records, while somebody follows the slice's changes.
    changes: Option<Vec<Change>>,
    /// Records of parts that were looked at or removed.
    parts_touched: usize,
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
            claims: Vec::new(),
            released: Vec::new(),
            parts_touched: 0,
            body: Vec::new(),
        })
    }

    /// The last sequence given out.
    pub(crate) const fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Whether what still waits should go to another batch.
    pub(crate) const fn is_full(&self) -> bool {
        self.parts_touched >= BATCH_PARTS_MAX
    }

    /// Decides and applies one change. An error breaks the whole batch.
    pub(crate) fn apply(&mut self, job: Job) -> Result<(), EngineError> {
        match job {
            Job::Put(put, reply) => {
                let outcome = self.put(*put);
                self.settle(outcome, reply)
            }
            Job::Delete(delete, reply) => {
                let outcome = self.delete(&delete);
                self.settle(outcome, reply)
            }
            Job::Lock(lock, reply) => {
                let outcome = self.change_lock(&lock);
                self.settle(outcome, reply)
            }
            Job::CreateUpload(create, reply) => {
                let outcome = self.create_upload(*create);
                self.settle(outcome, reply)
            }
            Job::PutPart(part, reply) => {
                let outcome = self.put_part(*part);
                self.settle(outcome, reply)
            }
            Job::CompleteUpload(complete, reply) => {
                let outcome = self.complete_upload(*complete);
                self.settle(outcome, reply)
            }
            Job::AbortUpload(abort, reply) => {
                let outcome = self.abort_upload(&abort);
                self.settle(outcome, reply)
            }
            Job::ProbeEmpty(bucket, reply) => {
                let outcome = self.is_empty(bucket).map_err(Failure::Broken);
                self.settle(outcome, reply)
            }
            Job::FreeOrphans(orphans, reply) => {
                let outcome = self.free_orphans(&orphans).map_err(Failure::Refused);
                self.settle(outcome, reply)
            }
        }
    }

    fn settle<T: 'static>(
        &mut self,
        outcome: Result<T, Failure>,
        reply: Reply<T>,
    ) -> Result<(), EngineError> {
        // The one who asked may have gone: then there is nobody to tell.
        let outcome = match outcome {
            Ok(outcome) => Ok(outcome),
            Err(Failure::Refused(refusal)) => Err(refusal),
            Err(Failure::Broken(error)) => {
                let _ = reply.send(Err(error.clone()));
                return Err(error);
            }
        };
        self.answers.push(Box::new(move |failure| {
            let _ = reply.send(match failure {
                None => outcome,
                Some(error) => Err(error.clone()),
            });
        }));
        Ok(())
    }

    fn is_empty(&self, bucket: u64) -> Result<bool, EngineError> {
        let prefix = keys::prefix_of(bucket, &[]);
        for table in [self.tables.objects, self.tables.uploads] {
            let found = self.txn.first_key_at_or_after(table, &prefix)?;
            if found.is_some_and(|key| key.starts_with(&prefix)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The place of a key, in a bucket that takes changes.
    fn place(&self, bucket: &Arc<Bucket>, key: &ObjectKey) -> Result<Place, EngineError> {
        match bucket.state() {
            BucketState::Active => {}
            BucketState::Deleting => return Err(EngineError::Conflict),
            BucketState::Deleted => return Err(EngineError::NoSuchBucket),
        }
        let versions = keys::versions_of(bucket.id, key.as_bytes()).ok_or(EngineError::KeyTooLong)?;
        Ok(Place { bucket: Arc::clone(bucket), versions })
    }

    /// Marks `taken` as owned and `given` as free; on an error nothing has changed. The space of a payload that is refused
    /// so is given to nobody: the map says that somebody owns units which were handed out as free, whoever is right.
    fn move_space(
        &mut self,
        taken: &[Extent],
        given: &[Extent],
        reservation: Option<Reservation>,
    ) -> Result<(), EngineError> {
        #[cfg(feature = "simulation")]
        let given = if self.slice.files.is_flawed(Flaw::KeepRemovedMarked) { &[] } else { given };
        let table = self.tables.free_map;
        let mut moved = self.free_map.mark(&self.txn, table, taken, true);
        if moved.is_ok() {
            moved = self.free_map.mark(&self.txn, table, given, false);
            if moved.is_err() {
                self.free_map.mark(&self.txn, table, taken, false)?;
            }
        }
        match moved {
            Ok(()) => self.reservations.extend(reservation),
            Err(_) => reservation.into_iter().for_each(Reservation::commit),
        }
        moved
    }

    /// Writes the record of a key that has none.
    fn insert_record(
        &mut self,
        bucket: &Arc<Bucket>,
        followed: FollowedTable,
        key: &[u8],
        (body, tail): (&[u8], &[u8]),
        counted: Counted,
    ) -> Result<(), Failure> {
        let before = self.txn.totals().hash;
        let (table, version) = self.tables.followed(followed);
        self.txn.insert(table, key, version, body, tail).map_err(broken)?;
        let hash = self.txn.totals().hash.wrapping_sub(before);
        self.count(bucket, &counted.counts);
        self.note_record(ChangeKind::Added, followed, bucket, key, counted, hash);
        Ok(())
    }

    /// Removes the record of a key, which counts for `counted`.
    fn remove_record(
        &mut self,
        bucket: &Arc<Bucket>,
        followed: FollowedTable,
        key: &[u8],
        counted: Counted,
    ) -> Result<(), Failure> {
        let before = self.txn.totals().hash;
        let (table, _) = self.tables.followed(followed);
        self.txn.remove(table, key).map_err(broken)?;
        let hash = before.wrapping_sub(self.txn.totals().hash);
        self.count(bucket, &counted.counts.negated());
        self.note_record(ChangeKind::Removed, followed, bucket, key, counted, hash);
        Ok(())
    }

    fn note_record(
        &mut self,
        kind: ChangeKind,
        table: FollowedTable,
        bucket: &Bucket,
        key: &[u8],
        counted: Counted,
        hash: u64,
    ) {
        if let Some(changes) = &mut self.changes {
            let Counted { counts, extents } = counted;
            changes.push(Change::Record {
                kind,
                table,
                key: key.to_vec(),
                bucket: bucket.id,
                counts,
                extents,
                hash,
            });
        }
    }

    /// Adds to a bucket's usage; the difference wraps.
    fn count(&mut self, bucket: &Arc<Bucket>, more: &Usage) {
        let entry = self.usage.entry(bucket.id).or_insert_with(|| (Arc::clone(bucket), Usage::default()));
        entry.1.add(more);
    }

    /// Unmarks those runs that no record owns. The job says in which snapshot that was so for all of them; here it is
    /// decided again. A record can have come to own a run since then only by a change that the log has, or that this batch
    /// makes, and a run that is not marked as a whole any more is none of ours.
    fn free_orphans(&mut self, job: &FreeOrphansJob) -> Result<Vec<Extent>, EngineError> {
        let mut taken = self.slice.changes.taken_after(job.snapshot)?;
        taken.extend(self.changes.iter().flatten().flat_map(Change::taken).copied());
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

    /// Commits; then, and only then, gives space over and answers.
    pub(crate) fn commit(mut self) -> Result<(), EngineError> {
        if let Err(error) = self.write_totals() {
            self.abandon(&error);
            return Err(error);
        }
        let Self { slice, txn, usage, answers, reservations, removed, freed_orphans, changes, .. } = self;
        let (claims, released) = (self.claims, self.released);
        let number = txn.id();
        if let Some(changes) = changes {
            slice.changes.append(number, changes);
        }
        #[cfg(feature = "simulation")]
        let (answers, removed) = before_commit(slice, answers, removed);
        if let Err(error) = txn.commit() {
            let error = EngineError::from(error);
            slice.changes.withdraw(number);
            answer_all(answers, Some(&error));
            unclaim(&claims);
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
        unclaim(&released);
        for (bucket, change) in usage.values() {
            bucket.add_usage(change);
        }
        answer_all(answers, None);
        Ok(())
    }

    /// Sequence, free map and usage: once for each batch.
    fn write_totals(&mut self) -> Result<(), EngineError> {
        if self.sequence != self.first_sequence {
            let sequence = self.sequence.to_le_bytes();
            self.txn.put(self.tables.slice, SEQUENCE_KEY, SMALL_RECORD_VERSION, &sequence, &[])?;
        }
        std::mem::take(&mut self.free_map).write(&mut self.txn, self.tables.free_map)?;
        for (bucket, (_, change)) in &self.usage {
            let key = bucket.to_be_bytes();
            let mut usage = match self.txn.get(self.tables.usage, &key)? {
                Some(record) => decode_usage(record)
                    .ok_or_else(|| EngineError::Corrupt("a usage record of a wrong form".to_owned()))?,
                None => Usage::default(),
            };
            usage.add(change);
            if usage == Usage::default() {
                self.txn.remove(self.tables.usage, &key)?;
            } else {
                let body = encode_usage(&usage);
                self.txn.put(self.tables.usage, &key, USAGE_RECORD_VERSION, &body, &[])?;
            }
        }
        Ok(())
    }

    /// Drops the transaction and fails every change in it; their space is free again.
    pub(crate) fn abandon(self, error: &EngineError) {
        answer_all(self.answers, Some(error));
        unclaim(&self.claims);
    }
}

fn answer_all(answers: Vec<Answer>, failure: Option<&EngineError>) {
    answers.into_iter().for_each(|answer| answer(failure));
}

/// Waits on the stage with the transaction not committed; makes the mistakes that are to be made here.
#[cfg(feature = "simulation")]
fn before_commit(
    slice: &Slice,
    mut answers: Vec<Answer>,
    mut removed: Vec<(PayloadId, Vec<Extent>)>,
) -> (Vec<Answer>, Vec<(PayloadId, Vec<Extent>)>) {
    if slice.files.is_flawed(Flaw::AnswerBeforeCommit) {
        answer_all(std::mem::take(&mut answers), None);
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
