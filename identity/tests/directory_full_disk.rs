//! A directory on a full disk: changes are refused, reads work, and it recovers by itself.

use cairn_identity::directory::{Directory, DirectoryError, DirectoryOptions};
use cairn_model::SystemClock;
use cairn_tables::StoreFailure;
use cairn_tables::testing::{fill_disk, limit_files, unmade_store, with_limited_files};
use futures_lite::future::block_on;
use std::sync::Arc;

/// Accounts after which the disk must have been full.
const ACCOUNTS_MAX: usize = 20_000;

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
    with_limited_files(
        "directory_full_disk::a_full_disk_refuses_changes_and_loses_none",
        refuse_changes_and_lose_none,
    );
}

fn refuse_changes_and_lose_none() {
    let folder = unmade_store();
    let directory = open(folder.path());
    create(&directory, 0).unwrap();
    fill_disk(folder.path());
    let mut created = 1;
    let refused = loop {
        match create(&directory, created) {
            Ok(()) => created += 1,
            Err(error) => break error,
        }
        assert!(created < ACCOUNTS_MAX, "the limit was never reached");
    };
    assert_eq!(refused, DirectoryError::Store(StoreFailure::Full));
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
