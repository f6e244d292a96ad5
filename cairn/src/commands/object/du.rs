//! `cairn object du`: what the folders of a bucket take up.

use cairn_api::{FolderEntry, FolderUsage};
use serde_json::Value;

use super::place::{Place, Selection};
use crate::client::{Request, query, with_query};
use crate::commands::macros::command;
use crate::commands::resources::BUCKETS;
use crate::failure::{Failure, Outcome};
use crate::output::print_error;
use crate::output::table::{Columns, bytes, table, text};
use crate::quantity::{bytes_text, counted};

command! {
    /// Show how many objects and bytes are in a bucket or a folder of it, and in each folder one level below.
    struct DiskUsage("du") {
        /// a place, as <bucket> or <bucket>/<prefix>
        #[argh(positional)]
        place: Place,
    }
}

const COLUMNS: Columns<FolderEntry> = &[
    ("objects", |folder| text(&folder.objects)),
    ("size", |folder| bytes(&folder.bytes)),
    ("folder", |folder| text(&folder.prefix)),
];

impl DiskUsage {
    pub(super) fn run(&self) -> Outcome {
        let client = self.client()?;
        let prefix = match self.place.selection(true)? {
            Selection::One(prefix) | Selection::Many { prefix, pattern: None } => prefix,
            Selection::Many { .. } => {
                return Err(Failure::WrongUsage("give a prefix in place of a pattern".to_owned()));
            }
        };
        let path = BUCKETS.path_of(&self.place.bucket) + "/folder-usage";
        let route = with_query(&path, &query([("prefix", Some(prefix))]));
        let body: Value = client.call(&Request::get(route).long_running())?;
        client.print_as(&body, |usage: &FolderUsage| {
            let total = counted(usage.objects, "object");
            let mut shown =
                if usage.folders.is_empty() { String::new() } else { table(COLUMNS, &usage.folders) };
            shown += &format!("{total}, {} in all\n", bytes_text(usage.bytes));
            shown
        })?;
        if body["complete"] == false && !self.json {
            print_error("these are not all: a longer prefix shows the rest\n");
        }
        Ok(())
    }
}
