//! `cairn bucket`: buckets and their versioning.

use std::str::FromStr;

use cairn_http1::encode_strict;
use serde_json::{Value, json};

use crate::arguments::{command, noun};
use crate::client::Request;
use crate::failure::Outcome;
use crate::table::{Columns, bytes, limit, text};

noun! {
    /// Make buckets, look at them, set their versioning, delete them.
    struct Bucket("bucket"): BucketCommand { Create, List, Show, Versioning, Delete }
}

command! {
    /// Create a bucket.
    struct Create("create") {
        /// the bucket's name
        #[argh(positional)]
        name: String,
        /// let objects be locked; this turns versioning on, and both are for good
        #[argh(switch)]
        object_lock: bool,
    }
}

command! {
    /// List the buckets.
    struct List("list") {}
}

command! {
    /// Show a bucket, its quota and what it holds.
    struct Show("show") {
        /// the bucket's name
        #[argh(positional)]
        name: String,
    }
}

command! {
    /// Show a bucket's versioning, or set it.
    struct Versioning("versioning") {
        /// the bucket's name
        #[argh(positional)]
        name: String,
        /// enabled or suspended; without it the versioning is shown
        #[argh(positional)]
        state: Option<State>,
    }
}

command! {
    /// Delete an empty bucket.
    struct Delete("delete") {
        /// the bucket's name
        #[argh(positional)]
        name: String,
    }
}

/// What versioning can be set to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Enabled,
    Suspended,
}

impl FromStr for State {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "enabled" => Ok(Self::Enabled),
            "suspended" => Ok(Self::Suspended),
            _ => {
                Err("expected enabled or suspended; there is no way back to a bucket that never had versions")
            }
        }
    }
}

const BUCKETS: &str = "/api/v1/buckets";

const LISTED: Columns = &[
    ("name", |bucket| text(&bucket["name"])),
    ("created", |bucket| text(&bucket["created_at"])),
    ("versioning", |bucket| text(&bucket["versioning"])),
    ("lock", |bucket| text(&bucket["object_lock"])),
    ("objects", |bucket| text(&bucket["usage"]["objects"])),
    ("size", |bucket| bytes(&bucket["usage"]["bytes"])),
];

const SHOWN: Columns = &[
    ("name", |bucket| text(&bucket["name"])),
    ("created", |bucket| text(&bucket["created_at"])),
    ("versioning", |bucket| text(&bucket["versioning"])),
    ("object lock", |bucket| text(&bucket["object_lock"])),
    ("objects", |bucket| text(&bucket["usage"]["objects"])),
    ("size", |bucket| bytes(&bucket["usage"]["bytes"])),
    ("objects limit", |bucket| limit(&bucket["quota"]["objects"], "objects", text)),
    ("size limit", |bucket| limit(&bucket["quota"]["bytes"], "bytes", bytes)),
];

/// The route of a bucket.
pub(crate) fn path(name: &str) -> String {
    format!("{BUCKETS}/{}", encode_strict(name))
}

impl Create {
    fn run(&self) -> Outcome {
        let request =
            Request::post(BUCKETS).json(&json!({"name": self.name, "object_lock": self.object_lock}));
        self.client().show(&request, SHOWN)
    }
}

impl List {
    fn run(&self) -> Outcome {
        self.client().list(BUCKETS, "buckets", LISTED)
    }
}

impl Show {
    fn run(&self) -> Outcome {
        self.client().show(&Request::get(path(&self.name)), SHOWN)
    }
}

impl Versioning {
    fn run(&self) -> Outcome {
        const VERSIONING: Columns = &[("versioning", |answer: &Value| text(&answer["versioning"]))];
        let path = path(&self.name) + "/versioning";
        let request = match self.state {
            None => Request::get(path),
            Some(State::Enabled) => Request::put(path).json(&json!({"versioning": "Enabled"})),
            Some(State::Suspended) => Request::put(path).json(&json!({"versioning": "Suspended"})),
        };
        self.client().show(&request, VERSIONING)
    }
}

impl Delete {
    fn run(&self) -> Outcome {
        self.client().change(&Request::delete(path(&self.name)), &format!("bucket {} was deleted", self.name))
    }
}
