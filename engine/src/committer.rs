//! The committer: the one thread that changes a slice.
//!
//! It takes everything that waits as one batch: no timer, so no added latency when idle, and larger batches when busy.
//! A batch is: one flush of each volume that its payloads were written to, one LMDB transaction, LMDB's own flushes,
//! then the answers. A change that is refused (a condition, a bucket under deletion) never fails its neighbours; a
//! failure of the flush fails the payloads of that volume; a failure of the commit fails the whole batch, and when the
//! device is to blame it stops the slice: what the device holds is then unknown until the store is opened again.

use crate::batch::Batch;
use crate::error::EngineError;
use crate::keeper::DiskSpace;
use crate::limits::{METADATA_HEADROOM_FOR_DELETES, METADATA_HEADROOM_LOW, METADATA_HEADROOM_MIN};
use crate::queue::Job;
use crate::slice::Slice;
use cairn_model::Clock;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

/// Runs until the queue is closed and empty.
pub(crate) fn run(slice: &Arc<Slice>, disk: &DiskSpace, clock: &dyn Clock, mut sequence: u64) {
    loop {
        #[cfg(feature = "simulation")]
        slice.files.enter_stage(crate::simulation::stage::Actor::Committer(slice.number));
        let Some(jobs) = slice.queue.take() else { return };
        if let Some(reason) = slice.stopped.get() {
            for job in jobs {
                job.fail(&EngineError::Io(reason.clone()));
            }
            continue;
        }
        sequence = commit(slice, disk, clock, sequence, flush_payloads(slice, jobs));
    }
}

/// Sees to it that the transaction finds written space behind the metadata's last page. The keeper does so ahead of need;
/// only when it has fallen behind does the committer do it. On a full disk what is there is kept for deletes, which need a
/// little space too: puts are refused, and nothing was half-written.
fn keep_headroom(slice: &Slice, disk: &DiskSpace, jobs: Vec<Job>) -> Vec<Job> {
    let headroom = slice.environment.headroom();
    if headroom < METADATA_HEADROOM_LOW {
        slice.wake_keeper();
    }
    if headroom >= METADATA_HEADROOM_MIN {
        return jobs;
    }
    let extended = if disk.is_low() {
        Err(EngineError::StorageFull)
    } else {
        slice.environment.extend(METADATA_HEADROOM_LOW).map_err(EngineError::from)
    };
    let Err(error) = extended else { return jobs };
    slice.stop_if_broken(&error);
    let spared = slice.environment.headroom() >= METADATA_HEADROOM_FOR_DELETES;
    let goes_on = |job: &Job| spared && matches!(error, EngineError::StorageFull) && job.gives_back();
    let (kept, refused): (Vec<_>, Vec<_>) = jobs.into_iter().partition(goes_on);
    refused.into_iter().for_each(|job| job.fail(&error));
    kept
}

/// Flushes every volume that a payload of the batch was written to, and drops the changes whose flush failed.
fn flush_payloads(slice: &Slice, jobs: Vec<Job>) -> Vec<Job> {
    let mut failed = BTreeSet::new();
    let mut flushed = BTreeSet::new();
    for payload in jobs.iter().filter_map(Job::payload) {
        for number in payload.volumes() {
            if flushed.contains(&number) || failed.contains(&number) {
                continue;
            }
            let begun = Instant::now();
            let done = slice.volume(number).map(|volume| volume.flush());
            slice.figures.flushes.note_time(begun.elapsed());
            #[cfg(feature = "simulation")]
            let done = done.map(|flushed| slice.files.forgive_flush(flushed));
            if matches!(done, Some(Ok(()))) {
                flushed.insert(number)
            } else {
                failed.insert(number)
            };
        }
    }
    if failed.is_empty() {
        return jobs;
    }
    let error = EngineError::Io("the volume could not be flushed".to_owned());
    let broken =
        |job: &Job| job.payload().is_some_and(|payload| payload.volumes().any(|v| failed.contains(&v)));
    let (lost, kept): (Vec<_>, Vec<_>) = jobs.into_iter().partition(broken);
    lost.into_iter().for_each(|job| job.fail(&error));
    kept
}

/// Decides, applies and commits the changes; returns the last sequence used. A change of many parts ends its batch: what is
/// left makes another.
fn commit(
    slice: &Arc<Slice>,
    disk: &DiskSpace,
    clock: &dyn Clock,
    mut sequence: u64,
    mut jobs: Vec<Job>,
) -> u64 {
    while !jobs.is_empty() {
        if let Some(reason) = slice.stopped.get() {
            jobs.into_iter().for_each(|job| job.fail(&EngineError::Io(reason.clone())));
            return sequence;
        }
        let mut waiting = keep_headroom(slice, disk, jobs).into_iter();
        sequence = commit_batch(slice, clock, sequence, &mut waiting);
        jobs = waiting.collect();
    }
    sequence
}

/// Commits as many of the changes as fit one batch, at least one.
fn commit_batch(
    slice: &Arc<Slice>,
    clock: &dyn Clock,
    sequence: u64,
    jobs: &mut impl Iterator<Item = Job>,
) -> u64 {
    let begun = Instant::now();
    let mut batch = match Batch::begin(slice, clock, sequence) {
        Ok(batch) => batch,
        Err(error) => {
            slice.stop_if_broken(&error);
            jobs.for_each(|job| job.fail(&error));
            return sequence;
        }
    };
    let (mut broken, mut changes) = (None, 0);
    while !batch.is_full()
        && let Some(job) = jobs.next()
    {
        changes += 1;
        if let Err(error) = batch.apply(job) {
            broken = Some(error);
            break;
        }
    }
    let last = batch.sequence();
    let ended = match broken {
        None => {
            // Noted first: who has the answer of a change finds it counted.
            slice.figures.batches.note(changes);
            let ended = batch.commit();
            slice.figures.commits.note_time(begun.elapsed());
            ended
        }
        Some(error) => {
            batch.abandon(&error);
            jobs.for_each(|job| job.fail(&error));
            Err(error)
        }
    };
    if let Err(error) = ended {
        slice.stop_if_broken(&error);
    }
    last
}
