//! A bucket as all threads share it.

use cairn_model::{BucketName, Timestamp};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// A bucket: its fixed facts, its state, and its usage.
#[derive(Debug)]
pub struct Bucket {
    /// Its name.
    pub name: BucketName,
    /// When it was made.
    pub created_at: Timestamp,
    /// Never used again for another bucket of the same name.
    pub(crate) id: u64,
    state: AtomicU8,
    objects: AtomicU64,
    bytes: AtomicU64,
}

/// Current objects of a bucket, exact as of the last commit of each slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Number of current objects.
    pub objects: u64,
    /// Bytes of their payloads.
    pub bytes: u64,
}

/// Whether changes are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BucketState {
    Active,
    /// Its deletion is being decided: changes are refused as conflicts.
    Deleting,
    Deleted,
}

impl Bucket {
    pub(crate) fn new(id: u64, name: BucketName, created_at: Timestamp) -> Self {
        Self {
            name,
            created_at,
            id,
            state: AtomicU8::new(0),
            objects: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        }
    }

    /// Usage over all slices.
    #[must_use]
    pub fn usage(&self) -> Usage {
        Usage { objects: self.objects.load(Ordering::Relaxed), bytes: self.bytes.load(Ordering::Relaxed) }
    }

    /// Adds what one commit changed; the differences wrap, so that a negative one subtracts.
    pub(crate) fn add_usage(&self, objects: u64, bytes: u64) {
        self.objects.fetch_add(objects, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn state(&self) -> BucketState {
        match self.state.load(Ordering::SeqCst) {
            0 => BucketState::Active,
            1 => BucketState::Deleting,
            _ => BucketState::Deleted,
        }
    }

    pub(crate) fn set_state(&self, state: BucketState) {
        let number = match state {
            BucketState::Active => 0,
            BucketState::Deleting => 1,
            BucketState::Deleted => 2,
        };
        self.state.store(number, Ordering::SeqCst);
    }
}
