//! `cairn object ls`: lists the objects of a bucket.

use serde_json::{Value, json};

use super::place::{Place, Selection};
use crate::client::pages::{OBJECTS, Pages, VERSIONS};
use crate::commands::macros::command;
use crate::failure::Outcome;
use crate::output::print_error;
use crate::output::table::{Columns, bytes, table, text};
use crate::quantity::{ListLimit, Whole};

command! {
    /// List the objects and folders whose keys begin with a prefix, or the objects whose keys match a pattern.
    struct List("ls") {
        /// a place, as <bucket>, <bucket>/<prefix> or <bucket>/<pattern>
        #[argh(positional)]
        place: Place,
        /// list the objects in folders too
        #[argh(switch)]
        recursive: bool,
        /// list all versions and delete markers
        #[argh(switch)]
        versions: bool,
        /// maximum number of entries, up to 100000 (default: 1000)
        #[argh(option, arg_name = "n", default = "LIMIT_DEFAULT")]
        limit: ListLimit,
    }
}

const LIMIT_DEFAULT: ListLimit = Whole(1000);

const COLUMNS: Columns = &[
    ("modified", |object| text(&object["last_modified"])),
    ("size", |object| bytes(&object["size"])),
    ("key", |object| text(&object["key"])),
];

const VERSION_COLUMNS: Columns =
    &[
        ("modified", |version| text(&version["last_modified"])),
        ("size", |version| {
            if version["is_delete_marker"] == true { text(&Value::Null) } else { bytes(&version["size"]) }
        }),
        ("kind", |version| {
            let kind = match (version["is_delete_marker"].as_bool(), version["is_latest"].as_bool()) {
                (Some(true), _) => "delete marker",
                (_, Some(true)) => "current",
                _ => "older",
            };
            kind.to_owned()
        }),
        ("version id", |version| text(&version["version_id"])),
        ("key", |version| text(&version["key"])),
    ];

impl List {
    pub(super) fn run(&self) -> Outcome {
        let limit = self.limit.length();
        let client = self.client()?;
        let (prefix, pattern) = match self.place.selection(true)? {
            Selection::One(key) => (key, None),
            Selection::Many { prefix, pattern } => (prefix, pattern),
        };
        let has_folders = !self.recursive && !self.versions && pattern.is_none();
        let kind = if self.versions { VERSIONS } else { OBJECTS };
        let delimiter = has_folders.then_some("/");
        let mut pages = Pages::of_bucket(&client, kind, &self.place.bucket, &prefix, delimiter);
        let (mut entries, mut folders) = (Vec::new(), Vec::new());
        let mut is_truncated = false;
        while !is_truncated && let Some(mut page) = pages.next_page()? {
            let matches = |entry: &Value| {
                let key = entry["key"].as_str();
                key.is_some_and(|key| pattern.as_ref().is_none_or(|pattern| pattern.matches(key)))
            };
            entries.extend(kind.take(&mut page).into_iter().filter(matches));
            folders.extend(page["common_prefixes"].as_array().into_iter().flatten().cloned());
            let left = limit.saturating_sub(folders.len());
            is_truncated = entries.len() > left || folders.len() > limit;
            entries.truncate(left);
            folders.truncate(limit);
        }
        let rows: Vec<Value> =
            folders.iter().map(|folder| json!({"key": folder})).chain(entries.iter().cloned()).collect();
        let body = if self.versions {
            json!({"versions": entries, "truncated": is_truncated})
        } else {
            json!({"objects": entries, "common_prefixes": folders, "truncated": is_truncated})
        };
        client.print(&body, || table(if self.versions { VERSION_COLUMNS } else { COLUMNS }, &rows))?;
        if is_truncated && !self.json {
            print_error("there are more entries: --limit shows more, a longer prefix selects fewer\n");
        }
        Ok(())
    }
}
