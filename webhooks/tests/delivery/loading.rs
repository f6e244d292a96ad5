//! Deliveries that are read from disk.

use super::support::Setup;

/// Outcomes became durable more slowly than the target answered. All deliveries that the loader read were in memory
/// already, so it read them again and again, and nothing else was sent.
#[test]
fn deliveries_are_loaded_while_outcomes_of_earlier_ones_wait() {
    let (gate, setup) = Setup::behind_gate();
    let webhook = setup.webhook("a.example").id;
    for n in 0..1500 {
        setup.events.push("b", &n.to_string());
    }
    setup.until("all are queued", |setup| setup.pending(webhook) == 1500);
    let environment = setup.webhooks.environment();
    // Nothing else is committed before this transaction ends.
    let transaction = environment.write().unwrap();
    gate.open();
    setup.client.wait_for("a.example", 1000);
    drop(transaction);
    setup.until("all outcomes are durable", |setup| setup.pending(webhook) == 0);
    assert_eq!(setup.client.to("a.example").len(), 1500);
}
