//! `cairn backup`: backs up a running store.

mod folder;
mod hold;
mod run;

use cairn_api::Backup as Status;
use cairn_http1::encode_strict;

use crate::client::{Request, read};
use crate::commands::macros::{command, noun};
use crate::failure::Outcome;
use crate::output::table::{Columns, bytes, record, text, words};
use crate::quantity::Duration;
use crate::terminal::plain;
use folder::{List, Restore, To, Verify};
use hold::{Hold, PATH, ended_early};
use run::Run;

noun! {
    /// Back up a running store. `cairn backup -- COMMAND` holds the store while a command copies it. Writes go on meanwhile.
    struct Backup("backup"): BackupCommand { Run, To, List, Verify, Restore, Begin, End, ShowStatus }
}

command! {
    /// Hold the store for a copy by hand, and wait until its metadata are copied. `cairn backup end` ends it.
    struct Begin("begin") {
        /// end by itself after this time (default: 2h)
        #[argh(option, arg_name = "duration")]
        timeout: Option<Duration>,
    }
}

command! {
    /// End the backup in progress. Fails if it has ended before: the copy is then no valid backup.
    struct End("end") {
        /// the id that `cairn backup begin` printed (default: whichever backup is in progress)
        #[argh(positional, arg_name = "id")]
        id: Option<String>,
    }
}

command! {
    /// Show the backup in progress, or the last one.
    struct ShowStatus("status") {}
}

const SHOWN: Columns<Status> = &[
    ("id", |status| text(&status.id)),
    ("state", |status| words(&status.state)),
    ("began", |status| text(&status.begun_at)),
    ("by", |status| text(&status.by)),
    ("held since", |status| text(&status.held_at)),
    ("ends at the latest", |status| text(&status.expires_at)),
    ("ended", |status| text(&status.ended_at)),
    ("reason", |status| text(&status.reason)),
    ("metadata copied", |status| bytes(&status.copied_bytes)),
    ("metadata to copy", |status| bytes(&status.expected_bytes)),
    ("removed data kept", |status| bytes(&status.held_bytes)),
    ("data folder", |status| text(&status.data_dir)),
    ("metadata folder", |status| text(&status.backup_dir)),
];

/// Adds the word `run`, which may be left out before a command that follows `--`.
pub(super) fn with_run<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let mut whole = arguments.to_vec();
    if let ["backup", first, ..] = arguments
        && first.starts_with("--")
        && arguments.contains(&"--")
    {
        whole.insert(1, "run");
    }
    whole
}

impl Begin {
    fn run(&self) -> Outcome {
        let client = self.client()?;
        let hold = Hold::begin_lasting(&client, self.timeout)?;
        let body = client.call(&Request::get(PATH))?;
        let end = format!("\ncopy both folders, then: cairn backup end {}\n", plain(&hold.held.hold_id));
        hold.keep();
        client.print_as(&body, |status: &Status| record(SHOWN, status) + &end)
    }
}

/// Says what a hold that has ended means for a copy.
const NOT_KEPT: &str = "what was copied since then is no backup";

impl End {
    fn run(&self) -> Outcome {
        let client = self.client()?;
        let last = client.call(&Request::get(PATH))?;
        let status: Status = read(&last)?;
        let Some(id) = status.id.as_deref() else {
            let what = "no backup was begun since the service was started";
            return Err(format!("{what}: what was copied before is no backup").into());
        };
        if let Some(own) = self.id.as_deref().filter(|own| *own != id) {
            let what = format!("the backup {} has ended before: {NOT_KEPT}", plain(own));
            let last = format!("the last one is {}: `cairn backup status` shows it", plain(id));
            return Err(format!("{what}\n  {last}").into());
        }
        if status.ended_at.is_some() {
            client.print(&last, || record(SHOWN, &status))?;
            let released = || format!("the backup was released before: {NOT_KEPT}").into();
            return Err(ended_early(&status).unwrap_or_else(released));
        }
        // By its id: meanwhile it may have ended, and another one begun.
        let body = client.call(&Request::delete(format!("{PATH}?id={}", encode_strict(id))))?;
        let status: Status = read(&body)?;
        client.print(&body, || record(SHOWN, &status))?;
        ended_early(&status).map_or(Ok(()), Err)
    }
}

impl ShowStatus {
    fn run(&self) -> Outcome {
        self.client()?.show(&Request::get(PATH), SHOWN)
    }
}
