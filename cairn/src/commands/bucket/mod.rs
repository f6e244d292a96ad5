//! `cairn bucket`: manages buckets, their versioning, CORS rules and object lock.

mod cors;
mod empty;
mod object_lock;

use std::str::FromStr;

use serde_json::{Value, json};

use crate::client::Request;
use crate::commands::macros::{command, noun, verbs};
use crate::commands::resources::BUCKETS;
use crate::failure::{Failure, Outcome};
use crate::output::table::{Columns, text};
use cors::Cors;
use empty::Empty;
use object_lock::ObjectLock;

noun! {
    /// Create, list, empty and delete buckets, and set their versioning, CORS rules and object lock.
    struct Bucket("bucket"): BucketCommand { Create, List, Show, Versioning, Cors, ObjectLock, Empty, Delete }
}

command! {
    /// Create a bucket.
    struct Create("create") {
        /// the bucket's name
        #[argh(positional)]
        name: String,
        /// enable object lock and versioning; neither can be disabled later
        #[argh(switch)]
        object_lock: bool,
    }
}

verbs! {
    BUCKETS by {
        /// the bucket's name
        name
    }
    /// List the buckets.
    list,
}

command! {
    /// Show a bucket, what it contains, and its quota.
    struct Show("show") {
        /// the bucket's name
        #[argh(positional)]
        name: String,
    }
}

command! {
    /// Show or set a bucket's versioning.
    struct Versioning("versioning") {
        /// the bucket's name
        #[argh(positional)]
        name: String,
        /// enabled or suspended; if it is missing, the versioning is shown
        #[argh(positional)]
        state: Option<State>,
    }
}

command! {
    /// Delete an empty bucket; with --force, its content too.
    struct Delete("delete") {
        /// the bucket's name
        #[argh(positional)]
        name: String,
        /// delete all content first, as `bucket empty` does, after a confirmation
        #[argh(switch)]
        force: bool,
        /// do not ask for a confirmation
        #[argh(switch)]
        yes: bool,
    }
}

/// The states that versioning can be set to.
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
            _ => Err("expected enabled or suspended; versioning cannot be removed once it was enabled"),
        }
    }
}

const CREATED: Columns = &[
    ("name", |bucket| text(&bucket["name"])),
    ("created", |bucket| text(&bucket["created_at"])),
    ("versioning", |bucket| text(&bucket["versioning"])),
    ("object lock", |bucket| text(&bucket["object_lock"])),
];

impl Create {
    fn run(&self) -> Outcome {
        let request =
            Request::post(BUCKETS.path).json(&json!({"name": self.name, "object_lock": self.object_lock}));
        self.client()?.show(&request, CREATED)
    }
}

impl Show {
    /// Prints the bucket with its contents, which are a resource of their own.
    fn run(&self) -> Outcome {
        let client = self.client()?;
        let mut body = client.call(&Request::get(BUCKETS.path_of(&self.name)))?;
        body["contents"] = client.call(&Request::get(BUCKETS.path_of(&self.name) + "/contents"))?;
        client.print(&body, || (BUCKETS.shown)(&body))
    }
}

impl Versioning {
    fn run(&self) -> Outcome {
        const VERSIONING: Columns = &[("versioning", |answer: &Value| text(&answer["versioning"]))];
        let path = BUCKETS.path_of(&self.name) + "/versioning";
        let request = match self.state {
            None => Request::get(path),
            Some(State::Enabled) => Request::put(path).json(&json!({"versioning": "Enabled"})),
            Some(State::Suspended) => Request::put(path).json(&json!({"versioning": "Suspended"})),
        };
        self.client()?.show(&request, VERSIONING)
    }
}

impl Delete {
    fn run(&self) -> Outcome {
        let client = self.client()?;
        if self.force {
            empty::empty(&client, &self.name, "deletes", self.yes)?.result()?;
        } else if self.yes {
            return Err(Failure::WrongUsage(
                "--yes requires --force: an empty bucket needs no confirmation".to_owned(),
            ));
        }
        BUCKETS.delete(&client, &[&self.name])
    }
}
