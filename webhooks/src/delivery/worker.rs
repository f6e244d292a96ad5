//! A delivery thread: makes attempts and records their outcomes.

use super::backoff::wait_after;
use super::context::Context;
use super::event_bytes::EventBytes;
use super::lane::TargetHealth;
use super::lanes::Job;
use crate::client::Attempt;
use crate::limits::FAILURE_WAIT;
use crate::store::{EVENT_GONE, Outcome, Verdict, Waiting};
use cairn_model::Timestamp;
use std::sync::Arc;
use std::time::Duration;

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
        let health = attempted.unwrap_or_else(|_| {
            tracing::error!(target: "service::webhooks", "a delivery thread panicked");
            context.lanes.give_back(waiting.webhook, waiting.id, FAILURE_WAIT);
            None
        });
        context.lanes.finish(&job, health);
    }
    context.lanes.thread_ended();
}

/// Makes one attempt. Returns `None` if no request was sent, or if the shutdown interrupted it.
fn attempt(context: &Context, job: &Job) -> Option<TargetHealth> {
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
        .map_or_else(|| EventBytes::read(&*context.source, waiting.id.event()), |event| Ok(Some(event)))
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
    let health = health_of(&attempt);
    let verdict = verdict(context, &waiting, &attempt);
    context.writer.record(Outcome {
        delivery: waiting,
        at,
        verdict,
        http_status: attempt.http_status,
        error: attempt.error.map(|failure| failure.text).unwrap_or_default(),
        is_target_away: health == TargetHealth::Unavailable,
    });
    Some(health)
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

/// Returns the state of the target after an attempt.
fn health_of(attempt: &Attempt) -> TargetHealth {
    match attempt.http_status {
        _ if attempt.succeeded() => TargetHealth::Accepted,
        None | Some(429 | 500..=599) => TargetHealth::Unavailable,
        Some(_) => TargetHealth::Refused,
    }
}

/// Returns the outcome of an attempt: success, failure, or the time of the next attempt.
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
