//! The thread that makes the checkpoints of an environment.
//!
//! While there are changes, it hands dirty pages to the device in small portions, so that little is left to flush when a
//! checkpoint is due. It sleeps while nothing changes.

use crate::current::Current;
use crate::error::Error;
use crate::log::commit_log::{CommitLog, Step};
use crate::steady_io::begin_write_back;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;

/// The thread. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Checkpointer {
    log: Arc<CommitLog>,
    thread: Option<JoinHandle<()>>,
}

impl Checkpointer {
    /// Starts the thread.
    pub(crate) fn start(log: &Arc<CommitLog>, current: &Arc<Current>) -> Result<Self, Error> {
        let (own, current) = (Arc::clone(log), Arc::clone(current));
        let body = move || {
            if catch_unwind(AssertUnwindSafe(|| run(&own, &current))).is_err() {
                // Otherwise a full log would wait for a checkpoint that nobody makes.
                own.fail_with(&Error::Lmdb(
                    "the thread that makes checkpoints has panicked: restart the service".to_owned(),
                ));
                own.end();
            }
        };
        let thread = std::thread::Builder::new().name("checkpoint".to_owned()).spawn(body);
        Ok(Self { log: Arc::clone(log), thread: Some(thread.map_err(Error::Io)?) })
    }
}

fn run(log: &CommitLog, current: &Current) {
    loop {
        match log.next_step(|| current.get().used()) {
            Step::End => return,
            Step::WriteBack => begin_write_back(&current.get().data),
            Step::Checkpoint => {
                log.grow();
                // The next append reports a failure.
                let _ = log.checkpoint(current);
            }
        }
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.log.end();
        if let Some(thread) = self.thread.take() {
            // A panic has been reported already.
            let _ = thread.join();
        }
    }
}
