//! The generation in which new transactions of an environment begin.

use crate::generation::Generation;
use crate::limits::TIMED_THREADS;
use crate::readers::thread_number;
use cairn_sync::Mutex;
use std::sync::Arc;

/// Keeps a generation open. Each thread has a handle of its own, so that readers on different cores do not count on the
/// same cache line.
#[derive(Debug)]
pub(crate) struct Handle(pub(crate) Arc<Generation>);

/// The handle of a thread. Empty until the thread's first read of the generation.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Slot(Mutex<Option<Arc<Handle>>>);

/// The current generation, and the handles of the threads.
#[derive(Debug)]
pub(crate) struct Current {
    generation: Mutex<Arc<Generation>>,
    /// More threads share slots.
    slots: Box<[Slot]>,
}

impl Current {
    pub(crate) fn new(generation: Arc<Generation>) -> Self {
        let slots = (0..TIMED_THREADS).map(|_| Slot::default()).collect();
        Self { generation: Mutex::new(generation), slots }
    }

    /// Returns the current generation.
    pub(crate) fn get(&self) -> Arc<Generation> {
        Arc::clone(&self.generation.lock())
    }

    /// Returns whether this is the current generation.
    pub(crate) fn is(&self, generation: &Arc<Generation>) -> bool {
        Arc::ptr_eq(&self.generation.lock(), generation)
    }

    /// Returns this thread's handle of the current generation.
    pub(crate) fn handle(&self) -> Arc<Handle> {
        let slot = &self.slots[thread_number() % self.slots.len()];
        Arc::clone(slot.0.lock().get_or_insert_with(|| Arc::new(Handle(self.get()))))
    }

    /// Makes another generation the current one, and returns the earlier one. Open transactions stay in theirs.
    ///
    /// The caller holds the writer locks of both. Otherwise a change could be visible on one thread and not yet on another.
    pub(crate) fn replace(&self, generation: Arc<Generation>) -> Arc<Generation> {
        let earlier = std::mem::replace(&mut *self.generation.lock(), generation);
        self.drop_handles();
        earlier
    }

    fn drop_handles(&self) {
        self.slots.iter().for_each(|slot| drop(slot.0.lock().take()));
    }

    /// Returns the current generation of an environment that is being closed.
    pub(crate) fn into_generation(self) -> Arc<Generation> {
        self.drop_handles();
        self.generation.into_inner()
    }
}
