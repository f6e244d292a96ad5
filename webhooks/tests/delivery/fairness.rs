//! Webhooks do not delay each other.

use super::support::{Gate, Setup, status};
use std::sync::Arc;

/// One dead endpoint held all threads of another product, and nothing was delivered to anybody.
#[test]
fn dead_targets_do_not_delay_the_others() {
    let gate = Arc::new(Gate::default());
    let waiting = Arc::clone(&gate);
    let setup = Setup::new(move |sent| {
        if sent.host.starts_with("dead") {
            waiting.pass();
        }
        status(200)
    });
    for n in 0..40 {
        setup.webhook(&format!("dead{n}.example"));
    }
    setup.webhook("alive.example");
    for n in 0..100 {
        setup.events.push("b", &n.to_string());
    }
    // The attempts to the others end only afterwards.
    setup.client.wait_for("alive.example", 100);
    for n in 0..40 {
        assert!(
            setup.client.to(&format!("dead{n}.example")).len() <= 2,
            "an unknown target gets two requests at a time"
        );
    }
    gate.open();
}

#[test]
fn a_backlog_of_one_webhook_does_not_delay_a_new_event_of_another() {
    let gate = Arc::new(Gate::default());
    let waiting = Arc::clone(&gate);
    let setup = Setup::new(move |sent| {
        if sent.host == "busy.example" && sent.body.contains("backlog") {
            waiting.pass();
        }
        status(200)
    });
    let busy = setup.webhook("busy.example").id;
    for n in 0..2000 {
        setup.events.push("b", &format!("backlog {n}"));
    }
    setup.until("the backlog is queued", |setup| setup.pending(busy) == 2000);
    setup.webhook("quiet.example");
    setup.events.push("b", "one");
    setup.client.wait_for("quiet.example", 1);
    assert!(setup.client.to("busy.example").len() < 2000);
    gate.open();
    setup.client.wait_for("busy.example", 2001);
}

#[test]
fn no_more_than_the_configured_requests_run_at_a_time() {
    let running = Arc::new(cairn_sync::Mutex::new((0, 0)));
    let counter = Arc::clone(&running);
    let setup = Setup::new(move |_| {
        let mut counts = counter.lock();
        counts.0 += 1;
        counts.1 = counts.1.max(counts.0);
        drop(counts);
        std::thread::yield_now();
        counter.lock().0 -= 1;
        status(200)
    });
    setup.webhook("a.example");
    for n in 0..1000 {
        setup.events.push("b", &n.to_string());
    }
    setup.client.wait_for("a.example", 1000);
    assert!(running.lock().1 <= 8, "{running:?}");
}
