//! The format version of an open store.

use crate::format::format_version::FORMAT_VERSION;
use std::sync::atomic::{AtomicU32, Ordering};

/// The version that the superblock has. Only an upgrade changes it.
#[derive(Debug)]
pub(crate) struct StoreFormat(AtomicU32);

impl StoreFormat {
    pub(super) const fn new(version: u32) -> Self {
        Self(AtomicU32::new(version))
    }

    pub(super) fn version(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }

    /// Notes that the superblock has the latest version, and that all its tables exist.
    pub(super) fn raise(&self) {
        self.0.store(FORMAT_VERSION, Ordering::SeqCst);
    }
}
