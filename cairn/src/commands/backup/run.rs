//! `cairn backup -- COMMAND`: holds the store while a command copies it.

use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::commands::backup::hold::{Hold, stop_flag};
use crate::commands::macros::command;
use crate::commands::signals::nap;
use crate::failure::{Failure, Outcome};
use crate::quantity;

/// Environment variable of the command: the folder with the copy of the metadata.
const BACKUP_DIR: &str = "CAIRN_BACKUP_DIR";
/// Environment variable of the command: the data folder.
const DATA_DIR: &str = "CAIRN_DATA_DIR";

/// The interval at which the command is looked at.
const GLANCE: Duration = Duration::from_millis(50);

command! {
    /// Hold the store, run a command that copies it, and release it however the command ends. The command finds the data folder
    /// in $CAIRN_DATA_DIR and the copied metadata in $CAIRN_BACKUP_DIR. The word run may be left out. Run this on the host of
    /// the server, as its user.
    struct Run("run") {
        /// end by itself after this time (default: 2h)
        #[argh(option, arg_name = "duration")]
        timeout: Option<quantity::Duration>,
        /// the command and its arguments, after --
        #[argh(positional, greedy)]
        command: Vec<String>,
    }
}

impl Run {
    pub(super) fn run(&self) -> Outcome {
        let Some((program, arguments)) = self.command.split_first() else {
            return Err(Failure::WrongUsage(
                "a command is missing: cairn backup -- restic backup \"$CAIRN_DATA_DIR\"".to_owned(),
            ));
        };
        let client = self.client()?;
        let stop = stop_flag()?;
        let hold = Hold::begin(&client, self.timeout)?;
        // A command that could not read the copy, or would read another one, is not run.
        hold.store_id()?;
        let mut command = std::process::Command::new(program);
        command.args(arguments).env(BACKUP_DIR, &hold.held.backup_dir).env(DATA_DIR, &hold.held.data_dir);
        let mut child =
            command.spawn().map_err(|error| format!("the command could not be started: {error}"))?;
        let ended = hold.keep_while(|| wait(&mut child, &hold, &stop));
        hold.end()?;
        let status = ended?;
        if stop.load(Ordering::Relaxed) {
            return Err(Failure::Interrupted("the backup was interrupted".to_owned()));
        }
        if status.success() { Ok(()) } else { Err(format!("the command failed: {status}").into()) }
    }
}

/// Waits for the end of the command. Ends it when a signal arrives or the store is no longer held.
fn wait(child: &mut Child, hold: &Hold<'_>, stop: &AtomicBool) -> Result<ExitStatus, Failure> {
    let mut loss = None;
    let mut is_told = false;
    loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            return loss.map_or(Ok(status), Err);
        }
        loss = loss.or_else(|| hold.loss());
        if !is_told && (loss.is_some() || stop.load(Ordering::Relaxed)) {
            is_told = true;
            // It may have ended a moment ago.
            let _ = kill_process(Pid::from_child(child), Signal::TERM);
        }
        nap(GLANCE);
    }
}
