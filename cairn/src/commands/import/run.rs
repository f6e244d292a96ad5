//! Imports one bucket: lists it, hands out its keys, writes the journal.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use cairn_api::ImportOutcome;
use cairn_sync::{Condvar, Mutex};

use super::buckets::{SourceBucket, failure};
use super::copy::{Copied, Copier, Problem};
use super::fitting::version_loss;
use super::groups::{Group, Groups, Settings};
use super::here::Here;
use super::journal::{Journal, ListReader, ListWriter, Record, State};
use super::permits::Permits;
use super::small::{VERSIONS_MAX, is_small};
use super::steps::{Step, gone, steps};
use super::tally::Tally;
use super::target::{Refused, Target};
use super::throttle::Throttle;
use crate::commands::remote::{Entry, Remote, Trouble};
use crate::failure::{Failure, Outcome};

/// Versions of a batch, whose keys are handled together. A batch ends with the last version of a key.
const BATCH_VERSIONS: usize = 500;
/// Batches that are not complete. Their versions are in memory.
const BATCHES_MAX: usize = 32;
/// Keys that wait for a worker.
const KEYS_WAITING_MAX: usize = 256;
/// The interval at which a wait looks whether the command ends.
const GLANCE: Duration = Duration::from_millis(100);

/// The state that all buckets of a run share.
pub(super) struct Run<'a> {
    pub(super) source: &'a Remote,
    pub(super) target: &'a Target<'a>,
    pub(super) journal: &'a Journal,
    pub(super) throttle: &'a Throttle,
    pub(super) workers: usize,
    /// Whether versions that are gone at the source are deleted.
    pub(super) deletes: bool,
    /// Whether tags and locks that are not listed are asked for.
    pub(super) looks: bool,
}

/// Keys that are handled together.
struct Batch {
    /// The lines of each key in the journal; `None` while it is handled.
    lines: Mutex<(Vec<Option<String>>, usize)>,
    changed: Condvar,
}

/// A key for a worker.
struct Job {
    batch: Arc<Batch>,
    place: usize,
    steps: Vec<Step>,
}

impl Job {
    /// Returns the version, if there is one and it can be copied with others.
    fn small(&self) -> Option<&Entry> {
        match &*self.steps {
            [Step::Copy(entry)] if is_small(entry) => Some(entry),
            _ => None,
        }
    }
}

impl Batch {
    fn new() -> Self {
        Self { lines: Mutex::new((Vec::new(), 0)), changed: Condvar::new() }
    }

    fn add(&self, done: Option<String>) -> usize {
        let mut lines = self.lines.lock();
        lines.1 += usize::from(done.is_none());
        lines.0.push(done);
        lines.0.len() - 1
    }

    fn finish(&self, place: usize, done: String) {
        let mut lines = self.lines.lock();
        lines.0[place] = Some(done);
        lines.1 -= 1;
        self.changed.notify_all();
    }

    fn is_complete(&self) -> bool {
        self.lines.lock().1 == 0
    }

    /// Waits until it is complete, or for a moment.
    fn wait(&self) {
        let lines = self.lines.lock();
        if lines.1 > 0 {
            drop(self.changed.wait_timeout(lines, GLANCE));
        }
    }
}

/// The failure that ends the run early, if there is one.
#[derive(Default)]
struct End(Mutex<Option<Failure>>);

impl End {
    fn set(&self, failure: Failure) {
        self.0.lock().get_or_insert(failure);
    }

    fn is_set(&self) -> bool {
        self.0.lock().is_some()
    }
}

