//! `cairn object stat`: shows the metadata of an object.

use serde_json::Value;

use super::place::{Place, version_route};
use crate::client::Request;
use crate::commands::macros::command;
use crate::failure::Outcome;
use crate::output::table::{Columns, bytes, record, text};
use crate::terminal::{plain, word};

command! {
    /// Show the metadata of an object.
    struct Stat("stat") {
        /// the object, as <bucket>/<key>
        #[argh(positional)]
        object: Place,
        /// the version (default: the current one)
        #[argh(option, arg_name = "id")]
        version_id: Option<String>,
    }
}

const SHOWN: Columns = &[
    ("key", |object| text(&object["key"])),
    ("version id", |object| {
        // Other commands accept this name.
        let id = &object["version_id"];
        if id.is_null() { "null".to_owned() } else { text(id) }
    }),
    ("size", |object| bytes(&object["size"])),
    ("content type", |object| text(&object["content_type"])),
    ("modified", |object| text(&object["last_modified"])),
    ("entity tag", |object| text(&object["etag"])),
    ("parts", |object| {
        object["parts"].as_array().map_or_else(|| text(&Value::Null), |parts| parts.len().to_string())
    }),
    ("encrypted", |object| text(&object["encrypted"])),
    ("retention", |object| {
        let retention = &object["retention"];
        if retention.is_object() {
            format!("{} until {}", word(&retention["mode"]), word(&retention["retain_until"]))
        } else {
            text(retention)
        }
    }),
    ("legal hold", |object| text(&object["legal_hold"])),
];

impl Stat {
    pub(super) fn run(&self) -> Outcome {
        let client = self.client()?;
        let (key, version) = (self.object.one()?, self.version_id.as_deref());
        let body = client.call(&Request::get(version_route(&self.object.bucket, "object", &key, version)))?;
        client.print(&body, || {
            let mut shown = record(SHOWN, &body);
            for (label, member) in
                [("metadata", "metadata"), ("headers", "headers"), ("checksums", "checksums")]
            {
                let values = body[member].as_object().filter(|values| !values.is_empty());
                for (index, (name, value)) in values.into_iter().flatten().enumerate() {
                    if index == 0 {
                        shown.push_str(&format!("{label}:\n"));
                    }
                    shown.push_str(&format!("  {}: {}\n", plain(name), word(value)));
                }
            }
            shown
        })
    }
}
