//! `cairn object history`: what has happened to an object.

use cairn_api::{HistoryEntry, ObjectHistory};
use serde_json::Value;

use super::place::{Place, route};
use crate::client::Request;
use crate::commands::macros::command;
use crate::failure::Outcome;
use crate::output::print_error;
use crate::output::table::{Columns, bytes, table, text, words};

command! {
    /// Show what has happened to an object, the latest first: who wrote, overwrote, deleted, restored and shared it.
    struct History("history") {
        /// the object, as <bucket>/<key>
        #[argh(positional)]
        object: Place,
    }
}

const COLUMNS: Columns<HistoryEntry> = &[
    ("time", |entry| text(&entry.time)),
    ("what", |entry| words(&entry.kind)),
    ("by", |entry| text(&entry.principal)),
    ("from", |entry| text(&entry.source_ip)),
    ("rule", |entry| text(&entry.rule_id)),
    ("size", |entry| bytes(&entry.size)),
    ("version id", |entry| text(&entry.version_id)),
];

impl History {
    pub(super) fn run(&self) -> Outcome {
        let client = self.client()?;
        let route = route(&self.object.bucket, "object-history", &self.object.one()?);
        let body: Value = client.call(&Request::get(route))?;
        client.print_as(&body, |history: &ObjectHistory| table(COLUMNS, &history.entries))?;
        if body["complete"] == false && !self.json {
            print_error("there may be earlier entries: only the latest events were looked at\n");
        }
        Ok(())
    }
}
