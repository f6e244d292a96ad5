//! One batch of commands, committed in one transaction.
//!
//! This file begins a batch, applies commands to it, and commits or abandons it. What the commands do is in `versions.rs`
//! (objects and versions), `version_changes.rs` (their metadata), `uploads.rs` and `imports.rs`. They use `lookup.rs` to read,
//! `records.rs` to change records and the free map, `quota.rs` to reserve quota, and `events.rs` to write events. `effects.rs`
//! is what follows the commit.
//!
//! Every command is decided before the transaction is touched: its conditions, the extents in the free map, and the
//! encoding of its record. So a refused command leaves the transaction unchanged. An error of [`Batch::apply`] is an error of
//! the transaction itself, and the whole batch is then abandoned.
//!
//! Refusals are reported after the commit too. They may depend on earlier changes of the same batch, which nobody may see
//! if the commit fails.

mod due_index;
mod effects;
mod events;
mod expire;
mod imports;
mod lookup;
mod quota;
mod records;
mod uploads;
mod version_changes;
mod versions;

use self::effects::{CommitEffects, complete_all};
use crate::error::EngineError;
use crate::fault::Flaw;
use crate::format::codec::SMALL_RECORD_VERSION;
use crate::format::extent::Extent;
use crate::format::free_map::FreeMapEdit;
use crate::format::keys;
use crate::format::payload_id::PayloadId;
use crate::format::usage_record::{self, USAGE_RECORD_VERSION};
use crate::limits::BATCH_PARTS_MAX;
use crate::slice::Slice;
use crate::slice::change_log::Change;
use crate::slice::command::{BucketContents, Command, FreeOrphans, Reply};
use crate::slice::due_states::DueStateMap;
use crate::slice::tables::SEQUENCE_KEY;
use crate::types::bucket::Usage;
use cairn_lmdb::WriteTxn;
use cairn_model::Clock;

/// The error of a command that was not applied.
enum Failure {
    /// Only this command is refused. The transaction is unchanged.
    Refused(EngineError),
    /// The transaction cannot continue.
    Broken(EngineError),
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        Self::Refused(error)
    }
}

/// A transaction that changes a slice, and what must happen in memory when it is committed.
pub(crate) struct Batch<'s> {
    slice: &'s Slice,
    clock: &'s dyn Clock,
    txn: WriteTxn<'s>,
    /// The last sequence assigned.
    sequence: u64,
    first_sequence: u64,
    free_map: FreeMapEdit,
    effects: CommitEffects,
    /// The changes of records, if someone follows the slice's change log.
    changes: Option<Vec<Change>>,
    /// The buckets that have a due index, with the changes of this batch.
    due_states: DueStateMap,
    due_states_changed: bool,
    /// Number of part records that were read or removed.
    parts_touched: usize,
    buffers: RecordBuffers,
}

/// Buffers for encoded records, which all commands of a batch use.
#[derive(Default)]
struct RecordBuffers {
    /// For the body of a version's record.
    version: Vec<u8>,
    /// For the body of an event's record.
    event: Vec<u8>,
}

impl<'s> Batch<'s> {
    /// Begins a transaction. `sequence` is the last sequence assigned in the slice.
    pub(crate) fn begin(slice: &'s Slice, clock: &'s dyn Clock, sequence: u64) -> Result<Self, EngineError> {
        let txn = slice.environment.write()?;
        Ok(Self {
            slice,
            clock,
            // Read under the writer lock: see [`crate::slice::change_log::ChangeLog::follow`].
            changes: slice.change_log.is_followed().then(Vec::new),
            txn,
            sequence,
            first_sequence: sequence,
            free_map: FreeMapEdit::default(),
            effects: CommitEffects::default(),
            due_states: slice.due_states.get(),
            due_states_changed: false,
            parts_touched: 0,
            buffers: RecordBuffers::default(),
        })
    }

    /// Returns the last sequence assigned.
    pub(crate) const fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Returns whether further commands should go to the next batch.
    pub(crate) const fn is_full(&self) -> bool {
        self.parts_touched >= BATCH_PARTS_MAX
    }

