//! `cairn object find`: the objects of a bucket that fulfil conditions.

use cairn_api::{FoundPage, ObjectEntry};
use cairn_http1::encode_strict;
use serde_json::json;

use super::place::{Place, Selection};
use crate::client::{Request, query, read, with_query};
use crate::commands::lifecycle::Tag;
use crate::commands::macros::command;
use crate::commands::resources::BUCKETS;
use crate::failure::{Failure, Outcome};
use crate::moment::Moment;
use crate::output::print_error;
use crate::output::table::{Columns, bytes, table, text};
use crate::quantity::{ByteLimit, ListLimit, Whole};

command! {
    /// Find the objects that fulfil all conditions. The server looks at every key in the background, so this may take a while.
    struct Find("find") {
        /// a place, as <bucket>, <bucket>/<prefix> or <bucket>/<pattern>
        #[argh(positional)]
        place: Place,
        /// only objects whose keys contain this text
        #[argh(option, arg_name = "text")]
        contains: Option<String>,
        /// only objects of at least this size, such as 10MiB
        #[argh(option, arg_name = "size")]
        min_bytes: Option<ByteLimit>,
        /// only objects of at most this size
        #[argh(option, arg_name = "size")]
        max_bytes: Option<ByteLimit>,
        /// only objects written at or after this time: an age such as 2h, a date or a time
        #[argh(option, arg_name = "time")]
        modified_since: Option<Moment>,
        /// only objects written before this time
        #[argh(option, arg_name = "time")]
        modified_until: Option<Moment>,
        /// only objects of this content type, such as image/png or image/*
        #[argh(option, arg_name = "type")]
        content_type: Option<String>,
        /// only objects with this tag, key=value; may be repeated: objects with all of them
        #[argh(option, arg_name = "tag")]
        tag: Vec<Tag>,
        /// the objects as of this moment: an age such as 2h, a date or a time
        #[argh(option, arg_name = "time")]
        at: Option<Moment>,
        /// maximum number of objects, up to 100000 (default: 1000)
        #[argh(option, arg_name = "n", default = "LIMIT_DEFAULT")]
        limit: ListLimit,
    }
}

const LIMIT_DEFAULT: ListLimit = Whole(1000);
/// Objects that one request returns at most.
const PAGE_MAX: usize = 1000;

const COLUMNS: Columns<ObjectEntry> = &[
    ("modified", |object| text(&object.last_modified)),
    ("size", |object| bytes(&object.size)),
    ("content type", |object| text(&object.content_type)),
    ("key", |object| text(&object.key)),
];

impl Find {
    pub(super) fn run(&self) -> Outcome {
        let (client, route) = (self.client()?, self.route()?);
        let limit = self.limit.length();
        let (mut objects, mut examined, mut token) = (Vec::new(), 0, None);
        let is_complete = loop {
            let mut path = format!("{route}&limit={}", PAGE_MAX.min(limit - objects.len()));
            if let Some(token) = &token {
                path += &format!("&continuation_token={}", encode_strict(token));
            }
            let page: FoundPage = read(&client.call(&Request::get(path))?)?;
            objects.extend(page.objects);
            examined += page.examined;
            match page.next_continuation_token {
                None => break true,
                Some(_) if objects.len() >= limit => break false,
                next if next == token => return Err("the server went no further".into()),
                next => token = next,
            }
        };
        let body = json!({"objects": objects, "examined": examined, "truncated": !is_complete});
        client.print(&body, || table(COLUMNS, &objects))?;
        if !is_complete && !self.json {
            print_error("there may be more objects: --limit shows more\n");
        }
        Ok(())
    }

    /// Returns the route with the conditions.
    fn route(&self) -> Result<String, Failure> {
        let (prefix, glob) = match self.place.selection(true)? {
            Selection::One(prefix) | Selection::Many { prefix, pattern: None } => (Some(prefix), None),
            Selection::Many { .. } => (None, Some(self.place.key.clone())),
        };
        if glob.is_some() && self.contains.is_some() {
            let message = "give either a pattern or --contains";
            return Err(Failure::WrongUsage(message.to_owned()));
        }
        let size = |limit: Option<ByteLimit>| limit.and_then(|limit| limit.0).map(|bytes| bytes.to_string());
        let time = |moment: &Option<Moment>| moment.as_ref().map(|moment| moment.0.clone());
        let conditions = query([
            ("prefix", prefix),
            ("glob", glob),
            ("contains", self.contains.clone()),
            ("min_bytes", size(self.min_bytes)),
            ("max_bytes", size(self.max_bytes)),
            ("modified_since", time(&self.modified_since)),
            ("modified_until", time(&self.modified_until)),
            ("content_type", self.content_type.clone()),
            ("at", time(&self.at)),
        ]);
        let mut route = with_query(&(BUCKETS.path_of(&self.place.bucket) + "/find"), &conditions);
        for Tag(name, value) in &self.tag {
            route += &format!("&tag.{}={}", encode_strict(name), encode_strict(value));
        }
        Ok(route)
    }
}
