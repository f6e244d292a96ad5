//! The committer: the only thread that changes the metadata of a slice.
//!
//! It takes all waiting commands as one batch (group commit). There is no timer, so an idle slice adds no latency and a busy
//! one makes larger batches. For each batch it
//! 1. flushes each volume that a payload of the batch was written to, and reads metadata ahead that is not in memory,
//! 2. decides and applies the commands in one LMDB transaction,
//! 3. commits the transaction durably, with the commit log or with LMDB's own flushes,
//! 4. frees extents and completes the commands.
//!
//! What fails, fails alone: a refused command (by a condition, or by the deletion of its bucket) does not affect the others; a
//! failed flush fails the payloads of that volume; a failed commit fails the whole batch. If the device is the cause, the slice
//! stops until it is recovered (`maintenance/recovery.rs`) or the store is opened again: it is unknown what the device holds.

use crate::commit::batch::Batch;
use crate::commit::read_ahead::ReadAhead;
use crate::device::disk_space::DiskSpace;
use crate::error::EngineError;
use crate::fault::Flaw;
use crate::limits::{
    METADATA_HEADROOM_FIRST, METADATA_HEADROOM_FOR_DELETES, METADATA_HEADROOM_LOW, METADATA_HEADROOM_MIN,
};
use crate::slice::Slice;
use crate::slice::command::Command;
use cairn_model::Clock;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

/// Runs until the queue is closed and empty. `sequence` is the last sequence assigned.
pub(crate) fn run(slice: &Arc<Slice>, disk: &DiskSpace, clock: &dyn Clock, mut sequence: u64) {
    let mut read_ahead = ReadAhead::default();
    loop {
        slice.faults.committer_is_idle(slice.number);
        let Some(commands) = slice.commits.queue.take() else { return };
        if let Some(reason) = slice.commits.stopped.get() {
            fail_all(commands, &EngineError::Io(reason));
            continue;
        }
        let commands = flush_payloads(slice, commands);
        let changes = commands.len();
        read_ahead.read(slice, &commands);
        sequence = commit(slice, disk, clock, sequence, commands);
        read_ahead.note(changes);
    }
}

/// Flushes each volume that a payload of the batch was written to. Fails the commands whose flush failed, and returns the
/// others.
fn flush_payloads(slice: &Slice, commands: Vec<Command>) -> Vec<Command> {
    let mut flushed = BTreeSet::new();
    let mut failed = BTreeSet::new();
    for payload in commands.iter().filter_map(Command::payload) {
        for number in payload.volumes() {
            if flushed.contains(&number) || failed.contains(&number) {
                continue;
            }
            let outcome = if flush_volume(slice, number) { &mut flushed } else { &mut failed };
            outcome.insert(number);
        }
    }
    // After the flushes: another one may have failed since a payload was written, even while these were made.
    let commands = refuse_doubtful_payloads(slice, commands);
    if failed.is_empty() {
        return commands;
    }
    let is_lost = |command: &Command| {
        command.payload().is_some_and(|payload| payload.volumes().any(|v| failed.contains(&v)))
    };
    let (lost, kept): (Vec<_>, Vec<_>) = commands.into_iter().partition(is_lost);
    fail_all(lost, &EngineError::Io("the volume could not be flushed".to_owned()));
    kept
}

/// Fails payloads in volumes that began before a flush of the device failed: also one of another file. A flush now would not
/// prove that their first writes are durable.
fn refuse_doubtful_payloads(slice: &Slice, commands: Vec<Command>) -> Vec<Command> {
    let failures = slice.failures.flushes.count();
    let is_doubtful = |command: &Command| {
        let payload = command.payload();
        payload
            .is_some_and(|payload| payload.flush_failures() != failures && payload.volumes().next().is_some())
    };
    let is_ignored = slice.faults.has(Flaw::IgnoreFailedFlush);
    if failures == 0 || is_ignored || !commands.iter().any(is_doubtful) {
        return commands;
    }
    let (lost, kept): (Vec<_>, Vec<_>) = commands.into_iter().partition(is_doubtful);
    fail_all(lost, &EngineError::Io("a flush failed while the payload was written".to_owned()));
    kept
}

