//! `cairn import pause` and `cairn import resume`: the run of a bucket, wherever its importer is.

use cairn_api::{ImportList, ImportRun};
use serde_json::Value;

use crate::client::{Client, Request, read};
use crate::commands::macros::command;
use crate::failure::Outcome;
use crate::terminal::plain;

command! {
    /// Pause the latest import into a bucket: its importer finishes the requests that it has begun, and waits.
    struct Pause("pause") {
        /// the bucket
        #[argh(positional)]
        bucket: String,
    }
}

command! {
    /// Let a paused import into a bucket go on.
    struct Resume("resume") {
        /// the bucket
        #[argh(positional)]
        bucket: String,
    }
}

impl Pause {
    pub(super) fn run(&self) -> Outcome {
        change(&self.client()?, &self.bucket, "pause")
    }
}

impl Resume {
    pub(super) fn run(&self) -> Outcome {
        change(&self.client()?, &self.bucket, "resume")
    }
}

/// Changes the latest run of a bucket, or the latest paused one to let it go on.
fn change(client: &Client, bucket: &str, verb: &str) -> Outcome {
    let listed: ImportList = read(&client.call(&Request::get("/api/v1/imports"))?)?;
    // The newest first.
    let mut runs = listed.imports.iter().filter(|run| run.bucket == bucket);
    let latest = runs.clone().next();
    let paused = runs.find(|run| run.paused_at.is_some());
    let run = if verb == "resume" { paused.or(latest) } else { latest };
    let Some(id) = run.map(|run| &*run.import_id) else {
        let bucket = plain(bucket);
        return Err(
            format!("the server knows no import into {bucket}: it remembers those since its start").into()
        );
    };
    let changed: Value = client.call(&Request::post(format!("/api/v1/imports/{id}/{verb}")))?;
    let run: ImportRun = read(&changed)?;
    let text = || {
        let (bucket, source) = (plain(&run.bucket), plain(&run.source));
        if run.paused_at.is_none() {
            return format!("The import into {bucket} from {source} goes on.\n");
        }
        // The server does not know whether the importer still runs.
        let latest = match &run.last_at {
            Some(time) => format!("Its latest request came {}.", plain(time)),
            None => "No request of it has come yet.".to_owned(),
        };
        format!("The import into {bucket} from {source} is paused. {latest}\n")
    };
    client.print(&changed, text)
}
