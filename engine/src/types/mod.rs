//! Objects, uploads, buckets and locks as callers of the engine see them.
//!
//! These types hold values and do no I/O. Only a [`bucket::Bucket`] has state: its settings and counters, shared by threads.

pub(crate) mod bucket;
pub(crate) mod disk_state;
pub(crate) mod event;
pub(crate) mod import;
pub(crate) mod lifecycle;
pub(crate) mod lifecycle_status;
pub(crate) mod object;
pub(crate) mod object_lock;
pub(crate) mod public_access;
pub(crate) mod search;
pub(crate) mod tags;
pub(crate) mod upload;
