//! How long read transactions have been open: a transaction that stays open keeps every page freed since from being used.

use crate::limits::TIMED_THREADS;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// When a thread's read transaction began, in milliseconds since the process first asked, plus one; 0: none is open.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Begun(AtomicU64);

/// The open read transactions of one environment. A thread has at most one.
#[derive(Debug)]
pub(crate) struct Readers(Box<[Begun]>);

/// Marks a read transaction as open while it lives.
pub(crate) struct OpenRead<'r>(&'r Begun);

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

/// A number that no other thread has.
fn thread_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static OWN: usize = NEXT.fetch_add(1, Ordering::Relaxed));
    OWN.with(|number| *number)
}

impl Readers {
    pub(crate) fn new() -> Self {
        Self((0..TIMED_THREADS).map(|_| Begun::default()).collect())
    }

    /// Notes that this thread's read transaction has begun.
    pub(crate) fn begin(&self) -> Option<OpenRead<'_>> {
        let begun = self.0.get(thread_number() % TIMED_THREADS)?;
        begun.0.store(now(), Ordering::Relaxed);
        Some(OpenRead(begun))
    }

    /// Age of the oldest open read transaction.
    pub(crate) fn oldest(&self) -> Option<Duration> {
        let oldest =
            self.0.iter().map(|begun| begun.0.load(Ordering::Relaxed)).filter(|begun| *begun > 0).min()?;
        Some(Duration::from_millis(now().saturating_sub(oldest)))
    }
}

#[cfg(test)]
mod tests {
    use super::Readers;
    use std::sync::mpsc;
    use std::time::Duration;

    #[test]
    fn the_oldest_of_the_open_reads_is_the_one_shown_and_an_ended_one_is_not() {
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
