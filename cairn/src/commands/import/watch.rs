//! Notices that a run is paused, and keeps the importer waiting.

use std::io::{IsTerminal as _, stderr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use cairn_api::ImportRun;

use crate::client::{Client, Request, read};
use crate::commands::remote::Remote;
use crate::commands::signals::nap;
use crate::output::print_error;

/// The interval at which the server is asked.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The interval at which a wait looks whether the pause is over, or the command ends.
const GLANCE: Duration = Duration::from_millis(100);

/// The pause state of the run.
#[derive(Default)]
pub(super) struct Watch {
    is_paused: AtomicBool,
}

impl Watch {
    pub(super) fn is_paused(&self) -> bool {
        self.is_paused.load(Ordering::Relaxed)
    }

    /// Waits while the run is paused, and no longer than the command goes on. Nothing must be open meanwhile that times out.
    pub(super) fn wait(&self, source: &Remote) {
        while self.is_paused() && !source.is_stopped() {
            nap(GLANCE);
        }
    }

    /// Asks the server again and again, until it is over; whoever ends it wakes this thread. `look` asks once.
    pub(super) fn keep(&self, look: impl Fn(), is_over: &AtomicBool) {
        loop {
            thread::park_timeout(LOOK_EVERY);
            if is_over.load(Ordering::Relaxed) {
                break;
            }
            look();
        }
        self.is_paused.store(false, Ordering::Relaxed);
    }

    /// Asks the server once. Returns whether it has forgotten a run that was paused, which stays so.
    pub(super) fn look(&self, client: &Client, id: &str) -> bool {
        let is_paused = match client.call_raw(&Request::get(format!("/api/v1/imports/{id}"))) {
            Ok(response) if response.status.is_success() => {
                let run = response.body.and_then(|body| read::<ImportRun>(&body).ok());
                run.is_some_and(|run| run.paused_at.is_some())
            }
            // It is busy, is being restarted, or cannot be reached: what was true stays true.
            Ok(response) if response.status.is_server_error() || response.status.as_u16() == 429 => {
                return false;
            }
            Err(_) => return false,
            Ok(response) if self.is_paused() && response.error("code") == Some("IMPORT_NOT_FOUND") => {
                return true;
            }
            // The run is forgotten, or the credential is not valid any more: the next request of the run says what is wrong.
            Ok(_) => false,
        };
        let was_paused = self.is_paused.swap(is_paused, Ordering::Relaxed);
        // On a terminal, the progress says so.
        if was_paused != is_paused && !stderr().is_terminal() {
            let state = if is_paused { "is paused" } else { "goes on" };
            print_error(&format!("cairn: the import {state}\n"));
        }
        false
    }
}
