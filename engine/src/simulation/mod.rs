//! Campaigns of power cuts on simulated stores. Only with the feature `simulation`; the service does not contain it.
//!
//! A simulated store has its metadata in a real LMDB environment and its volumes on a simulated disk. The hooks that make this
//! possible are in `fault/`, below the rest of the engine. The campaign is above the engine: it uses the engine as any client
//! does, and reads what a power cut leaves.
//!
//! # Fault model
//! What the engine guarantees under each fault, and what the campaign therefore checks:
//!
//! | fault | injected by | what survives |
//! |---|---|---|
//! | power cut at a stop point: before a flush, before or after a commit | [`Kept`] | every acknowledged change; of the changes in flight any subset, each as a whole |
//! | un-flushed writes lost, kept, or torn at sectors of 512 bytes | [`Kept::Torn`] | the same: nothing that was committed refers to un-flushed data |
//! | un-flushed lengths and names lost | [`Kept::Torn`] | the same: a volume is not used before its length and name are flushed |
//! | a read fails or is short | [`Operation::Read`] | the stored data; the request fails and is not retried |
//! | a write fails or is short | [`Operation::Write`] | all other data; the change is refused and its space becomes free |
//! | preallocation fails (disk full) | [`Operation::Grow`] | all data; changes that need new space are refused |
//! | hole punching fails | [`Operation::Punch`] | all data; the space stays allocated |
//! | a flush fails | [`Operation::Flush`] | all acknowledged changes; the volume takes no more writes until it has recovered |
//! | a volume does not recover | [`Operation::Touch`] | all acknowledged changes; the volume takes no more writes |
//! | a flush, or a write, reports success too early | [`Effect::Lie`] | nothing is guaranteed; the campaign must detect the loss |
//!
//! Not simulated: a power cut within LMDB's own commit (`tests/campaign power-cut` does that), data that decays on the
//! device (`tests/campaign damage`), and more than one executor.

mod bucket_contents;
mod buckets;
pub mod campaign;
mod event_replay;
mod history;
mod key_state;
mod recovery;
mod violation;
mod workload;

use crate::error::OpenError;
use crate::fault::Faults;
pub use crate::fault::{
    DiskSnapshot, Effect, Fault, Flaw, Kept, Operation, Random, Scheduler, SimulatedDisk, Simulation,
    StopPoint, StoreThread,
};
use crate::store::Store;
use crate::store::options::StoreOptions;
use std::sync::Arc;
pub use violation::{Violation, ViolationKind};

impl Store {
    /// As [`Store::open`], with the volumes on the disk of a simulation. The metadata is in the data folder, as always.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_simulated(
        simulation: &Arc<Simulation>,
        options: StoreOptions,
    ) -> Result<Arc<Self>, OpenError> {
        Self::open_with(Faults::of(simulation), options)
    }
}
