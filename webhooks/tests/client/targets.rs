//! Forbidden destinations of deliveries: each test is a way in which other projects were led to an inner address.

use super::{Answers, LONG, OK, client, deliver, failed, local, local_client, public, succeeded};
use crate::receiver::Receiver;
use cairn_webhooks::client::FailureKind;
use cairn_webhooks::destination::{LookupError, TargetPolicy};
use std::time::Duration;

/// The name is looked up once per attempt; a second answer, to a second look-up, would be the attacker's.
#[test]
fn the_connection_goes_to_the_address_that_was_judged() {
    let receiver = Receiver::answering(OK);
    let answers = Answers::addresses([&["127.0.0.1"], &["127.0.0.2"]]);
    let client = client(local(), LONG, &answers);
    succeeded(&deliver(&client, &format!("http://rebinding.test:{}/", receiver.port)));
    assert_eq!(answers.asked(), ["rebinding.test"]);
    assert_eq!(receiver.requests()[0].to, receiver.at([127, 0, 0, 1]).ip());
}

/// A name that had a good address at the last attempt and has a bad one now, while a connection to the good one is kept.
#[test]
fn every_attempt_is_judged_anew() {
    let receiver = Receiver::answering(OK);
    let answers = Answers::addresses([&["127.0.0.1"], &["169.254.169.254"], &["127.0.0.1"]]);
    let client = client(local(), LONG, &answers);
    let url = format!("http://rebinding.test:{}/", receiver.port);
    succeeded(&deliver(&client, &url));
    assert_eq!(
        failed(&deliver(&client, &url), FailureKind::Refused),
        "rebinding.test has an address that is not allowed: 169.254.169.254 is the address of a cloud metadata service, which is \
         never allowed"
    );
    succeeded(&deliver(&client, &url));
    assert_eq!((receiver.requests().len(), receiver.connections()), (2, 1));
}

#[test]
fn a_rebound_name_is_refused_before_any_connection() {
    let receiver = Receiver::answering(OK);
    let client = client(public(), LONG, &Answers::addresses([&["127.0.0.1"]]));
    let attempt = deliver(&client, &format!("http://rebinding.test:{}/", receiver.port));
    let text = failed(&attempt, FailureKind::Refused);
    assert!(text.contains("127.0.0.1") && text.contains("webhooks.allow_private_networks"), "{text}");
    assert_eq!((attempt.http_status, receiver.connections()), (None, 0));
}

/// Judging only the first answer, or only IPv4, would let the connection go to another one.
#[test]
fn one_address_that_is_not_allowed_refuses_all() {
    let receiver = Receiver::answering(OK);
    let url = format!("http://mixed.test:{}/", receiver.port);
    for (answer, policy) in [
        (&["8.8.8.8", "::1"], public()),
        (&["8.8.8.8", "127.0.0.1"], public()),
        (&["::1", "8.8.8.8"], public()),
        (&["127.0.0.1", "169.254.169.254"], local()),
        (&["127.0.0.1", "fd00:ec2::254"], local()),
        (&["127.0.0.1", "64:ff9b::a9fe:a9fe"], local()),
    ] {
        failed(&deliver(&client(policy, LONG, &Answers::addresses([answer])), &url), FailureKind::Refused);
    }
    // More answers than are tried: the last one is judged as well.
    let mut many = vec!["127.0.0.1"; 40];
    many.push("169.254.169.254");
    failed(&deliver(&client(local(), LONG, &Answers::addresses([&many])), &url), FailureKind::Refused);
    assert_eq!(receiver.connections(), 0);
}

/// Literal addresses pass no look-up. They are judged all the same, in every spelling.
#[test]
fn literal_addresses_are_judged_in_every_spelling() {
    let receiver = Receiver::answering(OK);
    let client = client(public(), LONG, &Answers::none());
    for host in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f.1",
        "0177.0.0.1",
        "127.0.0.1.",
        "0",
        "0.0.0.0",
        "[::1]",
        "[::]",
        "[::ffff:7f00:1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "[::7f00:1]",
    ] {
        failed(&deliver(&client, &format!("http://{host}:{}/", receiver.port)), FailureKind::Refused);
    }
    assert_eq!(receiver.connections(), 0);
}

#[test]
fn metadata_services_are_refused_even_when_private_networks_are_allowed() {
    let client = local_client(LONG);
    for host in [
        "169.254.169.254",
        "[::ffff:a9fe:a9fe]",
        "2852039166",
        "168.63.129.16",
        "192.0.0.192",
        "100.100.100.200",
        "[fd00:ec2::254]",
        "[64:ff9b::169.254.169.254]",
    ] {
        let attempt = deliver(&client, &format!("http://{host}/latest/meta-data/"));
        assert!(failed(&attempt, FailureKind::Refused).contains("metadata service, which is never allowed"));
    }
}

