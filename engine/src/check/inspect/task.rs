//! Runs one inspection or repair at a time on its own thread.
//!
//! It is cancelled when its caller stops waiting or the store closes.

use crate::error::EngineError;
use crate::slice::change_log::FOLLOWERS;
use crate::store::Store;
use crate::store::background::{Cancel, lower_priority};
use futures_channel::oneshot;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The result of an inspection or repair on its own thread. Dropping it cancels the work.
#[derive(Debug)]
pub struct Inspecting<T> {
    answer: oneshot::Receiver<Result<T, EngineError>>,
    cancel: Cancel,
}

impl<T> Future for Inspecting<T> {
    type Output = Result<T, EngineError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = Pin::new(&mut self.answer).poll(context);
        answer
            .map(|answer| answer.unwrap_or_else(|_| Err(EngineError::Io("the inspection failed".to_owned()))))
    }
}

impl<T> Drop for Inspecting<T> {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

/// Starts `work` on its own thread.
///
/// # Errors
/// [`EngineError::AlreadyRunning`] when another is under way; [`EngineError::ShuttingDown`].
pub(crate) fn begin<T: Send + 'static>(
    store: &Arc<Store>,
    work: impl FnOnce(&Store, &Cancel) -> Result<T, EngineError> + Send + 'static,
) -> Result<Inspecting<T>, EngineError> {
    let mut state = store.background.inspections.lock();
    if state.ended {
        return Err(EngineError::ShuttingDown);
    }
    if state.is_running {
        return Err(EngineError::AlreadyRunning(FOLLOWERS));
    }
    let (send, answer) = oneshot::channel();
    let (own_store, cancel) = (Arc::clone(store), Cancel::default());
    let own_cancel = cancel.clone();
    let body = move || {
        lower_priority();
        let done = catch_unwind(AssertUnwindSafe(|| work(&own_store, &own_cancel)));
        own_store.background.inspections.lock().is_running = false;
        drop(own_store);
        // The caller may be gone. On panic the dropped sender wakes it; the panic hook has logged.
        if let Ok(done) = done {
            drop(send.send(done));
        }
    };
    let thread = std::thread::Builder::new().name("inspection".to_owned()).spawn(body);
    let thread = thread.map_err(|error| EngineError::Io(format!("starting a thread: {error}")))?;
    state.is_running = true;
    state.last = Some((cancel.clone(), thread));
    Ok(Inspecting { answer, cancel })
}
