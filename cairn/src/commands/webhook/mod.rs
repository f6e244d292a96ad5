//! `cairn webhook`: manages webhooks, which deliver storage events to HTTP endpoints.

mod deliveries;
mod edit;
mod listen;

use cairn_api::{RotatedSecret, TestStep, WebhookHealth, WebhookTest};

use crate::client::{Request, read};
use crate::commands::macros::{command, noun, verbs};
use crate::commands::resources::WEBHOOKS;
use crate::failure::{Failure, Outcome};
use crate::output::confirmation::confirm;
use crate::output::table::{Columns, record, table, text};
use crate::quantity::{Duration, were};
use crate::terminal::plain;
use deliveries::{Deliveries, Redeliver};
use edit::{Create, Update};
use listen::Listen;

noun! {
    /// Manage webhooks, which deliver storage events to HTTP endpoints.
    struct Webhook("webhook"): WebhookCommand {
        Create, List, Show, Update, Enable, Disable, Delete, Test, RotateSecret, Deliveries, Redeliver, Resume, Listen,
    }
}

verbs! {
    WEBHOOKS by {
        /// the webhook's id
        webhook
    }
    /// List the webhooks.
    list,
    /// Show a webhook and how its deliveries are doing.
    show,
    /// Enable a disabled webhook. It receives the events from now on.
    enable,
    /// Disable a webhook. Its pending deliveries are dropped.
    disable,
}

command! {
    /// Delete a webhook with its signing secret, pending deliveries and delivery log. One with events that were not delivered
    /// needs a confirmation.
    struct Delete("delete") {
        /// the webhook's id
        #[argh(positional)]
        webhook: String,
        /// do not ask for a confirmation
        #[argh(switch)]
        yes: bool,
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

command! {
    /// End the pause of a webhook whose target was away: what waits is sent now.
    struct Resume("resume") {
        /// the webhook's id
        #[argh(positional)]
        webhook: String,
    }
}

const STEPS: Columns<TestStep> = &[
    ("step", |step| text(&step.step)),
    ("ok", |step| text(&step.ok)),
    ("ms", |step| text(&step.milliseconds)),
    ("detail", |step| text(&step.detail)),
];

const ROTATED: Columns<RotatedSecret> = &[
    ("signing secret", |new| text(&new.signing_secret)),
    ("previous secret until", |new| text(&new.previous_expires_at)),
];

impl Test {
    fn run(&self) -> Outcome {
        let client = self.client()?;
        let body = client.call(&Request::post(WEBHOOKS.path_of(&self.webhook) + "/test").patient())?;
        let test: WebhookTest = read(&body)?;
        client.print(&body, || table(STEPS, &test.steps))?;
        if test.delivered {
            return Ok(());
        }
        Err(Failure::Failed(format!("the test event was not delivered to webhook {}", self.webhook)))
    }
}

impl Delete {
    fn run(&self) -> Outcome {
        let client = self.client()?;
        if !self.yes {
            let webhook: cairn_api::Webhook =
                read(&client.call(&Request::get(WEBHOOKS.path_of(&self.webhook)))?)?;
            let WebhookHealth { pending, lost, .. } = webhook.health;
            if pending + lost > 0 {
                let events = were(pending + lost, "event");
                let target = plain(&webhook.target_url);
                confirm(
                    &format!(
                        "{events} not delivered to {target}: {pending} pending, {lost} lost.\n\
                         This deletes the webhook, and the delivery log that names them."
                    ),
                    "delete",
                    false,
                )?;
            }
        }
        WEBHOOKS.delete(&client, &[&self.webhook])
    }
}

impl Resume {
    fn run(&self) -> Outcome {
        WEBHOOKS.print(&self.client()?, &Request::post(WEBHOOKS.path_of(&self.webhook) + "/resume"))
    }
}

impl RotateSecret {
    fn run(&self) -> Outcome {
        let client = self.client()?;
        let mut request = Request::post(WEBHOOKS.path_of(&self.webhook) + "/rotate-secret");
        if let Some(Duration { seconds }) = self.overlap {
            request = request.json(&cairn_api::RotateSecret { overlap_seconds: Some(seconds) });
        }
        let body = client.call(&request)?;
        let new: RotatedSecret = read(&body)?;
        let shown = || record(ROTATED, &new) + "\nThe secret is shown only once: store it now.\n";
        let lost = format!(
            "the new signing secret is lost; `cairn webhook rotate-secret {}` creates another one",
            self.webhook
        );
        client.print_secret(&body, shown, &lost)
    }
}
