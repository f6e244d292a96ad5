//! A delivery thread: makes attempts, and says what becomes of the deliveries.

use super::backoff::wait_after;
use super::lane::Sign;
use super::lanes::Job;
use super::threads::Context;
use crate::client::{Attempt, Delivery};
use crate::event_body::EventBody;
use crate::limits::FAILURE_WAIT;
use crate::store::{EVENT_GONE, Outcome, Verdict, Waiting, WebhookRecord};
use cairn_engine::{EngineError, EventQuery, StorageEvent, Tick};
use cairn_http1::iso8601_millis;
use cairn_model::Timestamp;
use std::sync::Arc;
use std::time::Duration;

/// An event as it is sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct EventBytes {
    id: String,
    kind: &'static str,
    time: String,
    body: Vec<u8>,
}

impl EventBytes {
    pub(super) fn new(event: &StorageEvent) -> Self {
        Self::with_body(event, EventBody::new(event).to_json())
    }

    /// Returns the form of an event that only tests a webhook.
    pub(super) fn of_test(event: &StorageEvent) -> Self {
        Self::with_body(event, EventBody::of_test(event).to_json())
    }

    fn with_body(event: &StorageEvent, body: Vec<u8>) -> Self {
        let (id, time) = (event.id.to_string(), iso8601_millis(event.time().0));
        Self { id, kind: event.kind.name(), time, body }
    }

    /// Returns the request to a webhook at a time.
    pub(super) fn request<'r>(&'r self, webhook: &'r WebhookRecord, at: Timestamp) -> Delivery<'r> {
        Delivery {
            target: &webhook.target,
            event_id: &self.id,
            event_type: self.kind,
            event_time: &self.time,
            attempted_at: at,
            body: &self.body,
            secrets: webhook.secrets(at),
        }
    }
}

/// Starts a delivery thread if there is work and no idle thread.
pub(super) fn start_if_needed(context: &Arc<Context>) {
    if !context.lanes.needs_thread() {
        return;
    }
    let shared = Arc::clone(context);
    let started = std::thread::Builder::new().name("webhook-delivery".to_owned()).spawn(move || run(&shared));
    if let Err(error) = started {
        context.lanes.thread_ended();
        tracing::error!(target: "service::webhooks", %error, "a delivery thread could not be started");
        context.wait_for_end(FAILURE_WAIT);
    }
}

/// Makes attempts until there are none for a while.
fn run(context: &Arc<Context>) {
    while let Some(job) = context.lanes.next() {
        start_if_needed(context);
        let waiting = job.item.waiting;
        // A panic must not leave the attempt counted as running for ever.
        let attempted = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| attempt(context, &job)));
        let sign = attempted.unwrap_or_else(|_| {
            tracing::error!(target: "service::webhooks", "a delivery thread panicked");
            context.lanes.give_back(waiting.webhook, waiting.id, FAILURE_WAIT);
            None
        });
        context.lanes.finish(&job, sign);
    }
    context.lanes.thread_ended();
}

/// Makes one attempt, if the delivery is still wanted. Returns what it says about the target.
fn attempt(context: &Context, job: &Job) -> Option<Sign> {
    let waiting = job.item.waiting;
    let found = context.shared().webhook(waiting.webhook)?;
    if !found.record.settings.enabled || waiting.queued_at <= found.health.dropped_until {
        context.lanes.give_back(waiting.webhook, waiting.id, Duration::ZERO);
        return None;
    }
    let event = match job
        .item
        .event
        .clone()
        .map_or_else(|| read_event(context, waiting.id.event()), |event| Ok(Some(event)))
    {
        Ok(Some(event)) => event,
        Ok(None) => {
            context.writer.record(dropped(waiting, context.shared().clock.now()));
            return None;
        }
        Err(error) => {
            tracing::error!(target: "service::webhooks", %error, "an event could not be read: its deliveries wait");
            context.lanes.give_back(waiting.webhook, waiting.id, FAILURE_WAIT);
            return None;
        }
    };
    let at = context.shared().clock.now();
    let attempt = context.client.deliver(&event.request(&found.record, at));
    if attempt.error.is_some() && context.lanes.is_interrupted() {
        context.lanes.give_back(waiting.webhook, waiting.id, Duration::ZERO);
        return None;
    }
    context.durations.record_duration(attempt.duration);
    let sign = sign_of(&attempt);
    let verdict = verdict(context, &waiting, &attempt);
    context.writer.record(Outcome {
        delivery: waiting,
        at,
        verdict,
        http_status: attempt.http_status,
        error: attempt.error.map(|failure| failure.text).unwrap_or_default(),
        is_target_away: sign == Sign::Away,
    });
    Some(sign)
}

/// Reads an event. Returns `None` if it is no longer stored.
pub(super) fn read_event(context: &Context, tick: Tick) -> Result<Option<Arc<EventBytes>>, EngineError> {
    let query = EventQuery { from: tick, until: tick.next(), limit: 1, ..EventQuery::default() };
    let page = context.source.events(&query)?;
    Ok(page.events.first().map(|event| Arc::new(EventBytes::new(event))))
}

fn dropped(delivery: Waiting, at: Timestamp) -> Outcome {
    Outcome {
        delivery,
        at,
        verdict: Verdict::Dropped,
        http_status: None,
        error: EVENT_GONE.to_owned(),
        is_target_away: false,
    }
}

/// Returns what an attempt says about the target.
fn sign_of(attempt: &Attempt) -> Sign {
    match attempt.http_status {
        _ if attempt.succeeded() => Sign::Success,
        None | Some(429 | 500..=599) => Sign::Away,
        Some(_) => Sign::Refusal,
    }
}

/// Returns what becomes of the delivery.
fn verdict(context: &Context, waiting: &Waiting, attempt: &Attempt) -> Verdict {
    let made = waiting.attempts.saturating_add(1);
    if attempt.succeeded() {
        Verdict::Succeeded
    } else if made >= context.attempts_max {
        Verdict::Failed
    } else {
        Verdict::Again(context.after(wait_after(waiting.id, made, attempt.retry_after)))
    }
}
