//! Turns of the imports that bring many small versions, so that writes of clients wait for few of them.

use std::rc::Rc;

use glommio::sync::{Permit, Semaphore};

use crate::error::AdminError;

/// The turns of one executor: one part of a batch is committed at a time, and the others wait in the order in which they came.
/// Clones share them.
#[derive(Clone, Debug)]
pub struct ImportTurns(Rc<Semaphore>);

impl Default for ImportTurns {
    fn default() -> Self {
        Self(Rc::new(Semaphore::new(1)))
    }
}

impl ImportTurns {
    /// Waits for a turn, which lasts until it is dropped.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` if there are no turns any more; they end with the executor.
    pub(crate) async fn next(&self) -> Result<Permit<'_>, AdminError> {
        self.0.acquire_permit(1).await.map_err(|_| AdminError::Internal)
    }
}
