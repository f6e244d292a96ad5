//! Keys that clients choose: an access key can be given again with another secret.

use crate::signer::{DATE, EMPTY_SHA256, NOW, Request, Signer};
use cairn_fixtures::ManualClock;
use cairn_identity::directory::{
    Account, Directory, DirectoryError, DirectoryOptions, ExecutorCredentials, GivenCredential,
};
use cairn_identity::{AuthError, Authenticator, Principal, RootCredential};
use futures_lite::future::block_on;
use std::fs;
use std::path::Path;
use std::sync::Arc;

const ROOT: &str = "root/access.key";
const KEY: &str = "my.app+key=1/2@x";
const OLD: &str = "the!old\"secret'of/the+application";
const NEW: &str = "another-secret";

fn open(folder: &Path) -> Arc<Directory> {
    Directory::open(DirectoryOptions {
        folder: folder.to_owned(),
        store: [7; 16],
        master_key: b"a master key of the tests, long enough".to_vec().into(),
        root_access_key: ROOT.to_owned(),
        clock: ManualClock::at(NOW.0),
    })
    .unwrap()
}

fn new_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("unmade"), b"").unwrap();
    folder
}

fn executor(directory: &Arc<Directory>) -> Authenticator<ExecutorCredentials> {
    let root = RootCredential::new(ROOT, "root-secret");
    Authenticator::new(ExecutorCredentials::new(root, Arc::clone(directory))).with_version_2()
}

fn keys(access_key: &str, secret_key: &str) -> GivenCredential {
    GivenCredential::new(access_key.to_owned(), secret_key.to_owned()).unwrap()
}

fn create(directory: &Directory, name: &str, given: GivenCredential) -> Result<Account, DirectoryError> {
    let made = directory.create_account_with_keys(name.to_owned(), String::new(), given);
    block_on(made).map(|(account, _)| account)
}

/// Returns a request with the signature in its header, and one with the signature in its URL.
fn signed(secret_key: &str) -> [Request; 2] {
    let signer =
        Signer { access_key: KEY.to_owned(), secret_key: secret_key.to_owned(), ..Signer::default() };
    let headers = [("host", "localhost"), ("x-amz-content-sha256", EMPTY_SHA256), ("x-amz-date", DATE)];
    let mut in_header = Request::new("GET", "/b/k", "", &headers);
    signer.sign(&mut in_header);
    let mut in_url = Request::new("GET", "/b/k", "", &headers[..1]);
    signer.presign(&mut in_url, "host", "60", "UNSIGNED-PAYLOAD");
    [in_header, in_url]
}

/// No access key was used twice before, so signing keys and verified URLs stayed in the caches of all executors.
#[test]
fn an_access_key_that_is_given_again_has_only_its_new_secret() {
    let folder = new_folder();
    let directory = open(folder.path());
    let executors = [executor(&directory), executor(&directory)];
    let first = create(&directory, "first", keys(KEY, OLD)).unwrap();
    // Twice, so that the second time finds the caches filled.
    let check = |accepted: &str, refused: &str, principal: &str| {
        for executor in executors.iter().chain(&executors) {
            for request in signed(refused) {
                let error = request.authenticate(executor, NOW).unwrap_err();
                assert_eq!((error.status(), error.code()), (403, "SignatureDoesNotMatch"));
            }
            for request in signed(accepted) {
                let found = request.authenticate(executor, NOW).unwrap();
                assert_eq!((&*found.access_key, &*found.principal.to_string()), (KEY, principal));
            }
        }
    };
    check(OLD, NEW, "account:first");
    block_on(directory.delete_account(first.id)).unwrap();
    for request in signed(OLD) {
        let refused = request.authenticate(&executors[0], NOW).unwrap_err();
        assert!(matches!(refused, AuthError::UnknownAccessKey { .. }));
    }
    let second = create(&directory, "second", keys(KEY, NEW)).unwrap();
    check(NEW, OLD, "account:second");
    // Deleting the credential alone frees its access key too, for the same account as well.
    block_on(directory.delete_credential(second.id, second.credentials[0].id)).unwrap();
    block_on(directory.add_keys(second.id, keys(KEY, OLD))).unwrap();
    check(OLD, NEW, "account:second");
}

/// A request in progress would otherwise go on with the rights of the account that has the access key now.
#[test]
fn a_request_in_progress_ends_with_its_credential() {
    let folder = new_folder();
    let directory = open(folder.path());
    let executor = executor(&directory);
    let first = create(&directory, "first", keys(KEY, OLD)).unwrap();
    let [request, _] = signed(OLD);
    let begun = request.authenticate(&executor, NOW).unwrap();
    create(&directory, "other", keys("other", OLD)).unwrap();
    let Ok(Some(Principal::Account(account))) = executor.changed_principal(&begun) else {
        panic!("the credential still exists")
    };
    assert_eq!(account.id, first.id);
    block_on(directory.delete_account(first.id)).unwrap();
    create(&directory, "second", keys(KEY, OLD)).unwrap();
    let ended = executor.changed_principal(&begun).unwrap_err();
    assert_eq!(ended, AuthError::UnknownAccessKey { access_key: KEY.to_owned() });
}

#[test]
fn access_keys_are_unique_and_differ_from_that_of_root() {
    let folder = new_folder();
    let directory = open(folder.path());
    let first = create(&directory, "first", keys(KEY, OLD)).unwrap();
    for taken in [KEY, ROOT] {
        let refused = create(&directory, "second", keys(taken, NEW));
        assert_eq!(refused, Err(DirectoryError::AccessKeyExists));
        let refused = block_on(directory.add_keys(first.id, keys(taken, NEW)));
        assert_eq!(refused, Err(DirectoryError::AccessKeyExists));
    }
    // Nothing was made: the name is still free.
    create(&directory, "second", keys("my.app+key=1/2@y", NEW)).unwrap();
    assert_eq!(directory.accounts(None, usize::MAX).len(), 2);
    let generated = block_on(directory.rotate(first.id)).unwrap().info.access_key;
    let refused = block_on(directory.add_keys(first.id, keys(&generated, NEW)));
    assert_eq!(refused, Err(DirectoryError::AccessKeyExists));
}

#[test]
fn given_secrets_are_sealed_and_survive_a_restart() {
    let folder = new_folder();
    let directory = open(folder.path());
    create(&directory, "first", keys(KEY, OLD)).unwrap();
    drop(directory);
    let data = fs::read(folder.path().join("data.mdb")).unwrap();
    let contains = |text: &str| data.windows(text.len()).any(|bytes| bytes == text.as_bytes());
    assert!(contains(KEY) && !contains(OLD) && !contains(&hex::encode(OLD)));
    let executor = executor(&open(folder.path()));
    for request in signed(OLD) {
        request.authenticate(&executor, NOW).unwrap();
    }
}
