//! `cairn audit`: the trail of what was done and refused.

use cairn_http1::encode_strict;
use serde_json::{Value, json};

use crate::arguments::{command, noun};
use crate::client::{Client, Request, rows};
use crate::failure::{Failure, Outcome};
use crate::output::{print_error, word};
use crate::table::{Columns, table, text};

noun! {
    /// Look into the audit trail.
    struct Audit("audit"): AuditCommand { List }
}

command! {
    /// List audit events, the latest first. All filters must fit; what is compared is compared whole.
    struct List("list") {
        /// of this time and later, for example 2026-11-21T05:00:00Z
        #[argh(option, arg_name = "time")]
        since: Option<String>,
        /// before this time
        #[argh(option, arg_name = "time")]
        until: Option<String>,
        /// by whom
        #[argh(option, arg_name = "name")]
        principal: Option<String>,
        /// what was done
        #[argh(option, arg_name = "name")]
        operation: Option<String>,
        /// on what
        #[argh(option, arg_name = "name")]
        resource: Option<String>,
        /// allowed, denied or failed
        #[argh(option, arg_name = "word")]
        result: Option<String>,
        /// from which address
        #[argh(option, arg_name = "address")]
        source_ip: Option<String>,
        /// of one request
        #[argh(option, arg_name = "id")]
        request_id: Option<String>,
        /// at most so many events at once, 1 to 1000 (default: 100; with --all: 1000)
        #[argh(option, arg_name = "n")]
        limit: Option<u64>,
        /// go on behind a page: its next_time
        #[argh(option, arg_name = "time")]
        after_time: Option<String>,
        /// go on behind a page: its next_id
        #[argh(option, arg_name = "id")]
        after_id: Option<String>,
        /// follow the pages, for 100000 events at most
        #[argh(switch)]
        all: bool,
    }
}

/// Events of one page when all are wanted: the most that the route gives.
const PAGE_EVENTS_MAX: u64 = 1000;
/// With `--all`, no page is asked for once there are so many events: a listing must fit into memory and patience.
const EVENTS_MAX: usize = 100_000;
/// Pages may be empty, and yet not be the last.
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

/// Where a page ended: `next_time` and `next_id`.
type Place = (String, String);

impl List {
    fn run(&self) -> Outcome {
        let client = self.client();
        let mut after = match (&self.after_time, &self.after_id) {
            (None, None) => None,
            (Some(time), Some(id)) => Some((time.clone(), id.clone())),
            _ => return Err(Failure::WrongUsage("--after-time and --after-id go together".to_owned())),
        };
        let mut body = self.page(&client, after.as_ref())?;
        if self.all {
            let mut events = rows(&body, "events")?.to_vec();
            for _ in 1..PAGES_MAX {
                let next = next_place(&body);
                if next.is_none() || events.len() >= EVENTS_MAX {
                    break;
                }
                if next == after {
                    return Err("the server's pages lead nowhere".into());
                }
                after = next;
                body = self.page(&client, after.as_ref())?;
                events.extend_from_slice(rows(&body, "events")?);
            }
            body = json!({"events": events, "next_time": body["next_time"], "next_id": body["next_id"]});
        }
        let events = rows(&body, "events")?;
        client.print(&body, || table(COLUMNS, events))?;
        if let (false, Some(_)) = (self.json, next_place(&body)) {
            let [time, id] = ["next_time", "next_id"].map(|name| word(&body[name]));
            print_error(&format!("there may be more: --after-time {time} --after-id {id}, or --all\n"));
        }
        Ok(())
    }

    fn page(&self, client: &Client, after: Option<&Place>) -> Result<Value, Failure> {
        let limit = self.limit.or(self.all.then_some(PAGE_EVENTS_MAX)).map(|limit| limit.to_string());
        let (after_time, after_id) = after.cloned().unzip();
        let parameters = [
            ("since", &self.since),
            ("until", &self.until),
            ("principal", &self.principal),
            ("operation", &self.operation),
            ("resource", &self.resource),
            ("result", &self.result),
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

fn next_place(body: &Value) -> Option<Place> {
    let text = |name: &str| body[name].as_str().map(str::to_owned);
    Some((text("next_time")?, text("next_id")?))
}
