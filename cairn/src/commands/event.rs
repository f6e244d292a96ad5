//! `cairn event`: lists storage events, and follows them.

use cairn_api::StorageEvent;

use crate::client::events::{EVENTS, EventFeed, EventFilter, EventName};
use crate::client::pages::{PAGE_ENTRIES_MAX, Pages, position};
use crate::client::{Client, Query, read};
use crate::commands::macros::{command, noun};
use crate::failure::{Failure, Outcome};
use crate::moment::Moment;
use crate::output::print_more;
use crate::output::table::{Columns, bytes, text};
use crate::quantity::{PageLimit, Whole};
use crate::terminal::{json_line, plain};

noun! {
    /// Read storage events: the changes of buckets and objects.
    struct Event("event"): EventCommand { List }
}

command! {
    /// List storage events, the oldest first. Events must match all filters.
    struct List("list") {
        /// only events at or after this time: an age such as 1h or 7d, a date such as 2026-11-21 (from midnight in UTC),
        /// or a time such as 2026-11-21T05:00:00Z
        #[argh(option, arg_name = "time")]
        since: Option<Moment>,
        /// only events before this time, written as for --since
        #[argh(option, arg_name = "time")]
        until: Option<Moment>,
        /// only events of this type, such as object.created; may be repeated
        #[argh(option, long = "type", arg_name = "type")]
        types: Vec<EventName>,
        /// only events of this bucket
        #[argh(option, arg_name = "name")]
        bucket: Option<String>,
        /// only events of objects whose keys begin with this prefix
        #[argh(option, arg_name = "prefix")]
        prefix: Option<String>,
        /// only changes that this principal asked for
        #[argh(option, arg_name = "name")]
        principal: Option<String>,
        /// only events with this text in bucket, key, type, principal or request id
        #[argh(option, arg_name = "text")]
        contains: Option<String>,
        /// maximum number of events in a page, 1 to 1000 (default: 100; with --all: 1000)
        #[argh(option, arg_name = "n")]
        limit: Option<PageLimit>,
        /// continue after an event or a page: its time or next_time
        #[argh(option, arg_name = "time")]
        after_time: Option<String>,
        /// continue after an event or a page: its id or next_id
        #[argh(option, arg_name = "id")]
        after_id: Option<String>,
        /// read all pages, up to 100000 events
        #[argh(switch)]
        all: bool,
        /// print events as they occur, until interrupted; without --since or --after-id only new ones; with --json one per line
        #[argh(switch)]
        follow: bool,
    }
}

const COLUMNS: Columns<StorageEvent> = &[
    ("time", |event| text(&event.time)),
    ("type", |event| text(&event.kind)),
    ("bucket", |event| text(&event.bucket)),
    ("object", |event| text(&event.object)),
    ("version id", |event| text(&event.version_id)),
    ("size", |event| bytes(&event.size)),
    ("principal", |event| text(&event.metadata.principal)),
];

impl List {
    fn run(&self) -> Outcome {
        let client = self.client()?;
        let after = position(self.after_time.as_deref(), self.after_id.as_deref())?;
        if self.follow {
            return self.follow(&client, after);
        }
        let limit = self.limit.map(|Whole(limit)| limit).or(self.all.then_some(PAGE_ENTRIES_MAX));
        let mut pages = Pages::new(&client, EVENTS, self.filter().query(limit)).after(after);
        pages.print(self.all, COLUMNS, "events", ", or use --all")
    }

    fn filter(&self) -> EventFilter {
        let [since, until] = [&self.since, &self.until].map(|time| time.as_ref().map(|time| time.0.clone()));
        let (bucket, prefix) = (self.bucket.clone(), self.prefix.clone());
        let (principal, contains) = (self.principal.clone(), self.contains.clone());
        EventFilter { since, until, types: self.types.clone(), bucket, prefix, principal, contains }
    }

    /// Prints events as they occur, until the reader of the output has gone.
    fn follow(&self, client: &Client, after: Query) -> Outcome {
        if self.all || self.limit.is_some() || self.until.is_some() {
            let message = "--follow has no end: --all, --limit and --until cannot be given with it";
            return Err(Failure::WrongUsage(message.to_owned()));
        }
        let mut filter = self.filter();
        let only_new = filter.since.is_none() && after.is_empty();
        if only_new {
            filter.since = Some(client.server_now()?);
        }
        let mut feed = EventFeed::new(client, filter, after);
        if only_new {
            feed.skip_to_end()?;
        }
        loop {
            for event in feed.wait()? {
                let line = if self.json { json_line(&event) } else { event_line(&read(&event)?) + "\n" };
                if !print_more(&line)? {
                    return Ok(());
                }
            }
        }
    }
}

/// Formats an event as one line: time, type, and what it is about.
pub(crate) fn event_line(event: &StorageEvent) -> String {
    let mut line = format!("{}  {:<19}  {}", text(&event.time), text(&event.kind), text(&event.bucket));
    if let Some(key) = &event.object {
        line.push_str(&format!("/{}  {}", plain(key), bytes(&event.size)));
    }
    line
}
