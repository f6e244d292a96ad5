//! Help, version, unknown names, and the address of the server.

use crate::scripted::{Scripted, answer};
use crate::server::{Variables, run};

#[test]
fn help_and_version_are_printed_everywhere() {
    let version = concat!("cairn ", env!("CARGO_PKG_VERSION"), "\n");
    for words in [&[][..], &["bucket"], &["bucket", "show"], &["serve"], &["status"], &["completions"]] {
        for help in ["-h", "--help", "help"] {
            let (code, stdout, stderr) = run(&[words, &[help]].concat(), &Variables::new());
            assert_eq!((code, stderr.as_str()), (Some(0), ""), "{words:?} {help}");
            assert!(
                stdout.starts_with(&format!("Usage: {}", [&["cairn"], words].concat().join(" "))),
                "{stdout}"
            );
            assert_eq!(run(&[&["help"], words].concat(), &Variables::new()).1, stdout);
        }
        for option in ["-V", "--version"] {
            assert_eq!(
                run(&[words, &[option]].concat(), &Variables::new()),
                (Some(0), version.to_owned(), String::new())
            );
        }
    }
}

/// `cairn buckt list` said only "Unrecognized argument: buckt".
#[test]
fn an_unknown_command_suggests_the_nearest_one() {
    for (words, said) in [
        (&["buckt", "list"][..], "did you mean `cairn bucket`?"),
        (&["bucket", "lst"], "did you mean `cairn bucket list`?"),
        (&["bucket", "list", "--jsno"], "did you mean --json?"),
        (&["bucket", "xyzzy"], "its commands are create, list"),
    ] {
        let (code, stdout, stderr) = run(words, &Variables::new());
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{words:?}");
        assert!(stderr.contains(said), "{stderr}");
    }
}

/// The server refused these with exit code 1, or the message was "invalid digit found in string".
#[test]
fn wrong_values_are_found_before_a_request_is_sent() {
    for (words, said) in [
        (&["share", "create", "b/k", "--disposition", "foo"][..], "expected inline or attachment"),
        (&["share", "list", "--status", "foo"], "expected active, revoked, expired or exhausted"),
        (&["audit", "list", "--result", "foo"], "expected allowed, denied or failed"),
        (&["audit", "list", "--limit", "0"], "expected a whole number from 1 to 1000"),
        (&["event", "list", "--type", "foo"], "object.created"),
        (&["webhook", "deliveries", "--status", "foo"], "expected pending, succeeded, failed or dropped"),
        (&["object", "ls", "b", "--limit", "x"], "expected a whole number from 1 to 100000"),
        (&["object", "put", "f", "b/k", "--content-type", "bad\ntype"], "a content type such as image/png"),
        (&["bucket"], "`cairn bucket` needs one of its commands: create, list"),
    ] {
        let (code, stdout, stderr) = run(words, &Variables::new());
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{words:?}");
        assert!(stderr.contains(said), "{stderr}");
    }
}

#[test]
fn the_endpoint_can_come_from_the_environment() {
    let ready = || answer(200, r#"{"status": "ready"}"#);
    let (server, other) = (Scripted::start(vec![ready(), ready()]), Scripted::start(vec![ready()]));
    let with = |address: &str| Variables::from([("SERVICE_MANAGEMENT_ENDPOINT", address.to_owned())]);
    assert_eq!(run(&["status"], &with(&server.endpoint)).0, Some(0));
    assert_eq!(run(&["status", "--endpoint", &other.endpoint], &with(&server.endpoint)).0, Some(0));
    assert_eq!((server.asked().len(), other.asked().len()), (1, 1), "the option overrides the environment");
    for command in [&["status"][..], &["bucket", "list"]] {
        let (code, stdout, stderr) = run(command, &with("127.0.0.1:7601"));
        assert_eq!((code, stdout.as_str()), (Some(2), ""));
        assert!(stderr.contains("SERVICE_MANAGEMENT_ENDPOINT: expected an address"), "{stderr}");
    }
}

/// The message was "received corrupt message of type InvalidContentType".
#[test]
fn https_against_a_plain_port_says_so() {
    let server = Scripted::start(vec![answer(400, "{}"), answer(400, "{}")]);
    let https = server.endpoint.replacen("http", "https", 1);
    let variables = Variables::from([("SERVICE_MANAGEMENT_TOKEN", "token-of-the-tls-test".to_owned())]);
    for command in [&["status"][..], &["bucket", "create", "b"]] {
        let (code, _, stderr) = run(&[command, &["--endpoint", &https]].concat(), &variables);
        assert_eq!(code, Some(3), "{stderr}");
        assert!(stderr.contains("does not use TLS") && stderr.contains(&server.endpoint), "{stderr}");
        assert!(!stderr.contains("unknown whether"), "nothing was changed: {stderr}");
    }
}
