//! `cairn object stat`: shows the metadata of an object.

use cairn_api::ObjectRecord;

use super::place::{Place, route_at};
use crate::client::Request;
use crate::commands::macros::command;
use crate::failure::Outcome;
use crate::moment::Moment;
use crate::output::table::{Columns, bytes, record, text};
use crate::terminal::plain;

command! {
    /// Show the metadata of an object.
    struct Stat("stat") {
        /// the object, as <bucket>/<key>
        #[argh(positional)]
        object: Place,
        /// the version (default: the current one)
        #[argh(option, arg_name = "id")]
        version_id: Option<String>,
        /// the object as of this moment: an age such as 2h, a date or a time
        #[argh(option, arg_name = "time")]
        at: Option<Moment>,
    }
}

const SHOWN: Columns<ObjectRecord> = &[
    ("key", |record| text(&record.object.key)),
    // Other commands accept this name.
    ("version id", |record| record.object.version_id.as_ref().map_or_else(|| "null".to_owned(), text)),
    ("size", |record| bytes(&record.object.size)),
    ("content type", |record| text(&record.object.content_type)),
    ("modified", |record| text(&record.object.last_modified)),
    ("entity tag", |record| text(&record.object.etag)),
    ("parts", |record| text(&Some(record.parts.len()).filter(|count| *count > 0))),
    ("encrypted", |record| text(&record.encrypted)),
    ("retention", |record| {
        let retention = record.object.retention.as_ref();
        text(&retention.map(|one| format!("{} until {}", text(&one.mode), one.retain_until)))
    }),
    ("legal hold", |record| text(&record.object.legal_hold)),
];

impl Stat {
    pub(super) fn run(&self) -> Outcome {
        let client = self.client()?;
        let (key, version) = (self.object.one()?, self.version_id.as_deref());
        let route = route_at(&self.object.bucket, "object", &key, version, self.at.as_ref())?;
        let body = client.call(&Request::get(route))?;
        client.print_as(&body, |object: &ObjectRecord| {
            let mut shown = record(SHOWN, object);
            for (label, values) in [
                ("metadata", &object.metadata),
                ("headers", &object.headers),
                ("checksums", &object.checksums),
            ] {
                if !values.is_empty() {
                    shown += &format!("{label}:\n");
                }
                let value =
                    |(name, value): (&String, &String)| format!("  {}: {}\n", plain(name), plain(value));
                shown.extend(values.iter().map(value));
            }
            shown
        })
    }
}
