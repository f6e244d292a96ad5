//! `cairn webhook create` and `update`: the target of a webhook, and the events that it receives.

use cairn_api::{CreateWebhook, EventType, NewWebhook, UpdateWebhook};
use serde_json::json;

use crate::client::events::EventName;
use crate::client::{Request, changed, read};
use crate::commands::macros::command;
use crate::commands::resources::WEBHOOKS;
use crate::document::DocumentKind;
use crate::failure::{Failure, Outcome};
use crate::terminal::plain;

command! {
    /// Create a webhook from a JSON file or from options, and print its signing secret, once.
    #[argh(note = r#"A webhook that receives every new photo:

  {{"target_url": "https://example.com/hook",
   "event_types": ["object.created", "object.updated"],
   "bucket_filter": "photos", "object_prefix_filter": "2026/"}}

The event types are bucket.created, bucket.deleted, object.created,
object.updated, object.deleted, object.restored, multipart.completed and
multipart.aborted."#)]
    struct Create("create") {
        /// the file; - means standard input
        #[argh(positional)]
        file: Option<String>,
        /// the URL to which deliveries are posted
        #[argh(option, arg_name = "url")]
        target_url: Option<String>,
        /// an event type to deliver; may be repeated
        #[argh(option, arg_name = "type")]
        event_type: Vec<EventName>,
        /// only events of this bucket
        #[argh(option, arg_name = "name")]
        bucket: Option<String>,
        /// only events of objects whose keys begin with this prefix
        #[argh(option, arg_name = "prefix")]
        prefix: Option<String>,
        /// create it disabled
        #[argh(switch)]
        disabled: bool,
    }
}

command! {
    /// Change the target or the events of a webhook. What is not given does not change.
    struct Update("update") {
        /// the webhook's id
        #[argh(positional)]
        webhook: String,
        /// the URL to which deliveries are posted
        #[argh(option, arg_name = "url")]
        target_url: Option<String>,
        /// an event type to deliver; may be repeated; replaces all present types
        #[argh(option, arg_name = "type")]
        event_type: Vec<EventName>,
        /// only events of this bucket
        #[argh(option, arg_name = "name")]
        bucket: Option<String>,
        /// only events of objects whose keys begin with this prefix
        #[argh(option, arg_name = "prefix")]
        prefix: Option<String>,
        /// events of all buckets
        #[argh(switch)]
        any_bucket: bool,
        /// events of all keys
        #[argh(switch)]
        any_prefix: bool,
    }
}

const DOCUMENT: DocumentKind = DocumentKind { noun: "webhook", command: "webhook create" };

fn types(names: &[EventName]) -> Vec<EventType> {
    names.iter().map(|EventName(name)| (*name).into()).collect()
}

impl Create {
    pub(super) fn run(&self) -> Outcome {
        let document = self.document()?;
        let client = self.client()?;
        let body = client.call(&Request::post(WEBHOOKS.path).document(document))?;
        let new: NewWebhook = read(&body)?;
        let id = plain(&new.subscription.id);
        let lost = format!(
            "the webhook {id} was created but its signing secret is lost; `cairn webhook rotate-secret {id}` creates another one"
        );
        let text = || {
            let secret = plain(&new.signing_secret);
            WEBHOOKS.text(&new.subscription)
                + &format!("signing secret:    {secret}\n\nThe secret is shown only once: store it now.\n")
        };
        client.print_secret(&body, text, &lost)
    }

    fn document(&self) -> Result<String, Failure> {
        let has_options = self.target_url.is_some()
            || !self.event_type.is_empty()
            || self.bucket.is_some()
            || self.prefix.is_some()
            || self.disabled;
        let wrong = |message: &str| Err(Failure::WrongUsage(message.to_owned()));
        match (&self.file, &self.target_url) {
            (Some(_), _) if has_options => wrong("give either a file or options"),
            (Some(file), _) => Ok(DOCUMENT.read(file)?),
            (None, None) => wrong("give a file, or --target-url and at least one --event-type"),
            (None, Some(_)) if self.event_type.is_empty() => {
                wrong("give at least one --event-type, such as object.created")
            }
            (None, Some(url)) => Ok(json!(CreateWebhook {
                target_url: url.clone().into(),
                event_types: types(&self.event_type),
                bucket_filter: self.bucket.clone().map(Into::into),
                object_prefix_filter: self.prefix.clone().map(Into::into),
                enabled: !self.disabled,
            })
            .to_string()),
        }
    }
}

impl Update {
    pub(super) fn run(&self) -> Outcome {
        let wrong = |message: &str| Err(Failure::WrongUsage(message.to_owned()));
        if self.bucket.is_some() && self.any_bucket || self.prefix.is_some() && self.any_prefix {
            return wrong("a filter cannot be set and removed at the same time");
        }
        let changes = json!(UpdateWebhook {
            target_url: self.target_url.clone().map(Into::into),
            event_types: Some(types(&self.event_type)).filter(|types| !types.is_empty()),
            bucket_filter: changed(self.bucket.clone().map(Into::into), self.any_bucket),
            object_prefix_filter: changed(self.prefix.clone().map(Into::into), self.any_prefix),
        });
        if changes == json!({}) {
            return wrong("give at least one option that changes something");
        }
        WEBHOOKS.print(&self.client()?, &Request::patch(WEBHOOKS.path_of(&self.webhook)).json(&changes))
    }
}
