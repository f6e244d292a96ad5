//! Figures over time: metrics of an hour, a day and a month, space by bucket of 90 days, and what people dismissed.
//!
//! A thread reads the counters that exist every ten seconds, and keeps the differences. Requests pay nothing for it. Every ten
//! minutes, at a clean end and after a change by a person, it writes everything to a small file (`history_file.rs`). The time
//! in which the process did not run, or the machine slept, is missing.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use cairn_engine::{HoldState, Store};
use cairn_model::{Clock, SystemClock, Timestamp};
use cairn_sync::Mutex;

use super::bucket_days::BucketDays;
use super::dismissals::{Dismissal, Dismissals, TooMany};
use super::history_file::{self, BACKUPS_MAX, Kept};
use super::series::{MetricSample, Period, Reading, Series, TICK_SECONDS};

/// Time between two writes of the file: what a crash loses at most.
const SAVE_INTERVAL: Duration = Duration::from_secs(600);

/// Everything that is kept.
struct State {
    /// The start of the first sample.
    started: Timestamp,
    series: [Series; Period::ALL.len()],
    days: BucketDays,
    dismissals: Dismissals,
    /// The times when the metadata of the last backups were copied, the oldest first.
    backups: VecDeque<Timestamp>,
}

impl State {
    fn new(kept: Option<Kept>, first: &Reading) -> Self {
        let kept = kept.unwrap_or_else(|| Kept::empty(first.at));
        let mut samples = kept.samples.into_iter();
        let series =
            Period::ALL.map(|period| Series::new(period, samples.next().unwrap_or_default(), first.clone()));
        Self {
            started: kept.started.min(first.at),
            series,
            days: kept.days,
            dismissals: kept.dismissals,
            backups: kept.backups.into(),
        }
    }

    fn kept(&self) -> Kept {
        Kept {
            started: self.started,
            samples: self.series.iter().map(|series| series.samples.iter().copied().collect()).collect(),
            days: self.days.clone(),
            dismissals: self.dismissals.clone(),
            backups: self.backups.iter().copied().collect(),
        }
    }

    /// Notes a backup that was copied while the store kept everything.
    fn note_backup(&mut self, store: &Store) {
        let status = store.hold();
        let Some(held_at) = status.held_at.filter(|_| status.state == HoldState::Released) else { return };
        if self.backups.back().is_some_and(|last| *last >= held_at) {
            return;
        }
        if self.backups.len() >= BACKUPS_MAX {
            self.backups.pop_front();
        }
        self.backups.push_back(held_at);
    }
}

