//! Background writer of log lines: executors never wait for output.
//!
//! A write to a terminal, a pipe or a disk may block.
//!
//! Each thread that logs owns a *shard*: a buffer whose lock only it and the writer thread take, the latter only to swap the
//! buffer for an empty one. The writer sleeps while all shards are empty. The first line wakes it, and it lets lines gather for
//! [`GATHER_TIME`] before it writes them with one call per shard. A busy executor therefore pays one wake-up per hundred or
//! thousand lines. Lines of one thread keep their order.
//!
//! A shard accepts lines until it holds [`SHARD_BYTES_MAX`]. If the output is too slow, lines are dropped and counted, and the
//! writer reports the number in a log line as soon as it can write again.

use std::cell::RefCell;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::Duration;

use cairn_sync::Mutex;

use super::format::{LogFormat, push_line_end, push_line_start, push_message, push_number_field};
use crate::metrics;

/// A shard with this many bytes accepts no more lines.
const SHARD_BYTES_MAX: usize = 1 << 20;
/// A shard with this many bytes makes the writer write at once.
const SHARD_BYTES_URGENT: usize = SHARD_BYTES_MAX / 4;
/// The time for which lines gather before they are written.
const GATHER_TIME: Duration = Duration::from_millis(10);

/// Source of ids, which identify sinks in the thread-local cache of shards. Tests make several sinks.
static NEXT_SINK_ID: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static SHARD: RefCell<Option<(u64, Arc<Shard>)>> = const { RefCell::new(None) };
}

#[derive(Default)]
struct Shard {
    lines: Mutex<Vec<u8>>,
}

/// The destination of all log lines.
pub(crate) struct Sink {
    id: u64,
    shards: Mutex<Vec<Arc<Shard>>>,
    /// Set by the first line after a round of writing. The thread that sets it wakes the writer.
    awake: AtomicBool,
    writer: OnceLock<Thread>,
    /// Callers of [`Sink::flush`] that wait.
    flush_waiters: Mutex<Vec<SyncSender<()>>>,
    /// Whether the writer should write without gathering lines.
    urgent: AtomicBool,
    /// Lines dropped by this sink. The metric counts those of the process.
    dropped: AtomicU64,
}

impl Sink {
    /// Starts the writer thread.
    pub(crate) fn start(
        output: impl Write + Send + 'static,
        format: LogFormat,
    ) -> std::io::Result<Arc<Self>> {
        let sink = Arc::new(Self {
            id: NEXT_SINK_ID.fetch_add(1, Ordering::Relaxed),
            shards: Mutex::default(),
            awake: AtomicBool::new(false),
            writer: OnceLock::new(),
            flush_waiters: Mutex::default(),
            urgent: AtomicBool::new(false),
            dropped: AtomicU64::new(0),
        });
        let writer_sink = Arc::clone(&sink);
        let thread = std::thread::Builder::new()
            .name("log-writer".to_owned())
            .spawn(move || writer_sink.write_forever(output, format))?;
        // Lines that are logged before this is set are written with the next wake-up.
        let _ = sink.writer.set(thread.thread().clone());
        Ok(sink)
    }

    /// Appends one line. `write` formats it in place, with a line feed at the end, and must not log.
    pub(crate) fn append(&self, write: impl FnOnce(&mut Vec<u8>)) {
        // An ending thread has lost its thread-local values; each of its last lines gets a new shard.
        let mut write = Some(write);
        let done = SHARD.try_with(|cached| {
            // Already borrowed: this thread has panicked while it formatted a line. The report of the panic must not wait
            // for the lock that the thread itself holds.
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
        self.shards.lock().push(Arc::clone(&shard));
        shard
    }

    fn append_to(&self, shard: &Shard, write: impl FnOnce(&mut Vec<u8>)) {
        let (was_empty, is_urgent) = {
            let mut lines = shard.lines.lock();
            if lines.len() >= SHARD_BYTES_MAX {
                self.count_drop();
                return;
            }
            let before = lines.len();
            write(&mut lines);
            (before == 0, before < SHARD_BYTES_URGENT && lines.len() >= SHARD_BYTES_URGENT)
        };
        if is_urgent {
            self.urgent.store(true, Ordering::Release);
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

    /// Waits at most `timeout` until everything logged so far has been written.
    pub(crate) fn flush(&self, timeout: Duration) {
        let (done, written) = sync_channel(1);
        self.flush_waiters.lock().push(done);
        self.urgent.store(true, Ordering::Release);
        self.wake();
        // A timeout is ignored, because a stuck output must not keep the process from ending.
        let _ = written.recv_timeout(timeout);
    }

    fn write_forever(&self, mut output: impl Write, format: LogFormat) {
        let mut spare = Vec::new();
        let mut drops_reported = 0;
        loop {
            std::thread::park();
            if !self.urgent.load(Ordering::Acquire) {
                std::thread::park_timeout(GATHER_TIME);
            }
            self.urgent.store(false, Ordering::Release);
            // From here on the next line wakes this thread again. A swap, unlike a store, also makes the lines of threads
            // visible that found the flag set.
            self.awake.swap(false, Ordering::AcqRel);
            let flush_waiters = std::mem::take(&mut *self.flush_waiters.lock());
            for shard in self.shards_in_use() {
                std::mem::swap(&mut *shard.lines.lock(), &mut spare);
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
            for done in flush_waiters {
                let _ = done.try_send(());
            }
        }
    }

    /// Returns the shards of running threads, and those of ended threads that still hold lines.
    fn shards_in_use(&self) -> Vec<Arc<Shard>> {
        let mut shards = self.shards.lock();
        shards.retain(|shard| Arc::strong_count(shard) > 1 || !shard.lines.lock().is_empty());
        shards.clone()
    }
}

fn write_out(output: &mut impl Write, lines: &[u8]) {
    if lines.is_empty() {
        return;
    }
    if output.write_all(lines).and_then(|()| output.flush()).is_err() {
        // There is no log to report this in; only the counter shows it.
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

    /// An output that waits for a permit of the test before each write.
    struct Gate {
        permits: Receiver<()>,
        written: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Gate {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.permits.recv().map_err(std::io::Error::other)?;
            self.written.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn gated() -> (Arc<Sink>, std::sync::mpsc::Sender<()>, Arc<Mutex<Vec<u8>>>) {
        let (permit, permits) = channel();
        let written = Arc::new(Mutex::new(Vec::new()));
        let sink = Sink::start(Gate { permits, written: Arc::clone(&written) }, LogFormat::Text).unwrap();
        (sink, permit, written)
    }

    #[test]
    fn flush_waits_for_the_lines_of_all_threads() {
        let (sink, permit, written) = gated();
        // One for each line: the output may get them one at a time.
        for _ in 0..200 {
            permit.send(()).unwrap();
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
        sink.flush(Duration::from_secs(120));
        let text = String::from_utf8(written.lock().clone()).unwrap();
        assert_eq!(text.lines().count(), 200);
        for thread in 0..4 {
            let lines: Vec<_> = text.lines().filter(|line| line.starts_with(&format!("{thread} "))).collect();
            let expected: Vec<_> = (0..50).map(|line| format!("{thread} {line}")).collect();
            assert_eq!(lines, expected, "lines of one thread keep their order");
        }
    }

    #[test]
    fn a_stuck_output_blocks_no_thread_and_lost_lines_are_counted() {
        let (sink, permit, written) = gated();
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
            permit.send(()).unwrap();
        }
        sink.flush(Duration::from_secs(120));
        let text = String::from_utf8(written.lock().clone()).unwrap();
        assert!(text.contains("log lines were dropped"), "the log reports the loss");
    }
}
