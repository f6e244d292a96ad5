//! `cairn object retention`: sets or removes the retention of a version.

use cairn_api::SetRetention;

use super::place::{Place, version_route};
use crate::client::Request;
use crate::commands::lock_mode::LockMode;
use crate::commands::macros::command;
use crate::failure::{Failure, Outcome};
use crate::moment::Deadline;
use crate::output::table::text;

command! {
    /// Set the retention of a version, which cannot be deleted before it ends; `object stat` shows it.
    struct Retention("retention") {
        /// the object, as <bucket>/<key>
        #[argh(positional)]
        object: Place,
        /// the version (default: the current one)
        #[argh(option, arg_name = "id")]
        version_id: Option<String>,
        /// governance or compliance; compliance cannot be shortened or removed by anyone
        #[argh(option, arg_name = "mode")]
        mode: Option<LockMode>,
        /// when it ends: a duration such as 30d, a date, or a time
        #[argh(option, arg_name = "time")]
        until: Option<Deadline>,
        /// remove the retention
        #[argh(switch)]
        none: bool,
        /// allow a retention in governance mode to be shortened or removed
        #[argh(switch)]
        bypass_governance: bool,
    }
}

impl Retention {
    pub(super) fn run(&self) -> Outcome {
        let key = self.object.one()?;
        let client = self.client()?;
        let (retention, done) = match (self.mode, &self.until, self.none) {
            (None, None, true) => (None, "has no retention".to_owned()),
            (Some(LockMode(mode)), Some(until), false) => {
                let until = match until {
                    Deadline::At(time) => time.clone(),
                    Deadline::In(_) => until.from(&client.server_now()?),
                };
                let done = format!("is retained until {until} ({})", text(&mode));
                (Some(cairn_api::Retention { mode, retain_until: until.into() }), done)
            }
            _ => {
                return Err(Failure::WrongUsage("use --mode and --until, or --none alone".to_owned()));
            }
        };
        let body = SetRetention { retention, bypass_governance: self.bypass_governance };
        let route = version_route(&self.object.bucket, "object-retention", &key, self.version_id.as_deref());
        client.change(&Request::put(route).json(&body), &format!("{}/{key} {done}", self.object.bucket))
    }
}
