//! `cairn audit`: lists the events of the audit trail.

use cairn_http1::encode_strict;
use serde_json::{Value, json};

use crate::choice::choice;
use crate::client::events::{Position, next_position};
use crate::client::{Client, Request, rows};
use crate::commands::macros::{command, noun};
use crate::failure::{Failure, Outcome};
use crate::moment::Moment;
use crate::output::print_error;
use crate::output::table::{Columns, table, text};
use crate::quantity::{PageLimit, Whole};
use crate::terminal::word;

noun! {
    /// Read the audit trail.
    struct Audit("audit"): AuditCommand { List }
}

command! {
    /// List audit events, the latest first. Events must match all filters; a filter compares the whole value.
    struct List("list") {
        /// only events at or after this time: an age such as 1h or 7d, a date such as 2026-11-21 (from midnight in UTC),
        /// or a time such as 2026-11-21T05:00:00Z
        #[argh(option, arg_name = "time")]
        since: Option<Moment>,
        /// only events before this time, written as for --since
        #[argh(option, arg_name = "time")]
        until: Option<Moment>,
        /// the principal that made the request
        #[argh(option, arg_name = "name")]
        principal: Option<String>,
        /// the operation
        #[argh(option, arg_name = "name")]
        operation: Option<String>,
        /// the resource: a bucket, or bucket/key
        #[argh(option, arg_name = "name")]
        resource: Option<String>,
        /// the bucket: events of the bucket and of its objects
        #[argh(option, arg_name = "name")]
        bucket: Option<String>,
        /// the key of an object, in any bucket or in that of --bucket
        #[argh(option, arg_name = "key")]
        key: Option<String>,
        /// the result: allowed, denied or failed
        #[argh(option, arg_name = "word")]
        result: Option<AuditResult>,
        /// the client's address
        #[argh(option, arg_name = "address")]
        source_ip: Option<String>,
        /// the request id
        #[argh(option, arg_name = "id")]
        request_id: Option<String>,
        /// maximum number of events in a page, 1 to 1000 (default: 100; with --all: 1000)
        #[argh(option, arg_name = "n")]
        limit: Option<PageLimit>,
        /// continue after a page: its next_time
        #[argh(option, arg_name = "time")]
        after_time: Option<String>,
        /// continue after a page: its next_id
        #[argh(option, arg_name = "id")]
        after_id: Option<String>,
        /// read all pages, up to 100000 events
        #[argh(switch)]
        all: bool,
    }
}

choice! {
    /// Results of requests.
    AuditResult = "allowed" | "denied" | "failed"
}

/// Events in a page with `--all`: the maximum that the server allows.
const PAGE_EVENTS_MAX: u64 = 1000;
/// With `--all`, no further page is requested after this many events, which bounds memory and time.
const EVENTS_MAX: usize = 100_000;
/// Maximum number of pages with `--all`: a page may be empty without being the last.
const PAGES_MAX: usize = 10_000;

const COLUMNS: Columns = &[
    ("time", |event| text(&event["time"])),
    ("result", |event| text(&event["result"])),
    ("principal", |event| text(&event["principal"])),
    ("operation", |event| text(&event["operation"])),
    ("resource", |event| text(&event["resource"])),
    ("source", |event| text(&event["source_ip"])),
    ("request id", |event| text(&event["request_id"])),
    ("detail", |event| text(&event["detail"])),
];

impl List {
    fn run(&self) -> Outcome {
        let client = self.client()?;
        let mut after = match (&self.after_time, &self.after_id) {
            (None, None) => None,
            (Some(time), Some(id)) => Some((time.clone(), id.clone())),
            _ => {
                return Err(Failure::WrongUsage(
                    "--after-time and --after-id must be given together".to_owned(),
                ));
            }
        };
        let mut body = self.page(&client, after.as_ref())?;
        if self.all {
            let mut events = rows(&body, "events")?.to_vec();
            for _ in 1..PAGES_MAX {
                let next = next_position(&body);
                if next.is_none() || events.len() >= EVENTS_MAX {
                    break;
                }
                if next == after {
                    return Err("the server returned the same page twice".into());
                }
                after = next;
                body = self.page(&client, after.as_ref())?;
                events.extend_from_slice(rows(&body, "events")?);
            }
            body = json!({"events": events, "next_time": body["next_time"], "next_id": body["next_id"]});
        }
        let events = rows(&body, "events")?;
        client.print(&body, || table(COLUMNS, events))?;
        if let (false, Some(_)) = (self.json, next_position(&body)) {
            let [time, id] = ["next_time", "next_id"].map(|name| word(&body[name]));
            print_error(&format!(
                "there may be more events: continue with --after-time {time} --after-id {id}, or use --all\n"
            ));
        }
        Ok(())
    }

    fn page(&self, client: &Client, after: Option<&Position>) -> Result<Value, Failure> {
        let limit = self.limit.map(|Whole(limit)| limit).or(self.all.then_some(PAGE_EVENTS_MAX));
        let limit = limit.map(|limit| limit.to_string());
        let result = self.result.map(|AuditResult(word)| word.to_owned());
        let (after_time, after_id) = after.cloned().unzip();
        let [since, until] = [&self.since, &self.until].map(|time| time.as_ref().map(|time| time.0.clone()));
        let parameters = [
            ("since", &since),
            ("until", &until),
            ("principal", &self.principal),
            ("operation", &self.operation),
            ("resource", &self.resource),
            ("bucket", &self.bucket),
            ("key", &self.key),
            ("result", &result),
            ("source_ip", &self.source_ip),
            ("request_id", &self.request_id),
            ("limit", &limit),
            ("after_time", &after_time),
            ("after_id", &after_id),
        ];
        let given = parameters.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
        let query: Vec<String> =
            given.map(|(name, value)| format!("{name}={}", encode_strict(value))).collect();
        client.call(&Request::get(format!("/api/v1/audit/events?{}", query.join("&"))))
    }
}
