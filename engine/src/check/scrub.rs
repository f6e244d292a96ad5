//! Scrub: verifies the whole store again and again, to find damage while a good copy may still exist elsewhere.
//!
//! A pass walks over all slices, version by version. It is throttled and never faster than the configured rate. The next pass
//! begins one interval after the end of the last one. The progress is stored in the control environment, at least every
//! [`SCRUB_SAVE_INTERVAL`], so that a restart continues the pass (`format/scrub_record.rs`).

use crate::api::engine::Engine;
use crate::check::throttle::Throttle;
use crate::check::verifier::Verifier;
use crate::check::version_walk::VersionWalk;
use crate::error::EngineError;
use crate::format::keys;
use crate::format::scrub_record::{ScrubRecord, VerifyPosition};
use crate::limits::{SCRUB_LOOK_INTERVAL, SCRUB_RETRY, SCRUB_SAVE_INTERVAL};
use crate::store::Store;
use crate::store::background::wait;
use crate::store::bucket_catalog::CatalogCommand;
use cairn_model::Timestamp;
use futures_channel::oneshot;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Settings of the scrub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScrubOptions {
    /// Time from the end of one pass to the start of the next.
    pub interval: Duration,
    /// Most bytes read per second.
    pub bytes_per_second: u64,
}

impl Store {
    async fn save_scrub(&self) -> Result<(), EngineError> {
        let (reply, answer) = oneshot::channel();
        self.control.send(CatalogCommand::SaveScrub(self.background.scrub.record(), reply))?;
        answer.await.map_err(|_| EngineError::ShuttingDown)?
    }
}

impl Engine {
    /// Scrubs the store until `stopping` returns true, which is checked between two versions and every second. Runs on one
    /// executor of a store.
    pub async fn scrub(self: &Rc<Self>, options: ScrubOptions, stopping: impl Fn() -> bool + 'static) {
        let engine = Rc::clone(self);
        let forever = self.in_background(async move {
            while !stopping() {
                let now = engine.store().clocks.system.now();
                if engine.store().background.scrub.lock().is_due(now, options.interval) {
                    engine.store().background.scrub.running.store(true, Ordering::Relaxed);
                    let passed = engine.scrub_pass(options, &stopping).await;
                    engine.store().background.scrub.running.store(false, Ordering::Relaxed);
                    if let Err(error) = passed {
                        tracing::error!(target: "service::engine", %error, "the scrub failed and will be retried later");
                        wait(SCRUB_RETRY, &stopping).await;
                    }
                } else {
                    wait(SCRUB_LOOK_INTERVAL, &stopping).await;
                }
            }
            Ok(())
        });
        if let Err(error) = forever.await {
            tracing::error!(target: "service::engine", %error, "the scrub has stopped");
        }
    }

    /// Begins a pass, or continues the unfinished one. Returns early when `stopping` returns true.
    async fn scrub_pass(
        self: &Rc<Self>,
        options: ScrubOptions,
        stopping: &impl Fn() -> bool,
    ) -> Result<(), EngineError> {
        let store = self.store();
        let position = self.begin_or_resume();
        let mut walk = VersionWalk::new(Rc::clone(self), Vec::new(), position);
        let total = Arc::clone(&store.background.scrub.total);
        let throttle = Throttle::new(&store.background.activities, Some(options.bytes_per_second));
        let verifier = Verifier::new(Rc::clone(self), Arc::clone(&total), throttle);
        let mut bucket = BucketNameOf::default();
        let mut saved = Instant::now();
        while let Some(version) = walk.next()? {
            let before = (total.versions(), total.bytes(), total.corrupt());
            verifier.verify_walked(&version, bucket.name(store, &version.encoded)).await?;
            {
                let mut record = store.background.scrub.lock();
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
            let mut record = store.background.scrub.lock();
            record.started = Timestamp(0);
            record.completed = store.clocks.system.now();
            record.last_corrupt = record.corrupt;
            record.position = VerifyPosition::START;
            record.clone()
        };
        let ScrubRecord { versions, bytes, corrupt, .. } = ended;
        if corrupt == 0 {
            tracing::info!(target: "service::engine", versions, bytes, "scrub completed: no damage found");
        } else {
            tracing::error!(target: "service::engine", versions, bytes, corrupt, "scrub completed: damage found");
        }
        store.save_scrub().await
    }

    fn begin_or_resume(&self) -> VerifyPosition {
        let mut record = self.store().background.scrub.lock();
        if record.started.0 == 0 {
            let ScrubRecord { completed, last_corrupt, .. } = *record;
            let started = self.store().clocks.system.now();
            *record = ScrubRecord { started, completed, last_corrupt, ..ScrubRecord::default() };
            tracing::info!(target: "service::engine", "scrub begins");
        } else {
            let versions = record.versions;
            tracing::info!(target: "service::engine", versions, "scrub continues");
        }
        record.position.clone()
    }
}

/// Caches the name of the last bucket: adjacent keys of a slice mostly belong to the same bucket.
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
