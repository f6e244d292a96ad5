//! The log of deliveries: pages, filters, retention.

use super::support::{Setup, no_answer, status};
use cairn_webhooks::{DeliveryEntry, DeliveryQuery, DeliveryStatus};
use futures_lite::future::block_on;
use std::time::Duration;

fn pages(setup: &Setup, query: &DeliveryQuery) -> Vec<DeliveryEntry> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = block_on(setup.webhooks.deliveries(DeliveryQuery { after, ..query.clone() })).unwrap();
        assert!(page.deliveries.len() <= query.limit);
        found.extend(page.deliveries);
        after = page.next;
        if after.is_none() {
            return found;
        }
    }
}

#[test]
fn pages_have_every_entry_once_latest_first() {
    let setup = Setup::new(|sent| if sent.host == "bad.example" { status(500) } else { status(200) });
    let good = setup.webhook("good.example").id;
    let bad = setup.webhook("bad.example").id;
    let mut ids = Vec::new();
    for n in 0..60 {
        // Several entries have the same time.
        if n % 7 == 0 {
            setup.clock.advance(Duration::from_millis(3));
        }
        ids.push(setup.events.push("b", &n.to_string()));
    }
    setup.until("the good ones are delivered", |setup| {
        setup.log(good).len() == 60 && setup.pending(good) == 0
    });
    setup.until("the others wait", |setup| {
        setup.pending(bad) == 60
            && setup.webhooks.metrics().in_flight == 0
            && setup.webhooks.metrics().retried >= 5
    });
    let all = DeliveryQuery { limit: 1000, ..DeliveryQuery::default() };
    let everything = pages(&setup, &all);
    assert!(everything.len() > 120);
    assert!(everything.is_sorted_by_key(|entry| std::cmp::Reverse((entry.timestamp, entry.id))));
    for limit in [1, 7, 50] {
        assert_eq!(pages(&setup, &DeliveryQuery { limit, ..all.clone() }), everything, "{limit} at a time");
    }
    let filtered = |query: DeliveryQuery, filter: &dyn Fn(&DeliveryEntry) -> bool| {
        let expected: Vec<_> = everything.iter().filter(|entry| filter(entry)).cloned().collect();
        assert!(!expected.is_empty(), "{query:?}");
        assert_eq!(pages(&setup, &DeliveryQuery { limit: 9, ..query }), expected);
    };
    filtered(DeliveryQuery { webhook: Some(bad), ..all.clone() }, &|entry| entry.webhook_id == bad);
    for status in [DeliveryStatus::Pending, DeliveryStatus::Succeeded] {
        filtered(DeliveryQuery { status: Some(status), ..all.clone() }, &|entry| entry.status == status);
    }
    let event = Some(ids[0]);
    filtered(DeliveryQuery { event, ..all.clone() }, &|entry| entry.event_id == ids[0]);
    filtered(DeliveryQuery { event, webhook: Some(good), ..all.clone() }, &|entry| {
        entry.event_id == ids[0] && entry.webhook_id == good
    });
    assert!(pages(&setup, &DeliveryQuery { status: Some(DeliveryStatus::Dropped), ..all }).is_empty());
}

#[test]
fn old_entries_are_removed_and_deliveries_without_event_dropped() {
    let setup = Setup::new(|sent| if sent.host == "dead.example" { no_answer() } else { status(200) });
    let empty = setup.webhooks.environment().read().unwrap().totals().unwrap().records;
    let good = setup.webhook("good.example").id;
    let dead = setup.webhook("dead.example").id;
    for n in 0..600 {
        setup.events.push("b", &n.to_string());
    }
    setup.client.wait_for("good.example", 600);
    setup.until("outcomes are durable", |setup| setup.pending(good) == 0 && setup.pending(dead) == 600);
    setup.events.clear();
    setup.clock.advance(Duration::from_secs(31 * 86_400));
    setup.events.push("b", "new");
    setup.until("what waited is dropped", |setup| setup.pending(dead) <= 1);
    let dropped =
        DeliveryQuery { status: Some(DeliveryStatus::Dropped), limit: 1000, ..DeliveryQuery::default() };
    let dropped = setup.entries(dropped);
    assert!(dropped.len() >= 580, "{}", dropped.len());
    assert!(dropped.iter().all(|entry| entry.error.as_deref() == Some("the event is no longer stored")));
    // The next look is after a while, so a change of the disk's contents is waited for over a restart.
    setup.clock.advance(Duration::from_secs(31 * 86_400));
    let mut setup = setup;
    setup.reopen();
    let records = |setup: &Setup| setup.webhooks.environment().read().unwrap().totals().unwrap().records;
    setup.until("the log is empty", |setup| records(setup) < empty + 20);
}