impl Run<'_> {
    /// Imports a bucket that was created here at `born`. Counts go to `tally`.
    pub(super) fn bucket(&self, source: &SourceBucket, born: &str, tally: &Tally) -> Outcome {
        let bucket = source.name.as_str();
        let (mut last, mut list) = self.journal.begin(bucket, born)?;
        let bounds = self.journal.bounds(bucket, born)?;
        let is_ordered = self.with_workers(source, tally, |jobs, end| {
            thread::scope(|scope| {
                // What is in the journal is compared with the list, and the rest is asked for anyway.
                let settings = if last.is_empty() { Settings::WhileTagged } else { Settings::Always };
                let mut groups = Groups::begin(scope, self.source, source, settings, bounds);
                // What the journal does not know is asked for anyway.
                let mut here = (!last.is_empty()).then(|| Here::begin(scope, self.target, bucket));
                let mut writer = Writer::new(&mut list, jobs, (self.journal, bucket, tally), end);
                let done = self.list(source, &mut groups, (&mut last, here.as_mut()), &mut writer);
                // Also after a failure: what is done need not be done again.
                let written = writer.drain();
                done.and(written).map(|()| groups.is_ordered)
            })
        })?;
        self.journal.finish(bucket, list)?;
        if !self.deletes {
            return Ok(());
        }
        if !is_ordered {
            let why = "the source does not list keys in the order of their bytes, so that nothing can be said about deletions";
            return tally.fail(self.journal, (bucket, "", ""), why);
        }
        self.delete_gone(source, born, tally)
    }

    /// Runs `body` beside the workers.
    fn with_workers<T>(
        &self,
        bucket: &SourceBucket,
        tally: &Tally,
        body: impl FnOnce(SyncSender<Job>, &End) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let (jobs, waiting) = sync_channel::<Job>(KEYS_WAITING_MAX);
        let waiting = Mutex::new(waiting);
        let (end, permits) = (End::default(), Permits::new(self.workers));
        let copier = Copier {
            source: self.source,
            target: self.target,
            journal: Some(self.journal),
            throttle: self.throttle,
            permits: &permits,
            bucket: &bucket.name,
            has_locks: bucket.has_object_lock,
        };
        let done = thread::scope(|scope| {
            for _ in 0..self.workers {
                scope.spawn(|| self.work(&copier, &waiting, tally, &end));
            }
            body(jobs, &end)
        });
        match end.0.into_inner() {
            Some(failure) => Err(failure),
            None => done,
        }
    }

    /// Lists the bucket and hands out keys.
    fn list(
        &self,
        bucket: &SourceBucket,
        groups: &mut Groups,
        (last, mut here): (&mut ListReader, Option<&mut Here>),
        writer: &mut Writer<'_>,
    ) -> Outcome {
        let (tally, end) = (writer.tally, writer.end);
        loop {
            if end.is_set() {
                return Ok(());
            }
            if self.source.is_stopped() {
                return Err(failure(&Trouble::Stopped));
            }
            let group = groups.next_group().map_err(|trouble| failure(&trouble))?;
            let Some(mut group) = group else { break };
            bucket.address(&mut group.entries);
            while let Some(record) = last.next_of(&group.key, true)? {
                writer.hand(vec![gone(record)])?;
            }
            let mut known = Vec::new();
            while let Some(record) = last.next_of(&group.key, false)? {
                known.push(record);
            }
            tally.listed.fetch_add(group.entries.len() as u64, Ordering::Relaxed);
            let group = self.fitting(&bucket.name, group, tally)?;
            // What is here is in the order of the bytes of keys.
            let found = match here.as_mut().filter(|_| groups.is_ordered && !known.is_empty()) {
                Some(here) => Some(here.of(&group.key)?),
                None => None,
            };
            writer.hand(steps(group, known, found.as_deref(), self.looks))?;
        }
        while let Some(record) =
            last.next().map_err(|error| format!("the journal cannot be read: {error}"))?
        {
            writer.hand(vec![gone(record)])?;
        }
        Ok(())
    }

    /// Leaves versions out that cannot be here, as failures.
    fn fitting(&self, bucket: &str, mut group: Group, tally: &Tally) -> Result<Group, Failure> {
        for place in (0..group.entries.len()).rev() {
            if let Some(loss) = version_loss(bucket, &group.entries[place]) {
                let entry = group.entries.remove(place);
                tally.fail(self.journal, (bucket, &entry.key, entry.id()), &loss.reason)?;
            }
        }
        Ok(group)
    }

    /// Handles keys until there are none left.
    fn work(&self, copier: &Copier<'_>, waiting: &Mutex<Receiver<Job>>, tally: &Tally, end: &End) {
        loop {
            let jobs = take_jobs(waiting);
            if jobs.is_empty() {
                return;
            }
            if end.is_set() {
                continue;
            }
            let Some(_permit) = copier.permits.take(|| end.is_set()) else { continue };
            self.target.watch.wait(self.source);
            if let Err(failure) = self.handle(copier, jobs, tally) {
                end.set(failure);
            }
        }
    }

    /// Handles some keys. Those with one small version are copied together.
    fn handle(&self, copier: &Copier<'_>, jobs: Vec<Job>, tally: &Tally) -> Outcome {
        let small: Vec<_> = jobs.iter().filter_map(Job::small).collect();
        let copied = if small.len() > 1 { copier.copy_together(&small)? } else { Vec::new() };
        let mut copied = copied.into_iter();
        for job in jobs {
            let copied = if job.small().is_some() { copied.next().flatten() } else { None };
            let mut lines = String::new();
            match copied {
                Some(copied) => self.note_copied(copier.bucket, copied, &mut lines, tally)?,
                None => {
                    for step in job.steps {
                        self.target.watch.wait(self.source);
                        self.step(copier, step, &mut lines, tally)?;
                    }
                }
            }
            job.batch.finish(job.place, lines);
        }
        Ok(())
    }

    /// Makes one step. Adds the line of the journal, unless the version was not imported.
    fn step(&self, copier: &Copier<'_>, step: Step, lines: &mut String, tally: &Tally) -> Outcome {
        let (key, version) = match &step {
            Step::Note(record) | Step::Delete(record) => (record.key.clone(), Some(record.id.clone())),
            Step::Copy(entry) | Step::Change(entry, ..) | Step::Look(entry, _) => {
                (entry.key.clone(), entry.version_id.clone())
            }
        };
        let id = version.clone().unwrap_or_else(|| "null".to_owned());
        let made = match self.made(copier, step, lines, tally) {
            Err(Problem::Gone) if key.contains(char::REPLACEMENT_CHARACTER) => {
                Err(Problem::Version("the source does not list this key as it is".to_owned()))
            }
            // An answer of 404 is not believed as long as the source lists the version.
            Err(Problem::Gone) => match self.source.lists(copier.bucket, &key, version.as_deref()) {
                Ok(true) => Err(Problem::Version(
                    "the source lists it, but answers that it does not exist".to_owned(),
                )),
                Ok(false) => Err(Problem::Gone),
                Err(trouble) => Err(trouble.into()),
            },
            made => made,
        };
        match made {
            Ok(()) => Ok(()),
            Err(Problem::Gone) => {
                tally.vanished.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
            Err(Problem::OtherTag(_)) => unreachable!("the copier tries again with this tag"),
            Err(Problem::Version(reason)) => tally.fail(self.journal, (copier.bucket, &key, &id), &reason),
            Err(Problem::Command(failure)) => Err(failure),
        }
    }

    fn made(
        &self,
        copier: &Copier<'_>,
        step: Step,
        lines: &mut String,
        tally: &Tally,
    ) -> Result<(), Problem> {
        match step {
            Step::Note(record) => {
                *lines += &record.to_string();
                tally.note(self.journal, copier.bucket, &record).map_err(Problem::Command)?;
            }
            Step::Copy(entry) => {
                let copied = copier.copy(&entry)?;
                self.note_copied(copier.bucket, copied, lines, tally).map_err(Problem::Command)?;
            }
            Step::Change(entry, settings, record) => {
                // The old record stays if this fails, so that the next run tries again.
                let changed = self.target.change(copier.bucket, &entry, &settings);
                if let Err(Refused::Version { code, .. }) = &changed
                    && let Some(state) = state_of_refused(code)
                {
                    return self.made(copier, Step::Note(Record { state, ..record }), lines, tally);
                }
                let settings = if changed.is_ok() { settings.fingerprint() } else { record.settings.clone() };
                *lines += &Record { settings, ..record }.to_string();
                tally.count(changed?);
            }
            Step::Look(entry, record) => {
                let looked = copier.current_settings(&entry);
                match looked {
                    Ok(settings) if settings.fingerprint() != record.settings => {
                        return self.made(copier, Step::Change(entry, settings, record), lines, tally);
                    }
                    looked => {
                        *lines += &Record { state: State::Imported, ..record }.to_string();
                        looked?;
                        tally.count(ImportOutcome::Unchanged);
                    }
                }
            }
            // The list may have been wrong.
            Step::Delete(record) if self.source.lists(copier.bucket, &record.key, Some(&record.id))? => {
                *lines += &Record { state: State::Imported, ..record }.to_string();
            }
            Step::Delete(record) => match self.delete(copier.bucket, &record) {
                Ok(true) => {
                    tally.deleted.fetch_add(1, Ordering::Relaxed);
                }
                Ok(false) => {}
                Err(problem) => {
                    *lines += &record.to_string();
                    return Err(problem);
                }
            },
        }
        Ok(())
    }

    /// Counts a version that was copied, and adds its line of the journal.
    fn note_copied(&self, bucket: &str, copied: Copied, lines: &mut String, tally: &Tally) -> Outcome {
        *lines += &copied.record.to_string();
        if copied.record.state == State::Kept {
            return tally.note(self.journal, bucket, &copied.record);
        }
        tally.count(copied.outcome);
        tally.opaque_etags.fetch_add(u64::from(copied.is_opaque), Ordering::Relaxed);
        tally.lacking_checksums.fetch_add(u64::from(copied.lacks_checksum), Ordering::Relaxed);
        Ok(())
    }

    /// Deletes a version here, unless a client has written another one in its place. Returns whether it was deleted.
    fn delete(&self, bucket: &str, record: &Record) -> Result<bool, Problem> {
        let here = self.target.version(bucket, &record.key, &record.id)?;
        let Some(here) = here.filter(|here| here.imported) else { return Ok(false) };
        let modified = cairn_http1::parse_rfc3339_millis(&here.last_modified).unwrap_or_default();
        let etag = here.etag.as_deref().unwrap_or_default();
        if super::journal::version_fingerprint(etag, here.size, modified) != record.version {
            return Ok(false);
        }
        Ok(self.target.delete(bucket, &record.key, &record.id)?)
    }

    /// Deletes what the journal says is gone at the source.
    fn delete_gone(&self, source: &SourceBucket, born: &str, tally: &Tally) -> Outcome {
        let bucket = source.name.as_str();
        let (mut last, mut list) = self.journal.begin(bucket, born)?;
        self.with_workers(source, tally, |jobs, end| {
            let places = (self.journal, bucket, tally);
            let mut writer = Writer { counts: false, ..Writer::new(&mut list, jobs, places, end) };
            let mut each = || -> Outcome {
                while let Some(record) =
                    last.next().map_err(|error| format!("the journal cannot be read: {error}"))?
                {
                    if self.source.is_stopped() {
                        return Err(failure(&Trouble::Stopped));
                    }
                    let is_gone = record.state == State::Gone;
                    writer.hand(vec![if is_gone { Step::Delete(record) } else { Step::Note(record) }])?;
                }
                Ok(())
            };
            let done = each();
            done.and(writer.drain())
        })?;
        self.journal.finish(bucket, list)
    }
}

