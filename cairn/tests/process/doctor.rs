//! `cairn doctor` as a process: what it says about each common failure, and its exit codes.
//!
//! Real servers and clients are in `tests/e2e/cli/test_doctor.py`.

use std::net::TcpListener;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use cairn_http1::http_date;
use serde_json::Value;

use crate::scripted::Scripted;
use crate::server::{ROOT, Server, TOKEN, Variables, production, run};

/// Runs the doctor at this home with these credentials, and expects an exit code. Returns what it printed, which must not
/// have the secret key.
fn doctor(home: &Path, credential: (&str, &str), arguments: &[&str], code: i32) -> String {
    let variables: Variables = [
        ("HOME", home.to_str().unwrap().to_owned()),
        ("AWS_ACCESS_KEY_ID", credential.0.to_owned()),
        ("AWS_SECRET_ACCESS_KEY", credential.1.to_owned()),
    ]
    .into();
    let (found, stdout, stderr) = run(&[&["doctor"], arguments].concat(), &variables);
    assert_eq!(found, Some(code), "{stdout}{stderr}");
    assert!(!stdout.contains(credential.1) && !stderr.contains(credential.1), "the secret: {stdout}{stderr}");
    stdout + &stderr
}

/// Expects that all parts occur in this order.
fn assert_says(text: &str, parts: &[&str]) {
    let mut rest = text;
    for part in parts {
        let at = rest.find(part).unwrap_or_else(|| panic!("{part:?} is missing, or out of order: {text}"));
        rest = &rest[at + part.len()..];
    }
}

/// Starts a server in this mode.
fn server(folder: &Path, mode: &str) -> (Server, String) {
    let mut variables = production(folder);
    variables.insert("SERVICE_S3_COMPATIBILITY", mode.to_owned());
    let server = Server::start(&["serve"], &variables);
    let endpoint = format!("http://{}", server.data);
    (server, endpoint)
}

#[test]
fn an_address_without_a_server_is_named() {
    let home = tempfile::tempdir().unwrap();
    // A port that was free a moment ago.
    let free = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap();
    let text = doctor(home.path(), ROOT, &["--endpoint", &format!("http://{free}")], 1);
    assert_says(&text, &["failed", "connection", "cannot be reached", "fix: "]);
    assert!(!text.contains("credentials"), "nothing else can be tried: {text}");
}

#[test]
fn a_server_that_closes_connections_or_speaks_another_protocol_is_named() {
    let home = tempfile::tempdir().unwrap();
    let closing = Scripted::start(Vec::new());
    let text = doctor(home.path(), ROOT, &["--endpoint", &closing.endpoint], 1);
    assert_says(&text, &["failed", "connection", "fix: "]);
    let page = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/html\r\nContent-Length: 13\r\n\r\n<html></html>";
    let web = Scripted::start(vec![page.to_vec(); 20]);
    let text = doctor(home.path(), ROOT, &["--endpoint", &web.endpoint], 1);
    assert_says(&text, &["failed", "connection", "fix: Check address and port."]);
}

#[test]
fn wrong_credentials_and_missing_profiles_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let (server, endpoint) = server(&folder.path().join("data"), "strict");
    let at = ["--endpoint", &endpoint];
    let text = doctor(folder.path(), ("AKNOBODY", "a-wrong-secret-key-0123456789"), &at, 1);
    assert_says(&text, &["failed", "credentials", "fix: Check the access key.", "InvalidAccessKeyId"]);
    let text = doctor(folder.path(), (ROOT.0, "a-wrong-secret-key-0123456789"), &at, 1);
    assert_says(&text, &["failed", "credentials", "fix: Check the secret key.", "SignatureDoesNotMatch"]);
    let text = doctor(folder.path(), ROOT, &["--profile", "nobody", "--endpoint", &endpoint], 2);
    assert_says(&text, &["nobody"]);
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn both_modes_work_and_strict_has_notes_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    for mode in ["strict", "extended"] {
        let (server, endpoint) = server(&folder.path().join(mode), mode);
        let text = doctor(folder.path(), ROOT, &["--endpoint", &endpoint], 0);
        assert!(text.contains(mode) && !text.contains("failed "), "{text}");
        let is_strict = mode == "strict";
        assert_eq!(text.contains("s3.compatibility = \"extended\""), is_strict, "{text}");
        assert_eq!(server.stop(), Some(0));
    }
}

