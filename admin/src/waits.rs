//! Limits the requests of an executor that wait for something to happen.

use std::cell::Cell;
use std::rc::Rc;

use crate::error::AdminError;
use crate::limits::EVENT_WAITS_MAX;

/// Counts the waiting requests of one executor.
#[derive(Clone, Default, Debug)]
pub struct Waits(Rc<Cell<usize>>);

/// One waiting request. It counts until it is dropped.
pub(crate) struct Waiting(Rc<Cell<usize>>);

impl Waits {
    /// Counts a waiting request.
    ///
    /// # Errors
    /// `TOO_MANY_REQUESTS` when as many as may wait do so.
    pub(crate) fn begin(&self) -> Result<Waiting, AdminError> {
        let count = self.0.get();
        if count >= EVENT_WAITS_MAX {
            return Err(AdminError::TooManyRequests("too many requests are waiting for events"));
        }
        self.0.set(count + 1);
        Ok(Waiting(Rc::clone(&self.0)))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_have_ended_make_room_for_others() {
        let waits = Waits::default();
        let mut waiting: Vec<_> = (0..EVENT_WAITS_MAX).map(|_| waits.begin().expect("room")).collect();
        assert!(waits.begin().is_err());
        drop(waiting.pop());
        assert!(waits.begin().is_ok());
    }
}