    /// Decides and applies one command.
    ///
    /// # Errors
    /// An error of the transaction. The batch must then be abandoned.
    pub(crate) fn apply(&mut self, command: Command) -> Result<(), EngineError> {
        match command {
            Command::Put(put, reply) => {
                let outcome = self.put(*put);
                self.complete(outcome, reply)
            }
            Command::Delete(delete, reply) => {
                let outcome = self.delete(&delete);
                self.complete(outcome, reply)
            }
            Command::ChangeVersion(change, reply) => {
                let outcome = self.change_version(*change);
                self.complete(outcome, reply)
            }
            Command::CreateUpload(create, reply) => {
                let outcome = self.create_upload(*create);
                self.complete(outcome, reply)
            }
            Command::PutPart(part, reply) => {
                let outcome = self.put_part(*part);
                self.complete(outcome, reply)
            }
            Command::CompleteUpload(complete, reply) => {
                let outcome = self.complete_upload(*complete);
                self.complete(outcome, reply)
            }
            Command::Import(import, reply) => {
                let outcome = self.import(*import);
                self.complete(outcome, reply)
            }
            Command::AbortUpload(abort, reply) => {
                let outcome = self.abort_upload(&abort);
                self.complete(outcome, reply)
            }
            Command::ProbeContents(bucket, reply) => {
                let outcome = self.contents(bucket).map_err(Failure::Broken);
                self.complete(outcome, reply)
            }
            Command::AbortFirstUpload(abort, reply) => {
                let outcome = self.abort_first_upload(&abort);
                self.complete(outcome, reply)
            }
            Command::IndexDue(step, reply) => {
                let outcome = self.step_due_index(&step);
                self.complete(outcome, reply)
            }
            Command::Expire(expire, reply) => {
                let outcome = self.expire(&expire);
                self.complete(outcome, reply)
            }
            Command::FreeOrphans(orphans, reply) => {
                let outcome = self.free_orphans(&orphans).map_err(Failure::Refused);
                self.complete(outcome, reply)
            }
            Command::RemoveEvents { before, max, reply } => {
                let outcome = self.remove_events(before, max);
                self.complete(outcome, reply)
            }
        }
    }

