//! Changes of webhooks, and what they do to deliveries.

use super::support::{Gate, Setup, new_webhook, no_answer, status};
use cairn_engine::EventType;
use cairn_webhooks::{
    DeliveryQuery, DeliveryStatus, NewWebhook, WEBHOOKS_MAX, WebhookChange, WebhookError, WebhookId,
};
use futures_lite::future::block_on;
use std::sync::Arc;
use std::time::Duration;

#[test]
fn filters_choose_events_and_nothing_from_before_the_creation() {
    let setup = Setup::new(|_| status(200));
    setup.events.push("b", "before");
    let all = setup.webhook("all.example").id;
    let bucket = NewWebhook { bucket_filter: Some("photos".to_owned()), ..new_webhook("bucket.example") };
    block_on(setup.webhooks.create(bucket)).unwrap();
    let prefix =
        NewWebhook { object_prefix_filter: Some("2026/".to_owned()), ..new_webhook("prefix.example") };
    block_on(setup.webhooks.create(prefix)).unwrap();
    let other = NewWebhook { event_types: vec![EventType::ObjectDeleted], ..new_webhook("deleted.example") };
    block_on(setup.webhooks.create(other)).unwrap();
    setup.events.push("photos", "2025/a");
    setup.events.push("videos", "2026/a");
    setup.events.push("photos", "2026/b");
    setup.client.wait_for("all.example", 3);
    setup.until("all outcomes are durable", |setup| setup.webhooks.metrics().succeeded == 7);
    let keys = |host: &str| {
        let mut keys: Vec<_> = setup
            .client
            .to(host)
            .iter()
            .map(|sent| {
                sent.body.split("\"object\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
            })
            .collect();
        keys.sort();
        keys
    };
    assert_eq!(keys("all.example"), ["2025/a", "2026/a", "2026/b"]);
    assert_eq!(keys("bucket.example"), ["2025/a", "2026/b"]);
    assert_eq!(keys("prefix.example"), ["2026/a", "2026/b"]);
    assert!(keys("deleted.example").is_empty());
    assert_eq!(setup.log(all).len(), 3);
}

#[test]
fn disabling_drops_what_waits_and_enabling_begins_anew() {
    let (gate, setup) = Setup::behind_gate();
    let webhook = setup.webhook("a.example").id;
    for n in 0..700 {
        setup.events.push("b", &n.to_string());
    }
    setup.until("all are queued", |setup| setup.pending(webhook) == 700);
    let disabled = block_on(setup.webhooks.set_enabled(webhook, false)).unwrap();
    // The answer had all 700, although they were dropped.
    assert_eq!((disabled.health.pending, disabled.health.oldest_pending_at), (0, None));
    assert_eq!(setup.webhooks.metrics().pending, 0);
    setup.events.push("b", "while it is disabled");
    // At once, while there is still something to drop.
    block_on(setup.webhooks.set_enabled(webhook, true)).unwrap();
    gate.open();
    setup.clock.advance(Duration::from_secs(1));
    setup.events.push("b", "afterwards");
    let is_sent =
        |setup: &Setup, key: &str| setup.client.to("a.example").iter().any(|sent| sent.body.contains(key));
    // Nothing may be pending before this event is queued, too.
    setup.until("the event after it is sent", |setup| is_sent(setup, "afterwards"));
    setup.until("everything has ended", |setup| setup.pending(webhook) == 0);
    assert!(!is_sent(&setup, "while it is disabled"));
    let dropped =
        DeliveryQuery { status: Some(DeliveryStatus::Dropped), limit: 1000, ..DeliveryQuery::default() };
    let dropped = setup.entries(dropped);
    assert!(
        dropped.len() >= 690
            && dropped.iter().all(|entry| entry.error.as_deref() == Some("the webhook was disabled"))
    );
    // Attempts that were under way have succeeded. They were counted as dropped, and are not counted again.
    let answered = |setup: &Setup| setup.log(webhook).iter().filter(|entry| entry.success).count();
    setup.until("all outcomes are durable", |setup| answered(setup) == setup.client.to("a.example").len());
    assert_eq!(setup.log(webhook).len(), 701);
    setup.until("each delivery is counted once", |setup| {
        let metrics = setup.webhooks.metrics();
        (metrics.dropped, metrics.succeeded) == (700, 1)
    });
}

/// The target had answered 200, and the log said only that the delivery was dropped without an attempt.
#[test]
fn attempts_that_are_under_way_when_a_webhook_is_disabled_are_in_the_log() {
    let gate = Arc::new(Gate::default());
    let waiting = Arc::clone(&gate);
    let setup = Setup::new(move |sent| {
        waiting.pass();
        status(if sent.body.contains("good") { 200 } else { 500 })
    });
    let webhook = setup.webhook("a.example").id;
    let (good, bad) = (setup.events.push("b", "good"), setup.events.push("b", "bad"));
    setup.client.wait_for("a.example", 2);
    block_on(setup.webhooks.set_enabled(webhook, false)).unwrap();
    setup.until("both are dropped", |setup| setup.webhooks.metrics().dropped == 2);
    let entries = |setup: &Setup, event| {
        let log = setup.log(webhook).into_iter().filter(|entry| entry.event_id == event);
        log.map(|entry| (entry.attempt, entry.status, entry.http_status)).collect::<Vec<_>>()
    };
    assert_eq!(entries(&setup, good), [(0, DeliveryStatus::Dropped, None)]);
    gate.open();
    setup.until("both attempts are in the log", |setup| {
        entries(setup, good)[0].0 == 1 && entries(setup, bad).len() == 2
    });
    assert_eq!(entries(&setup, good), [(1, DeliveryStatus::Succeeded, Some(200))]);
    let failed_and_dropped = [(1, DeliveryStatus::Failed, Some(500)), (1, DeliveryStatus::Dropped, None)];
    assert_eq!(entries(&setup, bad), failed_and_dropped);
    let found = setup.webhooks.get(webhook).unwrap().health;
    assert!(found.last_success_at.is_some() && found.last_error.as_deref() == Some("HTTP status 500"));
    let metrics = setup.webhooks.metrics();
    assert_eq!((metrics.dropped, metrics.succeeded, metrics.retried, metrics.pending), (2, 0, 0, 0));
    // Nothing is attempted again, not even when it would have been due.
    block_on(setup.webhooks.set_enabled(webhook, true)).unwrap();
    setup.clock.advance(Duration::from_secs(60));
    setup.events.push("b", "good, later");
    setup.client.wait_for("a.example", 3);
    setup.until("it has ended", |setup| setup.webhooks.metrics().succeeded == 1);
    assert_eq!((setup.client.to("a.example").len(), setup.pending(webhook)), (3, 0));
}

#[test]
fn deleting_removes_everything() {
    let setup = Setup::new(|sent| if sent.body.contains("bad") { no_answer() } else { status(200) });
    let empty = setup.webhooks.environment().read().unwrap().totals().unwrap().records;
    let webhook = setup.webhook("a.example").id;
    for n in 0..600 {
        setup.events.push("b", &n.to_string());
    }
    setup.client.wait_for("a.example", 600);
    setup.events.push("b", "bad");
    setup.client.wait_for("a.example", 601);
    setup.until("the outcomes are durable", |setup| setup.pending(webhook) == 1);
    block_on(setup.webhooks.delete(webhook)).unwrap();
    assert_eq!(setup.webhooks.get(webhook), None);
    assert!(setup.entries(DeliveryQuery::default()).is_empty());
    let records = |setup: &Setup| setup.webhooks.environment().read().unwrap().totals().unwrap().records;
    // What is left is how far the events have been read.
    setup.until("the records are removed", |setup| records(setup) == empty + 1);
    assert_eq!(block_on(setup.webhooks.delete(webhook)), Err(WebhookError::WebhookNotFound));
}

#[test]
fn rotation_signs_with_both_secrets_until_the_old_one_ends() {
    let setup = Setup::new(|_| status(200));
    let (webhook, old) = block_on(setup.webhooks.create(new_webhook("a.example"))).unwrap();
    let (new, end) = block_on(setup.webhooks.rotate_secret(webhook.id, 60)).unwrap();
    assert_ne!(new.expose(), old.expose());
    setup.events.push("b", "1");
    assert_eq!(setup.client.wait_for("a.example", 1)[0].signatures, 2);
    setup.clock.set(end.0);
    setup.events.push("b", "2");
    assert_eq!(setup.client.wait_for("a.example", 2)[1].signatures, 1);
    block_on(setup.webhooks.rotate_secret(webhook.id, 0)).unwrap();
    setup.events.push("b", "3");
    assert_eq!(setup.client.wait_for("a.example", 3)[2].signatures, 1);
    let refused = block_on(setup.webhooks.rotate_secret(webhook.id, 604_801));
    assert!(matches!(refused, Err(WebhookError::Invalid(_))));
}

#[test]
fn a_changed_target_gets_what_waits() {
    let setup = Setup::new(|sent| if sent.host == "old.example" { no_answer() } else { status(200) });
    let webhook = setup.webhook("old.example").id;
    for n in 0..20 {
        setup.events.push("b", &n.to_string());
    }
    setup.client.wait_for("old.example", 5);
    setup.until("failures are durable", |setup| {
        setup.webhooks.get(webhook).unwrap().health.consecutive_failures >= 5
    });
    let change =
        WebhookChange { target_url: Some("https://new.example/".to_owned()), ..WebhookChange::default() };
    let changed = block_on(setup.webhooks.patch(webhook, change)).unwrap();
    assert_eq!((changed.health.consecutive_failures, &*changed.target_url), (0, "https://new.example/"));
    setup.client.wait_for("new.example", 15);
    setup.clock.advance(Duration::from_secs(3));
    setup.client.wait_for("new.example", 20);
}

#[test]
fn values_are_checked() {
    let setup = Setup::new(|_| status(200));
    let create = |new| block_on(setup.webhooks.create(new)).map(|_| ());
    for url in ["http://a.example/", "https://127.0.0.1/", "ftp://a.example/", "https://u:p@a.example/", "x"]
    {
        let new = NewWebhook { target_url: url.to_owned(), ..new_webhook("a.example") };
        assert!(matches!(create(new), Err(WebhookError::InvalidTarget(_))), "{url}");
    }
    let no_types = NewWebhook { event_types: Vec::new(), ..new_webhook("a.example") };
    let bucket = NewWebhook { bucket_filter: Some("NO".to_owned()), ..new_webhook("a.example") };
    let prefix = NewWebhook { object_prefix_filter: Some("x".repeat(1025)), ..new_webhook("a.example") };
    for new in [no_types, bucket, prefix] {
        assert!(matches!(create(new), Err(WebhookError::Invalid(_))));
    }
    let unknown = WebhookId::parse("019b76da-a87b-7abc-8707-070707070707").unwrap();
    assert_eq!(block_on(setup.webhooks.set_enabled(unknown, true)), Err(WebhookError::WebhookNotFound));
    for n in 0..WEBHOOKS_MAX {
        setup.webhook(&format!("{n}.example"));
    }
    let refused = create(new_webhook("one-more.example"));
    assert_eq!(refused, Err(WebhookError::TooMany { what: "webhooks", max: WEBHOOKS_MAX }));
}

#[test]
fn a_test_is_sent_at_once_and_leaves_no_trace() {
    let setup = Setup::new(|_| no_answer());
    let new = NewWebhook { object_prefix_filter: Some("in/".to_owned()), ..new_webhook("a.example") };
    let webhook = block_on(setup.webhooks.create(new)).unwrap().0.id;
    let probe = block_on(setup.webhooks.test(webhook)).unwrap();
    assert!(!probe.attempt.succeeded());
    let sent = &setup.client.wait_for("a.example", 1)[0];
    assert!(sent.body.contains("\"test\":true") && sent.body.contains("in/example.txt"), "{}", sent.body);
    assert!(setup.log(webhook).is_empty());
    assert_eq!(setup.webhooks.get(webhook).unwrap().health.consecutive_failures, 0);
}
