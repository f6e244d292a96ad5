//! The background writer of log lines: what keeps an executor from ever waiting for a terminal, a pipe or a disk.
//!
//! Each thread that logs owns a *shard*, a buffer behind a lock that nobody else takes but the writer thread, and that
//! one only to swap the buffer for an empty one. The writer sleeps while all shards are empty; the first line wakes
//! it, and it lets lines gather for [`GATHER_TIME`] before it writes them in one call per shard. So a busy executor
//! pays one wake-up per hundred or thousand lines, and the order of lines is kept per thread.
//!
//! Bounds: a shard never holds more than [`SHARD_BYTES_MAX`]; when the output is slower than the logging, lines are
//! dropped and counted, and the writer says so in a line of its own as soon as it can write again.

use std::cell::RefCell;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::Duration;

use crate::format::{LogFormat, push_line_end, push_line_start, push_message, push_number_field};
use crate::metrics;

/// Most bytes of lines that one thread may have waiting.
const SHARD_BYTES_MAX: usize = 1 << 20;
/// A shard with more than this wakes the writer before its time.
const SHARD_BYTES_URGENT: usize = SHARD_BYTES_MAX / 4;
/// How long lines gather before they are written.
const GATHER_TIME: Duration = Duration::from_millis(10);

/// Tells sinks apart in the thread-local cache of shards; tests make several.
static SINKS_MADE: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static SHARD: RefCell<Option<(u64, Arc<Shard>)>> = const { RefCell::new(None) };
}

#[derive(Default)]
struct Shard {
    lines: Mutex<Vec<u8>>,
}

/// Where all log lines go.
pub(crate) struct Sink {
    id: u64,
    shards: Mutex<Vec<Arc<Shard>>>,
    /// Set by the first line after a round of writing; whoever sets it wakes the writer.
    awake: AtomicBool,
    writer: OnceLock<Thread>,
    /// Who waits for everything logged so far to be written.
    waiting: Mutex<Vec<SyncSender<()>>>,
    hurried: AtomicBool,
    /// Lines dropped; the metric of the same meaning counts for the process.
    dropped: AtomicU64,
}

/// Nothing here is left half-changed by a panic: at worst a line is cut short.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sink {
    /// Starts the writer thread.
    pub(crate) fn start(
        output: impl Write + Send + 'static,
        format: LogFormat,
    ) -> std::io::Result<Arc<Self>> {
        let sink = Arc::new(Self {
            id: SINKS_MADE.fetch_add(1, Ordering::Relaxed),
            shards: Mutex::default(),
            awake: AtomicBool::new(false),
            writer: OnceLock::new(),
            waiting: Mutex::default(),
            hurried: AtomicBool::new(false),
            dropped: AtomicU64::new(0),
        });
        let own = Arc::clone(&sink);
        let thread = std::thread::Builder::new()
            .name("log-writer".to_owned())
            .spawn(move || own.write_forever(output, format))?;
        // Set once, here; a thread that logs before finds the cell empty and its line is written with the next wake-up.
        let _ = sink.writer.set(thread.thread().clone());
        Ok(sink)
    }

    /// Appends one line, ended by a line feed, that `write` formats in place. `write` must not log.
    pub(crate) fn append(&self, write: impl FnOnce(&mut Vec<u8>)) {
        // A thread that is ending has lost its thread-local values; its last lines go to a shard of their own.
        let mut write = Some(write);
        let done = SHARD.try_with(|cached| {
            // Taken already: this thread is formatting a line and panicked in it. That report must not wait for its
            // own lock.
            let Ok(mut cached) = cached.try_borrow_mut() else {
                self.count_drop();
                return;
            };
            if cached.as_ref().is_none_or(|(id, _)| *id != self.id) {
                *cached = Some((self.id, self.register()));
            }
            if let (Some((_, shard)), Some(write)) = (cached.as_ref(), write.take()) {
                self.append_to(shard, write);
            }
        });
        if let (Err(_), Some(write)) = (done, write) {
            self.append_to(&self.register(), write);
        }
    }

    fn register(&self) -> Arc<Shard> {
        let shard = Arc::new(Shard::default());
        lock(&self.shards).push(Arc::clone(&shard));
        shard
    }

    fn append_to(&self, shard: &Shard, write: impl FnOnce(&mut Vec<u8>)) {
        let (was_empty, is_urgent) = {
            let mut lines = lock(&shard.lines);
            if lines.len() >= SHARD_BYTES_MAX {
                self.count_drop();
                return;
            }
            let before = lines.len();
            write(&mut lines);
            (before == 0, before < SHARD_BYTES_URGENT && lines.len() >= SHARD_BYTES_URGENT)
        };
        if is_urgent {
            self.hurried.store(true, Ordering::Release);
            self.wake();
        } else if was_empty && !self.awake.swap(true, Ordering::AcqRel) {
            self.wake();
        }
    }

    fn count_drop(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
        metrics::LOG_LINES_DROPPED.add(1);
    }

    fn wake(&self) {
        if let Some(writer) = self.writer.get() {
            writer.unpark();
        }
    }

    /// Waits until everything logged so far has been written, or `patience` is over.
    pub(crate) fn flush(&self, patience: Duration) {
        let (done, written) = sync_channel(1);
        lock(&self.waiting).push(done);
        self.hurried.store(true, Ordering::Release);
        self.wake();
        // Late or never: the caller goes on all the same, a stuck output must not keep the process from ending.
        let _ = written.recv_timeout(patience);
    }

    fn write_forever(&self, mut output: impl Write, format: LogFormat) {
        let mut spare = Vec::new();
        let mut drops_reported = 0;
        loop {
            std::thread::park();
            if !self.hurried.load(Ordering::Acquire) {
                std::thread::park_timeout(GATHER_TIME);
            }
            self.hurried.store(false, Ordering::Release);
            // From here on the next line wakes this thread again. The exchange, unlike a store, also makes visible the
            // lines of whoever found the flag set.
            self.awake.swap(false, Ordering::AcqRel);
            let waiting = std::mem::take(&mut *lock(&self.waiting));
            for shard in self.shards_in_use() {
                std::mem::swap(&mut *lock(&shard.lines), &mut spare);
                write_out(&mut output, &spare);
                spare.clear();
            }
            let drops = self.dropped.load(Ordering::Relaxed);
            if drops > drops_reported {
                push_drop_report(&mut spare, format, drops - drops_reported);
                write_out(&mut output, &spare);
                spare.clear();
                drops_reported = drops;
            }
            for done in waiting {
                let _ = done.try_send(());
            }
        }
    }

    /// The shards of living threads, and of ended ones that still hold lines.
    fn shards_in_use(&self) -> Vec<Arc<Shard>> {
        let mut shards = lock(&self.shards);
        shards.retain(|shard| Arc::strong_count(shard) > 1 || !lock(&shard.lines).is_empty());
        shards.clone()
    }
}

