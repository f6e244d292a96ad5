//! Test deliveries: the report says at which step a target fails, and what was seen until then.

use super::{Answers, LONG, OK, SHORT, client, deliver, local, local_client, probe, public, succeeded};
use crate::receiver::Receiver;
use cairn_webhooks::client::Probe;
use cairn_webhooks::destination::LookupError;

/// The steps as name, success and detail.
fn steps(probe: &Probe) -> Vec<(&'static str, bool, &str)> {
    probe.steps.iter().map(|report| (report.step.name(), report.ok, report.detail.as_str())).collect()
}

#[test]
fn every_step_of_a_delivery_is_reported() {
    let receiver = Receiver::answering(OK);
    let client = client(local(), LONG, &Answers::addresses([&["127.0.0.1", "127.0.0.2"]]));
    let report = probe(&client, &format!("http://receiver.test:{}/", receiver.port));
    succeeded(&report.attempt);
    let connected = format!("connected to 127.0.0.1:{}", receiver.port);
    assert_eq!(
        steps(&report),
        [
            ("resolve", true, "receiver.test has the address 127.0.0.1 and 127.0.0.2"),
            ("check", true, "every address is allowed"),
            ("connect", true, connected.as_str()),
            ("response", true, "HTTP status 200"),
        ]
    );
}

#[test]
fn a_probe_makes_a_connection_of_its_own() {
    let receiver = Receiver::answering(OK);
    let client = local_client(LONG);
    succeeded(&deliver(&client, &receiver.url()));
    succeeded(&probe(&client, &receiver.url()).attempt);
    assert_eq!(receiver.connections(), 2);
}

#[test]
fn the_report_ends_with_the_step_that_failed() {
    let resolve = client(
        local(),
        LONG,
        &Answers::errors([LookupError::Failed("Name or service not known".to_owned())]),
    );
    let report = probe(&resolve, "http://unknown.test/");
    assert_eq!(steps(&report), [("resolve", false, "unknown.test: Name or service not known")]);

    let check = client(public(), LONG, &Answers::addresses([&["10.0.0.1"]]));
    let report = probe(&check, "http://inner.test/");
    assert_eq!(
        steps(&report),
        [
            ("resolve", true, "inner.test has the address 10.0.0.1"),
            (
                "check",
                false,
                "inner.test has an address that is not allowed: 10.0.0.1 is a private address (RFC 1918); \
                 webhooks.allow_private_networks = true allows it"
            ),
        ]
    );

    let strict = client(cairn_webhooks::destination::TargetPolicy::default(), LONG, &Answers::none());
    let report = probe(&strict, "http://plain.test/");
    assert_eq!(
        steps(&report),
        [("check", false, "the scheme must be https; webhooks.allow_http = true allows http")]
    );

    let connect = probe(&local_client(LONG), "http://127.0.0.1:1/");
    let last = connect.steps.last().expect("a step");
    assert!(
        (last.step.name(), last.ok) == ("connect", false) && last.detail.contains("127.0.0.1:1"),
        "{last:?}"
    );

    let silent = Receiver::with(|_, connection| connection.read(&mut [0]).is_ok_and(|count| count > 0));
    let report = probe(&local_client(SHORT), &silent.url());
    assert_eq!(
        steps(&report).last(),
        Some(&("response", false, "the time limit of 5 s passed while waiting for the answer"))
    );
    let last = report.steps.last().expect("a step");
    assert!(!last.duration.is_zero() && report.attempt.duration >= SHORT, "{report:?}");

    let failing = Receiver::answering("HTTP/1.1 500 x\r\nContent-Length: 0\r\n\r\n");
    let report = probe(&local_client(LONG), &failing.url());
    assert_eq!(steps(&report).last(), Some(&("response", false, "HTTP status 500")));
    assert_eq!(report.attempt.http_status, Some(500));
}
