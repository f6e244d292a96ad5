//! `cairn storage compact`: returns free space to the file system, of a running server or of a stopped store.

use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::time::Duration;

use cairn_engine::{Compaction, compact_store};
use serde_json::json;

use crate::client::{Client, Request, read};
use crate::commands::macros::command;
use crate::failure::Outcome;
use crate::output;
use crate::terminal::plain;

/// The route of compactions.
const PATH: &str = "/api/v1/storage/compact";
/// The interval at which a running server is asked for the progress.
const POLL: Duration = Duration::from_millis(500);

command! {
    /// Return free space in the metadata and in empty volumes to the file system. A running server continues to serve requests.
    /// Each part of the metadata needs room for a copy of its content. With --data-dir, compact the metadata of a stopped
    /// store; this needs no secrets.
    struct Compact("compact") {
        /// the data folder of a stopped store
        #[argh(option, arg_name = "folder")]
        data_dir: Option<String>,
    }
}

impl Compact {
    pub(crate) fn run(&self) -> Outcome {
        match &self.data_dir {
            Some(data_dir) => compact_stopped_store(Path::new(data_dir), self.json),
            None => compact_running_store(&self.client()?),
        }
    }
}

/// Begins a compaction, waits for its end and prints the result. Fails if the compaction did.
fn compact_running_store(client: &Client) -> Outcome {
    let mut body = client.call(&Request::post(PATH))?;
    let mut status: cairn_api::Compaction = read(&body)?;
    while *status.state == *"running" {
        show_progress(&status);
        wait();
        body = client.call(&Request::get(PATH))?;
        status = read(&body)?;
    }
    clear_progress();
    client.print(&body, || result_text(&status))?;
    match (&*status.state, &status.reason) {
        ("done", _) => Ok(()),
        (_, Some(reason)) => Err(format!(
            "the compaction ended early: {}\n  what was done before stays compact; nothing was lost",
            plain(reason)
        )
        .into()),
        _ => Err("the response is not the result of a compaction".into()),
    }
}

#[expect(clippy::disallowed_methods, reason = "the client has no executor")]
fn wait() {
    std::thread::sleep(POLL);
}

/// Shows the progress on one line of a terminal.
fn show_progress(status: &cairn_api::Compaction) {
    let mut out = std::io::stderr();
    if out.is_terminal() {
        // A failure to show the progress is no reason to stop.
        let _ = write!(
            out,
            "\r\x1b[K{} of {} parts done, {} of about {} MiB copied",
            status.environments_done,
            status.environments,
            status.copied_bytes >> 20,
            status.expected_bytes >> 20
        );
        let _ = out.flush();
    }
}

fn clear_progress() {
    let mut out = std::io::stderr();
    if out.is_terminal() {
        let _ = write!(out, "\r\x1b[K");
    }
}

fn result_text(status: &cairn_api::Compaction) -> String {
    format!(
        "metadata: {} bytes before, {} bytes now, {} records verified\nvolumes: {} bytes freed\nlongest pause of writes: {} ms\n",
        status.metadata_bytes_before,
        status.metadata_bytes_after,
        status.records_verified,
        status.volume_bytes_freed,
        status.write_pause_milliseconds,
    )
}

/// Compacts a stopped store and prints a line for each LMDB environment, or the sums as JSON. Fails if the store is in use or
/// damaged, or if there is no room for a copy.
fn compact_stopped_store(data_dir: &Path, json: bool) -> Outcome {
    cairn_server::restrict_new_files();
    let (mut before, mut after, mut records) = (0, 0, 0);
    // A failure to print is reported at the end; it is no reason to stop halfway.
    let mut printed = Ok(());
    let done = compact_store(data_dir, |path, compaction| {
        before += compaction.bytes_before;
        after += compaction.bytes_after;
        records += compaction.records;
        if json {
            return;
        }
        let result = output::print(&line(path.strip_prefix(data_dir).unwrap_or(path), compaction));
        printed = std::mem::replace(&mut printed, Ok(())).and(result);
    });
    done.map_err(|error| error.to_string())?;
    // The names are those of the response of a running server.
    let sums =
        json!({"metadata_bytes_before": before, "metadata_bytes_after": after, "records_verified": records});
    let text = if json {
        format!("{sums:#}\n")
    } else {
        format!("metadata: {before} bytes before, {after} bytes now\n")
    };
    printed.and(output::print(&text))
}

fn line(path: &Path, compaction: Compaction) -> String {
    let Compaction { bytes_before, bytes_after, records } = compaction;
    let path = path.display();
    if bytes_after < bytes_before {
        format!("{path}: {bytes_before} bytes before, {bytes_after} bytes now, {records} records verified\n")
    } else {
        format!("{path}: {bytes_before} bytes, {records} records, nothing to compact\n")
    }
}
