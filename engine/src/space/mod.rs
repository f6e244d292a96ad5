//! Space allocation in the volumes of one slice.
//!
//! The allocator works in memory. The free map in the metadata (`format/free_map.rs`) is its durable form.

pub(crate) mod allocator;
#[cfg(test)]
mod fragmentation;
pub(crate) mod free_runs;
pub(crate) mod growth;
pub(crate) mod held;
pub(crate) mod reservation;
