//! Reads storage events page by page, and follows them by long polling.

use std::str::FromStr;

use cairn_engine::EventType;
use cairn_http1::encode_strict;
use serde_json::Value;

use crate::choice::one_of;
use crate::client::{Client, Request, rows};
use crate::failure::Failure;

/// Time for which the server waits for an event: shorter than the time limit of a request.
const WAIT_SECONDS: u64 = 20;
/// Events in a page when all are read: the maximum that the server allows.
pub(crate) const PAGE_EVENTS_MAX: u64 = 1000;

/// A position among events: the time and the id of an event.
pub(crate) type Position = (String, String);

/// The name of a type of events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct EventName(pub(crate) &'static str);

impl FromStr for EventName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        one_of(text, &EventType::ALL.map(EventType::name)).map(Self)
    }
}

/// Which events to read.
#[derive(Default)]
pub(crate) struct EventFilter {
    pub(crate) since: Option<String>,
    pub(crate) until: Option<String>,
    pub(crate) types: Vec<EventName>,
    pub(crate) bucket: Option<String>,
    pub(crate) prefix: Option<String>,
}

/// Events in their order, and the position that has been reached.
pub(crate) struct EventFeed<'c> {
    client: &'c Client,
    filter: EventFilter,
    after: Option<Position>,
}

impl<'c> EventFeed<'c> {
    /// Begins to read after a position, or with the first event of the filter.
    pub(crate) fn new(client: &'c Client, filter: EventFilter, after: Option<Position>) -> Self {
        Self { client, filter, after }
    }

    /// Returns the next page: the whole response. `next_time` and `next_id` are null if nothing follows.
    pub(crate) fn page(&mut self, limit: Option<u64>) -> Result<Value, Failure> {
        let body = self.client.call(&Request::get(self.path(limit, None)))?;
        self.advance(&body)?;
        Ok(body)
    }

    /// Passes over all events that there are, so that only new ones follow.
    pub(crate) fn skip_to_end(&mut self) -> Result<(), Failure> {
        while next_position(&self.page(Some(PAGE_EVENTS_MAX))?).is_some() {}
        Ok(())
    }

    /// Returns the next events. Waits for the first of them, and returns none if none came for a while.
    pub(crate) fn wait(&mut self) -> Result<Vec<Value>, Failure> {
        let mut body =
            self.client.call(&Request::get(self.path(Some(PAGE_EVENTS_MAX), Some(WAIT_SECONDS))))?;
        self.advance(&body)?;
        match body["events"].take() {
            Value::Array(events) => Ok(events),
            _ => Err("the response contains no list of events".into()),
        }
    }

    /// Continues after what the response says, or else after its last event.
    fn advance(&mut self, body: &Value) -> Result<(), Failure> {
        let events = rows(body, "events")?;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let last = events.last().and_then(|event| Some((text(&event["time"])?, text(&event["id"])?)));
        let next = next_position(body).or(last);
        if next.is_some() && next == self.after {
            return Err("the server returned the same page twice".into());
        }
        self.after = next.or(self.after.take());
        Ok(())
    }

    fn path(&self, limit: Option<u64>, wait_seconds: Option<u64>) -> String {
        let EventFilter { since, until, types, bucket, prefix } = &self.filter;
        let (after_time, after_id) = self.after.clone().unzip();
        let [limit, wait_seconds] =
            [limit, wait_seconds].map(|number| number.map(|number| number.to_string()));
        let parameters = [
            ("since", since),
            ("until", until),
            ("bucket", bucket),
            ("prefix", prefix),
            ("limit", &limit),
            ("wait_seconds", &wait_seconds),
            ("after_time", &after_time),
            ("after_id", &after_id),
        ];
        let given = parameters.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?)));
        let kinds = types.iter().map(|EventName(kind)| ("type", *kind));
        let query: Vec<String> =
            given.chain(kinds).map(|(name, value)| format!("{name}={}", encode_strict(value))).collect();
        format!("/api/v1/events?{}", query.join("&"))
    }
}

/// Returns the position at which the page after this one begins.
pub(crate) fn next_position(body: &Value) -> Option<Position> {
    let text = |name: &str| body[name].as_str().map(str::to_owned);
    Some((text("next_time")?, text("next_id")?))
}
