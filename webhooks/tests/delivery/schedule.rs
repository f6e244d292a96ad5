//! The schedule of attempts: backoff, hold-back, probes.

use super::support::{Setup, no_answer, status};
use cairn_model::Clock as _;
use cairn_webhooks::client::Attempt;
use cairn_webhooks::{DeliveryQuery, DeliveryStatus, HealthState};
use std::time::Duration;

#[test]
fn attempts_follow_the_schedule_and_end_with_the_last() {
    let setup = Setup::new(|_| status(404));
    let webhook = setup.webhook("a.example").id;
    setup.events.push("b", "k");
    for attempt in 1..=6u8 {
        let sent = setup.client.wait_for("a.example", usize::from(attempt));
        let at = sent.last().unwrap().at;
        setup.until("the outcome is durable", |setup| {
            setup.log(webhook).iter().filter(|entry| entry.http_status.is_some()).count()
                == usize::from(attempt)
        });
        let log = setup.log(webhook);
        let entry = log.iter().find(|entry| entry.attempt == attempt && entry.http_status.is_some()).unwrap();
        assert!(!entry.success);
        if attempt < 6 {
            assert_eq!(entry.status, DeliveryStatus::Pending, "it goes on");
            let wait = entry.next_attempt_at.unwrap().0 - at.0;
            let base = 1000 << attempt;
            assert!((base..=base + base / 10).contains(&wait), "attempt {attempt}: {wait} ms");
            let waiting = log.iter().find(|entry| entry.http_status.is_none()).expect("it waits");
            assert_eq!((waiting.attempt, waiting.status), (attempt, DeliveryStatus::Pending));
            setup.clock.set(entry.next_attempt_at.unwrap().0);
        } else {
            assert_eq!((entry.status, entry.next_attempt_at), (DeliveryStatus::Failed, None));
        }
    }
    setup.clock.advance(Duration::from_secs(86_400));
    let log = setup.log(webhook);
    assert_eq!(log.iter().map(|entry| entry.attempt).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
    assert!(
        log.iter().all(|entry| entry.status == DeliveryStatus::Failed && entry.id == log[0].id),
        "{log:?}"
    );
    let pending = DeliveryQuery { status: Some(DeliveryStatus::Pending), ..DeliveryQuery::default() };
    assert!(setup.entries(pending).is_empty());
    let sent = setup.client.to("a.example");
    assert_eq!(sent.len(), 6);
    assert!(
        sent.iter().all(|one| (&one.body, &one.event_id) == (&sent[0].body, &sent[0].event_id)),
        "the same bytes"
    );
    assert_eq!(setup.pending(webhook), 0);
    assert_eq!(setup.webhooks.get(webhook).unwrap().health.consecutive_failures, 6);
}

#[test]
fn retry_after_lengthens_a_wait() {
    let setup = Setup::new(|_| Attempt { retry_after: Some(Duration::from_secs(100)), ..status(503) });
    let webhook = setup.webhook("a.example").id;
    setup.events.push("b", "k");
    setup.client.wait_for("a.example", 1);
    setup.until("it is recorded", |setup| setup.log(webhook).len() == 2);
    let wait = setup.log(webhook)[1].next_attempt_at.unwrap().0 - setup.clock.now().0;
    assert_eq!(wait, 100_000);
}

/// An outage of two minutes cost another product all events of these minutes: each was tried, and failed.
#[test]
fn first_attempts_wait_while_a_target_is_away_and_come_when_it_is_back() {
    let setup = Setup::new(|_| no_answer());
    let webhook = setup.webhook("a.example").id;
    for n in 0..200 {
        setup.events.push("b", &n.to_string());
    }
    setup.until("all are queued, and first attempts are held back", |setup| {
        setup.pending(webhook) == 200
            && setup.webhooks.get(webhook).unwrap().health.state == HealthState::Paused
    });
    // An outage of ten minutes.
    for _ in 0..120 {
        setup.clock.advance(Duration::from_secs(5));
        setup.settle();
    }
    let begun = setup.log(webhook).iter().filter(|entry| entry.attempt == 1 && entry.error.is_some()).count();
    assert!(begun < 30, "{begun} deliveries have used attempts");
    let waiting = setup.entries(DeliveryQuery {
        status: Some(DeliveryStatus::Pending),
        limit: 1000,
        ..DeliveryQuery::default()
    });
    assert!(waiting.iter().filter(|entry| entry.attempt == 0).count() > 150);

    setup.client.answer_with(|_| status(200));
    // The longest interval between two probes, and the longest wait of a delivery that has begun.
    setup.clock.advance(Duration::from_secs(300));
    setup.until("all have come", |setup| setup.pending(webhook) == 0);
    let health = setup.webhooks.get(webhook).unwrap().health;
    assert_eq!((health.state, health.consecutive_failures), (HealthState::Ok, 0));
    let delivered = setup.entries(DeliveryQuery {
        status: Some(DeliveryStatus::Succeeded),
        limit: 1000,
        ..DeliveryQuery::default()
    });
    assert!(delivered.len() > 170, "{} of 200 were delivered", delivered.len());
}

#[test]
fn a_target_that_refuses_is_not_held_back() {
    let setup = Setup::new(|_| status(410));
    let webhook = setup.webhook("a.example").id;
    for n in 0..50 {
        setup.events.push("b", &n.to_string());
    }
    setup.client.wait_for("a.example", 50);
    setup.until("the outcomes are durable", |setup| {
        setup.webhooks.get(webhook).unwrap().health.consecutive_failures >= 50
    });
    let found = setup.webhooks.get(webhook).unwrap();
    assert!(found.enabled && found.health.state == HealthState::Failing, "{found:?}");
}
