//! The scrub: verification of the whole store, over and over, so that damage is found while a good copy may still exist
//! elsewhere.
//!
//! A pass walks all slices version by version, at the pace of `pace.rs` and never faster than the configured rate. The next
//! begins when the interval since the end of the last one is over. Where a pass stands is kept in the control environment
//! (table `control`, key `scrub`), so that a restart goes on where the process ended, give or take what
//! [`SCRUB_SAVE_INTERVAL`] covers:
//!
//! ```text
//! version 1 (little-endian)
//! 0    8   begin of the pass in ms since the Unix epoch; 0: none is under way
//! 8    8   end of the last whole pass in ms; 0: there was none
//! 16   8   versions verified in this pass, or in the last one when none is under way
//! 24   8   bytes verified in it
//! 32   8   versions found corrupt or missing in it
//! 40   2   slice in which it stands
//! 42   n   encoded key of the last version that was verified there; empty: none
//! ```
//!
//! What the last whole pass found is kept beside it (key `scrub_last`), for the count above begins anew with each pass:
//!
//! ```text
//! version 1 (little-endian)
//! 0    8   end of that pass in ms; where it is not that of the record above, this is of an earlier pass
//! 8    8   versions found corrupt or missing in it
//! ```

use crate::codec;
use crate::control::ControlJob;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::keys;
use crate::limits::{SCRUB_LOOK_INTERVAL, SCRUB_RETRY, SCRUB_SAVE_INTERVAL};
use crate::store::Store;
use crate::verify::{Verifier, VerifyPosition, VerifyProgress, Walk};
use cairn_model::Timestamp;
use futures_channel::oneshot;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How the store is scrubbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScrubOptions {
    /// From the end of one pass to the beginning of the next.
    pub interval: Duration,
    /// Most bytes read in a second.
    pub bytes_per_second: u64,
}

/// Where the scrub stands; the records drawn in the file's first lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScrubRecord {
    /// When the pass under way began; zero: none is.
    pub started: Timestamp,
    /// When the last whole pass ended; zero: there was none.
    pub completed: Timestamp,
    /// Versions verified in the pass under way, or in the last one.
    pub versions: u64,
    /// Bytes verified in it.
    pub bytes: u64,
    /// Versions found corrupt or missing in it.
    pub corrupt: u64,
    /// Versions found corrupt or missing in the last whole pass: what is known until the one under way has ended.
    pub last_corrupt: u64,
    /// The place behind the last version that was verified.
    pub position: VerifyPosition,
}

impl Default for ScrubRecord {
    fn default() -> Self {
        let never = Timestamp(0);
        let position = VerifyPosition::START;
        Self {
            started: never,
            completed: never,
            versions: 0,
            bytes: 0,
            corrupt: 0,
            last_corrupt: 0,
            position,
        }
    }
}

impl ScrubRecord {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(42 + self.position.after.len());
        for number in [self.started.0, self.completed.0, self.versions, self.bytes, self.corrupt] {
            body.extend_from_slice(&number.to_le_bytes());
        }
        body.extend_from_slice(&self.position.slice.to_le_bytes());
        body.extend_from_slice(&self.position.after);
        body
    }

    /// What goes under `scrub_last`.
    pub(crate) fn encode_last(&self) -> [u8; 16] {
        let mut body = [0; 16];
        body[..8].copy_from_slice(&self.completed.0.to_le_bytes());
        body[8..].copy_from_slice(&self.last_corrupt.to_le_bytes());
        body
    }

    /// The two records read; stores that earlier programs wrote lack the one of the last pass.
    pub(crate) fn decode(body: &[u8], last: Option<&[u8]>) -> Option<Self> {
        let (numbers, rest) = body.split_at_checked(40)?;
        let (slice, after) = rest.split_first_chunk::<2>()?;
        let mut numbers = numbers.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
        let [started, completed] = [Timestamp(numbers.next()?), Timestamp(numbers.next()?)];
        let [versions, bytes, corrupt] = [numbers.next()?, numbers.next()?, numbers.next()?];
        let last =
            last.and_then(|last| last.strip_prefix(&completed.0.to_le_bytes())).and_then(codec::u64_of);
        let last_corrupt = last.unwrap_or(if started.0 == 0 { corrupt } else { 0 });
        Some(Self {
            started,
            completed,
            versions,
            bytes,
            corrupt,
            last_corrupt,
            position: VerifyPosition { slice: u16::from_le_bytes(*slice), after: after.to_vec() },
        })
    }

    fn is_due(&self, now: Timestamp, interval: Duration) -> bool {
        let interval = u64::try_from(interval.as_millis()).unwrap_or(u64::MAX);
        // A clock that was set back must not put the next pass off for long.
        self.started.0 != 0 || now.0 < self.completed.0 || now.0 - self.completed.0 >= interval
    }
}

