//! Sends several requests at a time, and counts those that were refused.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use cairn_sync::Mutex;
use serde_json::json;

use crate::client::Client;
use crate::failure::{Failure, Outcome};
use crate::output::print_error;
use crate::output::table::labelled;
use crate::quantity::{bytes_text, were};
use crate::terminal::plain;

/// Number of requests at a time. The server commits concurrent changes together.
const WORKERS: usize = 8;
/// Maximum number of refusals that are shown.
const SHOWN_MAX: u64 = 20;

/// The requests of a command that handles many objects: how many were answered, and how many refused.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) done: u64,
    pub(super) refused: u64,
}

impl Batch {
    /// Runs `work` for all items. A refusal is shown under the item's name and counted. A server that does not respond ends
    /// the command.
    pub(super) fn run<T: Sync>(
        &mut self,
        items: &[T],
        name: impl Fn(&T) -> String,
        work: impl Fn(&T) -> Outcome + Sync,
    ) -> Outcome {
        let (next, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
        let failed = Mutex::new(Vec::new());
        let worker = || {
            while !is_over.load(Ordering::Relaxed) {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(item) = items.get(index) else { break };
                if let Err(failure) = work(item) {
                    is_over.fetch_or(!matches!(failure, Failure::Failed(_)), Ordering::Relaxed);
                    failed.lock().push((index, failure));
                }
            }
        };
        thread::scope(|scope| {
            for _ in 1..WORKERS.min(items.len()) {
                scope.spawn(worker);
            }
            worker();
        });
        let mut failed = failed.into_inner();
        failed.sort_by_key(|(index, _)| *index);
        let is_fatal = |(_, failure): &(usize, Failure)| !matches!(failure, Failure::Failed(_));
        if let Some(fatal) = failed.iter().position(is_fatal) {
            return Err(failed.swap_remove(fatal).1);
        }
        self.done += (items.len() - failed.len()) as u64;
        for (index, failure) in failed {
            self.refuse(&name(&items[index]), &failure);
        }
        Ok(())
    }

    /// Counts and shows an item that was refused.
    pub(super) fn refuse(&mut self, name: &str, failure: &Failure) {
        self.refused += 1;
        if self.refused <= SHOWN_MAX {
            print_error(&format!("cairn: {}: {}\n", plain(name), failure.message()));
        }
    }

    /// Prints how many items were handled, which `done` says, how many bytes they have if that is known, and how many were
    /// refused.
    pub(super) fn print(&self, client: &Client, done: &str, bytes: Option<u64>) -> Outcome {
        let mut body = json!({done: self.done, "refused": self.refused});
        let mut rows = vec![(done.to_owned(), self.done.to_string())];
        if let Some(bytes) = bytes {
            body["bytes"] = bytes.into();
            rows.push(("size".to_owned(), bytes_text(bytes)));
        }
        rows.push(("refused".to_owned(), self.refused.to_string()));
        client.print(&body, || labelled(&rows))
    }

    /// Fails if anything was refused. `noun` names one item, and `done` what was not done with it.
    pub(super) fn result(&self, noun: &str, done: &str) -> Outcome {
        match self.refused {
            0 => Ok(()),
            refused => Err(format!("{} not {done}", were(refused, noun)).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_items_are_handled_and_refusals_counted() {
        let items: Vec<u32> = (0..100).collect();
        let seen = Mutex::new(Vec::new());
        let mut batch = Batch::default();
        let work = |item: &u32| {
            seen.lock().push(*item);
            if item.is_multiple_of(10) { Err("refused".into()) } else { Ok(()) }
        };
        assert_eq!(batch.run(&items, u32::to_string, work), Ok(()));
        assert_eq!((batch.done, batch.refused), (90, 10));
        let mut seen = seen.lock().clone();
        seen.sort_unstable();
        assert_eq!(seen, items);
        assert_eq!(batch.result("item", "kept"), Err("10 items were not kept".into()));
        let gone = |_: &u32| Err(Failure::NoResponse("gone".to_owned()));
        assert_eq!(batch.run(&items, u32::to_string, gone), Err(Failure::NoResponse("gone".to_owned())));
        assert_eq!(batch.run(&[], u32::to_string, work), Ok(()));
    }
}
