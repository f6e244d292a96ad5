//! `cairn webhook create` and `update`: the target of a webhook, and the events that it receives.

use serde_json::{Map, Value, json};

use crate::client::Request;
use crate::client::events::EventName;
use crate::commands::macros::command;
use crate::commands::resources::WEBHOOKS;
use crate::document::DocumentKind;
use crate::failure::{Failure, Outcome};
use crate::terminal::word;

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
        /// where deliveries are posted
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
    /// Change the target or the events of a webhook. What is not given stays.
    struct Update("update") {
        /// the webhook's id
        #[argh(positional)]
        webhook: String,
        /// where deliveries are posted
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

fn names(types: &[EventName]) -> Vec<&'static str> {
    types.iter().map(|EventName(name)| *name).collect()
}

impl Create {
    pub(super) fn run(&self) -> Outcome {
        let document = self.document()?;
        let client = self.client()?;
        let body = client.call(&Request::post(WEBHOOKS.path).document(document))?;
        if !body["signing_secret"].is_string() {
            return Err("the response contains no signing secret".into());
        }
        let id = word(&body["subscription"]["id"]);
        let lost = format!(
            "the webhook {id} was created but its signing secret is lost; `cairn webhook rotate-secret {id}` creates another one"
        );
        let text = || {
            let secret = word(&body["signing_secret"]);
            (WEBHOOKS.shown)(&body["subscription"])
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
            (None, Some(url)) => Ok(json!({
                "target_url": url,
                "event_types": names(&self.event_type),
                "bucket_filter": self.bucket,
                "object_prefix_filter": self.prefix,
                "enabled": !self.disabled,
            })
            .to_string()),
        }
    }
}

impl Update {
    pub(super) fn run(&self) -> Outcome {
        let changes = self.changes()?;
        WEBHOOKS.print(&self.client()?, &Request::patch(WEBHOOKS.path_of(&self.webhook)).json(&changes))
    }

    fn changes(&self) -> Result<Value, Failure> {
        let wrong = |message: &str| Err(Failure::WrongUsage(message.to_owned()));
        if self.bucket.is_some() && self.any_bucket || self.prefix.is_some() && self.any_prefix {
            return wrong("a filter cannot be set and removed at the same time");
        }
        let mut changes = Map::new();
        let mut change = |name: &str, value: Value| drop(changes.insert(name.to_owned(), value));
        if let Some(url) = &self.target_url {
            change("target_url", json!(url));
        }
        if !self.event_type.is_empty() {
            change("event_types", json!(names(&self.event_type)));
        }
        if self.bucket.is_some() || self.any_bucket {
            change("bucket_filter", json!(self.bucket));
        }
        if self.prefix.is_some() || self.any_prefix {
            change("object_prefix_filter", json!(self.prefix));
        }
        if changes.is_empty() {
            return wrong("give at least one option that changes something");
        }
        Ok(Value::Object(changes))
    }
}
