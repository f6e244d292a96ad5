//! `cairn event`: lists storage events, and follows them.

use serde_json::{Value, json};

use crate::client::events::{EventFeed, EventFilter, EventName, PAGE_EVENTS_MAX, Position, next_position};
use crate::client::{Client, rows};
use crate::commands::macros::{command, noun};
use crate::failure::{Failure, Outcome};
use crate::moment::Moment;
use crate::output::table::{Columns, bytes, table, text};
use crate::output::{print_error, print_more};
use crate::quantity::{PageLimit, Whole};
use crate::terminal::{json_line, word};

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

/// With `--all`, no further page is requested after this many events, which bounds memory and time.
const EVENTS_MAX: usize = 100_000;

const COLUMNS: Columns = &[
    ("time", |event| text(&event["time"])),
    ("type", |event| text(&event["type"])),
    ("bucket", |event| text(&event["bucket"])),
    ("object", |event| text(&event["object"])),
    ("version id", |event| text(&event["version_id"])),
    ("size", |event| if event["size"].is_null() { text(&Value::Null) } else { bytes(&event["size"]) }),
    ("principal", |event| text(&event["metadata"]["principal"])),
];

impl List {
    fn run(&self) -> Outcome {
        let client = self.client()?;
        let after = self.position()?;
        if self.follow {
            return self.follow(&client, after);
        }
        let mut feed = EventFeed::new(&client, self.filter(), after);
        let limit = self.limit.map(|Whole(limit)| limit).or(self.all.then_some(PAGE_EVENTS_MAX));
        let mut body = feed.page(limit)?;
        if self.all {
            let mut events = rows(&body, "events")?.to_vec();
            while next_position(&body).is_some() && events.len() < EVENTS_MAX {
                body = feed.page(limit)?;
                events.extend_from_slice(rows(&body, "events")?);
            }
            body = json!({"events": events, "next_time": body["next_time"], "next_id": body["next_id"]});
        }
        let events = rows(&body, "events")?;
        client.print(&body, || table(COLUMNS, events))?;
        if let (false, Some((time, id))) = (self.json, next_position(&body)) {
            let [time, id] = [time, id].map(|text| word(&text.into()));
            print_error(&format!(
                "there may be more events: continue with --after-time {time} --after-id {id}, or use --all\n"
            ));
        }
        Ok(())
    }

    /// Returns the position to continue after, if one is given.
    fn position(&self) -> Result<Option<Position>, Failure> {
        match (&self.after_time, &self.after_id) {
            (None, None) => Ok(None),
            (Some(time), Some(id)) => Ok(Some((time.clone(), id.clone()))),
            _ => Err(Failure::WrongUsage("--after-time and --after-id must be given together".to_owned())),
        }
    }

    fn filter(&self) -> EventFilter {
        let [since, until] = [&self.since, &self.until].map(|time| time.as_ref().map(|time| time.0.clone()));
        let (bucket, prefix) = (self.bucket.clone(), self.prefix.clone());
        EventFilter { since, until, types: self.types.clone(), bucket, prefix }
    }

    /// Prints events as they occur, until the reader of the output has gone.
    fn follow(&self, client: &Client, after: Option<Position>) -> Outcome {
        if self.all || self.limit.is_some() || self.until.is_some() {
            let message = "--follow has no end: --all, --limit and --until cannot be given with it";
            return Err(Failure::WrongUsage(message.to_owned()));
        }
        let mut filter = self.filter();
        let only_new = filter.since.is_none() && after.is_none();
        if only_new {
            filter.since = Some(client.server_now()?);
        }
        let mut feed = EventFeed::new(client, filter, after);
        if only_new {
            feed.skip_to_end()?;
        }
        loop {
            for event in feed.wait()? {
                let line = if self.json { json_line(&event) } else { event_line(&event) + "\n" };
                if !print_more(&line)? {
                    return Ok(());
                }
            }
        }
    }
}

/// Formats an event as one line: time, type, and what it is about.
pub(crate) fn event_line(event: &Value) -> String {
    let mut line =
        format!("{}  {:<19}  {}", text(&event["time"]), text(&event["type"]), text(&event["bucket"]));
    if !event["object"].is_null() {
        line.push_str(&format!("/{}  {}", word(&event["object"]), bytes(&event["size"])));
    }
    line
}
