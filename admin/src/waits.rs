//! Limits the requests of an executor that wait for something.
//!
//! There is a limit for all callers together and one for each.

use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::rc::Rc;

use crate::error::AdminError;
use crate::limits::{EVENT_WAITS_MAX, EVENT_WAITS_OF_CALLER_MAX};

/// Counts the waiting requests of one executor. Clones share the counts.
#[derive(Clone, Default, Debug)]
pub struct Waits(Rc<RefCell<Counts>>);

/// Invariant: `total` is the sum of the counts in `of_callers`, which are not 0. So [`EVENT_WAITS_MAX`] bounds the table.
#[derive(Default, Debug)]
struct Counts {
    total: usize,
    of_callers: HashMap<String, usize>,
}

/// One waiting request. It counts until it is dropped.
pub(crate) struct Waiting {
    counts: Rc<RefCell<Counts>>,
    caller: String,
}

impl Waits {
    /// Counts a waiting request of a caller, named by its credential.
    ///
    /// # Errors
    /// `TOO_MANY_REQUESTS` when as many as may wait do so, of this caller or of all.
    pub(crate) fn begin(&self, caller: String) -> Result<Waiting, AdminError> {
        let mut counts = self.0.borrow_mut();
        if counts.total >= EVENT_WAITS_MAX {
            return Err(AdminError::TooManyRequests("too many requests are waiting for events".into()));
        }
        let of_caller = counts.of_callers.get(&caller).copied().unwrap_or(0);
        if of_caller >= EVENT_WAITS_OF_CALLER_MAX {
            return Err(AdminError::TooManyRequests(
                "too many requests of this caller are waiting for events".into(),
            ));
        }
        counts.of_callers.insert(caller.clone(), of_caller + 1);
        counts.total += 1;
        drop(counts);
        Ok(Waiting { counts: Rc::clone(&self.0), caller })
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut counts = self.counts.borrow_mut();
        counts.total -= 1;
        let Entry::Occupied(mut count) = counts.of_callers.entry(std::mem::take(&mut self.caller)) else {
            unreachable!("a caller with a waiting request is in the table");
        };
        *count.get_mut() -= 1;
        if *count.get() == 0 {
            count.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_have_ended_make_room_for_others() {
        let waits = Waits::default();
        let begin = |caller: usize| waits.begin(caller.to_string());
        let mut waiting: Vec<_> = (0..EVENT_WAITS_MAX).map(|number| begin(number).expect("room")).collect();
        assert!(begin(0).is_err() && begin(EVENT_WAITS_MAX).is_err());
        drop(waiting.pop());
        assert!(begin(0).is_ok());
        drop(waiting);
        let counts = waits.0.borrow();
        assert!(counts.total == 0 && counts.of_callers.is_empty());
    }

    #[test]
    fn a_caller_leaves_places_for_others() {
        let waits = Waits::default();
        let begin = |caller: &str| waits.begin(caller.to_owned());
        let waiting: Vec<_> = (0..EVENT_WAITS_OF_CALLER_MAX).map(|_| begin("one").expect("room")).collect();
        assert!(begin("one").is_err());
        let others: Vec<_> = (0..EVENT_WAITS_OF_CALLER_MAX).map(|_| begin("other")).collect();
        assert!(others.iter().all(Result::is_ok), "a quarter is left for each of three others");
        drop(waiting);
        assert!(begin("one").is_ok());
    }
}
