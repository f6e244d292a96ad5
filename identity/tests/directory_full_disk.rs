//! A directory that cannot grow: what cannot be kept is refused, reads go on, and it recovers by itself.
//!
//! The process's limit on file sizes stands in for the full disk: both are the same to the directory. The limit sends a
//! signal that ends a process unless it is ignored, hence the shell in front; and the limit is the process's, hence one test.
#![allow(clippy::unwrap_used, reason = "tests")]

use cairn_identity::directory::{Directory, DirectoryError, DirectoryOptions};
use cairn_model::SystemClock;
use futures_lite::future::block_on;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::process::Command;
use std::sync::Arc;

const INNER: &str = "CAIRN_TEST_SIGNAL_IGNORED";
/// Accounts that are made before it must have been full.
const ACCOUNTS_MAX: usize = 20_000;

fn limit_files(bytes: Option<u64>) {
    let maximum = getrlimit(Resource::Fsize).maximum;
    setrlimit(Resource::Fsize, Rlimit { current: bytes.or(maximum), maximum }).unwrap();
}

fn open(folder: &std::path::Path) -> Arc<Directory> {
    let options = DirectoryOptions {
        folder: folder.to_owned(),
        store: [1; 16],
        master_key: b"a master key".to_vec(),
        root_access_key: "root".to_owned(),
        clock: Arc::new(SystemClock),
    };
    Directory::open(options).unwrap()
}

/// Makes an account whose records are large.
fn create(directory: &Directory, number: usize) -> Result<(), DirectoryError> {
    block_on(directory.create_account(format!("account {number}"), "\u{10FFFF}".repeat(1024))).map(drop)
}

#[test]
fn a_full_disk_refuses_changes_and_loses_none() {
    if std::env::var_os(INNER).is_none() {
        let own = std::env::current_exe().unwrap();
        let done = Command::new("sh")
            .args(["-c", "trap '' XFSZ; exec \"$0\" --nocapture", own.to_str().unwrap()])
            .env(INNER, "1")
            .status();
        assert!(done.unwrap().success());
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("unmade"), b"").unwrap();
    let directory = open(folder.path());
    create(&directory, 0).unwrap();
    let length = std::fs::metadata(folder.path().join("data.mdb")).unwrap().len();
    limit_files(Some(length));
    let mut made = 1;
    let refused = loop {
        match create(&directory, made) {
            Ok(()) => made += 1,
            Err(error) => break error,
        }
        assert!(made < ACCOUNTS_MAX, "the limit was never met");
    };
    assert_eq!(refused, DirectoryError::Full);
    assert!(made > 100, "the space written ahead was used first: {made}");
    assert_eq!(directory.accounts(None, usize::MAX).len(), made, "what was made is there, and nothing else");
    assert_eq!(directory.health(), Ok(()), "a full disk is no failure");

    limit_files(None);
    create(&directory, made).unwrap();
    drop(directory);
    assert_eq!(open(folder.path()).accounts(None, usize::MAX).len(), made + 1);
}
