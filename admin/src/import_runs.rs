//! Registry of the runs that import versions.
//!
//! The beginning of a run is in the audit trail, and speaks for all of its requests. What has come in a run is counted in
//! memory, as are the latest signed reports.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cairn_api::{ImportFailure, ImportList, ImportOutcome, Proof};
use cairn_engine::Bucket;
use cairn_model::{Clock, SystemClock, Timestamp, time_id};
use cairn_sync::Mutex;

use crate::error::AdminError;
use crate::import_rate::RecentBytes;
use crate::limits::{IMPORT_REPORTS_MAX, IMPORT_RUNS_MAX, IMPORT_RUNS_SHOWN, IMPORT_TEXT_CHARACTERS_MAX};

time_id! {
    /// The id of a run.
    ImportId
}

/// A run of one bucket.
pub(crate) struct ImportRun {
    id: ImportId,
    /// The id of the bucket.
    bucket: u64,
    bucket_name: String,
    source: String,
    principal: String,
    begun_at: Timestamp,
    /// Whether storage events are written.
    pub(crate) emits_events: bool,
    versions: AtomicU64,
    unchanged: AtomicU64,
    bytes: AtomicU64,
    failures: AtomicU64,
    /// Milliseconds since the Unix epoch; 0 before the first request.
    last_at: AtomicU64,
    /// Milliseconds since the Unix epoch; 0 if it is not paused. The importer asks for it, and stops sending.
    paused_at: AtomicU64,
    last_failure: Mutex<Option<ImportFailure>>,
    recent: Arc<RecentBytes>,
}

impl ImportRun {
    fn seen(&self) {
        self.last_at.store(SystemClock.now().0, Ordering::Relaxed);
    }

    /// Counts bytes that were written.
    pub(crate) fn add_bytes(&self, bytes: u64) {
        self.seen();
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.recent.add(SystemClock.now(), bytes);
    }

    /// Counts a version of a key with the bytes that were written for it, or notes why it was refused.
    pub(crate) fn count(&self, key: &str, ended: &Result<(ImportOutcome, u64), AdminError>) {
        match ended {
            Ok((outcome, bytes)) => {
                let is_new = matches!(outcome, ImportOutcome::Created | ImportOutcome::Replaced);
                let count = if is_new { &self.versions } else { &self.unchanged };
                count.fetch_add(1, Ordering::Relaxed);
                self.add_bytes(*bytes);
            }
            Err(error) => self.add_failure(key, error),
        }
    }

    /// Notes a request that was refused.
    pub(crate) fn add_failure(&self, key: &str, error: &AdminError) {
        self.seen();
        self.failures.fetch_add(1, Ordering::Relaxed);
        let short = |text: &str| text.chars().take(IMPORT_TEXT_CHARACTERS_MAX).collect();
        let failure = ImportFailure {
            time: SystemClock.now().into(),
            key: short(key),
            code: error.code().to_owned(),
            message: short(&error.message()),
        };
        *self.last_failure.lock() = Some(failure);
    }

    /// Pauses the run, or ends its pause. Returns whether that changes anything.
    pub(crate) fn set_paused(&self, is_paused: bool) -> bool {
        let time = if is_paused { SystemClock.now().0 } else { 0 };
        let changed = |before: u64| ((before > 0) != is_paused).then_some(time);
        self.paused_at.fetch_update(Ordering::Relaxed, Ordering::Relaxed, changed).is_ok()
    }

    /// Describes the run for the audit trail.
    pub(crate) fn described(&self) -> String {
        format!("into {} from {}", self.bucket_name, self.source)
    }

