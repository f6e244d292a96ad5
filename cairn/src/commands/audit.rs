//! `cairn audit`: lists the events of the audit trail.

use cairn_api::AuditEvent;

use crate::choice::choice;
use crate::client::pages::{PAGE_ENTRIES_MAX, PagedList, Pages, position};
use crate::client::query;
use crate::commands::macros::{command, noun};
use crate::failure::Outcome;
use crate::moment::Moment;
use crate::output::table::{Columns, text};
use crate::quantity::{PageLimit, Whole};

noun! {
    /// Read the audit trail.
    struct Audit("audit"): AuditCommand { List }
}

command! {
    /// List audit events, the latest first. Events must match all filters; a filter compares the whole value,
    /// except --contains.
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
        /// a text that is in the event, in any of its members
        #[argh(option, arg_name = "text")]
        contains: Option<String>,
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

/// The audit trail.
const EVENTS: PagedList = PagedList::by_time("/api/v1/audit/events", "events");

const COLUMNS: Columns<AuditEvent> = &[
    ("time", |event| text(&event.time)),
    ("result", |event| text(&event.result)),
    ("principal", |event| text(&event.principal)),
    ("operation", |event| text(&event.operation)),
    ("resource", |event| text(&event.resource)),
    ("source", |event| text(&event.source_ip)),
    ("request id", |event| text(&event.request_id)),
    ("detail", |event| text(&event.detail)),
];

impl List {
    fn run(&self) -> Outcome {
        let client = self.client()?;
        let position = position(self.after_time.as_deref(), self.after_id.as_deref())?;
        let limit = self.limit.map(|Whole(limit)| limit).or(self.all.then_some(PAGE_ENTRIES_MAX));
        let [since, until] = [&self.since, &self.until].map(|time| time.as_ref().map(|time| time.0.clone()));
        let parameters = query([
            ("since", since),
            ("until", until),
            ("principal", self.principal.clone()),
            ("operation", self.operation.clone()),
            ("resource", self.resource.clone()),
            ("bucket", self.bucket.clone()),
            ("key", self.key.clone()),
            ("result", self.result.map(|AuditResult(word)| word.to_owned())),
            ("source_ip", self.source_ip.clone()),
            ("request_id", self.request_id.clone()),
            ("contains", self.contains.clone()),
            ("limit", limit.map(|limit| limit.to_string())),
        ]);
        let mut pages = Pages::new(&client, EVENTS, parameters).after(position);
        pages.print(self.all, COLUMNS, "events", ", or use --all")
    }
}
