//! Inspection and repair of stores with planted damage, and of stores that are being written to.

mod concurrent;
mod planted;
mod repaired;
mod support;
