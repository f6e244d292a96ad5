//! The pin of a checkpoint: a read transaction that keeps the pages of its snapshot.
//!
//! LMDB ties a read transaction to its thread, and a thread has at most one. The pins of two checkpoints overlap. So each pin
//! has a thread of its own, which only waits.

use crate::error::Error;
use crate::generation::{Committed, Generation};
use heed::{RoTxn, WithTls};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

/// Stack of a pin's thread, in bytes. It calls LMDB once.
const STACK_BYTES: usize = 128 << 10;

/// A function that begins to read a snapshot, and returns what is known of it.
type Begin<S> = fn(&Generation) -> Result<(RoTxn<'_, WithTls>, S), Error>;

/// Keeps the pages of a snapshot until it is dropped.
#[derive(Debug)]
pub(crate) struct Pin<S = Committed> {
    /// The facts about the snapshot. For a checkpoint: its roots, and the place in the log that follows it.
    pub(crate) snapshot: S,
    /// The thread ends when this is dropped.
    release: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Pin {
    /// Pins the newest snapshot of a generation whose commits a log makes durable.
    ///
    /// # Errors
    /// Those of LMDB, and [`Error::Io`] if no thread can be started.
    pub(crate) fn newest(generation: &Arc<Generation>) -> Result<Self, Error> {
        Self::begin(generation, Generation::begin_read_committed)
    }
}

impl<S: Send + 'static> Pin<S> {
    /// Pins the snapshot that `begin` begins to read.
    ///
    /// # Errors
    /// Those of `begin`, and [`Error::Io`] if no thread can be started.
    pub(crate) fn begin(generation: &Arc<Generation>, begin: Begin<S>) -> Result<Self, Error> {
        let (release, released) = channel::<()>();
        let (send, begun) = channel();
        let generation = Arc::clone(generation);
        let hold = move || {
            match begin(&generation) {
                Ok((read, snapshot)) => {
                    let _ = send.send(Ok(snapshot));
                    // Ends with an error when the pin is dropped.
                    let _ = released.recv();
                    drop(read);
                }
                Err(error) => drop(send.send(Err(error))),
            }
        };
        let thread = std::thread::Builder::new().name("pin".to_owned()).stack_size(STACK_BYTES).spawn(hold);
        let thread = thread.map_err(Error::Io)?;
        let begun =
            begun.recv().unwrap_or_else(|_| Err(Error::Lmdb("a snapshot could not be pinned".to_owned())));
        Ok(Self { snapshot: begun?, release: Some(release), thread: Some(thread) })
    }
}

impl<S> Drop for Pin<S> {
    fn drop(&mut self) {
        drop(self.release.take());
        if let Some(thread) = self.thread.take() {
            // It cannot panic after the snapshot was sent.
            let _ = thread.join();
        }
    }
}
