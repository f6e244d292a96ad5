//! Selects storage events, and follows them by long polling.

use std::str::FromStr;

use cairn_engine::EventType;
use serde_json::Value;

use crate::choice::one_of;
use crate::client::pages::{PAGE_ENTRIES_MAX, PagedList};
use crate::client::{Client, Query, Request, query, rows, with_query};
use crate::failure::{Failure, Outcome};

/// Time for which the server waits for an event: shorter than the time limit of a request.
const WAIT_SECONDS: u64 = 20;

/// The name of a type of events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct EventName(pub(crate) &'static str);

impl FromStr for EventName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        one_of(text, &EventType::ALL.map(EventType::name)).map(Self)
    }
}

/// Storage events.
pub(crate) const EVENTS: PagedList = PagedList::by_time("/api/v1/events", "events");

/// A filter of the events to read.
#[derive(Default)]
pub(crate) struct EventFilter {
    pub(crate) since: Option<String>,
    pub(crate) until: Option<String>,
    pub(crate) types: Vec<EventName>,
    pub(crate) bucket: Option<String>,
    pub(crate) prefix: Option<String>,
    pub(crate) principal: Option<String>,
    pub(crate) contains: Option<String>,
}

impl EventFilter {
    /// Returns the parameters of a request for at most so many events.
    pub(crate) fn query(self, limit: Option<u64>) -> Query {
        let Self { since, until, types, bucket, prefix, principal, contains } = self;
        let limit = limit.map(|limit| limit.to_string());
        let mut parameters = query([
            ("since", since),
            ("until", until),
            ("bucket", bucket),
            ("prefix", prefix),
            ("principal", principal),
            ("contains", contains),
            ("limit", limit),
        ]);
        parameters.extend(types.iter().map(|EventName(name)| ("type", (*name).to_owned())));
        parameters
    }
}

/// Events as they occur.
pub(crate) struct EventFeed<'c> {
    client: &'c Client,
    parameters: Query,
    /// The position after which the next events are read.
    after: Query,
}

impl<'c> EventFeed<'c> {
    /// Begins to read after a position, or with the first event of the filter.
    pub(crate) fn new(client: &'c Client, filter: EventFilter, after: Query) -> Self {
        Self { client, parameters: filter.query(Some(PAGE_ENTRIES_MAX)), after }
    }

    /// Passes over all events that there are, so that only new ones follow.
    pub(crate) fn skip_to_end(&mut self) -> Outcome {
        while !EVENTS.next(&self.page(&[])?).is_empty() {}
        Ok(())
    }

    /// Returns the next events. Waits for the first of them, and returns none if none came for a while.
    pub(crate) fn wait(&mut self) -> Result<Vec<Value>, Failure> {
        let mut body = self.page(&[("wait_seconds", WAIT_SECONDS.to_string())])?;
        Ok(EVENTS.take(&mut body))
    }

    /// Returns the next page. Then continues after what it says, or else after its last event.
    fn page(&mut self, wait: &[(&'static str, String)]) -> Result<Value, Failure> {
        let path = with_query(EVENTS.path, self.parameters.iter().chain(wait).chain(&self.after));
        let body = self.client.call(&Request::get(path))?;
        let mut next = EVENTS.next(&body);
        if let (true, Some(last)) = (next.is_empty(), rows(&body, EVENTS.member)?.last()) {
            next = query([("after_time", last["time"].as_str()), ("after_id", last["id"].as_str())]);
        }
        if !next.is_empty() {
            if next == self.after {
                return Err("the server returned the same page twice".into());
            }
            self.after = next;
        }
        Ok(body)
    }
}
