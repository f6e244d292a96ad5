//! Group commit: one thread per slice that applies and commits changes.

pub(crate) mod batch;
pub(crate) mod committer;
mod read_ahead;
