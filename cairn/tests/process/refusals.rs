//! Starts that must fail: each exits with 1, names the cause, and shows no secret.

use std::path::Path;

use crate::server::{MASTER_KEY, ROOT, Server, TOKEN, Variables, production, run};

/// Runs `serve` with a valid environment after `change`, and returns its output.
fn refused(data_dir: &Path, change: impl FnOnce(&mut Variables)) -> String {
    let mut variables = production(data_dir);
    change(&mut variables);
    let (code, stdout, stderr) = run(&["serve"], &variables);
    assert_eq!(code, Some(1), "{stdout}{stderr}");
    for secret in [MASTER_KEY, TOKEN, ROOT.1] {
        assert!(!stdout.contains(secret) && !stderr.contains(secret), "a secret is shown: {stderr}");
    }
    stderr
}

#[test]
fn a_missing_master_key_is_refused_before_anything_is_created() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = folder.path().join("data");
    let said = refused(&data_dir, |variables| drop(variables.remove("SERVICE_CREDENTIAL_MASTER_KEY")));
    assert!(said.contains("SERVICE_CREDENTIAL_MASTER_KEY"), "{said}");
    assert!(!data_dir.exists());
}

#[test]
fn an_invalid_log_filter_is_refused_before_logging_starts() {
    let folder = tempfile::tempdir().unwrap();
    let said = refused(folder.path(), |variables| {
        drop(variables.insert("SERVICE_LOG", "service=hunter2".to_owned()))
    });
    assert!(said.contains("SERVICE_LOG") && !said.contains("hunter2"), "{said}");
    assert!(!said.contains("\"level\""), "nothing was logged: {said}");
}

#[test]
fn an_unknown_variable_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let said = refused(folder.path(), |variables| drop(variables.insert("SERVICE_S3_BINDD", "x".to_owned())));
    assert!(said.contains("SERVICE_S3_BINDD"), "{said}");
}

#[test]
fn another_master_key_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(Server::start(&["serve"], &production(folder.path())).stop(), Some(0));
    let other = "another-master-key-0123456789-0123";
    let said = refused(folder.path(), |variables| {
        drop(variables.insert("SERVICE_CREDENTIAL_MASTER_KEY", other.to_owned()));
    });
    assert!(said.contains("SERVICE_CREDENTIAL_MASTER_KEY") || said.contains("master key"), "{said}");
    assert!(!said.contains(other), "{said}");
    assert_eq!(
        Server::start(&["serve"], &production(folder.path())).stop(),
        Some(0),
        "the right key still opens it"
    );
}

#[test]
fn a_second_process_on_one_data_folder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let first = Server::start(&["serve"], &production(folder.path()));
    let said = refused(folder.path(), |_| {});
    assert!(said.contains(folder.path().to_str().unwrap()), "{said}");
    assert_eq!(first.stop(), Some(0), "the first process is not affected");
}

#[test]
fn a_port_in_use_is_refused() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let first = Server::start(&["serve"], &production(one.path()));
    let address = first.data.clone();
    let said = refused(two.path(), |variables| drop(variables.insert("SERVICE_S3_BIND", address.clone())));
    assert!(said.contains("SERVICE_S3_BIND") && said.contains(&address), "{said}");
}

#[test]
fn too_little_lockable_memory_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let binary = env!("CARGO_BIN_EXE_cairn");
    let output = std::process::Command::new("/bin/sh")
        .args(["-c", &format!("ulimit -l 64 && exec '{binary}' serve")])
        .env_clear()
        .envs(production(folder.path()))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("ulimit -l 8192"), "{said}");
}

#[test]
fn wrong_usage_exits_with_2() {
    for arguments in [&[][..], &["nothing"], &["serve", "--nothing"]] {
        assert_eq!(run(arguments, &Variables::new()).0, Some(2), "{arguments:?}");
    }
    let (code, stdout, _) = run(&["--version"], &Variables::new());
    assert_eq!((code, stdout.as_str()), (Some(0), concat!("cairn ", env!("CARGO_PKG_VERSION"), "\n")));
    assert_eq!(run(&["--help"], &Variables::new()).0, Some(0));
}
