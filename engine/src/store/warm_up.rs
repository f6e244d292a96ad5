//! Reads the metadata into the page cache after a start.
//!
//! LMDB's map brings single pages into memory, because most stores are larger than memory some day. After a start without page
//! cache, a request then waits for the device for each page that no other request has read. If the metadata fits into memory, a
//! thread therefore reads it once, in order. After each piece it rests for as long as the read took.

use crate::error::EngineError;
use crate::store::Store;
use crate::store::runtime::spawn_background;
use std::sync::Arc;
use std::time::Instant;

impl Store {
    /// Begins to read the metadata of all slices into the page cache, unless it has more than `bytes_max` bytes. Returns
    /// whether it does. Closing the store ends it.
    ///
    /// # Errors
    /// [`EngineError::Io`] when the thread cannot be started.
    pub fn begin_warm_up(self: &Arc<Self>, bytes_max: u64) -> Result<bool, EngineError> {
        if self.slices.iter().map(|slice| slice.environment.used()).sum::<u64>() > bytes_max {
            return Ok(false);
        }
        let own = Arc::clone(self);
        let thread = spawn_background("warm-up".to_owned(), self.disk.path(), move || own.warm_up());
        let thread = thread.map_err(|error| EngineError::Io(error.to_string()))?;
        self.runtime.add(thread);
        Ok(true)
    }

    #[expect(clippy::disallowed_methods, reason = "a thread of its own")]
    fn warm_up(&self) {
        for slice in &self.slices {
            let mut begun = Instant::now();
            let read = slice.environment.read_into_page_cache(|| {
                std::thread::sleep(begun.elapsed());
                begun = Instant::now();
                !self.runtime.is_closing()
            });
            match read {
                Ok(bytes) => {
                    tracing::debug!(target: "service::engine", slice = slice.number, bytes, "metadata was read into memory");
                }
                // Requests read what they need.
                Err(error) => {
                    tracing::warn!(target: "service::engine", slice = slice.number, %error, "metadata could not be read into memory");
                }
            }
        }
    }
}
