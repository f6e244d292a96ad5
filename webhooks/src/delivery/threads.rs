//! Starts and ends the threads of delivery.

use super::context::Context;
use super::{fan_out, loader, worker};
use crate::limits::{IDLE_CONNECTIONS_INTERVAL, INTERRUPTED_WAIT};
use cairn_sync::Mutex;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// The function that a thread runs.
type Body = fn(&Arc<Context>);

/// The threads that run as long as the service.
pub(crate) struct Threads(Mutex<Vec<JoinHandle<()>>>);

impl Threads {
    /// Starts the threads.
    ///
    /// # Errors
    /// The operating system has no thread.
    pub(crate) fn start(context: &Arc<Context>) -> std::io::Result<Self> {
        let threads = Self(Mutex::default());
        let bodies: [(&str, Body); 3] =
            [("webhook-fanout", fan_out::run), ("webhook-loader", loader::run), ("webhook-idle", close_idle)];
        for (name, body) in bodies {
            let context = Arc::clone(context);
            let run = move || {
                if catch_unwind(AssertUnwindSafe(|| body(&context))).is_err() {
                    tracing::error!(target: "service::webhooks", "a thread of webhooks panicked: the process ends");
                    std::process::abort();
                }
            };
            let thread = std::thread::Builder::new().name(name.to_owned()).spawn(run)?;
            threads.0.lock().push(thread);
        }
        worker::start_if_needed(context);
        Ok(threads)
    }

    /// Begins no further attempts, waits for those that are being made, at most for `grace`, and then interrupts them. Blocks.
    pub(crate) fn close(&self, context: &Context, grace: Duration) {
        context.begin_closing();
        context.lanes.close();
        context.source.wake();
        let threads = std::mem::take(&mut *self.0.lock());
        for thread in threads {
            // A panic of the thread has already ended the process.
            let _ = thread.join();
        }
        if !context.lanes.wait_quiet(grace) {
            context.lanes.interrupt();
            context.client.shut_down();
            context.lanes.wait_quiet(INTERRUPTED_WAIT);
        }
    }
}

/// Closes connections that are not in use, from time to time.
fn close_idle(context: &Arc<Context>) {
    while !context.is_closing() {
        context.wait_for_end(IDLE_CONNECTIONS_INTERVAL);
        context.client.close_idle_connections();
    }
}