/// Waits for a key. Takes further ones that wait, as long as they can be copied together. Returns none at the end.
fn take_jobs(waiting: &Mutex<Receiver<Job>>) -> Vec<Job> {
    let waiting = waiting.lock();
    let mut jobs: Vec<Job> = waiting.recv().into_iter().collect();
    while jobs.len() < VERSIONS_MAX && jobs.last().is_some_and(|job| job.small().is_some()) {
        let Ok(job) = waiting.try_recv() else { break };
        jobs.push(job);
    }
    jobs
}

/// Returns what a refused change of tags and lock says of the version; `None` if it is a failure.
fn state_of_refused(code: &str) -> Option<State> {
    match code {
        "IMPORT_CONFLICT" => Some(State::Kept),
        "OBJECT_NOT_FOUND" | "VERSION_NOT_FOUND" => Some(State::Deleted),
        _ => None,
    }
}

/// Gives keys to workers, and writes batches of them to the journal, in order.
struct Writer<'l> {
    list: &'l mut ListWriter,
    jobs: SyncSender<Job>,
    journal: &'l Journal,
    bucket: &'l str,
    tally: &'l Tally,
    end: &'l End,
    /// Batches that are not written, the oldest first.
    batches: VecDeque<Arc<Batch>>,
    /// The batch that is not full.
    open: Arc<Batch>,
    versions: usize,
    /// Whether versions that stay as they are count.
    counts: bool,
}

