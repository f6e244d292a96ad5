//! Inspections on threads of their own: one at a time, ended early when nobody waits any more or the store closes.

use crate::error::EngineError;
use crate::store::Store;
use futures_channel::oneshot;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::thread::JoinHandle;

/// By how much the thread is nicer than the executors: requests go first.
const NICENESS: i32 = 10;

/// A request to end early.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// # Errors
    /// [`EngineError::ShuttingDown`] when the work is to end.
    pub(crate) fn check(&self) -> Result<(), EngineError> {
        if self.0.load(Ordering::Relaxed) { Err(EngineError::ShuttingDown) } else { Ok(()) }
    }

    fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[derive(Debug, Default)]
struct State {
    /// One is under way. It is over before its answer is given, so that who has the answer may begin the next.
    is_running: bool,
    /// The last one, ended or not.
    last: Option<(Cancel, JoinHandle<()>)>,
    /// The store closes: none is begun any more.
    ended: bool,
}

/// The inspections of a store.
#[derive(Debug, Default)]
pub(crate) struct Inspections(Mutex<State>);

impl Inspections {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends what is under way and waits for it; nothing is begun any more.
    pub(crate) fn end(&self) {
        let last = {
            let mut state = self.lock();
            state.ended = true;
            state.last.take()
        };
        if let Some((cancel, thread)) = last {
            cancel.cancel();
            // A panic in it was caught and told.
            let _ = thread.join();
        }
    }
}

/// The result of an inspection or repair that runs on a thread of its own. Dropped, it ends the work early.
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

/// Begins `work` on a thread of its own.
///
/// # Errors
/// [`EngineError::Overloaded`] when another is under way; [`EngineError::ShuttingDown`].
pub(crate) fn begin<T: Send + 'static>(
    store: &Arc<Store>,
    work: impl FnOnce(&Store, &Cancel) -> Result<T, EngineError> + Send + 'static,
) -> Result<Inspecting<T>, EngineError> {
    let mut state = store.inspections.lock();
    if state.ended {
        return Err(EngineError::ShuttingDown);
    }
    if state.is_running {
        return Err(EngineError::Overloaded);
    }
    let (send, answer) = oneshot::channel();
    let (own_store, cancel) = (Arc::clone(store), Cancel::default());
    let own_cancel = cancel.clone();
    let body = move || {
        // On Linux this is about the calling thread; that it fails is no reason not to work.
        let _ = rustix::process::nice(NICENESS);
        let done = catch_unwind(AssertUnwindSafe(|| work(&own_store, &own_cancel)));
        own_store.inspections.lock().is_running = false;
        drop(own_store);
        // Who asked may have gone; after a panic, which the panic hook has told, dropping the sender answers.
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
