//! Benchmarks authentication and authorization of a GET among 10 000 accounts.
//!
//! Each as root and as a service account, with 10 000 policies. The difference is the cost of policies. The first group
//! has only the part that differs.
//!
//! The directory is created for the run, with a durable change for each account and policy. With `TMPDIR` in memory that takes
//! seconds.

use cairn_identity::directory::{AccountId, Directory, DirectoryOptions, ExecutorCredentials, PolicyId};
use cairn_identity::policy::{Action, Policy, Resource};
use cairn_identity::{Authenticator, Credentials, RootCredential, SignedRequest};
use cairn_model::{SystemClock, Timestamp};
use criterion::{Criterion, criterion_group, criterion_main};
use futures_lite::future::block_on;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;

const ACCOUNTS: usize = 10_000;
/// Number of policies of the account with many policies; each of the others has one.
const MANY: usize = 1000;
/// 2013-05-24T00:00:00Z.
const NOW: Timestamp = Timestamp(1_369_353_600_000);
const DATE: &str = "20130524T000000Z";
const EMPTY_SHA256: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const KEY: &str = "tenant-9999/images/2026/11/a%20picture.jpg";
const HOST: &str = "127.0.0.1:7600";
const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn hmac(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any length");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

/// Returns the `Authorization` header of a GET of the key (AWS: "Create a signed AWS API request").
fn sign(access_key: &str, secret_key: &str, path: &str) -> String {
    let names = "host;x-amz-content-sha256;x-amz-date";
    let canonical = format!(
        "GET\n{path}\n\nhost:{HOST}\nx-amz-content-sha256:{EMPTY_SHA256}\nx-amz-date:{DATE}\n\n{names}\n{EMPTY_SHA256}"
    );
    let scope = format!("{}/us-east-1/s3/aws4_request", &DATE[..8]);
    let digest = Sha256::digest(canonical);
    let to_sign = format!("AWS4-HMAC-SHA256\n{DATE}\n{scope}\n{}", hex::encode(digest));
    let mut key = hmac(format!("AWS4{secret_key}").as_bytes(), &DATE[..8]);
    for part in ["us-east-1", "s3", "aws4_request"] {
        key = hmac(&key, part);
    }
    let signature = hex::encode(hmac(&key, &to_sign));
    format!("AWS4-HMAC-SHA256 Credential={access_key}/{scope}, SignedHeaders={names}, Signature={signature}")
}

fn open(folder: &Path) -> Arc<Directory> {
    std::fs::write(folder.join("unmade"), b"").expect("a mark");
    let options = DirectoryOptions {
        folder: folder.to_owned(),
        store: [1; 16],
        master_key: b"a master key of the benchmark".to_vec().into(),
        root_access_key: "ROOT".to_owned(),
        clock: Arc::new(SystemClock),
    };
    Directory::open(options).expect("opens")
}

fn add_policy(directory: &Directory, number: usize) -> PolicyId {
    let text = format!(
        r#"{{"name": "p", "statements": [
            {{"effect": "allow", "actions": ["s3:GetObject", "s3:PutObject"], "resources": ["bucket:photos/tenant-{number}/*"]}},
            {{"effect": "deny", "actions": ["s3:GetObject"], "resources": ["bucket:photos/tenant-{number}/secret/*"]}}]}}"#
    );
    let policy = Policy::from_json(text.as_bytes()).expect("a policy");
    block_on(directory.create_policy(policy)).expect("kept").id
}

/// Creates an account with its keys.
type Keys = (AccountId, String, String);

fn add_account(directory: &Directory, name: String) -> Keys {
    let (account, made) = block_on(directory.create_account(name, String::new())).expect("an account");
    (account.id, made.info.access_key.to_string(), made.secret_key.expose().to_owned())
}

fn authorization(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a folder");
    let directory = open(folder.path());
    let policies: Vec<PolicyId> = (0..ACCOUNTS).map(|number| add_policy(&directory, number)).collect();
    let mut accounts = Vec::new();
    for (number, policy) in policies.iter().enumerate() {
        let account = add_account(&directory, format!("account {number}"));
        block_on(directory.attach(*policy, account.0)).expect("attached");
        accounts.push(account);
    }
    let many = add_account(&directory, "with many".to_owned());
    for policy in &policies[ACCOUNTS - MANY..] {
        block_on(directory.attach(*policy, many.0)).expect("attached");
    }
    let root = RootCredential::new("ROOT", "the root secret of the benchmark");
    let path = format!("/photos/{KEY}");
    let key = KEY.replace("%20", " ");
    let authenticator = Authenticator::new(ExecutorCredentials::new(root, Arc::clone(&directory)));
    let (_, access_key, secret_key) = accounts.pop().expect("the last");
    let callers = [
        ("root", "ROOT", "the root secret of the benchmark"),
        ("account with one policy", &access_key, &secret_key),
        ("account with 1000 policies", &many.1, &many.2),
    ];
    let resource = Resource::Object("photos", &key);
    let mut group = criterion.benchmark_group("GET, find the credential and decide");
    for (who, access_key, _) in callers {
        let find = || authenticator.credentials().find(black_box(access_key), NOW).expect("is there");
        group.bench_function(who, |bencher| {
            bencher.iter(|| find().principal.decide(Action::GetObject, black_box(resource), CLIENT));
        });
    }
    group.finish();
    let mut group = criterion.benchmark_group("GET, authenticate and authorize");
    for (who, access_key, secret_key) in callers {
        let authorization = sign(access_key, secret_key, &path);
        let headers: [(&str, &[u8]); 4] = [
            ("host", HOST.as_bytes()),
            ("x-amz-content-sha256", EMPTY_SHA256.as_bytes()),
            ("x-amz-date", DATE.as_bytes()),
            ("authorization", authorization.as_bytes()),
        ];
        let request = SignedRequest {
            method: "GET",
            path: &path,
            query: None,
            headers: &headers,
            bucket_in_host: None,
        };
        let ask = || {
            let authenticated = authenticator.authenticate(black_box(&request), NOW).expect("rightly signed");
            authenticated.principal.decide(Action::GetObject, black_box(resource), CLIENT)
        };
        assert!(ask().is_allowed(), "the benchmark's request must be a good one");
        group.bench_function(who, |bencher| bencher.iter(ask));
    }
    group.finish();
}

criterion_group!(benches, authorization);
criterion_main!(benches);
