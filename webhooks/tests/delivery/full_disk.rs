//! Webhooks on a full disk: deliveries wait, none is lost, and everything recovers by itself.
//!
//! The process's limit on file sizes simulates the full disk. The limit raises a signal that ends a process unless it is ignored,
//! and it applies to the whole process. The test therefore runs itself again in a process of its own, started by a shell that
//! ignores the signal.

use super::support::{Setup, status};
use cairn_webhooks::client::{Attempt, Failure, FailureKind};
use cairn_webhooks::{WebhookChange, WebhookError};
use futures_lite::future::block_on;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::process::Command;

/// Set in the process that runs the test.
const INNER: &str = "CAIRN_TEST_SIGNAL_IGNORED";
/// Events between two looks at whether the disk is full.
const ROUND: usize = 2000;
const ROUNDS_MAX: usize = 100;

fn limit_files(bytes: Option<u64>) {
    let maximum = getrlimit(Resource::Fsize).maximum;
    setrlimit(Resource::Fsize, Rlimit { current: bytes.or(maximum), maximum }).unwrap();
}

#[test]
fn deliveries_wait_for_space_and_none_is_lost() {
    if std::env::var_os(INNER).is_none() {
        let program = std::env::current_exe().unwrap();
        let name = "delivery::full_disk::deliveries_wait_for_space_and_none_is_lost";
        let command = format!("trap '' XFSZ; exec '{}' --exact {name} --nocapture", program.display());
        let done = Command::new("sh").args(["-c", &command]).env(INNER, "1").output().unwrap();
        let output = [done.stdout, done.stderr].concat();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&output));
        return;
    }
    // The entries of failed attempts are long.
    let long = Failure::new(FailureKind::Response, "x".repeat(250));
    let setup = Setup::new(move |_| Attempt { error: Some(long.clone()), ..status(404) });
    let webhook = setup.webhook("a.example").id;
    setup.events.push("b", "0");
    setup.client.wait_for("a.example", 1);
    setup.until("it is recorded", |setup| setup.webhooks.metrics().retried == 1);
    limit_files(Some(std::fs::metadata(setup.folder.path().join("data.mdb")).unwrap().len()));
    let is_full =
        || block_on(setup.webhooks.patch(webhook, WebhookChange::default())) == Err(WebhookError::Full);
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
