//! The state of lifecycle rules in memory: counts, status and pause.

use crate::types::lifecycle::{DayLength, RuleId};
use crate::types::lifecycle_status::{LifecycleStatus, RuleCounts, RuleStatus};
use cairn_sync::{Mutex, MutexGuard};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug, Default)]
pub(crate) struct LifecycleState {
    pub(crate) worker: LifecycleStatus,
    pub(crate) rules: HashMap<RuleId, RuleStatus>,
    /// Rules whose counts have changed since they were saved.
    pub(crate) unsaved: HashSet<RuleId>,
}

/// Lifecycle in memory.
#[derive(Debug)]
pub(crate) struct Lifecycle {
    pub(super) day_seconds: AtomicU64,
    state: Mutex<LifecycleState>,
}

impl Lifecycle {
    pub(crate) fn new(counts: HashMap<RuleId, RuleCounts>) -> Self {
        let with_counts = |counts| RuleStatus { counts, ..RuleStatus::default() };
        let rules = counts.into_iter().map(|(rule, counts)| (rule, with_counts(counts))).collect();
        Self {
            day_seconds: AtomicU64::new(DayLength::default().0),
            state: Mutex::new(LifecycleState { rules, ..LifecycleState::default() }),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, LifecycleState> {
        self.state.lock()
    }

    /// Returns the length of a day.
    pub(crate) fn day(&self) -> DayLength {
        DayLength(self.day_seconds.load(Ordering::Relaxed))
    }

    /// Adds what rules did.
    pub(crate) fn add_counts(&self, counts: &[(RuleId, RuleCounts)]) {
        let mut state = self.lock();
        for (rule, counts) in counts {
            state.rules.entry(*rule).or_default().counts.add(counts);
            state.worker.counts.add(counts);
            state.unsaved.insert(*rule);
        }
    }
}
