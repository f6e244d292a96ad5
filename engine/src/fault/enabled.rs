//! The fault hooks of a build with the feature `simulation`.

use super::flaw::Flaw;
use super::{Scheduler, SimulatedDisk, StopPoint, StoreThread};
use std::sync::Arc;

/// The simulated parts of a store: disk and scheduler. Its metadata is in a real LMDB environment.
#[derive(Debug)]
pub struct Simulation {
    /// Holds the volumes.
    pub disk: Arc<SimulatedDisk>,
    /// Decides which of the store's threads runs.
    pub scheduler: Arc<Scheduler>,
    /// The mistake that the engine makes.
    pub flaw: Option<Flaw>,
}

impl Simulation {
    /// Returns a simulation whose threads run freely.
    #[must_use]
    pub fn new(disk: SimulatedDisk) -> Arc<Self> {
        Arc::new(Self { disk: Arc::new(disk), scheduler: Arc::new(Scheduler::released()), flaw: None })
    }

    /// Returns a simulation whose threads stop at every stop point until they are stepped.
    #[must_use]
    pub fn stepped(disk: SimulatedDisk, flaw: Option<Flaw>) -> Arc<Self> {
        let scheduler = Arc::new(Scheduler::default());
        disk.set_scheduler(&scheduler);
        Arc::new(Self { disk: Arc::new(disk), scheduler, flaw })
    }
}

/// The faults of a store: those of its simulation, or none.
#[derive(Clone, Debug)]
pub(crate) struct Faults(Option<Arc<Simulation>>);

impl Faults {
    /// Returns the faults of a store in the service.
    pub(crate) const fn none() -> Self {
        Self(None)
    }

    /// Returns the faults of a simulation.
    pub(crate) fn of(simulation: &Arc<Simulation>) -> Self {
        Self(Some(Arc::clone(simulation)))
    }

    /// Returns whether the engine is to make this mistake.
    pub(crate) fn has(&self, flaw: Flaw) -> bool {
        self.0.as_ref().is_some_and(|simulation| simulation.flaw == Some(flaw))
    }

    /// The disk to use in place of the file system.
    pub(crate) fn files(&self) -> Option<SimulatedFiles> {
        self.0.as_ref().map(|simulation| Arc::clone(&simulation.disk))
    }

    /// Stops the calling thread, a slice's committer, at the top of its loop.
    pub(crate) fn committer_is_idle(&self, slice: u16) {
        self.enter(StoreThread::Committer(slice));
    }

    /// Stops the calling thread, a slice's maintainer, at the top of its loop.
    pub(crate) fn maintainer_is_idle(&self, slice: u16) {
        self.enter(StoreThread::Maintainer(slice));
    }

    /// Stops the calling thread with its transaction complete but not committed.
    pub(crate) fn before_commit(&self) {
        self.reach(StopPoint::Committing);
    }

    /// Stops the calling thread with its transaction durable and nothing acknowledged.
    pub(crate) fn after_commit(&self) {
        self.reach(StopPoint::Committed);
    }

    /// Lets all threads run freely from now on: the store is closing.
    pub(crate) fn release_threads(&self) {
        if let Some(simulation) = &self.0 {
            simulation.scheduler.release();
        }
    }

    fn enter(&self, thread: StoreThread) {
        if let Some(simulation) = &self.0 {
            simulation.scheduler.enter(thread);
        }
    }

    fn reach(&self, point: StopPoint) {
        if let Some(simulation) = &self.0 {
            simulation.scheduler.reach(point);
        }
    }
}

/// The folder tree of a simulated disk.
pub(crate) type SimulatedFiles = Arc<SimulatedDisk>;
