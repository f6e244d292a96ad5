//! `cairn webhook`: manages webhooks, which deliver storage events to HTTP endpoints.

mod deliveries;
mod edit;
mod listen;

use cairn_http1::encode_strict;
use serde_json::{Value, json};

use crate::client::Request;
use crate::commands::macros::{command, noun};
use crate::failure::{Failure, Outcome};
use crate::output::table::{Columns, record, table, text, words};
use crate::quantity::Duration;
use crate::terminal::word;
use deliveries::{Deliveries, Redeliver};
use edit::{Create, Update};
use listen::Listen;

noun! {
    /// Manage webhooks, which deliver storage events to HTTP endpoints.
    struct Webhook("webhook"): WebhookCommand {
        Create, List, Show, Update, Enable, Disable, Delete, Test, RotateSecret, Deliveries, Redeliver, Listen,
    }
}

command! {
    /// List the webhooks.
    struct List("list") {}
}

command! {
    /// Show a webhook and how its deliveries are doing.
    struct Show("show") {
        /// the webhook's id
        #[argh(positional)]
        webhook: String,
    }
}

command! {
    /// Enable a disabled webhook. It receives the events from now on.
    struct Enable("enable") {
        /// the webhook's id
        #[argh(positional)]
        webhook: String,
    }
}

command! {
    /// Disable a webhook. Its pending deliveries are dropped.
    struct Disable("disable") {
        /// the webhook's id
        #[argh(positional)]
        webhook: String,
    }
}

command! {
    /// Delete a webhook with its signing secret and pending deliveries.
    struct Delete("delete") {
        /// the webhook's id
        #[argh(positional)]
        webhook: String,
    }
}

command! {
    /// Send one signed event for a test, and show each step. The exit code is 1 if it was not delivered.
    struct Test("test") {
        /// the webhook's id
        #[argh(positional)]
        webhook: String,
    }
}

command! {
    /// Create a new signing secret, and print it, once. For a while, deliveries are signed with both.
    struct RotateSecret("rotate-secret") {
        /// the webhook's id
        #[argh(positional)]
        webhook: String,
        /// how long the previous secret stays valid, up to 7d (default: 24h); 0 ends it at once
        #[argh(option, arg_name = "duration")]
        overlap: Option<Duration>,
    }
}

/// The route of all webhooks.
const WEBHOOKS: &str = "/api/v1/webhooks";

const LISTED: Columns = &[
    ("id", |webhook| text(&webhook["id"])),
    ("target", |webhook| text(&webhook["target_url"])),
    ("events", |webhook| types_text(&webhook["event_types"])),
    ("bucket", |webhook| text(&webhook["bucket_filter"])),
    ("prefix", |webhook| text(&webhook["object_prefix_filter"])),
    ("enabled", |webhook| text(&webhook["enabled"])),
    ("health", |webhook| words(&webhook["health"]["state"])),
    ("pending", |webhook| text(&webhook["health"]["pending"])),
];

const SHOWN: Columns = &[
    ("id", |webhook| text(&webhook["id"])),
    ("target", |webhook| text(&webhook["target_url"])),
    ("events", |webhook| types_text(&webhook["event_types"])),
    ("bucket", |webhook| text(&webhook["bucket_filter"])),
    ("prefix", |webhook| text(&webhook["object_prefix_filter"])),
    ("enabled", |webhook| text(&webhook["enabled"])),
    ("created", |webhook| text(&webhook["created_at"])),
    ("health", |webhook| words(&webhook["health"]["state"])),
    ("failures in a row", |webhook| text(&webhook["health"]["consecutive_failures"])),
    ("last success", |webhook| text(&webhook["health"]["last_success_at"])),
    ("last error", |webhook| text(&webhook["health"]["last_error"])),
    ("pending", |webhook| text(&webhook["health"]["pending"])),
    ("oldest pending", |webhook| text(&webhook["health"]["oldest_pending_at"])),
];

const STEPS: Columns = &[
    ("step", |step| text(&step["step"])),
    ("ok", |step| text(&step["ok"])),
    ("ms", |step| text(&step["milliseconds"])),
    ("detail", |step| text(&step["detail"])),
];

/// Formats a list of event types.
fn types_text(types: &Value) -> String {
    types.as_array().map_or_else(String::new, |all| all.iter().map(word).collect::<Vec<_>>().join(", "))
}

/// Returns the route of a webhook.
fn path_of(webhook: &str) -> String {
    format!("{WEBHOOKS}/{}", encode_strict(webhook))
}

/// Formats a webhook.
fn webhook_text(webhook: &Value) -> String {
    record(SHOWN, webhook)
}

impl List {
    fn run(&self) -> Outcome {
        self.client()?.list(WEBHOOKS, "webhooks", LISTED)
    }
}

impl Show {
    fn run(&self) -> Outcome {
        self.client()?.show(&Request::get(path_of(&self.webhook)), SHOWN)
    }
}

/// Returns the request that enables or disables a webhook.
fn status_request(webhook: &str, enabled: bool) -> Request {
    Request::put(format!("{}/status", path_of(webhook))).json(&json!({"enabled": enabled}))
}

impl Enable {
    fn run(&self) -> Outcome {
        let done = format!("webhook {} is enabled", self.webhook);
        self.client()?.change(&status_request(&self.webhook, true), &done)
    }
}

impl Disable {
    fn run(&self) -> Outcome {
        let done = format!("webhook {} is disabled; its pending deliveries were dropped", self.webhook);
        self.client()?.change(&status_request(&self.webhook, false), &done)
    }
}

impl Delete {
    fn run(&self) -> Outcome {
        let done = format!("webhook {} was deleted", self.webhook);
        self.client()?.change(&Request::delete(path_of(&self.webhook)), &done)
    }
}

impl Test {
    fn run(&self) -> Outcome {
        let client = self.client()?;
        let request = Request::post(format!("{}/test", path_of(&self.webhook))).patient();
        let body = client.call(&request)?;
        let steps = crate::client::rows(&body, "steps")?;
        client.print(&body, || table(STEPS, steps))?;
        if body["delivered"] == true {
            return Ok(());
        }
        Err(Failure::Failed(format!("the test event was not delivered to webhook {}", self.webhook)))
    }
}

impl RotateSecret {
    fn run(&self) -> Outcome {
        let client = self.client()?;
        let mut request = Request::post(format!("{}/rotate-secret", path_of(&self.webhook)));
        if let Some(Duration { seconds }) = self.overlap {
            request = request.json(&json!({"overlap_seconds": seconds}));
        }
        let body = client.call(&request)?;
        let columns: Columns = &[
            ("signing secret", |body| text(&body["signing_secret"])),
            ("previous secret until", |body| text(&body["previous_expires_at"])),
        ];
        let shown = || record(columns, &body) + "\nThe secret is shown only once: store it now.\n";
        let lost = format!(
            "the new signing secret is lost; `cairn webhook rotate-secret {}` creates another one",
            self.webhook
        );
        client.print_secret(&body, shown, &lost)
    }
}
