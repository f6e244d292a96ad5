//! Redelivery of one delivery and of many events.

use super::support::{Setup, no_answer, status};
use cairn_model::Timestamp;
use cairn_webhooks::{DeliveryId, DeliveryStatus, HealthState, Redeliver, WebhookError};
use futures_lite::future::block_on;
use std::time::Duration;

const BEGINNING: Timestamp = Timestamp(0);

#[test]
fn one_delivery_is_made_again_with_the_same_event() {
    let setup = Setup::new(|_| status(200));
    let webhook = setup.webhook("a.example").id;
    setup.events.push("b", "k");
    setup.client.wait_for("a.example", 1);
    setup.until("it is recorded", |setup| setup.pending(webhook) == 0 && setup.log(webhook).len() == 1);
    let first = setup.log(webhook).remove(0);
    setup.clock.advance(Duration::from_secs(1));
    let again = block_on(setup.webhooks.redeliver_delivery(first.id)).unwrap();
    assert_eq!(
        (again.event_id, again.status, again.redelivery),
        (first.event_id, DeliveryStatus::Pending, true)
    );
    assert_ne!(again.id, first.id);
    let sent = setup.client.wait_for("a.example", 2);
    assert_eq!(sent[0].body, sent[1].body);
    setup.until("it is recorded", |setup| setup.pending(webhook) == 0);
    let log = setup.log(webhook);
    assert!(log[1].redelivery && !log[0].redelivery && log[1].id == again.id);

    setup.events.clear();
    assert_eq!(block_on(setup.webhooks.redeliver_delivery(first.id)), Err(WebhookError::EventNotFound));
    let unknown = DeliveryId::parse("019b76da-a87b-7abc-8707-070707070707").unwrap();
    assert_eq!(block_on(setup.webhooks.redeliver_delivery(unknown)), Err(WebhookError::DeliveryNotFound));
    block_on(setup.webhooks.set_enabled(webhook, false)).unwrap();
    assert_eq!(block_on(setup.webhooks.redeliver_delivery(first.id)), Err(WebhookError::Disabled));
}

#[test]
fn failed_events_are_delivered_again_once_and_others_are_not() {
    let setup = Setup::new(|sent| if sent.body.contains("bad") { status(400) } else { status(200) });
    let webhook = setup.webhook("a.example").id;
    for n in 0..20 {
        setup.events.push("b", &format!("good {n}"));
        setup.events.push("b", &format!("bad {n}"));
    }
    setup.client.wait_for("a.example", 40);
    while setup.webhooks.metrics().failed < 20 {
        setup.clock.advance(Duration::from_secs(10));
        setup.settle();
    }
    setup.until("they have failed", |setup| {
        setup.webhooks.metrics().failed == 20 && setup.pending(webhook) == 0
    });
    setup.client.answer_with(|_| status(200));
    let redeliver = |which| block_on(setup.webhooks.redeliver(webhook, BEGINNING, None, which)).unwrap();
    assert_eq!(redeliver(Redeliver::Failed), 20);
    setup.until("they are delivered", |setup| setup.pending(webhook) == 0);
    assert_eq!(redeliver(Redeliver::Failed), 0, "they have been delivered since");
    assert_eq!(redeliver(Redeliver::All), 40);
    setup.until("they are delivered", |setup| setup.pending(webhook) == 0);
    let redelivered = setup.log(webhook).iter().filter(|entry| entry.redelivery && entry.success).count();
    assert_eq!(redelivered, 60);
    let none = block_on(setup.webhooks.redeliver(webhook, BEGINNING, Some(Timestamp(1)), Redeliver::All));
    assert_eq!(none, Ok(0));
}

#[test]
fn a_redelivery_shows_that_a_paused_target_is_back() {
    let setup = Setup::new(|sent| if sent.body.contains("before") { status(200) } else { no_answer() });
    let webhook = setup.webhook("a.example").id;
    setup.events.push("b", "before");
    setup.client.wait_for("a.example", 1);
    setup.until("it is recorded", |setup| setup.log(webhook).len() == 1 && setup.pending(webhook) == 0);
    let delivered = setup.log(webhook).remove(0).id;
    for n in 0..30 {
        setup.events.push("b", &n.to_string());
    }
    setup.until("it is paused", |setup| {
        setup.webhooks.get(webhook).unwrap().health.state == HealthState::Paused
    });
    setup.client.answer_with(|_| status(200));
    block_on(setup.webhooks.redeliver_delivery(delivered)).unwrap();
    // Without a step of the clock: what had not begun comes at once.
    setup.until("the others come", |setup| setup.pending(webhook) <= 10);
}

/// A receiver was away for two minutes. Afterwards the webhook was `ok` with nothing pending, and nobody knew that events
/// had never come.
#[test]
fn lost_events_are_counted_until_they_are_delivered() {
    let mut setup = Setup::new(|sent| if sent.body.contains("bad") { status(400) } else { status(200) });
    let webhook = setup.webhook("a.example").id;
    let health = |setup: &Setup| setup.webhooks.get(webhook).unwrap().health;
    assert_eq!((health(&setup).lost, health(&setup).lost_since), (0, None));
    let first = setup.events.push("b", "bad 1");
    setup.events.push("b", "bad 2");
    setup.client.wait_for("a.example", 2);
    while setup.webhooks.metrics().failed < 2 {
        setup.clock.advance(Duration::from_secs(10));
        setup.settle();
    }
    setup.events.push("b", "good");
    setup.until("the good one is delivered", |setup| setup.webhooks.metrics().succeeded == 1);
    let now = health(&setup);
    assert_eq!((now.state, now.pending), (HealthState::Ok, 0), "the latest attempt succeeded");
    assert_eq!((now.lost, now.lost_since), (2, Some(first.tick().time())));
    assert_eq!(setup.webhooks.metrics().lost, 2);

    setup.reopen();
    assert_eq!((health(&setup).lost, health(&setup).lost_since), (2, Some(first.tick().time())));
    // What was delivered and fails when it is sent again is not lost.
    setup.client.answer_with(|_| status(400));
    let redeliver = |setup: &Setup, which| {
        block_on(setup.webhooks.redeliver(webhook, BEGINNING, None, which)).unwrap();
        setup.until("it has ended", |setup| {
            setup.clock.advance(Duration::from_secs(10));
            setup.pending(webhook) == 0
        });
    };
    redeliver(&setup, Redeliver::All);
    assert_eq!(health(&setup).lost, 2, "an event is counted once");
    setup.client.answer_with(|sent| if sent.body.contains("bad 2") { status(400) } else { status(200) });
    redeliver(&setup, Redeliver::Failed);
    assert_eq!(health(&setup).lost, 1);
    setup.client.answer_with(|_| status(200));
    redeliver(&setup, Redeliver::Failed);
    let now = health(&setup);
    assert_eq!((now.lost, now.lost_since), (0, None));
}