/// Flushes a volume. Returns whether all writes to it are durable.
fn flush_volume(slice: &Slice, number: u32) -> bool {
    let begun = Instant::now();
    let flushed = slice.space.volume(number).map(|volume| volume.flush());
    slice.commits.counters.flushes.record_duration(begun.elapsed());
    match flushed {
        Some(Ok(())) => true,
        Some(Err(_)) => slice.faults.has(Flaw::IgnoreFailedFlush),
        None => false,
    }
}

/// Decides, applies and commits the commands. Returns the last sequence assigned.
///
/// A command with many parts fills its batch. The remaining commands make another batch.
fn commit(
    slice: &Arc<Slice>,
    disk: &DiskSpace,
    clock: &dyn Clock,
    mut sequence: u64,
    mut commands: Vec<Command>,
) -> u64 {
    while !commands.is_empty() {
        if let Some(reason) = slice.commits.stopped.get() {
            fail_all(commands, &EngineError::Io(reason));
            return sequence;
        }
        let kept = ensure_headroom(slice, disk, commands);
        if kept.is_empty() {
            return sequence;
        }
        let mut waiting = kept.into_iter();
        sequence = commit_batch(slice, clock, sequence, &mut waiting);
        commands = waiting.collect();
    }
    sequence
}

/// Ensures that the metadata file has enough space after its last page for the transaction.
///
/// Usually the maintainer has extended the file in advance. The committer does so only if the maintainer is late. On a full
/// disk the remaining space is kept for deletes, which need a little space too. Then other commands are failed before
/// anything of them is written. Returns the commands that can be committed.
fn ensure_headroom(slice: &Slice, disk: &DiskSpace, commands: Vec<Command>) -> Vec<Command> {
    let is_first = slice.space.note_use();
    let headroom = slice.environment.headroom();
    // The first change of a slice does not wait for the maintainer, which extends the file by much more.
    if headroom < METADATA_HEADROOM_LOW && !is_first {
        slice.space.wake_maintainer();
    }
    if headroom >= METADATA_HEADROOM_MIN {
        return commands;
    }
    let extended = if disk.is_low() {
        Err(EngineError::StorageFull)
    } else {
        let wanted = if is_first { METADATA_HEADROOM_FIRST } else { METADATA_HEADROOM_LOW };
        slice.environment.extend(wanted).map_err(EngineError::from)
    };
    let Err(error) = extended else { return commands };
    slice.stop_if_broken(&error);
    // Pages that were freed since the last checkpoint can be used again after the next one. A failure shows at the commit.
    let _ = slice.environment.checkpoint();
    let spared = slice.environment.headroom() >= METADATA_HEADROOM_FOR_DELETES;
    let is_kept =
        |command: &Command| spared && matches!(error, EngineError::StorageFull) && command.frees_space();
    let (kept, refused): (Vec<_>, Vec<_>) = commands.into_iter().partition(is_kept);
    fail_all(refused, &error);
    kept
}

/// Commits as many of the commands as fit into one batch, at least one. Returns the last sequence assigned.
fn commit_batch(
    slice: &Arc<Slice>,
    clock: &dyn Clock,
    sequence: u64,
    commands: &mut impl Iterator<Item = Command>,
) -> u64 {
    let begun = Instant::now();
    let mut batch = match Batch::begin(slice, clock, sequence) {
        Ok(batch) => batch,
        Err(error) => {
            slice.stop_if_broken(&error);
            fail_all(commands, &error);
            return sequence;
        }
    };
    let (mut broken, mut count) = (None, 0);
    while !batch.is_full()
        && let Some(command) = commands.next()
    {
        count += 1;
        if let Err(error) = batch.apply(command) {
            broken = Some(error);
            break;
        }
    }
    let last = batch.sequence();
    match broken {
        None => {
            // Recorded before the commit: when a command is complete, the metrics include it.
            slice.commits.counters.batches.record(count);
            batch.commit();
            slice.commits.counters.commits.record_duration(begun.elapsed());
        }
        Some(error) => {
            batch.abandon(&error);
            fail_all(commands, &error);
        }
    }
    last
}

fn fail_all(commands: impl IntoIterator<Item = Command>, error: &EngineError) {
    commands.into_iter().for_each(|command| command.fail(error));
}
