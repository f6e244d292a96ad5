//! `cairn bucket`: manages buckets, their versioning, tags, CORS rules and object lock.

mod cors;
mod empty;
mod object_lock;
mod past;
mod tags;

use std::str::FromStr;

use cairn_api::{BucketContents, CreateBucket, SetVersioning, VersioningState};

use crate::client::{Request, read};
use crate::commands::macros::{command, noun, verbs};
use crate::commands::resources::BUCKETS;
use crate::failure::{Failure, Outcome};
use crate::output::table::{Columns, bytes, labelled, lines, text};
use cors::Cors;
use empty::Empty;
use object_lock::ObjectLock;
use past::{Protect, Restore};
use tags::Tags;

noun! {
    /// Create, list, restore, empty and delete buckets, and set their versioning, tags, CORS rules and object lock.
    struct Bucket("bucket"): BucketCommand { Create, List, Show, Versioning, Tags, Cors, ObjectLock, Protect, Restore, Empty, Delete }
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

/// A state that versioning can be set to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct State(VersioningState);

impl FromStr for State {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "enabled" => Ok(Self(VersioningState::Enabled)),
            "suspended" => Ok(Self(VersioningState::Suspended)),
            _ => Err("expected enabled or suspended; versioning cannot be removed once it was enabled"),
        }
    }
}

const CONTENTS: Columns<BucketContents> = &[
    ("versions", |contents| text(&contents.versions)),
    ("size of versions", |contents| bytes(&contents.version_bytes)),
    ("delete markers", |contents| text(&contents.delete_markers)),
    ("unfinished uploads", |contents| text(&contents.multipart_uploads)),
    ("size of uploads", |contents| bytes(&contents.multipart_bytes)),
];

impl Create {
    fn run(&self) -> Outcome {
        let request = CreateBucket { name: self.name.clone().into(), object_lock: self.object_lock };
        BUCKETS.print(&self.client()?, &Request::post(BUCKETS.path).json(&request))
    }
}

impl Show {
    /// Prints the bucket with its contents, which are a resource of their own.
    fn run(&self) -> Outcome {
        let client = self.client()?;
        let mut body = client.call(&Request::get(BUCKETS.path_of(&self.name)))?;
        body["contents"] = client.call(&Request::get(BUCKETS.path_of(&self.name) + "/contents"))?;
        let contents: BucketContents = read(&body["contents"])?;
        client.print_as(&body, |bucket: &cairn_api::Bucket| {
            let own = |labels| lines(&BUCKETS.select(labels), bucket);
            let before = own("name, created, versioning, object lock, objects, size");
            let limits = own("objects limit, size limit");
            labelled(&[before, lines(CONTENTS, &contents), limits].concat())
        })
    }
}

impl Versioning {
    fn run(&self) -> Outcome {
        const SHOWN: Columns<cairn_api::Versioning> = &[("versioning", |found| text(&found.versioning))];
        let path = BUCKETS.path_of(&self.name) + "/versioning";
        let request = match self.state {
            None => Request::get(path),
            Some(State(versioning)) => Request::put(path).json(&SetVersioning { versioning }),
        };
        self.client()?.show(&request, SHOWN)
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
