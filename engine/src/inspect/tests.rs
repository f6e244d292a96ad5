//! Inspection and repair of stores with planted damage, and of stores that are being written to.

mod concurrent;
mod planted;
mod relations;
mod repaired;
mod support;
