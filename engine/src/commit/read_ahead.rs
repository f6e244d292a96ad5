//! Read-ahead of metadata: reads the records of a batch into memory before its transaction.
//!
//! LMDB reads a page that is not in memory by a page fault, and a transaction meets its faults one after the other. While the
//! metadata does not fit into memory, each change of a random key thus waits for the device. So when the committer has had such
//! faults lately, threads look the keys of a batch up first, as many at once as there are threads. They change nothing, and
//! what they find is not used: the transaction finds its pages in memory.
//!
//! While all pages are in memory, a batch costs one system call more, and there are no threads.

use crate::format::keys;
use crate::slice::Slice;
use crate::slice::command::Command;
use cairn_sync::{Condvar, Mutex};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;

/// Lookups at the same time. Devices serve about as many reads in parallel without much delay.
const THREADS: usize = 16;
/// Fewest changes that are looked up ahead. For fewer, waking the threads takes as long as it saves.
const CHANGES_MIN: usize = 4;
/// Faults in 1024 changes from which lookups ahead begin.
const FAULTS_BEGIN: u64 = 64;
/// Batches over which the rate of faults is averaged.
const AVERAGED_BATCHES: u64 = 8;

/// Decides when the keys of a batch are looked up ahead, and has the threads that do it.
#[derive(Default)]
pub(super) struct ReadAhead {
    /// Faults in 1024 changes, averaged over the last batches.
    rate: u64,
    /// Faults of all threads until the last batch.
    faults: u64,
    /// Started when they are first needed.
    threads: Option<Threads>,
}

impl ReadAhead {
    /// Looks the keys of the commands up, if lookups of the last batches had to wait for the device. Blocks until their pages
    /// are in memory.
    pub(super) fn read(&mut self, slice: &Arc<Slice>, commands: &[Command]) {
        if self.rate < FAULTS_BEGIN || commands.len() < CHANGES_MIN {
            return;
        }
        let keys: Vec<_> = commands.iter().filter_map(key_of).collect();
        if keys.len() < CHANGES_MIN {
            return;
        }
        let start = || {
            let own = Arc::clone(slice);
            Threads::start(slice.number, move |key| read_record(&own, key))
        };
        self.threads.get_or_insert_with(start).look_up(keys);
    }

    /// Notes that a batch of `changes` was committed.
    pub(super) fn note(&mut self, changes: usize) {
        let faults = faults_of_this_thread() + self.threads.as_ref().map_or(0, Threads::faults);
        let earlier = std::mem::replace(&mut self.faults, faults);
        self.average(faults - earlier, changes);
    }

    fn average(&mut self, faults: u64, changes: usize) {
        let now = (faults * 1024).checked_div(changes as u64).unwrap_or(0).min(1024);
        self.rate = (self.rate * (AVERAGED_BATCHES - 1) + now) / AVERAGED_BATCHES;
    }
}

/// Returns the encoded prefix of the versions that a command reads first.
fn key_of(command: &Command) -> Option<Vec<u8>> {
    let (bucket, key) = match command {
        Command::Put(put, _) => (&put.bucket, &put.key),
        Command::Delete(delete, _) => (&delete.bucket, &delete.key),
        Command::ChangeVersion(change, _) => (&change.bucket, &change.key),
        Command::Import(import, _) => (&import.bucket, &import.key),
        Command::CompleteUpload(complete, _) => (&complete.bucket, &complete.key),
        _ => return None,
    };
    keys::versions_of(bucket.id, key.as_bytes())
}

/// Returns how often the calling thread had to wait for a page that was not in memory.
fn faults_of_this_thread() -> u64 {
    #[expect(unsafe_code, reason = "there is no safe way to count the faults of a thread")]
    // SAFETY: an all-zero rusage is a valid value, and the kernel writes to it only during the call.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
        usage
    };
    u64::try_from(usage.ru_majflt).unwrap_or(0)
}

/// Threads that look keys up. Dropping them ends them.
struct Threads {
    shared: Arc<Shared>,
    handles: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Notified when there are keys, and at the end.
    begun: Condvar,
    /// Notified when the last key was looked up.
    ended: Condvar,
}

#[derive(Default)]
struct State {
    /// Keys that nobody looks up yet.
    keys: Vec<Vec<u8>>,
    /// Keys that are being looked up.
    busy: usize,
    /// Faults of all threads.
    faults: u64,
    must_end: bool,
}

