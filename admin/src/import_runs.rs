//! Registry of the runs that import versions.
//!
//! The beginning of a run is in the audit trail, and speaks for all of its requests.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cairn_engine::Bucket;
use cairn_model::{Clock, SystemClock, time_id};

use crate::error::AdminError;
use crate::limits::IMPORT_RUNS_MAX;

time_id! {
    /// The id of a run.
    ImportId
}

/// A run of one bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ImportRun {
    id: ImportId,
    /// The id of the bucket.
    bucket: u64,
    /// Whether storage events are written.
    pub(crate) emits_events: bool,
}

/// The latest runs, oldest first. Shared by all executors.
#[derive(Clone, Default)]
pub struct ImportRuns(Arc<Mutex<VecDeque<ImportRun>>>);

impl ImportRuns {
    fn lock(&self) -> MutexGuard<'_, VecDeque<ImportRun>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a run. If there are too many, the oldest one is forgotten.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` without random numbers.
    pub(crate) fn begin(&self, bucket: &Bucket, emits_events: bool) -> Result<ImportId, AdminError> {
        let id = ImportId(time_id::random(SystemClock.now()).map_err(|_| AdminError::Internal)?);
        let mut runs = self.lock();
        if runs.len() >= IMPORT_RUNS_MAX {
            runs.pop_front();
        }
        runs.push_back(ImportRun { id, bucket: bucket.id(), emits_events });
        Ok(id)
    }

    /// Returns the run of a bucket with this id.
    ///
    /// # Errors
    /// `IMPORT_NOT_FOUND`.
    pub(crate) fn get(&self, bucket: &Bucket, id: &str) -> Result<ImportRun, AdminError> {
        let id = ImportId::parse(id).ok_or(AdminError::ImportNotFound)?;
        // Most requests belong to a run that began lately.
        let found = self.lock().iter().rev().find(|run| run.id == id && run.bucket == bucket.id()).copied();
        found.ok_or(AdminError::ImportNotFound)
    }
}
