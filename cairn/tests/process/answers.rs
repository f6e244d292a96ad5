//! The command-line client against servers that refuse, disconnect, or are not Cairn.

use serde_json::{Value, json};

use crate::scripted::{Scripted, answer, refusal};
use crate::server::{Variables, run};

const TOKEN: &str = "token-of-the-scripted-tests";

const ID: &str = "019aa5b8-0000-7000-8000-00000000000f";

/// Runs the client against a scripted server. Returns exit code, standard output and standard error.
fn ask(server: &Scripted, arguments: &[&str]) -> (Option<i32>, String, String) {
    let variables = Variables::from([("SERVICE_MANAGEMENT_TOKEN", TOKEN.to_owned())]);
    let arguments: Vec<&str> = arguments.iter().copied().chain(["--endpoint", &server.endpoint]).collect();
    let (code, stdout, stderr) = run(&arguments, &variables);
    assert!(!stderr.contains("panicked") && !(stdout.clone() + &stderr).contains(TOKEN), "{stderr}");
    (code, stdout, stderr)
}

fn bucket() -> Value {
    json!({
        "name": "b", "created_at": "2026-11-21T05:00:00.000Z", "versioning": "Unversioned", "object_lock": false,
        "quota": {"bytes": {"mode": "limit", "bytes": 5}, "objects": {"mode": "unlimited"}},
        "usage": {"bytes": 0, "objects": 0},
    })
}

#[test]
fn a_response_that_no_management_plane_sends_is_reported() {
    for body in ["<html>welcome</html>", "", "[1]", "\"text\"", "{\"cut\": ", "\u{1b}[2J"] {
        let server = Scripted::start(vec![answer(200, body), answer(404, body)]);
        for _ in 0..2 {
            let (code, stdout, stderr) = ask(&server, &["bucket", "list"]);
            assert_eq!((code, stdout.as_str()), (Some(1), ""), "{body}");
            assert!(stderr.contains("not the management plane") && stderr.contains("7601"), "{stderr}");
        }
        let server = Scripted::start(vec![answer(200, body)]);
        let (code, stdout, stderr) = ask(&server, &["status"]);
        assert_eq!((code, stdout.as_str()), (Some(1), ""), "{body}");
        assert!(stderr.contains("not the management plane"), "{stderr}");
    }
}