fn write_out(output: &mut impl Write, lines: &[u8]) {
    if lines.is_empty() {
        return;
    }
    if output.write_all(lines).and_then(|()| output.flush()).is_err() {
        // There is nowhere left to say it; the counter shows it.
        metrics::LOG_WRITES_FAILED.add(1);
    }
}

fn push_drop_report(out: &mut Vec<u8>, format: LogFormat, count: u64) {
    push_line_start(out, format, "WARN", "service");
    push_message(out, format, "log lines were dropped because the log output is too slow");
    push_number_field(out, format, "lines", count);
    push_line_end(out, format);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, channel};

    /// An output that hands what it gets to the test and waits for the test's leave before each write.
    struct Gate {
        leave: Receiver<()>,
        written: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Gate {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.leave.recv().map_err(std::io::Error::other)?;
            lock(&self.written).extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn gated() -> (Arc<Sink>, std::sync::mpsc::Sender<()>, Arc<Mutex<Vec<u8>>>) {
        let (give_leave, leave) = channel();
        let written = Arc::new(Mutex::new(Vec::new()));
        let sink = Sink::start(Gate { leave, written: Arc::clone(&written) }, LogFormat::Text).unwrap();
        (sink, give_leave, written)
    }

    #[test]
    fn a_flush_returns_after_the_lines_of_all_threads_were_written() {
        let (sink, leave, written) = gated();
        for _ in 0..100 {
            leave.send(()).unwrap();
        }
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let sink = &sink;
                scope.spawn(move || {
                    for line in 0..50 {
                        sink.append(|out| out.extend_from_slice(format!("{thread} {line}\n").as_bytes()));
                    }
                });
            }
        });
        sink.flush(Duration::from_secs(10));
        let text = String::from_utf8(lock(&written).clone()).unwrap();
        assert_eq!(text.lines().count(), 200);
        for thread in 0..4 {
            let own: Vec<_> = text.lines().filter(|line| line.starts_with(&format!("{thread} "))).collect();
            let expected: Vec<_> = (0..50).map(|line| format!("{thread} {line}")).collect();
            assert_eq!(own, expected, "lines of one thread keep their order");
        }
    }

    #[test]
    fn a_stuck_output_stops_nobody_and_the_lines_lost_are_counted() {
        let (sink, leave, written) = gated();
        let line = [b'x'; 1023];
        // One batch is stuck in the output, one fills the shard, the rest is dropped.
        for _ in 0..4 * SHARD_BYTES_MAX / 1024 {
            sink.append(|out| {
                out.extend_from_slice(&line);
                out.push(b'\n');
            });
        }
        sink.flush(Duration::from_millis(1));
        assert!(sink.dropped.load(Ordering::Relaxed) > 0);
        for _ in 0..10 {
            leave.send(()).unwrap();
        }
        sink.flush(Duration::from_secs(10));
        let text = String::from_utf8(lock(&written).clone()).unwrap();
        assert!(text.contains("log lines were dropped"), "the reader of the log learns of the loss");
    }
}