/// The scrub as the store's owner sees it.
#[derive(Debug, Default)]
pub struct ScrubStatus {
    record: Mutex<ScrubRecord>,
    running: AtomicBool,
    /// What was verified since the process started.
    pub(crate) total: Arc<VerifyProgress>,
}

impl ScrubStatus {
    pub(crate) fn new(record: ScrubRecord) -> Self {
        Self { record: Mutex::new(record), ..Self::default() }
    }

    fn lock(&self) -> MutexGuard<'_, ScrubRecord> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where it stands.
    #[must_use]
    pub fn record(&self) -> ScrubRecord {
        self.lock().clone()
    }

    /// Whether a pass is under way in this process.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.running.load(Ordering::Relaxed)
    }

    /// What was verified since the process started.
    #[must_use]
    pub fn total(&self) -> &VerifyProgress {
        &self.total
    }
}

impl Store {
    async fn save_scrub(&self) -> Result<(), EngineError> {
        let (reply, answer) = oneshot::channel();
        self.send_control(ControlJob::SaveScrub(self.scrub.record(), reply))?;
        answer.await.map_err(|_| EngineError::ShuttingDown)?
    }
}

impl Engine {
    /// Scrubs the store again and again until `stopping` says so; looks at it between two versions and every second. One
    /// executor of a store does this.
    pub async fn scrub(self: &Rc<Self>, options: ScrubOptions, stopping: impl Fn() -> bool + 'static) {
        let engine = Rc::clone(self);
        let forever = self.in_background(async move {
            while !stopping() {
                let now = engine.store().clock.now();
                if engine.store().scrub.lock().is_due(now, options.interval) {
                    engine.store().scrub.running.store(true, Ordering::Relaxed);
                    let passed = engine.scrub_pass(options, &stopping).await;
                    engine.store().scrub.running.store(false, Ordering::Relaxed);
                    if let Err(error) = passed {
                        tracing::error!(target: "service::engine", %error, "the scrub failed and is tried again later");
                        wait(SCRUB_RETRY, &stopping).await;
                    }
                } else {
                    wait(SCRUB_LOOK_INTERVAL, &stopping).await;
                }
            }
            Ok(())
        });
        if let Err(error) = forever.await {
            tracing::error!(target: "service::engine", %error, "the scrub has ended");
        }
    }

    /// Begins a pass, or goes on with the one under way; returns early when `stopping` says so.
    async fn scrub_pass(
        self: &Rc<Self>,
        options: ScrubOptions,
        stopping: &impl Fn() -> bool,
    ) -> Result<(), EngineError> {
        let store = self.store();
        let position = self.begin_or_resume();
        let mut walk = Walk::new(Rc::clone(self), Vec::new(), position);
        let total = Arc::clone(&store.scrub.total);
        let mut verifier = Verifier::new(Rc::clone(self), Arc::clone(&total), Some(options.bytes_per_second));
        let mut bucket = BucketNameOf::default();
        let mut saved = Instant::now();
        while let Some(met) = walk.next()? {
            let before = (total.versions(), total.bytes(), total.corrupt());
            verifier.verify_met(&met, bucket.name(store, &met.encoded)).await?;
            {
                let mut record = store.scrub.lock();
                record.versions += total.versions() - before.0;
                record.bytes += total.bytes() - before.1;
                record.corrupt += total.corrupt() - before.2;
                record.position = walk.position().clone();
            }
            if stopping() {
                return store.save_scrub().await;
            }
            if saved.elapsed() >= SCRUB_SAVE_INTERVAL {
                store.save_scrub().await?;
                saved = Instant::now();
            }
        }
        let ended = {
            let mut record = store.scrub.lock();
            record.started = Timestamp(0);
            record.completed = store.clock.now();
            record.last_corrupt = record.corrupt;
            record.position = VerifyPosition::START;
            record.clone()
        };
        let ScrubRecord { versions, bytes, corrupt, .. } = ended;
        if corrupt == 0 {
            tracing::info!(target: "service::engine", versions, bytes, "scrub completed: nothing is damaged");
        } else {
            tracing::error!(target: "service::engine", versions, bytes, corrupt, "scrub completed: it found damage");
        }
        store.save_scrub().await
    }

