//! Answers that cannot be written, and what goes with an answer: the exit code of `status`, the proof of `verify`.

use std::fs::{File, read_dir, read_to_string};
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::scripted::{Scripted, answer, refusal};
use crate::server::{Variables, cairn};

const ID: &str = "019aa5b8-0000-7000-8000-00000000000f";

/// Runs the client with this standard output: exit code and standard error.
fn ask(server: &Scripted, arguments: &[&str], stdout: impl Into<Stdio>) -> (Option<i32>, String) {
    let variables = Variables::from([("SERVICE_MANAGEMENT_TOKEN", "token-of-the-output-tests".to_owned())]);
    let arguments: Vec<&str> = arguments.iter().copied().chain(["--endpoint", &server.endpoint]).collect();
    let ended = cairn(&arguments, &variables).stdout(stdout).stderr(Stdio::piped()).output().unwrap();
    (ended.status.code(), String::from_utf8(ended.stderr).unwrap())
}

/// A device on which no space is left.
fn full() -> File {
    File::options().write(true).open("/dev/full").unwrap()
}

/// A pipe whose reader has gone.
fn closed() -> Stdio {
    let (_, writer) = std::io::pipe().unwrap();
    writer.into()
}

fn created(what: &str) -> Value {
    let credential = json!({"id": ID, "access_key": "AK", "secret_key": "SK"});
    match what {
        "token" => json!({"token": "mt", "management_token": {"id": ID, "name": "lost", "role": "auditor"}}),
        _ => json!({"service_account": {"id": ID, "name": "lost"}, "credential": credential}),
    }
}

/// Errors of the standard output were ignored: `cairn service-account create lost > /dev/full` exited with 0, and the only
/// copy of the secret key was gone.
#[test]
fn a_secret_that_could_not_be_written_is_a_failure_that_says_how_to_be_rid_of_it() {
    for (arguments, clean_up) in [
        (&["service-account", "create", "lost"][..], format!("cairn service-account delete {ID}")),
        (&["service-account", "rotate", ID], format!("cairn service-account credential delete {ID} {ID}")),
        (
            &["service-account", "temporary-credential", ID, "--expires-in", "1h"],
            format!("cairn service-account credential delete {ID} {ID}"),
        ),
        (&["token", "create", "lost", "--role", "auditor"], format!("cairn token delete {ID}")),
    ] {
        for form in [&[][..], &["--json"]] {
            let arguments = [arguments, form].concat();
            let body = answer(201, &created(arguments[0]).to_string());
            let server = Scripted::start(vec![body.clone(), body]);
            for stdout in [Stdio::from(full()), closed()] {
                let (code, stderr) = ask(&server, &arguments, stdout);
                assert_eq!(code, Some(1), "{arguments:?}");
                assert!(stderr.contains("the answer could not be written"), "{stderr}");
                assert!(stderr.contains(&clean_up) && !stderr.contains("SK"), "{stderr}");
            }
        }
    }
}

#[test]
fn an_answer_that_could_not_be_written_is_a_failure_but_a_reader_who_left_is_none() {
    let list = || answer(200, &json!({"buckets": []}).to_string());
    let server = Scripted::start(vec![list(), list()]);
    let (code, stderr) = ask(&server, &["bucket", "list"], full());
    assert_eq!(code, Some(1));
    assert!(stderr.contains("the answer could not be written"), "{stderr}");
    assert_eq!(ask(&server, &["bucket", "list"], closed()), (Some(0), String::new()));
}

