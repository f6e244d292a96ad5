//! Stores whose volumes are images in memory, for tests of power cuts and of failing devices. Only with the feature
//! `simulation`; nothing of it is in the service.
//!
//! A [`Simulation`] is what a store under test stands on beside its real LMDB: a [`disk::SimulatedDisk`] that keeps what
//! was flushed apart from what was only written.

pub mod disk;
mod random;

use crate::error::OpenError;
use crate::files::Files;
use crate::store::{Store, StoreOptions};
pub use random::Random;
use std::sync::Arc;

/// What a simulated store stands on.
#[derive(Debug)]
pub struct Simulation {
    /// Its volumes.
    pub disk: Arc<disk::SimulatedDisk>,
}

impl Simulation {
    /// A simulation on a disk.
    #[must_use]
    pub fn new(disk: disk::SimulatedDisk) -> Arc<Self> {
        Arc::new(Self { disk: Arc::new(disk) })
    }

    /// As [`Store::open`], with the volumes on the simulated disk. Metadata lies in the data folder as ever.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_store(self: &Arc<Self>, options: StoreOptions) -> Result<Arc<Store>, OpenError> {
        Store::open_on(Files::Simulated(Arc::clone(self)), options)
    }
}
