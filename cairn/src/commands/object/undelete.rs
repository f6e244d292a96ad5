//! `cairn object undelete`: brings back objects that delete markers hide.

use cairn_api::{Undelete as Body, Undeleted};
use cairn_http1::encode_strict;
use serde_json::json;

use super::place::{Place, Selection};
use crate::client::{Client, Request, read};
use crate::commands::macros::command;
use crate::failure::{Failure, Outcome};
use crate::moment::Moment;
use crate::quantity::counted;
use crate::terminal::lines;

command! {
    /// Bring back deleted objects: their delete markers are removed, and the versions below become current. The bucket must
    /// keep versions.
    struct Undelete("undelete") {
        /// the object, as <bucket>/<key>; with --recursive, <bucket> or <bucket>/<prefix>
        #[argh(positional)]
        object: Place,
        /// bring back all objects whose keys begin with the prefix
        #[argh(switch)]
        recursive: bool,
        /// only objects that were deleted since then: an age such as 2h, a date or a time; needs --recursive
        #[argh(option, arg_name = "time")]
        since: Option<Moment>,
    }
}

impl Undelete {
    pub(super) fn run(&self) -> Outcome {
        let client = self.client()?;
        if self.object.key.is_empty() && !self.recursive {
            let bucket = &self.object.bucket;
            let usage = format!("{bucket} is a bucket; write <bucket>/<key>, or use --recursive");
            return Err(Failure::WrongUsage(usage));
        }
        let body = match self.object.selection(self.recursive)? {
            Selection::One(key) if self.since.is_none() => {
                Body { keys: Some(vec![key.into()]), prefix: None, deleted_since: None }
            }
            Selection::One(_) => return Err(Failure::WrongUsage("--since needs --recursive".to_owned())),
            Selection::Many { prefix, pattern: None } => {
                let deleted_since = self.since.as_ref().map(|since| since.0.clone().into());
                Body { keys: None, prefix: Some(prefix), deleted_since }
            }
            Selection::Many { .. } => {
                return Err(Failure::WrongUsage(
                    "give a prefix with --recursive in place of a pattern".to_owned(),
                ));
            }
        };
        let done = send(&client, &self.object.bucket, &body)?;
        if !self.recursive && done.undeleted + done.failed == 0 {
            let text = "nothing was undeleted: the object is not deleted, or none of its versions is left";
            return Err(text.into());
        }
        let shown = json!({"undeleted": done.undeleted, "skipped": done.skipped, "failed": done.failed});
        client.print(&shown, || lines(&format!("undeleted {}\n", counted(done.undeleted, "object"))))?;
        match done.failed {
            0 => Ok(()),
            failed => {
                let which = counted(failed, "object");
                Err(format!("{which} could not be undeleted; the log of the server says why").into())
            }
        }
    }
}

/// Sends the request until everything was looked at.
fn send(client: &Client, bucket: &str, body: &Body) -> Result<Undeleted, Failure> {
    let path = format!("/api/v1/buckets/{}/undelete", encode_strict(bucket));
    let mut total = Undeleted { complete: false, undeleted: 0, skipped: 0, failed: 0 };
    while !total.complete {
        let done: Undeleted = read(&client.call(&Request::post(path.clone()).json(body).long_running())?)?;
        if !done.complete && done.undeleted == 0 {
            return Err("the server went no further: too many objects could not be undeleted".into());
        }
        total.undeleted += done.undeleted;
        (total.complete, total.skipped, total.failed) = (done.complete, done.skipped, done.failed);
    }
    Ok(total)
}