#[test]
fn a_malformed_response_is_a_failure() {
    for (arguments, body) in [
        (&["bucket", "list"][..], json!({"buckets": 5})),
        (&["bucket", "list"], json!({"buckets": [5]})),
        (&["bucket", "list"], json!({"buckets": [{"name": [1], "quota": 5, "usage": "none"}]})),
        (&["audit", "list"], json!({"events": null})),
        (&["storage", "usage"], json!({"by_bucket": {"b": 1}})),
        (&["storage", "inspect"], json!({"complete": "yes", "findings": []})),
        (&["storage", "inspect"], json!({"complete": true, "findings": 0})),
        (&["storage", "repair"], json!({"complete": 1})),
        (&["verify", "bucket", "b"], json!({"corrupt_count": "0"})),
        (&["verify", "object", "b", "k"], json!({"status": true})),
        (&["service-account", "list"], json!({"service_accounts": "none"})),
        (&["service-account", "show", "a"], json!({"service_accounts": [{"name": "a", "id": 5}]})),
        (&["service-account", "show", "a"], json!({"service_accounts": [{"name": "a", "id": "../buckets"}]})),
        (
            &["service-account", "create", "a"],
            json!({"credential": {"access_key": "AK", "secret_key": null}}),
        ),
        (&["service-account", "rotate", ID], json!({"credential": "AK"})),
        (&["token", "create", "a", "--role", "auditor"], json!({"token": {"token": "t"}})),
    ] {
        let server = Scripted::start(vec![answer(200, &body.to_string())]);
        let (code, _, stderr) = ask(&server, arguments);
        assert_eq!(code, Some(1), "{arguments:?} {stderr}");
        assert!(stderr.starts_with("cairn: the response "), "{stderr}");
    }
    // JSON is printed as it came, also with members that this version does not know.
    let server = Scripted::start(vec![answer(200, r#"{"buckets": [{"name": 5, "new": "member"}]}"#)]);
    let (code, stdout, stderr) = ask(&server, &["bucket", "list", "--json"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("\"new\": \"member\"") && stdout.contains("\"name\": 5"), "{stdout}");
}

#[test]
fn a_limit_that_could_not_be_read_is_not_overwritten() {
    let mut without = bucket();
    without["quota"]["objects"] = json!({"objects": 7});
    let server = Scripted::start(vec![answer(200, &without.to_string())]);
    let (code, _, stderr) = ask(&server, &["quota", "set", "b", "--bytes", "1MiB"]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("nothing was changed"), "{stderr}");
    assert_eq!(server.asked().len(), 1);
}

#[test]
fn a_limit_that_is_not_given_is_sent_unchanged() {
    let show = || answer(200, &bucket().to_string());
    let server = Scripted::start(vec![show(), show(), show()]);
    assert_eq!(ask(&server, &["quota", "set", "b", "--objects", "7"]).0, Some(0));
    assert_eq!(ask(&server, &["quota", "set", "b", "--objects", "0", "--bytes", "unlimited"]).0, Some(0));
    let asked = server.asked();
    let lines: Vec<&str> = asked.iter().map(|asked| asked.line.as_str()).collect();
    let (get, put) = ("GET /api/v1/buckets/b HTTP/1.1", "PUT /api/v1/buckets/b/quota HTTP/1.1");
    assert_eq!(lines, [get, put, put]);
    let sent = |index: usize| serde_json::from_str::<Value>(&asked[index].body).unwrap()["quota"].clone();
    let seven = json!({"bytes": {"mode": "limit", "bytes": 5}, "objects": {"mode": "limit", "objects": 7}});
    assert_eq!(sent(1), seven);
    let none = json!({"bytes": {"mode": "unlimited"}, "objects": {"mode": "limit", "objects": 0}});
    assert_eq!(sent(2), none);
    assert_eq!(ask(&server, &["quota", "set", "b"]).0, Some(2));
    assert_eq!(server.asked().len(), 3, "wrong usage sends nothing");
}

#[test]
fn every_error_message_says_what_to_do_next() {
    for (arguments, status, code, next) in [
        (&["bucket", "list"][..], 401, "UNAUTHENTICATED", "SERVICE_MANAGEMENT_TOKEN"),
        (&["bucket", "create", "b"], 403, "FORBIDDEN", "cairn token create"),
        (&["bucket", "show", "b"], 404, "BUCKET_NOT_FOUND", "no bucket b; `cairn bucket list`"),
        (&["bucket", "show", "b"], 404, "NOT_FOUND", "cairn status"),
        (&["bucket", "delete", "b"], 409, "BUCKET_NOT_EMPTY", "old versions"),
        (&["bucket", "create", "b"], 409, "BUCKET_ALREADY_EXISTS", "cairn bucket show"),
        (&["bucket", "versioning", "b", "suspended"], 409, "INVALID_BUCKET_STATE", "cairn bucket show"),
        (&["service-account", "show", ID], 404, "SERVICE_ACCOUNT_NOT_FOUND", "service-account list"),
        (&["service-account", "create", "a"], 409, "SERVICE_ACCOUNT_ALREADY_EXISTS", "service-account show"),
        (&["service-account", "create", "a"], 409, "ACCESS_KEY_EXISTS", "service-account show"),
        (
            &["service-account", "credential", "disable", ID, ID],
            404,
            "CREDENTIAL_NOT_FOUND",
            "service-account show",
        ),
        (&["policy", "show", ID], 404, "POLICY_NOT_FOUND", "policy list"),
        (&["policy", "delete", ID], 409, "POLICY_IN_USE", "policy detach"),
        (&["token", "delete", ID], 404, "TOKEN_NOT_FOUND", "token list"),
        (&["quota", "show", "b"], 409, "QUOTA_BELOW_USAGE", "cairn quota show"),
        (&["verify", "object", "b", "k"], 404, "OBJECT_NOT_FOUND", "object ls --recursive"),
        (&["share", "show", ID], 404, "SHARE_NOT_FOUND", "cairn share list"),
        (&["embed", "show", ID], 404, "EMBED_NOT_FOUND", "cairn embed list"),
        (&["lifecycle", "delete", ID], 404, "LIFECYCLE_RULE_NOT_FOUND", "cairn lifecycle list"),
        (
            &["object", "put", "Cargo.toml", "b/k", "--if-absent"],
            412,
            "PRECONDITION_FAILED",
            "exists already",
        ),
        (&["object", "cp", "a/k", "b/"], 404, "BUCKET_NOT_FOUND", "no bucket a, or no bucket b"),
        (&["verify", "bucket", "b"], 429, "TOO_MANY_REQUESTS", "wait"),
        (&["storage", "status"], 503, "NOT_READY", "cairn status"),
        (&["storage", "usage"], 500, "INTERNAL_ERROR", "id-7"),
    ] {
        let server = Scripted::start(vec![refusal(status, code, "in the server's words")]);
        let (exit, stdout, stderr) = ask(&server, arguments);
        assert_eq!((exit, stdout.as_str()), (Some(1), ""), "{arguments:?}");
        assert!(stderr.starts_with(&format!("cairn: {code}: in the server's words\n  ")), "{stderr}");
        assert!(stderr.contains(next), "{stderr}");
    }
}

#[test]
fn status_of_a_server_that_is_not_ready_is_a_failure() {
    let body = r#"{"status": "not_ready", "subsystems": {"audit": "ready", "storage": "not_ready"}}"#;
    let server = Scripted::start(vec![answer(503, body), refusal(503, "NOT_READY", "the store is not open")]);
    let (code, stdout, stderr) = ask(&server, &["status"]);
    assert_eq!(code, Some(1), "{stderr}");
    assert_eq!(stdout, "status:    not ready\n  audit:   ready\n  storage: not ready\n");
    assert!(stderr.contains("no system information: NOT_READY"), "{stderr}");
}

/// The server refuses a body of unknown length.
#[test]
fn a_request_without_a_body_has_content_length_zero() {
    let server = Scripted::start(vec![answer(200, "{}"), answer(204, "")]);
    ask(&server, &["service-account", "rotate", ID]);
    assert_eq!(ask(&server, &["policy", "attach", ID, ID]).0, Some(0));
    let asked = server.asked();
    assert!(asked.iter().all(|one| one.header("content-length") == Some("0")), "{asked:?}");
    assert!(asked.iter().all(|one| one.header("transfer-encoding").is_none()), "{asked:?}");
}

#[test]
fn text_of_a_server_cannot_control_the_terminal() {
    let hostile = "a\u{1b}[2J\u{9b}31m\u{202e}\r";
    let mut shown = bucket();
    shown["name"] = hostile.into();
    let list = json!({"buckets": [shown]}).to_string();
    let server =
        Scripted::start(vec![answer(200, &list), answer(200, &list), refusal(400, hostile, hostile)]);
    let texts =
        [&["bucket", "list"][..], &["bucket", "list", "--json"], &["bucket", "list"]].map(|arguments| {
            let (_, stdout, stderr) = ask(&server, arguments);
            stdout + &stderr
        });
    for text in &texts {
        let drives =
            |character: char| (character.is_control() && character != '\n') || character == '\u{202e}';
        assert!(text.contains("[2J") && !text.contains(drives), "{text:?}");
    }
    assert_eq!(serde_json::from_str::<Value>(&texts[1]).unwrap(), json!({"buckets": [shown]}));
}

#[test]
fn an_endless_or_incomplete_response_is_refused() {
    let endless = |length: usize| {
        let mut bytes = b"HTTP/1.1 200 -\r\nConnection: close\r\n\r\n{\"buckets\": [\"".to_vec();
        bytes.resize(bytes.len() + length, b'x');
        bytes
    };
    let cut = b"HTTP/1.1 200 -\r\nContent-Length: 100\r\n\r\n{\"buckets\"".to_vec();
    let server = Scripted::start(vec![endless(65 << 20), cut, b"nonsense\r\n\r\n".to_vec(), Vec::new()]);
    for _ in 0..4 {
        let (code, stdout, stderr) = ask(&server, &["bucket", "list"]);
        assert_eq!((code, stdout.as_str()), (Some(3), ""), "{stderr}");
        assert!(stderr.contains("no complete response"), "{stderr}");
    }
}

/// A change whose response was lost may have been made, so a retry could make it twice.
#[test]
fn a_change_is_sent_once_and_its_outcome_reported_as_unknown() {
    let server = Scripted::start(vec![]);
    for arguments in [&["bucket", "create", "b"][..], &["bucket", "delete", "b"]] {
        let (code, _, stderr) = ask(&server, arguments);
        assert_eq!(code, Some(3));
        assert!(stderr.contains("it is unknown whether the change was made"), "{stderr}");
    }
    assert_eq!(server.asked().len(), 2);
}

#[test]
fn the_token_is_sent_to_the_chosen_server_only() {
    let other = Scripted::start(vec![]);
    let redirect = |location: &str| {
        format!(
            "HTTP/1.1 307 -\r\nLocation: {location}/api/v1/buckets\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        )
    };
    let ready = answer(200, r#"{"status": "ready"}"#);
    let capabilities = json!({
        "versioning": true, "webhooks": true, "events": true, "lifecycle": true, "sharing": true, "object_browser": true,
        "erasure_coding": false,
    });
    let info = json!({
        "name": "cairn", "version": "1", "status": "ready", "s3_compatibility": "strict", "s3_endpoint": "http://h:7600", "capabilities": capabilities,
    });
    let info = answer(200, &info.to_string());
    let server = Scripted::start(vec![redirect(&other.endpoint).into_bytes(), ready, info]);
    let variables = Variables::from([
        ("SERVICE_MANAGEMENT_TOKEN", TOKEN.to_owned()),
        ("HTTP_PROXY", other.endpoint.clone()),
        ("http_proxy", other.endpoint.clone()),
        ("ALL_PROXY", other.endpoint.clone()),
    ]);
    assert_eq!(run(&["bucket", "list", "--endpoint", &server.endpoint], &variables).0, Some(1));
    assert_eq!(run(&["status", "--endpoint", &server.endpoint], &variables).0, Some(0));
    assert!(other.asked().is_empty(), "{:?}", other.asked());
    let tokens: Vec<_> =
        server.asked().iter().map(|asked| asked.header("authorization").map(str::to_owned)).collect();
    let bearer = Some(format!("Bearer {TOKEN}"));
    assert_eq!(tokens, [bearer.clone(), None, bearer], "readiness is requested without a token");
}

#[test]
fn an_invalid_token_is_not_sent() {
    let server = Scripted::start(vec![]);
    for (token, said) in [("", "is not set"), ("two words", "characters"), ("line\nbreak", "characters")] {
        let variables = Variables::from([("SERVICE_MANAGEMENT_TOKEN", token.to_owned())]);
        let (code, _, stderr) = run(&["bucket", "list", "--endpoint", &server.endpoint], &variables);
        assert_eq!(code, Some(1));
        assert!(stderr.contains(said) && stderr.contains("SERVICE_MANAGEMENT_TOKEN"), "{stderr}");
    }
    assert!(server.asked().is_empty());
}

#[test]
fn all_pages_are_read_but_a_repeated_page_ends_it() {
    let page = |events: usize, next: Option<&str>| {
        let events = vec![json!({"id": ID, "time": "t", "operation": "o", "result": "allowed"}); events];
        answer(200, &json!({"events": events, "next_time": next, "next_id": next}).to_string())
    };
    let server = Scripted::start(vec![page(2, Some("t1")), page(0, Some("t 2")), page(1, None)]);
    let (code, stdout, stderr) = ask(&server, &["audit", "list", "--all", "--json", "--principal", "a&b"]);
    assert_eq!(code, Some(0), "{stderr}");
    let all: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((all["events"].as_array().map(Vec::len), &all["next_id"]), (Some(3), &Value::Null));
    let asked = server.asked();
    let queries: Vec<&str> = asked.iter().map(|asked| asked.line.split(['?', ' ']).nth(2).unwrap()).collect();
    assert_eq!(
        queries,
        [
            "principal=a%26b&limit=1000",
            "principal=a%26b&limit=1000&after_time=t1&after_id=t1",
            "principal=a%26b&limit=1000&after_time=t%202&after_id=t%202",
        ]
    );

    let server = Scripted::start(vec![page(1, Some("t1")), page(1, Some("t1"))]);
    assert_eq!(ask(&server, &["audit", "list", "--all"]).0, Some(1));
    assert_eq!(server.asked().len(), 2);

    // The limit is reached, so the third page is not requested.
    let server = Scripted::start(vec![page(60_000, Some("t1")), page(60_000, Some("t2")), page(1, None)]);
    let (code, stdout, stderr) = ask(&server, &["audit", "list", "--all"]);
    assert_eq!((code, stdout.lines().count(), server.asked().len()), (Some(0), 120_001, 2));
    assert!(stderr.contains("--after-time t2"), "{stderr}");

    let server = Scripted::start(vec![page(1, Some("t1"))]);
    let (code, _, stderr) = ask(&server, &["audit", "list"]);
    assert_eq!(code, Some(0));
    assert!(stderr.contains("--after-time t1 --after-id t1"), "{stderr}");
    assert_eq!(ask(&server, &["audit", "list", "--after-id", "x"]).0, Some(2));
}

#[test]
fn an_ambiguous_or_unknown_name_changes_nothing() {
    let other = "019aa5b8-0000-7000-8000-000000000001";
    let policies = json!({"policies": [
        {"id": ID, "name": "once"}, {"id": other, "name": "twice"}, {"id": ID, "name": "twice"},
    ]});
    let list = || answer(200, &policies.to_string());
    let server = Scripted::start(vec![list(), answer(204, ""), list(), list(), answer(204, "")]);
    assert_eq!(ask(&server, &["policy", "delete", "once"]).0, Some(0));
    for (name, said) in
        [("twice", "2 policies have the name twice"), ("thrice", "no policy has the id or name thrice")]
    {
        let (code, _, stderr) = ask(&server, &["policy", "delete", name]);
        assert_eq!(code, Some(1));
        assert!(stderr.contains(said) && stderr.contains("cairn policy list"), "{stderr}");
    }
    assert_eq!(ask(&server, &["policy", "detach", ID, other]).0, Some(0), "ids are not looked up");
    let lines: Vec<String> = server.asked().into_iter().map(|asked| asked.line).collect();
    let list = "GET /api/v1/policies HTTP/1.1".to_owned();
    let delete = format!("DELETE /api/v1/policies/{ID} HTTP/1.1");
    let detach = format!("DELETE /api/v1/policies/{ID}/bindings/{other} HTTP/1.1");
    assert_eq!(lines, [list.clone(), delete, list.clone(), list, detach]);
}

/// The server must see duplicate members, which a re-serialised document would have lost.
#[test]
fn a_policy_is_sent_unchanged_and_only_if_it_is_json() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("policy.json");
    let file = path.to_str().unwrap();
    let server = Scripted::start(vec![refusal(400, "INVALID_REQUEST", "effect stands twice")]);
    let document = "{\"effect\": \"deny\",\n \"effect\": \"allow\"}\n";
    std::fs::write(file, document).unwrap();
    assert_eq!(ask(&server, &["policy", "create", file]).0, Some(1));
    assert_eq!(server.asked()[0].body, document);

    for (broken, said) in [
        (&b"{\"name\": \"x\",\n}"[..], "line 2"),
        (b"", "not JSON"),
        (b"\xff", "UTF-8"),
        (&[b' '; (1 << 20) + 1], "longer"),
    ] {
        std::fs::write(file, broken).unwrap();
        let (code, _, stderr) = ask(&server, &["policy", "create", file]);
        assert_eq!(code, Some(1));
        assert!(stderr.contains(said) && stderr.contains(file), "{stderr}");
    }
    assert_eq!(ask(&server, &["policy", "create", folder.path().to_str().unwrap()]).0, Some(1));
    assert_eq!(ask(&server, &["policy", "create", "no-such-file"]).0, Some(1));
    let (_, _, stderr) = ask(&server, &["policy", "create", "-"]);
    assert!(stderr.contains("standard input"), "{stderr}");
    assert_eq!(server.asked().len(), 1);
}
