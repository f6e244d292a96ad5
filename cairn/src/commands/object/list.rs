//! `cairn object ls`: lists the objects of a bucket.

use cairn_api::{ObjectEntry, ObjectVersion};
use serde_json::{Value, json};

use super::place::{Place, Selection};
use crate::client::pages::{OBJECTS, Pages, VERSIONS};
use crate::client::read;
use crate::commands::macros::command;
use crate::failure::{Failure, Outcome};
use crate::moment::Moment;
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
        /// the objects as of this moment: an age such as 2h, a date or a time
        #[argh(option, arg_name = "time")]
        at: Option<Moment>,
        /// maximum number of entries, up to 100000 (default: 1000)
        #[argh(option, arg_name = "n", default = "LIMIT_DEFAULT")]
        limit: ListLimit,
    }
}

const LIMIT_DEFAULT: ListLimit = Whole(1000);

/// An object, or a folder: only its prefix.
type Row = (Option<ObjectEntry>, String);

const COLUMNS: Columns<Row> = &[
    ("modified", |(object, _)| text(&object.as_ref().map(|object| &object.last_modified))),
    ("size", |(object, _)| bytes(&object.as_ref().map(|object| object.size))),
    ("key", |(_, key)| text(key)),
];

const VERSION_COLUMNS: Columns<ObjectVersion> = &[
    ("modified", |version| text(&version.last_modified)),
    ("size", |version| bytes(&(!version.is_delete_marker).then_some(version.size))),
    ("kind", |version| {
        let kind = match (version.is_delete_marker, version.is_latest) {
            (true, _) => "delete marker",
            (_, true) => "current",
            _ => "older",
        };
        kind.to_owned()
    }),
    ("version id", |version| text(&version.version_id)),
    ("key", |version| text(&version.key)),
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
        if self.versions && self.at.is_some() {
            return Err(Failure::WrongUsage("--at and --versions cannot be given together".to_owned()));
        }
        let at = self.at.as_ref().map(|at| &*at.0);
        let mut pages =
            Pages::of_bucket(&client, kind, &self.place.bucket, &prefix, delimiter).with("at", at);
        let (mut entries, mut folders) = (Vec::new(), Vec::new());
        let mut is_truncated = false;
        while !is_truncated && let Some(mut page) = pages.next_page()? {
            let matches = |entry: &Value| {
                let key = entry["key"].as_str();
                key.is_some_and(|key| pattern.as_ref().is_none_or(|pattern| pattern.matches(key)))
            };
            entries.extend(kind.take(&mut page).into_iter().filter(matches));
            folders.extend(read::<Option<Vec<String>>>(&page["common_prefixes"])?.into_iter().flatten());
            let left = limit.saturating_sub(folders.len());
            is_truncated = entries.len() > left || folders.len() > limit;
            entries.truncate(left);
            folders.truncate(limit);
        }
        if self.versions {
            let body = json!({"versions": entries, "truncated": is_truncated});
            client.print_list(&body, kind.member, VERSION_COLUMNS)?;
        } else {
            let body = json!({"objects": entries, "common_prefixes": folders, "truncated": is_truncated});
            let objects: Vec<ObjectEntry> = read(&body["objects"])?;
            let objects = objects.into_iter().map(|object| (object.key.to_string(), Some(object)));
            let rows = folders.into_iter().map(|folder| (folder, None)).chain(objects);
            let rows: Vec<Row> = rows.map(|(key, object)| (object, key)).collect();
            client.print(&body, || table(COLUMNS, &rows))?;
        }
        if is_truncated && !self.json {
            print_error("there are more entries: --limit shows more, a longer prefix selects fewer\n");
        }
        Ok(())
    }
}
