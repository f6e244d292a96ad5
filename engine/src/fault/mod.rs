//! Fault injection hooks: planted flaws, stop points of the store's threads, and simulated disks.
//!
//! The engine calls these hooks in every build, so that code outside this folder needs no conditional compilation. Without
//! the feature `simulation` they do nothing (`disabled.rs`): [`Faults`] has no size, [`Faults::has`] is constantly `false`,
//! and the types of simulated files have no values, so the compiler removes every branch on them.
//!
//! With the feature (`enabled.rs`) a `Simulation` provides three things:
//! * a `SimulatedDisk` in place of the volume files. It separates flushed from merely written data (`simulated_disk.rs`)
//!   and computes what a power cut leaves (`power_cut.rs`);
//! * a `Scheduler` that runs the store's threads one at a time (`scheduler.rs`);
//! * one [`Flaw`]: a mistake that the engine makes on purpose, to prove that the campaign in `simulation/` detects it.
//!
//! This folder imports nothing from the rest of the engine.

#[cfg(not(feature = "simulation"))]
mod disabled;
#[cfg(feature = "simulation")]
mod enabled;
mod flaw;
#[cfg(feature = "simulation")]
mod power_cut;
#[cfg(feature = "simulation")]
mod random;
#[cfg(feature = "simulation")]
mod scheduler;
#[cfg(feature = "simulation")]
mod simulated_buffer;
#[cfg(feature = "simulation")]
mod simulated_disk;

#[cfg_attr(not(feature = "simulation"), expect(unreachable_pub, reason = "only campaigns plant flaws"))]
pub use flaw::Flaw;

#[cfg(not(feature = "simulation"))]
pub(crate) use disabled::{Faults, SimulatedBuffer, SimulatedFile, SimulatedFiles};
#[cfg(feature = "simulation")]
pub use enabled::Simulation;
#[cfg(feature = "simulation")]
pub(crate) use enabled::{Faults, SimulatedFiles};
#[cfg(feature = "simulation")]
pub use power_cut::{DiskSnapshot, Kept};
#[cfg(feature = "simulation")]
pub use random::Random;
#[cfg(feature = "simulation")]
pub use scheduler::{Scheduler, StopPoint, StoreThread};
#[cfg(feature = "simulation")]
pub(crate) use simulated_buffer::SimulatedBuffer;
#[cfg(feature = "simulation")]
pub(crate) use simulated_disk::SimulatedFile;
#[cfg(feature = "simulation")]
pub use simulated_disk::{Effect, Fault, Operation, SimulatedDisk};