    fn begin_or_resume(&self) -> VerifyPosition {
        let mut record = self.store().scrub.lock();
        if record.started.0 == 0 {
            let ScrubRecord { completed, last_corrupt, .. } = *record;
            let started = self.store().clock.now();
            *record = ScrubRecord { started, completed, last_corrupt, ..ScrubRecord::default() };
            tracing::info!(target: "service::engine", "scrub begins");
        } else {
            let versions = record.versions;
            tracing::info!(target: "service::engine", versions, "scrub goes on where it was");
        }
        record.position.clone()
    }
}

/// Sleeps, but for no longer than it takes to notice that the process stops.
pub(crate) async fn wait(time: Duration, stopping: &impl Fn() -> bool) {
    let until = Instant::now() + time;
    while Instant::now() < until && !stopping() {
        glommio::timer::sleep(Duration::from_secs(1).min(time)).await;
    }
}

/// The name of the bucket that encoded keys begin with; neighbours in a slice mostly have the same.
#[derive(Default)]
struct BucketNameOf {
    id: u64,
    name: String,
}

impl BucketNameOf {
    fn name(&mut self, store: &Store, encoded: &[u8]) -> &str {
        let id = keys::decode(encoded).map_or(0, |(bucket, _, _)| bucket);
        if self.name.is_empty() || self.id != id {
            let named = store.buckets().into_iter().find(|bucket| bucket.id == id);
            self.id = id;
            self.name = named.map_or_else(|| format!("(bucket {id})"), |bucket| bucket.name.to_string());
        }
        &self.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> ScrubRecord {
        let position = VerifyPosition { slice: 3, after: vec![7, 8] };
        let (started, completed) = (Timestamp(1), Timestamp(2));
        ScrubRecord { started, completed, versions: 3, bytes: 4, corrupt: 5, last_corrupt: 6, position }
    }

    /// Golden bytes: a change here is a change of the on-disk format.
    #[test]
    fn the_form_of_the_record_does_not_change() {
        let body = record().encode();
        let mut expected = Vec::new();
        (1..=5u64).for_each(|number| expected.extend_from_slice(&number.to_le_bytes()));
        expected.extend_from_slice(&[3, 0, 7, 8]);
        assert_eq!(body, expected);
        let last = record().encode_last();
        assert_eq!(last, [2, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(ScrubRecord::decode(&body, Some(&last)), Some(record()));
        assert_eq!(ScrubRecord::decode(&body[..41], Some(&last)), None);
    }

    #[test]
    fn what_the_last_pass_found_is_taken_from_no_other_pass() {
        let ended = ScrubRecord { started: Timestamp(0), ..record() };
        let earlier = ScrubRecord { completed: Timestamp(1), ..record() }.encode_last();
        for last in [None, Some(&earlier[..]), Some(&[])] {
            let decoded = |record: ScrubRecord| ScrubRecord::decode(&record.encode(), last).unwrap();
            assert_eq!(decoded(ended.clone()).last_corrupt, 5, "the record is that of the last pass");
            assert_eq!(decoded(record()).last_corrupt, 0, "not known until the pass under way has ended");
        }
    }

    #[test]
    fn a_pass_is_due_when_the_interval_is_over_or_one_was_broken_off() {
        let hour = Duration::from_secs(3600);
        let ended = ScrubRecord { started: Timestamp(0), completed: Timestamp(10_000_000), ..record() };
        assert!(!ended.is_due(Timestamp(10_000_000 + 3_599_999), hour));
        assert!(ended.is_due(Timestamp(10_000_000 + 3_600_000), hour));
        assert!(ended.is_due(Timestamp(9_000_000), hour), "the clock was set back");
        assert!(record().is_due(Timestamp(3), hour), "broken off");
        assert!(ScrubRecord::default().is_due(Timestamp(1_795_000_000_000), hour), "never done");
    }
}