    /// Returns the JSON form.
    pub(crate) fn body(&self) -> cairn_api::ImportRun {
        let time = |at: &AtomicU64| Some(at.load(Ordering::Relaxed)).filter(|time| *time > 0);
        cairn_api::ImportRun {
            import_id: self.id.to_string().into(),
            bucket: self.bucket_name.clone(),
            source: self.source.clone(),
            principal: self.principal.clone(),
            begun_at: self.begun_at.into(),
            last_at: time(&self.last_at).map(|time| Timestamp(time).into()),
            paused_at: time(&self.paused_at).map(|time| Timestamp(time).into()),
            versions: self.versions.load(Ordering::Relaxed),
            unchanged: self.unchanged.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            failures: self.failures.load(Ordering::Relaxed),
            last_failure: self.last_failure.lock().clone(),
        }
    }
}

#[derive(Default)]
struct Known {
    runs: VecDeque<Arc<ImportRun>>,
    reports: VecDeque<Proof>,
}

/// The latest runs and reports, oldest first. Shared by all executors.
#[derive(Clone)]
pub struct ImportRuns {
    known: Arc<Mutex<Known>>,
    recent: Arc<RecentBytes>,
    since: Timestamp,
}

impl Default for ImportRuns {
    fn default() -> Self {
        Self { known: Arc::default(), recent: Arc::default(), since: SystemClock.now() }
    }
}

impl ImportRuns {
    /// Begins a run. If there are too many, the oldest one is forgotten.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` without random numbers.
    pub(crate) fn begin(
        &self,
        bucket: &Bucket,
        (source, principal): (String, String),
        emits_events: bool,
        is_paused: bool,
    ) -> Result<ImportId, AdminError> {
        let begun_at = SystemClock.now();
        let id = ImportId(time_id::random(begun_at).map_err(|_| AdminError::Internal)?);
        let run = ImportRun {
            id,
            bucket: bucket.id(),
            bucket_name: bucket.name.to_string(),
            source,
            principal,
            begun_at,
            emits_events,
            versions: AtomicU64::default(),
            unchanged: AtomicU64::default(),
            bytes: AtomicU64::default(),
            failures: AtomicU64::default(),
            last_at: AtomicU64::default(),
            paused_at: AtomicU64::new(if is_paused { begun_at.0 } else { 0 }),
            last_failure: Mutex::default(),
            recent: Arc::clone(&self.recent),
        };
        let runs = &mut self.known.lock().runs;
        if runs.len() >= IMPORT_RUNS_MAX {
            runs.pop_front();
        }
        runs.push_back(Arc::new(run));
        Ok(id)
    }

    /// Returns the run of a bucket with this id.
    ///
    /// # Errors
    /// `IMPORT_NOT_FOUND`.
    pub(crate) fn get(&self, bucket: &Bucket, id: &str) -> Result<Arc<ImportRun>, AdminError> {
        let found = self.with_id(id)?;
        if found.bucket == bucket.id() { Ok(found) } else { Err(AdminError::ImportNotFound) }
    }

    /// Returns the run with this id.
    ///
    /// # Errors
    /// `IMPORT_NOT_FOUND`.
    pub(crate) fn with_id(&self, id: &str) -> Result<Arc<ImportRun>, AdminError> {
        let id = ImportId::parse(id).ok_or(AdminError::ImportNotFound)?;
        // Most requests belong to a run that began lately.
        let known = self.known.lock();
        known.runs.iter().rev().find(|run| run.id == id).cloned().ok_or(AdminError::ImportNotFound)
    }

    /// Keeps a signed report. If there are too many, the oldest one is forgotten.
    pub(crate) fn keep_report(&self, report: Proof) {
        let reports = &mut self.known.lock().reports;
        if reports.len() >= IMPORT_REPORTS_MAX {
            reports.pop_front();
        }
        reports.push_back(report);
    }

    /// Returns the latest runs and reports.
    pub(crate) fn list(&self) -> ImportList {
        let known = self.known.lock();
        ImportList {
            imports: known.runs.iter().rev().take(IMPORT_RUNS_SHOWN).map(|run| run.body()).collect(),
            reports: known.reports.iter().rev().cloned().collect(),
            rate: self.recent.body(SystemClock.now()),
            since: self.since.into(),
        }
    }
}