impl<'l> Writer<'l> {
    fn new(
        list: &'l mut ListWriter,
        jobs: SyncSender<Job>,
        (journal, bucket, tally): (&'l Journal, &'l str, &'l Tally),
        end: &'l End,
    ) -> Self {
        Self {
            list,
            jobs,
            journal,
            bucket,
            tally,
            end,
            batches: VecDeque::new(),
            open: Arc::new(Batch::new()),
            versions: 0,
            counts: true,
        }
    }

    /// Gives the steps of a key to the workers, unless there is nothing to do. Waits while too many batches are not complete.
    fn hand(&mut self, steps: Vec<Step>) -> Outcome {
        self.versions += steps.len();
        if steps.iter().all(|step| matches!(step, Step::Note(_))) {
            let mut lines = String::new();
            for step in steps {
                if let Step::Note(record) = step {
                    if self.counts {
                        self.tally.note(self.journal, self.bucket, &record)?;
                    }
                    lines += &record.to_string();
                }
            }
            self.open.add(Some(lines));
        } else {
            let place = self.open.add(None);
            let job = Job { batch: Arc::clone(&self.open), place, steps };
            if self.jobs.send(job).is_err() {
                self.end.set("the workers have ended".into());
            }
        }
        if self.versions >= BATCH_VERSIONS { self.push() } else { Ok(()) }
    }

    /// Ends the open batch.
    fn push(&mut self) -> Outcome {
        self.versions = 0;
        self.batches.push_back(std::mem::replace(&mut self.open, Arc::new(Batch::new())));
        loop {
            self.write_complete()?;
            match self.batches.front() {
                Some(first) if self.batches.len() >= BATCHES_MAX && !self.end.is_set() => first.wait(),
                _ => return Ok(()),
            }
        }
    }

    fn write_complete(&mut self) -> Outcome {
        while self.batches.front().is_some_and(|batch| batch.is_complete()) {
            let Some(batch) = self.batches.pop_front() else { break };
            for lines in batch.lines.lock().0.drain(..).flatten() {
                self.list.add(&lines)?;
            }
            self.list.flush()?;
        }
        Ok(())
    }

    /// Waits for all batches. If the run ends early, writes what is complete.
    fn drain(mut self) -> Outcome {
        self.batches.push_back(Arc::clone(&self.open));
        loop {
            self.write_complete()?;
            let Some(first) = self.batches.front() else { return Ok(()) };
            if self.end.is_set() {
                for lines in first.lines.lock().0.iter().map_while(Option::as_ref) {
                    self.list.add(lines)?;
                }
                return self.list.flush();
            }
            first.wait();
        }
    }
}