#[test]
fn an_account_that_may_only_read_is_told_what_it_may_not() {
    let folder = tempfile::tempdir().unwrap();
    let (server, endpoint) = server(&folder.path().join("data"), "strict");
    let management = format!("http://{}", server.management);
    let variables: Variables =
        [("SERVICE_MANAGEMENT_ENDPOINT", management), ("SERVICE_MANAGEMENT_TOKEN", TOKEN.to_owned())].into();
    let manage = |arguments: &[&str]| {
        let (code, stdout, stderr) = run(&[arguments, &["--json"]].concat(), &variables);
        assert_eq!(code, Some(0), "{arguments:?}: {stdout}{stderr}");
        // A binding has no answer.
        serde_json::from_str::<Value>(&stdout).unwrap_or_default()
    };
    manage(&["bucket", "create", "shared"]);
    let made = manage(&["service-account", "create", "reader"]);
    let key = |name: &str| made["credential"][name].as_str().unwrap().to_owned();
    let policy = folder.path().join("policy.json");
    let statements = r#"{"name": "read", "description": "", "statements": [
        {"effect": "allow", "actions": ["s3:ListBucket"], "resources": ["bucket:shared"]},
        {"effect": "allow", "actions": ["s3:GetObject"], "resources": ["bucket:shared/*"]}]}"#;
    std::fs::write(&policy, statements).unwrap();
    manage(&["policy", "create", policy.to_str().unwrap()]);
    manage(&["policy", "attach", "read", "reader"]);
    let credential = (key("access_key"), key("secret_key"));
    let credential = (credential.0.as_str(), credential.1.as_str());
    let at = ["--endpoint", &endpoint, "--bucket", "shared"];
    let text = doctor(folder.path(), credential, &at, 1);
    assert_says(&text, &["ok", "credentials", "failed", "small object", "AccessDenied"]);
    assert!(text.contains("no policy allows s3:PutObject") && text.contains("Attach a policy"), "{text}");
    doctor(folder.path(), credential, &["--endpoint", &endpoint, "--no-round-trip"], 0);
    let shown = manage(&["bucket", "show", "shared"]);
    assert_eq!(shown["contents"]["versions"], 0, "{shown}");
    assert_eq!(server.stop(), Some(0));
}

/// A certificate that nobody here trusts, as `serve --dev --tls` makes one.
#[test]
fn an_unknown_certificate_is_named_with_the_option_that_trusts_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut variables = production(&folder.path().join("data"));
    variables.insert("HOME", folder.path().to_str().unwrap().to_owned());
    let server = Server::start(&["serve", "--dev", "--tls"], &variables);
    let port = server.data.rsplit(':').next().unwrap();
    let endpoint = format!("https://localhost:{port}");
    let text = doctor(folder.path(), ROOT, &["--endpoint", &endpoint], 1);
    assert_says(
        &text,
        &["failed", "connection", "no certificate authority that is trusted here", "--ca-certificate"],
    );
    assert_eq!(server.stop(), Some(0));
}

/// A server whose clock differs by 20 minutes: the difference is named, and later requests are signed with its time.
#[test]
fn a_clock_that_is_20_minutes_off_is_named_in_both_directions() {
    let home = tempfile::tempdir().unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    for (server_time, said) in [(now + 1200, "behind the server's"), (now - 1200, "ahead of the server's")] {
        let answer = |status: &str, body: &str| {
            let date = http_date(server_time);
            format!(
                "HTTP/1.1 {status}\r\nDate: {date}\r\nx-amz-request-id: 1F\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            )
            .into_bytes()
        };
        let unsigned =
            answer("403 Forbidden", "<Error><Code>AccessDenied</Code><Message>m</Message></Error>");
        let mut answers = vec![answer("200 OK", "<ListAllMyBucketsResult/>"); 20];
        answers.insert(0, unsigned);
        let skewed = Scripted::start(answers);
        let text = doctor(home.path(), ROOT, &["--endpoint", &skewed.endpoint, "--no-round-trip"], 1);
        assert_says(&text, &["failed", "clock", said, "15 minutes", "fix: Set the clock"]);
        assert_says(&text, &["ok", "credentials"]);
        let hour = |seconds: u64| seconds / 60 % 1440;
        let signed: Vec<_> =
            skewed.asked().iter().filter_map(|asked| asked.header("x-amz-date").map(str::to_owned)).collect();
        assert!(!signed.is_empty(), "nothing was signed");
        for date in signed {
            let minutes = date[9..11].parse::<u64>().unwrap() * 60 + date[11..13].parse::<u64>().unwrap();
            let apart = minutes.abs_diff(hour(server_time));
            assert!(apart.min(1440 - apart) <= 2, "{date} is not the time of the server");
        }
    }
}
