//! Tracks the age of open read transactions. Pages freed after a transaction began cannot be reused while it is open.

use crate::limits::TIMED_THREADS;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The start time of a thread's read transaction, in milliseconds since the first call of [`now`], plus one; 0: none is open.
#[derive(Debug, Default)]
#[repr(align(64))]
struct StartTime(AtomicU64);

/// The open read transactions of one environment. A thread has at most one.
#[derive(Debug)]
pub(crate) struct Readers(Box<[StartTime]>);

/// Marks a read transaction as open while it lives.
pub(crate) struct OpenRead<'r>(&'r StartTime);

impl Drop for OpenRead<'_> {
    fn drop(&mut self) {
        self.0.0.store(0, Ordering::Relaxed);
    }
}

fn now() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    let elapsed = START.get_or_init(Instant::now).elapsed();
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX - 1) + 1
}

/// Returns a number that is unique to this thread.
pub(crate) fn thread_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static NUMBER: usize = NEXT.fetch_add(1, Ordering::Relaxed));
    NUMBER.with(|number| *number)
}

impl Readers {
    pub(crate) fn new() -> Self {
        Self((0..TIMED_THREADS).map(|_| StartTime::default()).collect())
    }

    /// Marks a read transaction of this thread as open.
    pub(crate) fn begin(&self) -> OpenRead<'_> {
        let started = &self.0[thread_number() % TIMED_THREADS];
        started.0.store(now(), Ordering::Relaxed);
        OpenRead(started)
    }

    /// Returns the age of the oldest open read transaction.
    pub(crate) fn oldest(&self) -> Option<Duration> {
        let oldest = self
            .0
            .iter()
            .map(|started| started.0.load(Ordering::Relaxed))
            .filter(|started| *started > 0)
            .min()?;
        Some(Duration::from_millis(now().saturating_sub(oldest)))
    }
}

#[cfg(test)]
mod tests {
    use super::Readers;
    use std::sync::mpsc;
    use std::time::Duration;

    #[test]
    fn only_open_reads_count_for_the_oldest_age() {
        let readers = Readers::new();
        assert_eq!(readers.oldest(), None);
        let read = readers.begin();
        let (begun, wait) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let all = &readers;
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let other = all.begin();
                begun.send(()).expect("the test waits");
                ended.recv().expect("the test answers");
                drop(other);
            });
            wait.recv().expect("begun");
            drop(read);
            // However long the test takes, the other thread's read is not older than it.
            assert!(readers.oldest().is_some_and(|age| age < Duration::from_secs(600)));
            end.send(()).expect("the thread waits");
        });
        assert_eq!(readers.oldest(), None);
    }
}
