//! Webhooks on a full disk: deliveries wait, none is lost, and everything recovers by itself.

use super::support::{Setup, no_answer, status};
use cairn_tables::StoreFailure;
use cairn_tables::testing::{fill_disk, limit_files, with_limited_files};
use cairn_webhooks::client::{Attempt, Failure, FailureKind};
use cairn_webhooks::{DeliveryQuery, WebhookChange, WebhookId};
use futures_lite::future::block_on;
use std::cell::Cell;

/// Events between two looks at whether the disk is full.
const ROUND: usize = 2000;
const ROUNDS_MAX: usize = 100;
/// Webhooks of the tests in which one event has many deliveries.
const WEBHOOKS: usize = 20;
/// Outcomes that may wait for the writer.
const OUTCOMES_WAITING_MAX: usize = 1024;

fn is_full(setup: &Setup, webhook: WebhookId) -> bool {
    block_on(setup.webhooks.patch(webhook, WebhookChange::default())) == Err(StoreFailure::Full.into())
}

/// Runs a test in a process whose files can be limited.
fn limited(name: &str, body: impl FnOnce()) {
    with_limited_files(&format!("delivery::full_disk::{name}"), body);
}

#[test]
fn deliveries_wait_for_space_and_none_is_lost() {
    limited("deliveries_wait_for_space_and_none_is_lost", wait_for_space);
}

fn wait_for_space() {
    // The entries of failed attempts are long.
    let long = Failure::new(FailureKind::Response, "x".repeat(250));
    let setup = Setup::new(move |_| Attempt { error: Some(long.clone()), ..status(404) });
    let webhook = setup.webhook("a.example").id;
    setup.events.push("b", "0");
    setup.client.wait_for("a.example", 1);
    setup.until("it is recorded", |setup| setup.webhooks.metrics().retried == 1);
    fill_disk(setup.folder.path());
    let is_full = || is_full(&setup, webhook);
    let mut events = 1;
    let mut push_round = || {
        for n in events..events + ROUND {
            setup.events.push("b", &n.to_string());
        }
        events += ROUND;
        events
    };
    let is_recorded = |count: usize| setup.webhooks.metrics().retried == u64::try_from(count).unwrap();
    for round in 0.. {
        assert!(round < ROUNDS_MAX, "the disk is never full");
        let count = push_round();
        setup.until("a round is recorded, or the disk is full", |_| is_recorded(count) || is_full());
        if is_full() {
            break;
        }
    }
    let all = push_round();
    assert!(setup.client.to("a.example").len() < all);
    assert_eq!(setup.webhooks.health(), Ok(()), "it is not broken");
    limit_files(None);
    setup.client.wait_for("a.example", all);
    setup.until("all outcomes are durable", |_| is_recorded(all));
    assert_eq!(setup.pending(webhook), u64::try_from(all).unwrap());
}

fn pending(setup: &Setup) -> usize {
    usize::try_from(setup.webhooks.metrics().pending).unwrap()
}

/// Creates webhooks, and queues deliveries until the disk is full. Returns a webhook and the number of events.
fn queue_until_full(setup: &Setup) -> (WebhookId, usize) {
    let webhooks: Vec<_> = (0..WEBHOOKS).map(|n| setup.webhook(&format!("{n}.example")).id).collect();
    setup.events.push("b", "0");
    setup.until("it is queued", |setup| pending(setup) == WEBHOOKS);
    fill_disk(setup.folder.path());
    let mut events = 1;
    for _ in 0..ROUNDS_MAX {
        for n in events..events + ROUND {
            setup.events.push("b", &n.to_string());
        }
        events += ROUND;
        let is_queued = |setup: &Setup| pending(setup) == events * WEBHOOKS;
        setup.until("a round is queued, or the disk is full", |setup| {
            is_queued(setup) || is_full(setup, webhooks[0])
        });
        if !is_queued(setup) {
            // The threads find it full, too.
            let looks = Cell::new(0);
            setup.until("time has passed", |_| looks.replace(looks.get() + 1) > 200);
            return (webhooks[0], events);
        }
    }
    panic!("the disk is never full");
}

/// The deliveries of a page of events can need several transactions. When a later one found no space, the page was read
/// again, and what the earlier ones had queued was queued twice.
#[test]
fn no_delivery_is_queued_twice() {
    limited("no_delivery_is_queued_twice", queue_once);
}

fn queue_once() {
    let setup = Setup::new(|_| no_answer());
    let (_, events) = queue_until_full(&setup);
    let last = setup.events.push("b", "last");
    limit_files(None);
    let of_last = DeliveryQuery { event: Some(last), limit: 1000, ..DeliveryQuery::default() };
    setup.until("the last event is queued", |setup| setup.entries(of_last.clone()).len() == WEBHOOKS);
    assert_eq!(pending(&setup), (events + 1) * WEBHOOKS);
}

/// Outcomes that found no space no longer counted as waiting. Deliveries went on without an end, and all of them would have
/// been made again after a crash.
#[test]
fn few_deliveries_are_made_whose_outcomes_find_no_space() {
    limited("few_deliveries_are_made_whose_outcomes_find_no_space", send_few);
}

fn send_few() {
    let (gate, setup) = Setup::behind_gate();
    let (webhook, events) = queue_until_full(&setup);
    gate.open();
    let sent = |setup: &Setup| -> usize {
        (0..WEBHOOKS).map(|n| setup.client.to(&format!("{n}.example")).len()).sum()
    };
    setup.until("outcomes wait", |setup| sent(setup) >= OUTCOMES_WAITING_MAX);
    let looks = Cell::new(0);
    setup.until("the writer has tried again", |setup| {
        assert!(is_full(setup, webhook));
        looks.replace(looks.get() + 1) > 20
    });
    // As many as wait, those of one transaction, and one for each thread.
    let made = sent(&setup);
    assert!(made <= OUTCOMES_WAITING_MAX + 256 + 64, "{made}");
    limit_files(None);
    setup.until("all are delivered", |setup| sent(setup) >= events * WEBHOOKS && pending(setup) == 0);
    assert_eq!(sent(&setup), events * WEBHOOKS);
}
