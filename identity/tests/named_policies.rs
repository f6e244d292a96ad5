//! Rights of people: those of policies that are named, as they are at each request.

use cairn_fixtures::ManualClock;
use cairn_identity::directory::{Directory, DirectoryOptions, PolicyId, UnusablePolicies};
use cairn_identity::policy::{Action, Policy, Resource};
use futures_lite::future::block_on;
use std::fs;
use std::path::Path;
use std::sync::Arc;

fn open(folder: &Path) -> Arc<Directory> {
    Directory::open(DirectoryOptions {
        folder: folder.to_owned(),
        store: [7; 16],
        master_key: b"a master key of the tests, long enough".to_vec().into(),
        root_access_key: "root".to_owned(),
        clock: ManualClock::at(1),
    })
    .unwrap()
}

fn policy(name: &str, effect: &str, resource: &str) -> Policy {
    let text = format!(
        r#"{{"name":"{name}","statements":[{{"effect":"{effect}","actions":["s3:GetObject"],"resources":["{resource}"]}}]}}"#
    );
    Policy::from_json(text.as_bytes()).unwrap()
}

fn add(directory: &Directory, name: &str, effect: &str, resource: &str) -> PolicyId {
    block_on(directory.create_policy(policy(name, effect, resource))).unwrap().id
}

/// Without a policy that denies something, the others must not allow it.
#[test]
fn changes_count_at_once_and_a_missing_policy_ends_all_rights() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("unmade"), b"").unwrap();
    let directory = open(folder.path());
    let names = ["all", "secrets"].map(str::to_owned);
    let may = |directory: &Directory, key: &str| {
        let rights = directory.rights_of_named(&names)?;
        Ok(rights.decide(Action::GetObject, Resource::Object("photos", key), None).is_allowed())
    };
    let missing = |name: &str| Err(UnusablePolicies::Missing(name.to_owned()));
    assert_eq!(may(&directory, "a"), missing("all"));
    add(&directory, "all", "allow", "bucket:photos/*");
    assert_eq!(may(&directory, "a"), missing("secrets"));
    let secrets = add(&directory, "secrets", "deny", "bucket:photos/secret/*");
    assert_eq!((may(&directory, "a"), may(&directory, "secret/x")), (Ok(true), Ok(false)));
    let replace = |name: &str, resource: &str| {
        block_on(directory.replace_policy(secrets, policy(name, "deny", resource))).unwrap();
    };
    replace("secrets", "bucket:photos/*");
    assert_eq!(may(&directory, "a"), Ok(false));
    replace("secrets", "bucket:photos/other/*");
    assert_eq!(may(&directory, "secret/x"), Ok(true));
    replace("renamed", "bucket:photos/other/*");
    assert_eq!(may(&directory, "a"), missing("secrets"));
    replace("secrets", "bucket:photos/other/*");
    let second = add(&directory, "secrets", "allow", "bucket:photos/*");
    assert_eq!(may(&directory, "a"), Err(UnusablePolicies::Ambiguous("secrets".to_owned())));
    block_on(directory.delete_policy(second)).unwrap();
    assert_eq!(may(&directory, "a"), Ok(true));
    drop(directory);
    let directory = open(folder.path());
    assert_eq!((may(&directory, "a"), may(&directory, "other/x")), (Ok(true), Ok(false)), "after a restart");
    block_on(directory.delete_policy(secrets)).unwrap();
    assert_eq!(may(&directory, "a"), missing("secrets"));
}
