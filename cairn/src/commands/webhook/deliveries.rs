//! `cairn webhook deliveries` and `redeliver`: the delivery log, and sending events again.

use cairn_api::{Delivery, QueuedDeliveries, RedeliverEvents, Redelivered};
use cairn_http1::encode_strict;

use crate::choice::choice;
use crate::client::pages::{PagedList, Pages, position};
use crate::client::{Request, query};
use crate::commands::macros::command;
use crate::commands::resources::WEBHOOKS;
use crate::failure::{Failure, Outcome};
use crate::moment::Moment;
use crate::output::table::{Columns, record, text};
use crate::quantity::{PageLimit, Whole};

command! {
    /// List the delivery log, the latest first: one entry for each attempt, and one for each waiting delivery.
    struct Deliveries("deliveries") {
        /// maximum number of entries, 1 to 1000 (default: 100)
        #[argh(option, arg_name = "n")]
        limit: Option<PageLimit>,
        /// only deliveries of this webhook
        #[argh(option, arg_name = "id")]
        webhook: Option<String>,
        /// only deliveries of this event
        #[argh(option, arg_name = "id")]
        event: Option<String>,
        /// pending, succeeded, failed or dropped
        #[argh(option, arg_name = "word")]
        status: Option<DeliveryStatus>,
        /// continue after a page: its next_time
        #[argh(option, arg_name = "time")]
        after_time: Option<String>,
        /// continue after a page: its next_id
        #[argh(option, arg_name = "id")]
        after_id: Option<String>,
    }
}

command! {
    /// Deliver again: the events of a webhook in a period, or the event of one delivery.
    struct Redeliver("redeliver") {
        /// the webhook's id
        #[argh(positional)]
        webhook: Option<String>,
        /// events at or after this time: an age such as 1h or 7d, a date such as 2026-11-21 (from midnight in UTC), or a
        /// time such as 2026-11-21T05:00:00Z
        #[argh(option, arg_name = "time")]
        since: Option<Moment>,
        /// events before this time, written as for --since
        #[argh(option, arg_name = "time")]
        until: Option<Moment>,
        /// all events, not only those whose delivery failed
        #[argh(switch)]
        all: bool,
        /// only the event of this delivery
        #[argh(option, arg_name = "id")]
        delivery: Option<String>,
    }
}

choice! {
    /// States of deliveries.
    DeliveryStatus = "pending" | "succeeded" | "failed" | "dropped"
}

/// The delivery log.
const DELIVERIES: PagedList = PagedList::by_time("/api/v1/webhook-deliveries", "deliveries");

const LISTED: Columns<Delivery> = &[
    ("time", |entry| text(&entry.timestamp)),
    ("status", |entry| text(&entry.status)),
    ("attempt", |entry| text(&entry.attempt)),
    ("http", |entry| text(&entry.http_status)),
    ("event type", |entry| text(&entry.event_type)),
    ("event", |entry| text(&entry.event_id)),
    ("webhook", |entry| text(&entry.webhook_id)),
    ("delivery", |entry| text(&entry.id)),
    ("next attempt", |entry| text(&entry.next_attempt_at)),
    ("error", |entry| text(&entry.error)),
];

const QUEUED: Columns<Delivery> = &[
    ("delivery", |entry| text(&entry.id)),
    ("webhook", |entry| text(&entry.webhook_id)),
    ("event", |entry| text(&entry.event_id)),
    ("status", |entry| text(&entry.status)),
];

impl Deliveries {
    pub(super) fn run(&self) -> Outcome {
        let position = position(self.after_time.as_deref(), self.after_id.as_deref())?;
        let parameters = query([
            ("limit", self.limit.map(|Whole(limit)| limit.to_string())),
            ("webhook_id", self.webhook.clone()),
            ("event_id", self.event.clone()),
            ("status", self.status.map(|DeliveryStatus(word)| word.to_owned())),
        ]);
        let client = self.client()?;
        Pages::new(&client, DELIVERIES, parameters).after(position).print(false, LISTED, "entries", "")
    }
}

impl Redeliver {
    pub(super) fn run(&self) -> Outcome {
        let client = self.client()?;
        match (&self.webhook, &self.delivery, &self.since) {
            (None, Some(delivery), None) if self.until.is_none() && !self.all => {
                let path = format!("{}/{}/redeliver", DELIVERIES.path, encode_strict(delivery));
                client.show(&Request::post(path), QUEUED)
            }
            (Some(webhook), None, Some(since)) => {
                let request = RedeliverEvents {
                    since: since.0.clone().into(),
                    until: self.until.as_ref().map(|until| until.0.clone().into()),
                    only: if self.all { Redelivered::All } else { Redelivered::Failed },
                };
                let path = WEBHOOKS.path_of(webhook) + "/redeliver";
                let body = client.call(&Request::post(path).json(&request).long_running())?;
                const SHOWN: Columns<QueuedDeliveries> = &[("queued", |found| text(&found.queued))];
                client.print_as(&body, |queued| record(SHOWN, queued))
            }
            _ => Err(Failure::WrongUsage(
                "give a webhook and --since, or --delivery and nothing else".to_owned(),
            )),
        }
    }
}
