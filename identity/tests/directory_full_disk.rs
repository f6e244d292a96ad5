//! A directory on a full disk: changes are refused, reads work, and it recovers by itself.
//!
//! The process's limit on file sizes simulates the full disk; the directory sees the same errors. The limit raises a signal
//! that ends a process unless it is ignored, and it applies to the whole process. The test therefore runs itself again in a
//! process of its own, started by a shell that ignores the signal.

use cairn_identity::directory::{Directory, DirectoryError, DirectoryOptions};
use cairn_model::SystemClock;
use futures_lite::future::block_on;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::process::Command;
use std::sync::Arc;

/// Set in the process that runs the test.
const INNER: &str = "CAIRN_TEST_SIGNAL_IGNORED";
/// Accounts after which the disk must have been full.
const ACCOUNTS_MAX: usize = 20_000;

fn limit_files(bytes: Option<u64>) {
    let maximum = getrlimit(Resource::Fsize).maximum;
    setrlimit(Resource::Fsize, Rlimit { current: bytes.or(maximum), maximum }).unwrap();
}

fn open(folder: &std::path::Path) -> Arc<Directory> {
    let options = DirectoryOptions {
        folder: folder.to_owned(),
        store: [1; 16],
        master_key: b"a master key".to_vec().into(),
        root_access_key: "root".to_owned(),
        clock: Arc::new(SystemClock),
    };
    Directory::open(options).unwrap()
}

/// Creates an account with large records.
fn create(directory: &Directory, number: usize) -> Result<(), DirectoryError> {
    block_on(directory.create_account(format!("account {number}"), "\u{10FFFF}".repeat(1024))).map(drop)
}

#[test]
fn a_full_disk_refuses_changes_and_loses_none() {
    if std::env::var_os(INNER).is_none() {
        let this = std::env::current_exe().unwrap();
        let name = "directory_full_disk::a_full_disk_refuses_changes_and_loses_none";
        let done = Command::new("sh")
            .args([
                "-c",
                "trap '' XFSZ; exec \"$0\" --exact \"$1\" --nocapture",
                this.to_str().unwrap(),
                name,
            ])
            .env(INNER, "1")
            .output()
            .unwrap();
        let output = String::from_utf8_lossy(&done.stdout);
        assert!(done.status.success() && output.contains("1 passed"), "{output}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("unmade"), b"").unwrap();
    let directory = open(folder.path());
    create(&directory, 0).unwrap();
    let length = std::fs::metadata(folder.path().join("data.mdb")).unwrap().len();
    limit_files(Some(length));
    let mut created = 1;
    let refused = loop {
        match create(&directory, created) {
            Ok(()) => created += 1,
            Err(error) => break error,
        }
        assert!(created < ACCOUNTS_MAX, "the limit was never reached");
    };
    assert_eq!(refused, DirectoryError::Full);
    assert!(created > 100, "the headroom is used first: {created}");
    assert_eq!(
        directory.accounts(None, usize::MAX).len(),
        created,
        "exactly the accounts that were created exist"
    );
    assert_eq!(directory.health(), Ok(()), "a full disk is not a failure");

    limit_files(None);
    create(&directory, created).unwrap();
    drop(directory);
    assert_eq!(open(folder.path()).accounts(None, usize::MAX).len(), created + 1);
}