#[test]
fn a_name_that_cannot_be_looked_up_fails_closed() {
    for (error, kind) in [
        (LookupError::Failed("Name or service not known".to_owned()), FailureKind::Resolve),
        (LookupError::Failed("Temporary failure in name resolution".to_owned()), FailureKind::Resolve),
        (LookupError::Busy, FailureKind::Resolve),
        (LookupError::TimedOut, FailureKind::Timeout),
    ] {
        let attempt =
            deliver(&client(local(), LONG, &Answers::errors([error.clone()])), "http://unknown.test/");
        assert_eq!(failed(&attempt, kind), format!("unknown.test: {error}"));
    }
    let attempt = deliver(&client(local(), LONG, &Answers::addresses([&[]])), "http://empty.test/");
    assert_eq!(failed(&attempt, FailureKind::Resolve), "empty.test has no address");
}

/// A name for which no look-up succeeds must not reuse the connection of an attempt for which one did.
#[test]
fn a_kept_connection_is_not_used_after_a_failed_look_up() {
    let receiver = Receiver::answering(OK);
    let working = Answers::addresses([&["127.0.0.1"], &[]]);
    let client = client(local(), LONG, &working);
    let url = format!("http://gone.test:{}/", receiver.port);
    succeeded(&deliver(&client, &url));
    failed(&deliver(&client, &url), FailureKind::Resolve);
    assert_eq!(receiver.requests().len(), 1);
}

/// 3xx is a failure. Neither the metadata service nor a receiver that would be allowed is asked.
#[test]
fn redirects_make_no_second_connection() {
    let other = Receiver::answering(OK);
    for status in [
        "301 Moved",
        "302 Found",
        "303 See Other",
        "307 Temporary",
        "308 Permanent",
        "300 Choices",
        "304 Not Modified",
    ] {
        for location in ["http://169.254.169.254/latest/".to_owned(), other.url()] {
            let answer = format!("HTTP/1.1 {status}\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n");
            let receiver =
                Receiver::with(move |_, connection| connection.write_all(answer.as_bytes()).is_ok());
            let attempt = deliver(&local_client(LONG), &receiver.url());
            assert!(failed(&attempt, FailureKind::Response).ends_with("redirects are not followed"));
            assert_eq!(attempt.http_status, status[..3].parse().ok());
            assert_eq!((receiver.connections(), receiver.requests().len()), (1, 1));
        }
    }
    assert_eq!(other.connections(), 0);
}

#[test]
fn plain_http_needs_its_setting() {
    let receiver = Receiver::answering(OK);
    let answers = Answers::addresses([&["127.0.0.1"]]);
    let policy = TargetPolicy { allow_http: false, ..local() };
    let client = client(policy, LONG, &answers);
    let attempt = deliver(&client, &format!("http://plain.test:{}/", receiver.port));
    assert!(failed(&attempt, FailureKind::Refused).contains("webhooks.allow_http = true"));
    assert_eq!((answers.asked().len(), receiver.connections()), (0, 0));
}

/// A delivery to the server itself could change the store, or deliver for ever.
#[test]
fn our_own_listeners_are_never_targets() {
    let own = Receiver::answering(OK);
    for listener in [own.at([127, 0, 0, 1]), own.at([0, 0, 0, 0])] {
        let policy = TargetPolicy { own_listeners: vec![listener], ..local() };
        let client = client(policy, LONG, &Answers::addresses([&["127.0.0.1"]]));
        let attempt = deliver(&client, &format!("http://own.test:{}/", own.port));
        assert!(failed(&attempt, FailureKind::Refused).contains("is a listener of this server"));
    }
    assert_eq!(own.connections(), 0);
}

/// The dot is not part of the name in `Host`, but the look-up keeps it: no search domain may be appended.
#[test]
fn a_dot_at_the_end_of_a_name_is_for_the_look_up_only() {
    let receiver = Receiver::answering(OK);
    let answers = Answers::addresses([&["127.0.0.1"]]);
    succeeded(&deliver(
        &client(local(), LONG, &answers),
        &format!("http://Receiver.TEST.:{}/", receiver.port),
    ));
    assert_eq!(answers.asked(), ["receiver.test."]);
    assert_eq!(receiver.requests()[0].header("host"), format!("receiver.test:{}", receiver.port));
}

/// The resolver of the host itself is asked, with the hosts file.
#[test]
fn names_of_the_hosts_file_are_delivered_to() {
    use cairn_trust::Authorities;
    use cairn_webhooks::client::{Client, ClientSettings};
    let receiver = Receiver::answering(OK);
    let settings = ClientSettings { policy: local(), request_timeout: LONG, authorities: Authorities::Host };
    let client =
        Client::new(settings, std::sync::Arc::new(cairn_webhooks::destination::SystemResolver::default()));
    succeeded(&deliver(&client, &format!("http://localhost:{}/", receiver.port)));
    let attempt = deliver(&client, &format!("http://localhost.does.not.exist.invalid.:{}/", receiver.port));
    assert!(attempt.duration < Duration::from_secs(40) && attempt.http_status.is_none());
}
