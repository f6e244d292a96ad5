//! Buffers for reads and writes of simulated files.

use std::rc::Rc;

/// A buffer for a file on a simulated disk. Clones share its bytes.
#[derive(Clone, Debug)]
pub(crate) struct SimulatedBuffer(Rc<Vec<u8>>);

impl SimulatedBuffer {
    /// Returns a buffer that holds these bytes.
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        Self(Rc::new(bytes))
    }

    /// The bytes of the buffer.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The bytes of a buffer that is not shared.
    ///
    /// # Panics
    /// Panics when the buffer is shared.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        Rc::get_mut(&mut self.0).expect("a buffer is filled before it is shared")
    }

    /// Returns whether a clone of the buffer exists.
    pub(crate) fn is_shared(&self) -> bool {
        Rc::strong_count(&self.0) > 1
    }
}
