//! `cairn bucket tags`: shows, replaces or removes the tags of a bucket.

use std::str::FromStr;

use cairn_api::{BucketTags, Tag};

use crate::client::Request;
use crate::commands::macros::command;
use crate::commands::resources::BUCKETS;
use crate::failure::{Failure, Outcome};
use crate::output::table::{Columns, table, text};

command! {
    /// Show a bucket's tags, or replace or remove them.
    struct Tags("tags") {
        /// the bucket's name
        #[argh(positional)]
        name: String,
        /// a tag as key=value; may be repeated. The given tags replace all present ones (default: the tags are shown)
        #[argh(positional)]
        tag: Vec<Pair>,
        /// remove all tags
        #[argh(switch)]
        remove: bool,
    }
}

/// A tag on the command line.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Pair {
    key: String,
    value: String,
}

impl FromStr for Pair {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('=') {
            Some((key, value)) if !key.is_empty() => {
                Ok(Self { key: key.to_owned(), value: value.to_owned() })
            }
            _ => Err("expected key=value"),
        }
    }
}

const TAGS: Columns<Tag> = &[("key", |tag| text(&tag.key)), ("value", |tag| text(&tag.value))];

impl Tags {
    pub(super) fn run(&self) -> Outcome {
        let path = BUCKETS.path_of(&self.name) + "/tags";
        let tag = |Pair { key, value }: &Pair| Tag { key: key.clone(), value: value.clone() };
        let body = BucketTags { tags: self.tag.iter().map(tag).collect() };
        let request = match (&self.tag[..], self.remove) {
            ([_, ..], true) => {
                return Err(Failure::WrongUsage("tags and --remove exclude each other".to_owned()));
            }
            ([], false) => Request::get(path),
            _ => Request::put(path).json(&body),
        };
        let client = self.client()?;
        client.print_as(&client.call(&request)?, |BucketTags { tags }| {
            if tags.is_empty() { "no tags\n".to_owned() } else { table(TAGS, tags) }
        })
    }
}