/// The history, and the thread that writes it.
pub(crate) struct MetricHistory {
    state: Arc<Mutex<State>>,
    /// Asks the thread to write the file. The thread ends when it is gone.
    saves: Mutex<Option<Sender<()>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl MetricHistory {
    /// Reads what was kept in the data folder, and starts the thread. It ends with the store, too.
    ///
    /// # Errors
    /// An error when the thread cannot be started.
    pub(crate) fn start(store: &Arc<Store>, data_dir: &Path) -> std::io::Result<Self> {
        let mut state = State::new(history_file::load(data_dir), &Reading::take(store));
        state.days.record(store, SystemClock.now());
        let state = Arc::new(Mutex::new(state));
        let (saves, asked) = channel();
        let (weak, written): (Weak<Store>, _) = (Arc::downgrade(store), Arc::clone(&state));
        let folder = data_dir.to_owned();
        let thread = std::thread::Builder::new().name("metric-history".to_owned()).spawn(move || {
            let mut file = File { folder, saved: Instant::now(), has_failed: false };
            loop {
                match asked.recv_timeout(until_next_tick(SystemClock.now())) {
                    Ok(()) => file.save(&written),
                    Err(RecvTimeoutError::Disconnected) => break,
                    Err(RecvTimeoutError::Timeout) => {
                        let Some(store) = weak.upgrade() else { break };
                        sample(&store, &written);
                        if file.saved.elapsed() >= SAVE_INTERVAL {
                            written.lock().days.record(&store, SystemClock.now());
                            drop(store);
                            file.save(&written);
                        }
                    }
                }
            }
            if let Some(store) = weak.upgrade() {
                written.lock().days.record(&store, SystemClock.now());
            }
            file.save(&written);
        })?;
        Ok(Self { state, saves: Mutex::new(Some(saves)), thread: Mutex::new(Some(thread)) })
    }

    /// Writes the file and ends the thread. Blocks for a few milliseconds. Nothing is written afterwards.
    pub(crate) fn close(&self) {
        *self.saves.lock() = None;
        // A panic of the thread has been logged.
        let _ = self.thread.lock().take().map(JoinHandle::join);
    }

    /// Returns when the history began.
    pub(crate) fn started(&self) -> Timestamp {
        self.state.lock().started
    }

    /// Returns the samples of a period, the oldest first. Those before the period are left out.
    pub(crate) fn samples(&self, period: Period, now: Timestamp) -> Vec<MetricSample> {
        let begin = Timestamp(now.0.saturating_sub(period.seconds() * 1000));
        let state = self.state.lock();
        let found = state.series.iter().find(|series| series.period == period);
        let samples = found.into_iter().flat_map(|series| &series.samples);
        samples.filter(|sample| sample.end > begin).copied().collect()
    }

    /// Returns the space by bucket of the last 90 days.
    pub(crate) fn days(&self) -> BucketDays {
        self.state.lock().days.clone()
    }

    /// Returns when the last backups were made, the oldest first.
    pub(crate) fn backups(&self, store: &Store) -> Vec<Timestamp> {
        let mut state = self.state.lock();
        state.note_backup(store);
        state.backups.iter().copied().collect()
    }

    /// Returns what is dismissed now.
    pub(crate) fn dismissals(&self, now: Timestamp) -> Vec<Dismissal> {
        self.state.lock().dismissals.at(now)
    }

    /// Dismisses something until a time, or takes that back if the time is over.
    ///
    /// # Errors
    /// [`TooMany`] when as many things are dismissed as can be.
    pub(crate) fn dismiss(&self, dismissal: Dismissal, now: Timestamp) -> Result<(), TooMany> {
        self.state.lock().dismissals.set(dismissal, now)?;
        // The thread has only gone if the store is closed.
        let _ = self.saves.lock().as_ref().map(|saves| saves.send(()));
        Ok(())
    }
}

fn sample(store: &Store, state: &Mutex<State>) {
    let reading = Reading::take(store);
    let mut state = state.lock();
    state.series.iter_mut().for_each(|series| series.add(&reading));
    state.note_backup(store);
}

/// The file, as the thread writes it.
struct File {
    folder: PathBuf,
    saved: Instant,
    /// Whether the last write failed. One line of the log says so.
    has_failed: bool,
}

impl File {
    fn save(&mut self, state: &Mutex<State>) {
        self.saved = Instant::now();
        // The lock is not held while the device is waited for.
        let kept = state.lock().kept();
        let result = history_file::save(&self.folder, &kept);
        if let (Err(error), false) = (&result, self.has_failed) {
            tracing::warn!(
                target: "service::metrics", %error,
                "the history of metrics could not be written; it is lost if the service ends before that succeeds"
            );
        }
        self.has_failed = result.is_err();
    }
}

/// Returns the time until the next multiple of ten seconds, so that samples of all servers have the same times.
fn until_next_tick(now: Timestamp) -> Duration {
    const TICK: u64 = TICK_SECONDS * 1000;
    // A thread that woke a little early must not read twice.
    const SHORTEST: u64 = TICK / 10;
    let rest = TICK - now.0 % TICK;
    Duration::from_millis(if rest < SHORTEST { rest + TICK } else { rest })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: u64 = 1_795_237_200_000;

    #[test]
    fn reads_are_at_multiples_of_ten_seconds() {
        let wait = |millisecond| until_next_tick(Timestamp(BEGIN + millisecond)).as_millis();
        assert_eq!((wait(0), wait(3), wait(9_000), wait(9_995)), (10_000, 9_997, 1_000, 10_005));
    }
}
