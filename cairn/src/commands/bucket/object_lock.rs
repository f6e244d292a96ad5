//! `cairn bucket object-lock`: shows or sets the default retention of a bucket.

use serde_json::{Value, json};

use crate::client::Request;
use crate::commands::lock_mode::LockMode;
use crate::commands::macros::command;
use crate::commands::resources::BUCKETS;
use crate::failure::{Failure, Outcome};
use crate::output::table::{Columns, text};
use crate::quantity::Whole;
use crate::terminal::word;

command! {
    /// Show a bucket's object lock, or set the default retention of versions that are written from now on.
    struct ObjectLock("object-lock") {
        /// the bucket's name
        #[argh(positional)]
        name: String,
        /// governance or compliance; needs --days or --years
        #[argh(option, arg_name = "mode")]
        mode: Option<LockMode>,
        /// how long versions are retained, in days
        #[argh(option, arg_name = "n")]
        days: Option<Whole<1, 36_500>>,
        /// how long versions are retained, in years of 365 days
        #[argh(option, arg_name = "n")]
        years: Option<Whole<1, 100>>,
        /// remove the default retention
        #[argh(switch)]
        none: bool,
    }
}

const SHOWN: Columns = &[
    ("object lock", |lock| text(&lock["object_lock"])),
    ("default retention", |lock| {
        let retention = &lock["default_retention"];
        let period = |name: &str| retention[name].as_u64().map(|number| format!("{number} {name}"));
        match period("days").or_else(|| period("years")) {
            Some(period) => format!("{} for {period}", word(&retention["mode"])),
            None => text(&Value::Null),
        }
    }),
];

impl ObjectLock {
    pub(super) fn run(&self) -> Outcome {
        let path = BUCKETS.path_of(&self.name) + "/object-lock";
        let retention = match (self.mode, self.days, self.years, self.none) {
            (None, None, None, false) => return self.client()?.show(&Request::get(path), SHOWN),
            (None, None, None, true) => Value::Null,
            (Some(mode), Some(Whole(days)), None, false) => json!({"mode": mode.name(), "days": days}),
            (Some(mode), None, Some(Whole(years)), false) => json!({"mode": mode.name(), "years": years}),
            _ => {
                let usage = "use --mode with either --days or --years, or --none alone";
                return Err(Failure::WrongUsage(usage.to_owned()));
            }
        };
        let request = Request::put(path).json(&json!({"default_retention": retention}));
        self.client()?.show(&request, SHOWN)
    }
}