/// An operator's script took an ended token for an ended service: the refusal of the second question, which only the token
/// asks, decided the exit code.
#[test]
fn the_exit_code_of_status_is_readiness_whatever_becomes_of_the_token() {
    let stale = || refusal(401, "UNAUTHENTICATED", "no such token");
    for (ready, expected) in [(200, Some(0)), (503, Some(1))] {
        let status = if ready == 200 { "ready" } else { "not_ready" };
        let body = json!({"status": status, "subsystems": {}}).to_string();
        let server = Scripted::start(vec![answer(ready, &body), stale()]);
        let (code, stderr) = ask(&server, &["status"], Stdio::null());
        assert_eq!(code, expected, "{stderr}");
        assert!(
            stderr.contains("UNAUTHENTICATED") && stderr.contains("SERVICE_MANAGEMENT_TOKEN"),
            "{stderr}"
        );
        assert_eq!(server.asked().len(), 2);
    }
}

fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn verified(status: &str) -> Vec<u8> {
    answer(200, &json!({"status": status, "version_id": "7", "proof": {"signature": "x"}}).to_string())
}

/// The file was opened when the answer was there: after days of reading a store, a folder that is none threw the
/// verification away, and not even its result was printed.
#[test]
fn a_proof_that_cannot_be_written_is_known_before_anything_is_verified() {
    let folder = tempfile::tempdir().unwrap();
    let server = Scripted::start(vec![]);
    for place in [folder.path().join("none/proof.json"), folder.path().to_owned()] {
        let place = place.to_str().unwrap();
        let (code, stderr) = ask(&server, &["verify", "object", "b", "k", "--proof", place], Stdio::null());
        assert_eq!(code, Some(1));
        assert!(stderr.contains("the proof could not be written to"), "{stderr}");
    }
    assert!(server.asked().is_empty(), "{:?}", server.asked());
    assert_eq!(files(folder.path()), [""; 0]);
}

#[test]
fn a_proof_replaces_what_was_there_only_when_there_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let (proof, link) = (folder.path().join("proof.json"), folder.path().join("link"));
    std::fs::write(&proof, "of last year").unwrap();
    std::os::unix::fs::symlink(&proof, &link).unwrap();
    let arguments = ["verify", "object", "b", "k", "--proof", link.to_str().unwrap()];
    let nothing = answer(200, r#"{"status": "ok"}"#);
    let server = Scripted::start(vec![
        refusal(503, "NOT_READY", "later"),
        nothing,
        verified("corrupt"),
        verified("ok"),
    ]);
    for refused in ["NOT_READY", "the answer holds none"] {
        let (code, stderr) = ask(&server, &arguments, Stdio::null());
        assert_eq!(code, Some(1));
        assert!(stderr.contains(refused), "{stderr}");
        assert_eq!(read_to_string(&proof).unwrap(), "of last year");
    }
    // A proof of damage is one too, and so is one whose result nobody could read.
    assert_eq!(ask(&server, &arguments, Stdio::null()).0, Some(1));
    let kept = || serde_json::from_str::<Value>(&read_to_string(&proof).unwrap()).ok();
    assert_eq!(kept(), Some(json!({"signature": "x"})));
    std::fs::write(&proof, "").unwrap();
    assert_eq!(ask(&server, &arguments, full()).0, Some(1));
    assert_eq!(kept(), Some(json!({"signature": "x"})));
    assert_eq!(files(folder.path()), ["link", "proof.json"]);
    assert!(link.is_symlink());
}

#[test]
fn a_proof_that_goes_to_a_pipe_or_device_leaves_it_there() {
    let server = Scripted::start(vec![verified("ok"), verified("ok")]);
    let arguments = ["verify", "object", "b", "k", "--proof"];
    let (reader, writer) = std::io::pipe().unwrap();
    let code = ask(&server, &[&arguments[..], &["/dev/stdout"]].concat(), writer).0;
    let said = std::io::read_to_string(reader).unwrap();
    assert_eq!((code, said.contains("\"signature\"")), (Some(0), true), "{said}");
    let (code, stderr) = ask(&server, &[&arguments[..], &["/dev/full"]].concat(), Stdio::null());
    assert!(code == Some(1) && stderr.contains("the proof could not be written"), "{stderr}");
}