impl Threads {
    /// Starts the threads of a slice, fewer if the system refuses some.
    fn start(slice: u16, look_up: impl Fn(&[u8]) + Clone + Send + 'static) -> Self {
        let shared = Arc::<Shared>::default();
        let spawn = |_| {
            let (shared, look_up) = (Arc::clone(&shared), look_up.clone());
            let thread = std::thread::Builder::new().name(format!("read-ahead-{slice:02}"));
            thread.spawn(move || shared.run(look_up)).ok()
        };
        let handles = (0..THREADS).map_while(spawn).collect();
        Self { shared, handles }
    }

    /// Looks the keys up, and waits until all are. Without a thread, the transaction reads its pages itself.
    fn look_up(&self, keys: Vec<Vec<u8>>) {
        if self.handles.is_empty() {
            return;
        }
        let mut state = self.shared.state.lock();
        state.keys = keys;
        self.shared.begun.notify_all();
        while !state.keys.is_empty() || state.busy > 0 {
            state = self.shared.ended.wait(state);
        }
    }

    fn faults(&self) -> u64 {
        self.shared.state.lock().faults
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.shared.state.lock().must_end = true;
        self.shared.begun.notify_all();
        for handle in self.handles.drain(..) {
            // It has caught its panics.
            let _ = handle.join();
        }
    }
}

impl Shared {
    /// Looks keys up until the end.
    fn run(&self, look_up: impl Fn(&[u8])) {
        let mut known = faults_of_this_thread();
        let mut state = self.state.lock();
        while !state.must_end {
            let Some(key) = state.keys.pop() else {
                state = self.begun.wait(state);
                continue;
            };
            state.busy += 1;
            drop(state);
            // After a panic, the committer would wait for this key forever. The transaction meets the same record.
            let _ = catch_unwind(AssertUnwindSafe(|| look_up(&key)));
            let faults = faults_of_this_thread();
            state = self.state.lock();
            state.faults += faults - known;
            known = faults;
            state.busy -= 1;
            if state.keys.is_empty() && state.busy == 0 {
                self.ended.notify_one();
            }
        }
    }
}

/// Reads the newest version of a key, with its checksum, so that all pages of its record are in memory.
fn read_record(slice: &Slice, key: &[u8]) {
    let Ok(txn) = slice.environment.read() else { return };
    // The transaction meets the same error, and reports it.
    let _ = txn.first_at_or_after(slice.tables.objects, key);
}

#[cfg(test)]
mod tests {
    use super::{CHANGES_MIN, FAULTS_BEGIN, ReadAhead, Threads};
    use cairn_sync::Mutex;
    use std::collections::BTreeSet;
    use std::sync::Arc;

    #[test]
    fn lookups_begin_with_faults_and_end_without() {
        let mut read_ahead = ReadAhead::default();
        read_ahead.average(0, 100);
        assert!(read_ahead.rate < FAULTS_BEGIN);
        read_ahead.average(90, 100);
        assert!(read_ahead.rate >= FAULTS_BEGIN, "{}", read_ahead.rate);
        for _ in 0..100 {
            read_ahead.average(0, 100);
        }
        assert_eq!(read_ahead.rate, 0);
        // A batch of which every change was refused before the transaction.
        read_ahead.average(1, 0);
        assert_eq!(read_ahead.rate, 0);
    }

    #[test]
    fn every_key_was_looked_up_when_the_wait_ends_and_panics_do_not_stop_it() {
        let seen = Arc::<Mutex<BTreeSet<Vec<u8>>>>::default();
        let noted = Arc::clone(&seen);
        let threads = Threads::start(0, move |key| {
            noted.lock().insert(key.to_vec());
            assert!(key != [3], "a planted panic");
        });
        for round in 1..=50u8 {
            let keys: Vec<_> =
                (0..round.max(u8::try_from(CHANGES_MIN).expect("small"))).map(|key| vec![key]).collect();
            seen.lock().clear();
            threads.look_up(keys.clone());
            assert_eq!(*seen.lock(), keys.into_iter().collect());
        }
        assert_eq!(Arc::strong_count(&threads.shared), 1 + super::THREADS);
        let shared = Arc::downgrade(&threads.shared);
        drop(threads);
        assert!(shared.upgrade().is_none(), "the threads have ended");
    }
}
