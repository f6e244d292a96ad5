//! Limits the archives that are being written, on all executors together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::AdminError;
use crate::limits::ARCHIVES_MAX;

/// Counts the archives that are being written. Shared by all executors.
#[derive(Clone, Default, Debug)]
pub struct Archives(Arc<AtomicUsize>);

/// One archive. It counts until it is dropped.
pub(crate) struct ArchivePermit(Arc<AtomicUsize>);

impl Archives {
    /// Counts another archive.
    ///
    /// # Errors
    /// `TOO_MANY_REQUESTS` when [`ARCHIVES_MAX`] are being written.
    pub(crate) fn admit(&self) -> Result<ArchivePermit, AdminError> {
        let more = |count: usize| (count < ARCHIVES_MAX).then_some(count + 1);
        match self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(_) => Ok(ArchivePermit(Arc::clone(&self.0))),
            Err(_) => Err(AdminError::TooManyRequests(
                "the maximum number of archives is already being written".into(),
            )),
        }
    }
}

impl Drop for ArchivePermit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_that_have_ended_make_room_for_others() {
        let archives = Archives::default();
        let mut permits: Vec<_> = (0..ARCHIVES_MAX).map(|_| archives.admit().expect("room")).collect();
        assert!(archives.clone().admit().is_err());
        permits.pop();
        let again = archives.admit();
        assert!(again.is_ok() && archives.admit().is_err());
    }
}
