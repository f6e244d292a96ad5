//! The resources of each executor: open volume files, upload memory, hashing, counters.

pub(crate) mod context;
pub(crate) mod copy_queue;
pub(crate) mod hasher;
pub(crate) mod inline_hasher;
pub(crate) mod memory_budget;
