//! The state of deliveries after a crash or an orderly end.

use super::support::{FakeClient, Gate, Setup, copy, new_webhook, open, status};
use cairn_webhooks::{DeliveryStatus, NewWebhook, WebhookChange};
use futures_lite::future::block_on;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// A process was killed while attempts were being made, with events waiting. Those attempts had no durable outcome, so all of
/// them had to be made again.
#[test]
fn killed_process_loses_no_event() {
    let (gate, setup) = Setup::behind_gate();
    let webhook = setup.webhook("a.example").id;
    let ids: BTreeSet<_> = (0..500).map(|n| setup.events.push("b", &n.to_string()).to_string()).collect();
    setup.until("all are queued", |setup| setup.pending(webhook) == 500);
    setup.client.wait_for("a.example", 2);

    let after_crash = tempfile::tempdir().unwrap();
    copy(setup.folder.path(), after_crash.path());
    let client = FakeClient::new(|_| status(200));
    let webhooks = open(after_crash.path(), &setup.clock, &setup.events, &client);
    let sent = client.wait_for("a.example", 500);
    assert_eq!(sent.iter().map(|sent| sent.event_id.clone()).collect::<BTreeSet<_>>(), ids);
    setup.until("the outcomes are durable", |_| webhooks.get(webhook).unwrap().health.pending == 0);
    gate.open();
}

#[test]
fn position_survives_so_events_are_neither_repeated_nor_missed_over_a_restart() {
    let mut setup = Setup::new(|_| status(200));
    let webhook = setup.webhook("a.example").id;
    for n in 0..20 {
        setup.events.push("b", &n.to_string());
    }
    setup.client.wait_for("a.example", 20);
    setup.webhooks.close(Duration::from_secs(120));
    setup.events.push("b", "while it was away");
    setup.reopen();
    let sent = setup.client.wait_for("a.example", 21);
    setup.until("it is done", |setup| setup.pending(webhook) == 0);
    assert!(sent[20].body.contains("while it was away"));
    assert_eq!(setup.client.to("a.example").len(), 21);
    assert_eq!(setup.log(webhook).len(), 21);
}

/// The position was written with deliveries only. After a restart, events were read again that no webhook had wanted, and a
/// webhook got them if its filter had been widened meanwhile.
#[test]
fn position_survives_without_deliveries() {
    let mut setup = Setup::new(|_| status(200));
    let photos = NewWebhook { bucket_filter: Some("photos".to_owned()), ..new_webhook("a.example") };
    let webhook = block_on(setup.webhooks.create(photos)).unwrap().0.id;
    let event = setup.events.push("videos", "before");
    setup.until("the event is handed out", |setup| setup.events.is_handed_out(event));
    let all = WebhookChange { bucket_filter: Some(None), ..WebhookChange::default() };
    block_on(setup.webhooks.patch(webhook, all)).unwrap();
    setup.reopen();
    setup.events.push("videos", "after");
    let sent = setup.client.wait_for("a.example", 1);
    assert!(sent[0].body.contains("after"), "{}", sent[0].body);
}

#[test]
fn an_orderly_end_waits_for_attempts_and_records_them() {
    let mut setup = Setup::new(|_| status(200));
    let webhook = setup.webhook("a.example").id;
    let gate = Arc::new(Gate::default());
    let waiting = Arc::clone(&gate);
    setup.client.answer_with(move |_| {
        waiting.pass();
        status(200)
    });
    setup.events.push("b", "k");
    setup.client.wait_for("a.example", 1);
    std::thread::scope(|scope| {
        let closing = scope.spawn(|| setup.webhooks.close(Duration::from_secs(120)));
        gate.open();
        closing.join().unwrap();
    });
    setup.reopen();
    assert_eq!(
        setup.log(webhook).iter().map(|entry| entry.status).collect::<Vec<_>>(),
        [DeliveryStatus::Succeeded]
    );
    assert_eq!(setup.client.to("a.example").len(), 1);
}

#[test]
fn secrets_and_settings_survive_and_need_the_master_key() {
    let mut setup = Setup::new(|_| status(200));
    let (webhook, secret) = block_on(setup.webhooks.create(new_webhook("a.example"))).unwrap();
    assert!(secret.expose().starts_with("whsec_"));
    let data = std::fs::read(setup.folder.path().join("data.mdb")).unwrap();
    let text = secret.expose().as_bytes();
    assert!(!data.windows(text.len()).any(|window| window == text), "the secret is on disk in plain text");
    setup.reopen();
    assert_eq!(setup.webhooks.list(), [webhook]);
}
