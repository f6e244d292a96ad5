//! `cairn bucket object-lock`: shows or sets the default retention of a bucket.

use cairn_api::{DefaultRetention, SetObjectLock};

use crate::client::Request;
use crate::commands::lock_mode::LockMode;
use crate::commands::macros::command;
use crate::commands::resources::BUCKETS;
use crate::failure::{Failure, Outcome};
use crate::output::table::{Columns, text};
use crate::quantity::{Days, Whole, counted};

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
        days: Option<Days>,
        /// how long versions are retained, in years of 365 days
        #[argh(option, arg_name = "n")]
        years: Option<Whole<1, 100>>,
        /// remove the default retention
        #[argh(switch)]
        none: bool,
    }
}

const SHOWN: Columns<cairn_api::ObjectLock> = &[
    ("object lock", |lock| text(&lock.object_lock)),
    ("default retention", |lock| {
        let shown = lock.default_retention.as_ref().map(|retention| {
            let days = retention.days.map(|days| counted(days.into(), "day"));
            let period = days.or_else(|| retention.years.map(|years| counted(years.into(), "year")));
            format!("{} for {}", text(&retention.mode), period.unwrap_or_default())
        });
        text(&shown)
    }),
];

impl ObjectLock {
    pub(super) fn run(&self) -> Outcome {
        let path = BUCKETS.path_of(&self.name) + "/object-lock";
        let default_retention = match (self.mode, self.days, self.years, self.none) {
            (None, None, None, false) => return self.client()?.show(&Request::get(path), SHOWN),
            (None, None, None, true) => None,
            (Some(LockMode(mode)), Some(_), None, false) | (Some(LockMode(mode)), None, Some(_), false) => {
                Some(DefaultRetention {
                    mode,
                    days: self.days.map(Whole::short),
                    years: self.years.map(Whole::short),
                })
            }
            _ => {
                let usage = "use --mode with either --days or --years, or --none alone";
                return Err(Failure::WrongUsage(usage.to_owned()));
            }
        };
        let request = Request::put(path).json(&SetObjectLock { default_retention });
        self.client()?.show(&request, SHOWN)
    }
}
