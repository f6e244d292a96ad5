//! Measurements of a run: latencies and counts, CPU time and memory.

pub(crate) mod process;
pub(crate) mod statistics;
