//! `cairn webhook listen`: posts new events, signed, to a program on a developer's machine.
//!
//! It needs no webhook on the server, and the server needs no way to the developer's machine: events are read by long polling.
//! Nothing is retried.

use std::io::Read;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use cairn_api::StorageEvent;
use cairn_webhooks::signature::{SigningSecret, SigningSecrets};
use serde_json::{Value, json};
use ureq::Agent;
use ureq::http::{self, Uri};

use crate::client::events::{EventFeed, EventFilter, EventName};
use crate::client::{Query, agent, read};
use crate::commands::event::event_line;
use crate::commands::macros::command;
use crate::failure::{Failure, Outcome};
use crate::output::{print_error, print_more};
use crate::terminal::{json_line, plain};

command! {
    /// Post new events, signed, to a program on this machine, and print each with the response. Ends when it is interrupted.
    /// A delivery that fails is not repeated.
    struct Listen("listen") {
        /// the URL to which events are posted, such as http://127.0.0.1:8000/hook
        #[argh(option, arg_name = "url")]
        forward: String,
        /// an event type to forward; may be repeated (default: all)
        #[argh(option, arg_name = "type")]
        event_type: Vec<EventName>,
        /// only events of this bucket
        #[argh(option, arg_name = "name")]
        bucket: Option<String>,
        /// only events of objects whose keys begin with this prefix
        #[argh(option, arg_name = "prefix")]
        prefix: Option<String>,
        /// a file with the signing secret to use; - means standard input (default: a new secret, which is printed)
        #[argh(option, arg_name = "file")]
        secret_file: Option<String>,
    }
}

/// Time limit of one request to the receiver: the server's default.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum length of a file with a secret.
const SECRET_BYTES_MAX: u64 = 4096;

impl Listen {
    pub(super) fn run(&self) -> Outcome {
        let forward: Uri = self.forward.parse().map_err(|_| wrong_url())?;
        if !matches!(forward.scheme_str(), Some("http" | "https")) || forward.host().is_none() {
            return Err(wrong_url());
        }
        let secret = self.secret()?;
        let client = self.client()?;
        let filter = EventFilter {
            since: Some(client.server_now()?),
            types: self.event_type.clone(),
            bucket: self.bucket.clone(),
            prefix: self.prefix.clone(),
            ..EventFilter::default()
        };
        let mut feed = EventFeed::new(&client, filter, Query::new());
        feed.skip_to_end()?;
        print_error(&format!("forwarding new events to {}; Ctrl-C ends it\n", plain(&self.forward)));
        if self.secret_file.is_none() {
            print_error(&format!("signing secret: {}\n", secret.expose()));
        }
        let receiver = Receiver { agent: agent()?, forward, secret };
        loop {
            for event in feed.wait()? {
                let answer = receiver.post(&event);
                let line =
                    if self.json { json_line(&answer.json(&event)) } else { answer.text(&read(&event)?) };
                if !print_more(&line)? {
                    return Ok(());
                }
            }
        }
    }

    /// Returns the secret in the file, or a new one.
    fn secret(&self) -> Result<SigningSecret, Failure> {
        let Some(file) = &self.secret_file else {
            return SigningSecret::generate()
                .map_err(|error| format!("no secret could be generated: {error}").into());
        };
        let failed =
            |error: String| Failure::Failed(format!("the secret could not be read from {file}: {error}"));
        let source: Box<dyn Read> = match file.as_str() {
            "-" => Box::new(std::io::stdin()),
            file => Box::new(std::fs::File::open(file).map_err(|error| failed(error.to_string()))?),
        };
        let mut text = String::new();
        source.take(SECRET_BYTES_MAX).read_to_string(&mut text).map_err(|error| failed(error.to_string()))?;
        SigningSecret::parse(text.trim()).map_err(|error| failed(error.to_string()))
    }
}

fn wrong_url() -> Failure {
    Failure::WrongUsage("--forward must be a URL such as http://127.0.0.1:8000/hook".to_owned())
}

/// The program that events are posted to.
struct Receiver {
    agent: Agent,
    forward: Uri,
    secret: SigningSecret,
}

/// The answer of the receiver.
struct Answer {
    /// The HTTP status, or why there is none.
    result: Result<u16, String>,
    milliseconds: u64,
}

impl Receiver {
    /// Posts an event with the headers of a delivery.
    fn post(&self, event: &Value) -> Answer {
        let begun = Instant::now();
        let result = self.send(event);
        Answer { result, milliseconds: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX) }
    }

    fn send(&self, event: &Value) -> Result<u16, String> {
        let body = event.to_string();
        let [id, kind, time] = ["id", "type", "time"].map(|name| event[name].as_str().unwrap_or_default());
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let secrets = SigningSecrets { current: &self.secret, previous: None };
        let signed = secrets.sign(id, now, body.as_bytes());
        let request = http::Request::post(self.forward.clone())
            .header("content-type", "application/json")
            .header("x-service-event-id", id)
            .header("x-service-event-type", kind)
            .header("x-service-event-time", time)
            .header("x-service-signature", signed.service)
            .header("webhook-id", id)
            .header("webhook-timestamp", signed.timestamp)
            .header("webhook-signature", signed.standard)
            .body(body)
            .map_err(|error| error.to_string())?;
        let request = self.agent.configure_request(request).timeout_global(Some(TIMEOUT)).build();
        let response = self.agent.run(request).map_err(|error| error.to_string())?;
        Ok(response.status().as_u16())
    }
}

impl Answer {
    fn text(&self, event: &StorageEvent) -> String {
        let line = event_line(event);
        match &self.result {
            Ok(status) => format!("{line}  -> {status} in {} ms\n", self.milliseconds),
            Err(error) => format!("{line}  -> {}\n", plain(error)),
        }
    }

    fn json(&self, event: &Value) -> Value {
        json!({
            "event": event,
            "http_status": self.result.as_ref().ok(),
            "error": self.result.as_ref().err(),
            "milliseconds": self.milliseconds,
        })
    }
}
