//! Tests of unwritable output, exit codes and proof files.

use std::fs::{File, read_dir, read_to_string};
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::scripted::{Scripted, answer, refusal};
use crate::server::{Variables, cairn};

const ID: &str = "019aa5b8-0000-7000-8000-00000000000f";

/// Runs the client with this standard output. Returns exit code and standard error.
fn ask(server: &Scripted, arguments: &[&str], stdout: impl Into<Stdio>) -> (Option<i32>, String) {
    let variables = Variables::from([("SERVICE_MANAGEMENT_TOKEN", "token-of-the-output-tests".to_owned())]);
    let arguments: Vec<&str> = arguments.iter().copied().chain(["--endpoint", &server.endpoint]).collect();
    let ended = cairn(&arguments, &variables).stdout(stdout).stderr(Stdio::piped()).output().unwrap();
    (ended.status.code(), String::from_utf8(ended.stderr).unwrap())
}

/// Opens a device without free space.
fn full() -> File {
    File::options().write(true).open("/dev/full").unwrap()
}

/// Returns a pipe whose reader was closed.
fn closed() -> Stdio {
    let (_, writer) = std::io::pipe().unwrap();
    writer.into()
}

fn created(what: &str) -> Value {
    let credential = json!({
        "id": ID, "access_key": "AK", "secret_key": "SK", "enabled": true, "temporary": false, "created_at": "t",
    });
    match what {
        "token" => {
            json!({"token": "mt", "management_token": {"id": ID, "name": "lost", "role": "auditor", "created_at": "t"}})
        }
        _ => json!({
            "service_account": {
                "id": ID, "name": "lost", "description": "", "created_at": "t", "enabled": true, "credentials": [], "policies": [],
            },
            "credential": credential,
        }),
    }
}

/// Errors of standard output were ignored: `cairn service-account create lost > /dev/full` exited with 0, and the only copy of
/// the secret key was lost.
#[test]
fn a_secret_that_could_not_be_written_is_a_failure() {
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
                assert!(stderr.contains("the output could not be written"), "{stderr}");
                assert!(stderr.contains(&clean_up) && !stderr.contains("SK"), "{stderr}");
            }
        }
    }
}

#[test]
fn a_write_error_is_a_failure_but_a_closed_pipe_is_not() {
    let list = || answer(200, &json!({"buckets": []}).to_string());
    let server = Scripted::start(vec![list(), list()]);
    let (code, stderr) = ask(&server, &["bucket", "list"], full());
    assert_eq!(code, Some(1));
    assert!(stderr.contains("the output could not be written"), "{stderr}");
    assert_eq!(ask(&server, &["bucket", "list"], closed()), (Some(0), String::new()));
}

/// An operator's script mistook an expired token for a service that was down: the refusal of the second request, which needs
/// the token, determined the exit code.
#[test]
fn a_refused_token_does_not_change_the_exit_code_of_status() {
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

fn proof() -> Value {
    json!({"payload": {}, "algorithm": "ed25519", "public_key": "k", "signature": "x"})
}

fn verified(status: &str) -> Vec<u8> {
    let body = json!({
        "bucket": "b", "key": "k", "version_id": "7", "size": 5, "status": status, "blocks_checked": 1, "proof": proof(),
    });
    answer(200, &body.to_string())
}

/// The file was opened after the response: if its folder did not exist, days of verification were lost, and not even the result
/// was printed.
#[test]
fn an_unwritable_proof_is_reported_before_the_verification() {
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
fn a_file_is_replaced_only_by_a_complete_proof() {
    let folder = tempfile::tempdir().unwrap();
    let (file, link) = (folder.path().join("proof.json"), folder.path().join("link"));
    std::fs::write(&file, "of last year").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let arguments = ["verify", "object", "b", "k", "--proof", link.to_str().unwrap()];
    let nothing = answer(200, r#"{"status": "ok"}"#);
    let server = Scripted::start(vec![
        refusal(503, "NOT_READY", "later"),
        nothing,
        verified("corrupt"),
        verified("ok"),
    ]);
    for refused in ["NOT_READY", "the response is not"] {
        let (code, stderr) = ask(&server, &arguments, Stdio::null());
        assert_eq!(code, Some(1));
        assert!(stderr.contains(refused), "{stderr}");
        assert_eq!(read_to_string(&file).unwrap(), "of last year");
    }
    // A proof of damage is written too, even if the result could not be printed.
    assert_eq!(ask(&server, &arguments, Stdio::null()).0, Some(1));
    let kept = || serde_json::from_str::<Value>(&read_to_string(&file).unwrap()).ok();
    assert_eq!(kept(), Some(proof()));
    std::fs::write(&file, "").unwrap();
    assert_eq!(ask(&server, &arguments, full()).0, Some(1));
    assert_eq!(kept(), Some(proof()));
    assert_eq!(files(folder.path()), ["link", "proof.json"]);
    assert!(link.is_symlink());
}

#[test]
fn a_proof_can_be_written_to_a_pipe_or_device() {
    let server = Scripted::start(vec![verified("ok"), verified("ok")]);
    let arguments = ["verify", "object", "b", "k", "--proof"];
    let (reader, writer) = std::io::pipe().unwrap();
    let code = ask(&server, &[&arguments[..], &["/dev/stdout"]].concat(), writer).0;
    let said = std::io::read_to_string(reader).unwrap();
    assert_eq!((code, said.contains("\"signature\"")), (Some(0), true), "{said}");
    let (code, stderr) = ask(&server, &[&arguments[..], &["/dev/full"]].concat(), Stdio::null());
    assert!(code == Some(1) && stderr.contains("the proof could not be written"), "{stderr}");
}
