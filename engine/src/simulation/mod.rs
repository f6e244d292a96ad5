//! Stores whose volumes are images in memory, for tests of power cuts and of failing devices. Only with the feature
//! `simulation`; nothing of it is in the service.
//!
//! A [`Simulation`] is what a store under test stands on beside its real LMDB: a [`disk::SimulatedDisk`] that keeps what
//! was flushed apart from what was only written, a [`stage::Stage`] that decides which of its threads runs, and the
//! deliberate mistakes ([`Flaw`]) by which a campaign shows that it would find them. [`campaign`] cuts the power of such
//! stores by the thousand.

mod buckets;
pub mod campaign;
pub mod disk;
mod examine;
mod history;
mod look;
mod random;
pub mod stage;
mod state;
mod workload;

use crate::error::OpenError;
use crate::files::Files;
use crate::slice::Slice;
use crate::store::{Store, StoreOptions};
pub use random::Random;
use stage::{Actor, Point, Stage};
use std::sync::{Arc, PoisonError};

/// A mistake that the engine makes on purpose. Others are made by a disk that lies ([`disk::Effect::Lie`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// Answers go out before the transaction is committed.
    AnswerBeforeCommit,
    /// Space of removed payloads is handed out before their removal is committed.
    ReleaseBeforeCommit,
    /// Space of removed payloads is handed out while they are still read.
    ReleaseDespiteReaders,
    /// Space of removed payloads stays marked in the free map.
    KeepRemovedMarked,
    /// A flush that fails is taken for one that succeeded.
    IgnoreFailedFlush,
    /// A completion drops the first part of the upload instead of those that it does not name.
    DropNamedPart,
    /// A completion leaves its parts counted as those of an unfinished upload.
    CountAssembledParts,
    /// Space of removed objects of parts is handed out while they are still read.
    ReleasePartsDespiteReaders,
    /// Nobody writes down where a null version is that is not the newest.
    ForgetNullVersions,
    /// Locks of versions are not asked when these are removed.
    RemoveLocked,
}

/// What a simulated store stands on.
#[derive(Debug)]
pub struct Simulation {
    /// Its volumes.
    pub disk: Arc<disk::SimulatedDisk>,
    /// Which of its threads runs.
    pub stage: Arc<Stage>,
    /// The mistake that it makes.
    pub flaw: Option<Flaw>,
}

impl Simulation {
    /// A simulation on a disk, whose threads run as they like.
    #[must_use]
    pub fn new(disk: disk::SimulatedDisk) -> Arc<Self> {
        Arc::new(Self { disk: Arc::new(disk), stage: Arc::new(Stage::released()), flaw: None })
    }

    /// A simulation on a disk, whose threads are held on the stage.
    #[must_use]
    pub fn staged(disk: disk::SimulatedDisk, flaw: Option<Flaw>) -> Arc<Self> {
        let stage = Arc::new(Stage::default());
        disk.set_stage(&stage);
        Arc::new(Self { disk: Arc::new(disk), stage, flaw })
    }

    /// As [`Store::open`], with the volumes on the simulated disk. Metadata lies in the data folder as ever.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_store(self: &Arc<Self>, options: StoreOptions) -> Result<Arc<Store>, OpenError> {
        Store::open_on(Files::Simulated(Arc::clone(self)), options)
    }
}

impl Files {
    /// The calling thread of the store has reached the top of its loop.
    pub(crate) fn enter_stage(&self, actor: Actor) {
        if let Self::Simulated(simulation) = self {
            simulation.stage.enter(actor);
        }
    }

    /// The calling thread of the store has reached a point.
    pub(crate) fn reach(&self, point: Point) {
        if let Self::Simulated(simulation) = self {
            simulation.stage.reach(point);
        }
    }

    /// The store closes: its threads run to their end.
    pub(crate) fn release_stage(&self) {
        if let Self::Simulated(simulation) = self {
            simulation.stage.release();
        }
    }

    /// What the committer takes a flush for.
    pub(crate) fn forgive_flush(&self, flushed: std::io::Result<()>) -> std::io::Result<()> {
        if self.is_flawed(Flaw::IgnoreFailedFlush) { Ok(()) } else { flushed }
    }

    /// Whether a mistake is to be made.
    pub(crate) fn is_flawed(&self, flaw: Flaw) -> bool {
        matches!(self, Self::Simulated(simulation) if simulation.flaw == Some(flaw))
    }
}

impl Slice {
    /// Whether its keeper, woken now, would find something to do.
    pub(crate) fn keeper_has_work(&self) -> bool {
        let requests = self.keeper.lock().unwrap_or_else(PoisonError::into_inner);
        requests.woken || !requests.growth.is_empty()
    }
}
