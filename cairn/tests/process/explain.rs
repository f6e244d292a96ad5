//! `cairn explain` as a process: its text, its JSON, its exit codes, and no secret in any of them.

use serde_json::Value;

use crate::server::{MASTER_KEY, ROOT, Server, TOKEN, Variables, production, run};

/// Runs a command and expects an exit code. Its output must have no secret.
fn cairn(arguments: &[&str], variables: &Variables, code: i32) -> String {
    let (found, stdout, stderr) = run(arguments, variables);
    assert_eq!(found, Some(code), "{arguments:?}: {stdout}{stderr}");
    for secret in [MASTER_KEY, TOKEN, ROOT.1] {
        assert!(!stdout.contains(secret) && !stderr.contains(secret), "a secret is shown: {stdout}{stderr}");
    }
    stdout + &stderr
}

/// The doctor tries what a strict server refuses, so its requests are there to be explained.
#[test]
fn a_refused_request_is_explained_with_the_setting_and_its_value() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&["serve"], &production(folder.path()));
    let endpoint = format!("http://{}", server.data);
    let mut variables: Variables = [
        ("SERVICE_MANAGEMENT_ENDPOINT", format!("http://{}", server.management)),
        ("SERVICE_MANAGEMENT_TOKEN", TOKEN.to_owned()),
        ("AWS_ACCESS_KEY_ID", ROOT.0.to_owned()),
        ("AWS_SECRET_ACCESS_KEY", ROOT.1.to_owned()),
    ]
    .into();
    cairn(&["doctor", "--endpoint", &endpoint], &variables, 0);
    let list = cairn(&["refused", "list", "--code", "NotImplemented", "--json"], &variables, 0);
    let list: Value = serde_json::from_str(&list).unwrap();
    let requests = list["refused_requests"].as_array().or_else(|| list.as_array()).unwrap();
    let is_batch = |request: &&Value| request["operation"] == "DeleteObjects";
    let id = requests.iter().find(is_batch).expect("a batch deletion")["request_id"].as_str().unwrap();

    let text = cairn(&["explain", id], &variables, 0);
    for part in [
        "root requested DeleteObjects (POST) on cairn-doctor-",
        "Answer:  501 NotImplemented: ",
        "Decided: this server does not implement what was requested.",
        "Setting: s3.compatibility is \"strict\"; what would help: extended.",
        "Advice:  Set s3.compatibility = \"extended\" on the server",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(cairn(&["explain", &id.to_ascii_lowercase()], &variables, 0), text, "in lower case");
    let json: Value = serde_json::from_str(&cairn(&["explain", id, "--json"], &variables, 0)).unwrap();
    assert_eq!(json["decided_by"]["kind"], "not_implemented");
    assert_eq!(json["setting"]["name"], "s3.compatibility");
    assert_eq!(json["access_key"], Value::Null, "that of root is not shown");

    let unknown = cairn(&["explain", "0000000000000000"], &variables, 1);
    assert!(unknown.contains("only the last ones since the start are kept"), "{unknown}");
    cairn(&["explain"], &variables, 2);
    assert_eq!(server.stop(), Some(0));
    variables.insert("SERVICE_MANAGEMENT_ENDPOINT", "http://127.0.0.1:9".to_owned());
    cairn(&["explain", id], &variables, 3);
}