    /// Keeps the outcome of a command until the commit, or reports at once that the transaction is broken.
    fn complete<T: 'static>(
        &mut self,
        outcome: Result<T, Failure>,
        reply: Reply<T>,
    ) -> Result<(), EngineError> {
        // The receiver may be gone; the command takes effect all the same.
        let outcome = match outcome {
            Ok(outcome) => Ok(outcome),
            Err(Failure::Refused(refusal)) => Err(refusal),
            Err(Failure::Broken(error)) => {
                let _ = reply.send(Err(error.clone()));
                return Err(error);
            }
        };
        self.effects.completions.push(Box::new(move |failure| {
            let _ = reply.send(match failure {
                None => outcome,
                Some(error) => Err(error.clone()),
            });
        }));
        Ok(())
    }

    /// Returns what the slice holds of the bucket with this id.
    fn contents(&self, bucket: u64) -> Result<BucketContents, EngineError> {
        let prefix = keys::prefix_of(bucket, &[]);
        let has_record = |table| {
            let found = self.txn.first_key_at_or_after(table, &prefix)?;
            Ok::<_, EngineError>(found.is_some_and(|key| key.starts_with(&prefix)))
        };
        Ok(if has_record(self.slice.tables.objects)? {
            BucketContents::Versions
        } else if has_record(self.slice.tables.uploads)? {
            BucketContents::OnlyUploads
        } else {
            BucketContents::Nothing
        })
    }

    /// Removes the marks of those runs that no record owns.
    ///
    /// The command names the snapshot in which no record owned any of the runs. Since then a record can have come to own a
    /// run only by a change in the log or by a change of this batch. Runs that are no longer marked as a whole are skipped.
    fn free_orphans(&mut self, orphans: &FreeOrphans) -> Result<Vec<Extent>, EngineError> {
        let mut added = self.slice.change_log.added_after(orphans.snapshot)?;
        added.extend(self.changes.iter().flatten().flat_map(Change::added_extents).copied());
        added.sort_unstable_by_key(Extent::address);
        let mut freed = Vec::new();
        for run in &orphans.runs {
            let candidates = added.partition_point(|extent| extent.address() < run.end_address());
            let is_owned = added[..candidates].iter().any(|extent| extent.overlaps(run));
            if !is_owned && self.free_map.mark_free(&self.txn, self.slice.tables.free_map, &[*run]).is_ok() {
                freed.push(*run);
            }
        }
        self.effects.freed_orphans.extend(&freed);
        Ok(freed)
    }

    /// Commits the transaction. Only after that, frees extents and completes the commands. After a failure of the device the
    /// slice is stopped before the commands fail: whoever sees one fail finds the store not ready.
    pub(crate) fn commit(mut self) {
        if let Err(error) = self.write_totals() {
            return self.abandon(&error);
        }
        let Self { slice, txn, effects, changes, .. } = self;
        let due_states = self.due_states_changed.then_some(self.due_states);
        let number = txn.id();
        if let Some(changes) = changes {
            slice.change_log.append(number, changes);
        }
        let effects = before_commit(slice, effects);
        let committed = txn.commit().map_err(EngineError::from);
        slice.events.close_after(&committed);
        if let Err(error) = committed {
            slice.change_log.withdraw(number);
            // It is unknown whether the device holds the commit, so nobody else may use the extents before the store is opened
            // again. With a log, a transaction without space has no record, and its extents become free.
            let is_without_record = matches!(error, EngineError::StorageFull) && slice.environment.has_log();
            slice.stop_if_broken(&error);
            effects.cancel(&error, !is_without_record);
            return;
        }
        slice.faults.after_commit();
        if let Some(states) = due_states {
            slice.due_states.set(states);
        }
        effects.carry_out(slice);
    }

    /// Writes the sequence, the free map and the usage, once for each batch.
    fn write_totals(&mut self) -> Result<(), EngineError> {
        assert!(self.sequence >= self.first_sequence, "sequences only grow");
        if self.sequence != self.first_sequence {
            let sequence = self.sequence.to_le_bytes();
            self.txn.put(self.slice.tables.slice, SEQUENCE_KEY, SMALL_RECORD_VERSION, &sequence, &[])?;
        }
        std::mem::take(&mut self.free_map).write(&mut self.txn, self.slice.tables.free_map)?;
        for (bucket, (_, change)) in &self.effects.usage {
            let key = bucket.to_be_bytes();
            let mut usage = match self.txn.get(self.slice.tables.usage, &key)? {
                Some(record) => usage_record::decode(record)
                    .ok_or_else(|| EngineError::Corrupt("a usage record is invalid".to_owned()))?,
                None => Usage::default(),
            };
            usage.add(change);
            if usage == Usage::default() {
                self.txn.remove(self.slice.tables.usage, &key)?;
            } else {
                let body = usage_record::encode(&usage);
                self.txn.put(self.slice.tables.usage, &key, USAGE_RECORD_VERSION, &body, &[])?;
            }
        }
        Ok(())
    }

    /// Drops the transaction and fails every command in it. Dropping the reservations frees their extents. After a failure of
    /// the device the slice is stopped first.
    pub(crate) fn abandon(self, error: &EngineError) {
        self.slice.events.close();
        self.slice.stop_if_broken(error);
        self.effects.cancel(error, false);
    }
}

/// The id of a payload that does not exist, so that no reader has it pinned.
const UNPINNED_PAYLOAD: PayloadId = PayloadId([0; 16]);

/// Injects the faults that come before a commit. Without faults, returns `effects` unchanged.
fn before_commit(slice: &Slice, mut effects: CommitEffects) -> CommitEffects {
    if slice.faults.has(Flaw::AnswerBeforeCommit) {
        complete_all(std::mem::take(&mut effects.completions), None);
    }
    if slice.faults.has(Flaw::ReleaseBeforeCommit) {
        slice.space.allocator.free_removed(std::mem::take(&mut effects.removed));
    }
    if slice.faults.has(Flaw::ReleaseDespiteReaders) {
        effects.removed.iter_mut().for_each(|removed| removed.id = UNPINNED_PAYLOAD);
    }
    slice.faults.before_commit();
    effects
}
