//! The context of the lifecycle worker, and its trusted clock.

use crate::store::Store;
use cairn_model::Timestamp;
use std::sync::Arc;
use std::time::Duration;

/// Options of the worker.
#[derive(Clone, Copy, Debug)]
pub struct LifecycleOptions {
    /// Time between the beginnings of two runs.
    pub interval: Duration,
    /// Most versions that are looked for at a time.
    pub batch_size: usize,
}

/// The worker.
pub(super) struct Worker {
    pub(super) store: Arc<Store>,
    pub(super) options: LifecycleOptions,
    pub(super) stopping: Box<dyn Fn() -> bool>,
}

impl Worker {
    pub(super) fn new(
        store: &Arc<Store>,
        options: LifecycleOptions,
        stopping: Box<dyn Fn() -> bool>,
    ) -> Self {
        Self { store: Arc::clone(store), options, stopping }
    }

    /// Returns the time, unless the clock has jumped ahead. Then the worker is paused, until the clock is back or an operator
    /// resumes it.
    pub(super) fn trusted_now(&self) -> Option<Timestamp> {
        let mut state = self.store.background.lifecycle.lock();
        match self.store.clocks.guarded.check() {
            Ok(now) => {
                state.worker.paused = None;
                Some(now)
            }
            Err(ahead) => {
                let hours = ahead.as_secs() / 3600;
                let reason = format!(
                    "the clock is {hours} hours ahead of what is explained by the time that has passed: \
                     check the date of the host, then resume the lifecycle worker"
                );
                if state.worker.paused.is_none() {
                    tracing::error!(target: "service::engine", %reason, "lifecycle rules are paused");
                }
                state.worker.paused = Some(reason);
                None
            }
        }
    }
}
