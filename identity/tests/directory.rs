//! The directory of accounts: immediate effect, durability, errors, and protection of secrets.

use cairn_fixtures::ManualClock;
use cairn_identity::directory::{
    AccountId, CREDENTIALS_PER_ACCOUNT_MAX, CredentialStatus, Directory, DirectoryError, DirectoryOptions,
    ExecutorCredentials, NewCredential, Outcome, PolicyId,
};
use cairn_identity::policy::{Action, Decision, Policy, Resource};
use cairn_identity::{Credential, Credentials, Principal, Role, RootCredential};
use cairn_model::{Clock as _, Timestamp};
use cairn_tables::StoreFailure;
use futures_lite::future::{block_on, zip};
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

const STORE: [u8; 16] = [7; 16];
const MASTER_KEY: &[u8] = b"a master key of the tests, long enough";
const ROOT: &str = "root-access-key";
const NOW: u64 = 1_795_237_200_000;
const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// The folder of a directory, and its clock.
struct Fixture {
    folder: tempfile::TempDir,
    clock: Arc<ManualClock>,
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("unmade"), b"").unwrap();
        Self { folder, clock: ManualClock::at(NOW) }
    }

    fn options(&self) -> DirectoryOptions {
        DirectoryOptions {
            folder: self.folder.path().to_owned(),
            store: STORE,
            master_key: MASTER_KEY.to_vec().into(),
            root_access_key: ROOT.to_owned(),
            clock: self.clock.clone(),
        }
    }

    fn open(&self) -> Arc<Directory> {
        Directory::open(self.options()).unwrap()
    }

    fn open_error(&self, change: impl FnOnce(&mut DirectoryOptions)) -> String {
        let mut options = self.options();
        change(&mut options);
        Directory::open(options).map(drop).unwrap_err().to_string()
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data.mdb")
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn advance(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }
}

fn executor(directory: &Arc<Directory>) -> ExecutorCredentials {
    ExecutorCredentials::new(RootCredential::new(ROOT, "root-secret"), Arc::clone(directory))
}

fn create(directory: &Directory, name: &str) -> (AccountId, NewCredential) {
    let (account, credential) = block_on(directory.create_account(name.to_owned(), String::new())).unwrap();
    (account.id, credential)
}

fn policy(effect: &str, action: &str, resource: &str) -> Policy {
    let text = format!(
        r#"{{"name":"p","statements":[{{"effect":"{effect}","actions":["{action}"],"resources":["{resource}"]}}]}}"#
    );
    Policy::from_json(text.as_bytes()).unwrap()
}

fn add_policy(directory: &Directory, effect: &str, action: &str, resource: &str) -> PolicyId {
    block_on(directory.create_policy(policy(effect, action, resource))).unwrap().id
}

fn may(found: &Credential, action: Action, bucket: &str, key: &str) -> bool {
    found.principal.decide(action, Resource::Object(bucket, key), CLIENT).is_allowed()
}

#[test]
fn new_accounts_authenticate_without_rights_and_survive_a_restart() {
    let fixture = Fixture::new();
    let directory = fixture.open();
    let (id, made) = create(&directory, "web");
    let key = made.info.access_key.clone();
    let check = |directory: &Arc<Directory>| {
        let found = executor(directory).find(&key, fixture.now()).unwrap();
        assert_eq!(
            (found.secret_key.as_str(), found.allowed_on_data_plane),
            (made.secret_key.expose(), true)
        );
        assert_eq!(found.principal.to_string(), "account:web");
        assert!(
            !may(&found, Action::GetObject, "photos", "a") && !found.principal.sees_bucket("photos", CLIENT)
        );
        let account = directory.account(id).unwrap();
        assert_eq!((account.enabled, account.created_at), (true, Timestamp(NOW)));
        assert_eq!(account.credentials, std::slice::from_ref(&made.info));
    };
    check(&directory);
    assert!(executor(&directory).find("unknown", fixture.now()).is_none());
    assert_eq!(executor(&directory).find(ROOT, fixture.now()).unwrap().principal, Principal::Root);
    drop(directory);
    check(&fixture.open());
}

/// Cached credentials must not outlive a change: every executor has used its cache just before.
#[test]
fn changes_are_in_force_for_the_next_lookup_of_every_executor() {
    let fixture = Fixture::new();
    let directory = fixture.open();
    let executors = [executor(&directory), executor(&directory), executor(&directory)];
    let (id, made) = create(&directory, "web");
    let key = &*made.info.access_key;
    let everywhere = |wanted: &dyn Fn(Option<Credential>) -> bool| {
        executors.iter().all(|executor| wanted(executor.find(key, fixture.now())))
    };
    let is_found = |wanted: bool| everywhere(&|found| found.is_some() == wanted);
    let may_read =
        |wanted: bool| everywhere(&|found| may(&found.unwrap(), Action::GetObject, "photos", "a") == wanted);
    assert!(is_found(true) && may_read(false));
    let readers = add_policy(&directory, "allow", "s3:GetObject", "bucket:photos/*");
    block_on(directory.attach(readers, id)).unwrap();
    assert!(may_read(true));
    let deny = add_policy(&directory, "deny", "s3:GetObject", "bucket:photos/*");
    block_on(directory.attach(deny, id)).unwrap();
    assert!(may_read(false), "deny overrides allow");
    block_on(directory.detach(deny, id)).unwrap();
    assert!(may_read(true));
    block_on(directory.set_credential_enabled(id, made.info.id, false)).unwrap();
    assert!(is_found(false));
    block_on(directory.set_credential_enabled(id, made.info.id, true)).unwrap();
    assert!(is_found(true));
    let (account, _) = block_on(directory.set_account_enabled(id, false)).unwrap();
    assert!(is_found(false) && !account.enabled);
    block_on(directory.set_account_enabled(id, true)).unwrap();
    assert!(may_read(true));
    block_on(directory.detach(readers, id)).unwrap();
    assert!(may_read(false));
    block_on(directory.delete_account(id)).unwrap();
    assert!(is_found(false));
}

/// Replacing a policy changes the rights of all its accounts for the next request, and a restart keeps them.
#[test]
fn a_replaced_policy_is_in_force_at_once_and_after_a_restart() {
    let fixture = Fixture::new();
    let directory = fixture.open();
    let (first, key) = create(&directory, "first");
    let (second, other_key) = create(&directory, "second");
    let id = add_policy(&directory, "allow", "s3:GetObject", "bucket:photos/*");
    let deny = add_policy(&directory, "deny", "s3:GetObject", "bucket:photos/secret/*");
    for (policy, account) in [(id, first), (id, second), (deny, second)] {
        block_on(directory.attach(policy, account)).unwrap();
    }
    let keys = [key.info.access_key, other_key.info.access_key];
    let may_read = |directory: &Arc<Directory>, bucket: &str, key: &str| {
        let found = executor(directory);
        keys.each_ref().map(|access_key| {
            may(&found.find(access_key, fixture.now()).unwrap(), Action::GetObject, bucket, key)
        })
    };
    assert_eq!(may_read(&directory, "photos", "secret/a"), [true, false]);
    let music = policy("allow", "s3:GetObject", "bucket:mus*");
    let (replacement, outcome) = block_on(directory.replace_policy(id, music.clone())).unwrap();
    assert_eq!((replacement.before.pattern_count(), outcome), (1, Outcome::Changed));
    assert_eq!(replacement.now.attached_to.len(), 2);
    assert_eq!(directory.policy(id).unwrap(), replacement.now);
    let (_, outcome) = block_on(directory.replace_policy(id, music.clone())).unwrap();
    assert_eq!(outcome, Outcome::Unchanged);
    // An account that gets the same policies now shares the new rights, not the old ones.
    block_on(directory.attach(deny, first)).unwrap();
    let check = |directory: &Arc<Directory>| {
        assert_eq!(may_read(directory, "photos", "a"), [false, false]);
        assert_eq!(may_read(directory, "music", "a"), [true, true]);
    };
    check(&directory);
    drop(directory);
    check(&fixture.open());
    let unknown = block_on(
        fixture
            .open()
            .replace_policy(PolicyId::parse("01890000-0000-7000-8000-000000000000").unwrap(), music),
    );
    assert_eq!(unknown.unwrap_err(), DirectoryError::PolicyNotFound);
}

/// A write in progress is authorized again only if something has changed, and then with the present rights.
#[test]
fn principal_is_looked_up_again_after_a_change() {
    let fixture = Fixture::new();
    let directory = fixture.open();
    let (account, credential) = create(&directory, "app");
    let (found, key) = (executor(&directory), &*credential.info.access_key);
    let before = found.version();
    let policy = add_policy(&directory, "allow", "s3:GetObject", "bucket:photos/*");
    block_on(directory.attach(policy, account)).unwrap();
    assert!(found.version() > before);
    let generation = |key: &str| found.find(key, fixture.now()).unwrap().generation;
    let generation_before = generation(key);
    let rights = |found: &ExecutorCredentials| {
        found
            .principal(key, generation_before)
            .map(|principal| principal.decide(Action::GetObject, Resource::Object("photos", "k"), CLIENT))
    };
    assert_eq!(rights(&found), Some(Decision::Allowed));
    block_on(directory.detach(policy, account)).unwrap();
    assert_eq!(rights(&found), Some(Decision::DeniedImplicitly));
    block_on(directory.set_credential_enabled(account, credential.info.id, false)).unwrap();
    assert_eq!(rights(&found), None);
    assert_eq!(found.principal(ROOT, generation(ROOT)), Some(Principal::Root));
    // A temporary credential may expire while its request is in progress.
    let temporary = block_on(directory.create_temporary(account, 60)).unwrap();
    let key = &temporary.info.access_key;
    let generation = generation(key);
    fixture.advance(61);
    assert!(found.find(key, fixture.now()).is_none());
    assert!(found.principal(key, generation).is_some());
    let token = block_on(directory.create_token("t".to_owned(), Role::Auditor, None)).unwrap().info.id;
    assert!(directory.is_token_valid(token));
    block_on(directory.delete_token(token)).unwrap();
    assert!(!directory.is_token_valid(token));
}

#[test]
fn old_credentials_stay_valid_after_a_rotation() {
    let fixture = Fixture::new();
    let directory = fixture.open();
    let (id, old) = create(&directory, "web");
    let new = block_on(directory.rotate(id)).unwrap();
    let executor = executor(&directory);
    let works = |made: &NewCredential| {
        let found = executor.find(&made.info.access_key, fixture.now());
        found.is_some_and(|found| found.secret_key.as_str() == made.secret_key.expose())
    };
    assert!(works(&old) && works(&new) && old.secret_key != new.secret_key);
    block_on(directory.set_credential_enabled(id, old.info.id, false)).unwrap();
    assert!(!works(&old) && works(&new));
    block_on(directory.delete_credential(id, old.info.id)).unwrap();
    assert_eq!(directory.account(id).unwrap().credentials, std::slice::from_ref(&new.info));
    let gone = block_on(directory.set_credential_enabled(id, old.info.id, true));
    assert_eq!(gone.unwrap_err(), DirectoryError::CredentialNotFound);
    for _ in 1..CREDENTIALS_PER_ACCOUNT_MAX {
        block_on(directory.rotate(id)).unwrap();
    }
    assert!(matches!(block_on(directory.rotate(id)), Err(DirectoryError::TooMany { .. })));
}

#[test]
fn temporary_credentials_expire_and_stay_listed_for_a_while() {
    let fixture = Fixture::new();
    let directory = fixture.open();
    let (id, lasting) = create(&directory, "web");
    for seconds in [0, 59, 604_801, u64::MAX] {
        let refused = block_on(directory.create_temporary(id, seconds));
        assert!(matches!(refused, Err(DirectoryError::Invalid(_))), "{seconds}");
    }
    let made = block_on(directory.create_temporary(id, 60)).unwrap();
    assert_eq!(made.info.expires_at, Some(Timestamp(NOW + 60_000)));
    let executor = executor(&directory);
    let is_found = |now| executor.find(&made.info.access_key, now).is_some();
    assert!(is_found(Timestamp(NOW + 59_999)));
    assert!(!is_found(Timestamp(NOW + 60_000)), "expired, although it was cached");
    assert!(!is_found(Timestamp(NOW + 3_600_000)));
    assert!(!is_found(Timestamp(NOW + 59_999)), "a clock that was set back revives nothing");
    assert_eq!(directory.account(id).unwrap().credentials.len(), 2);
    fixture.advance(60);
    drop((executor, directory));
    let directory = fixture.open();
    let key = &made.info.access_key;
    let executor = self::executor(&directory);
    // Ids made in the same millisecond have a random order.
    let shown = directory.account(id).unwrap().credentials;
    assert!(shown.len() == 2 && shown.contains(&lasting.info) && shown.contains(&made.info));
    assert!(executor.find(key, fixture.now()).is_none());
}

#[test]
fn names_are_unique_and_missing_entries_are_reported() {
    let fixture = Fixture::new();
    let directory = fixture.open();
    let make = || directory.create_account("web".to_owned(), String::new());
    let both = block_on(zip(make(), make()));
    let taken: Vec<_> = [both.0, both.1].into_iter().filter_map(Result::err).collect();
    assert_eq!(taken, [DirectoryError::NameTaken]);
    let id = directory.accounts(None, usize::MAX)[0].id;
    block_on(directory.delete_account(id)).unwrap();
    assert_eq!(block_on(directory.delete_account(id)), Err(DirectoryError::AccountNotFound));
    assert!(matches!(block_on(directory.rotate(id)), Err(DirectoryError::AccountNotFound)));
    let (id, _) = create(&directory, "web");
    let policy = add_policy(&directory, "allow", "s3:GetObject", "bucket:photos/*");
    for _ in 0..2 {
        block_on(directory.attach(policy, id)).unwrap();
    }
    assert_eq!(directory.policy(policy).unwrap().attached_to, [id]);
    let in_use = block_on(directory.delete_policy(policy));
    assert_eq!(in_use.unwrap_err(), DirectoryError::PolicyInUse { accounts: 1 });
    for _ in 0..2 {
        block_on(directory.detach(policy, id)).unwrap();
    }
    block_on(directory.delete_policy(policy)).unwrap();
    assert_eq!(block_on(directory.attach(policy, id)), Err(DirectoryError::PolicyNotFound));
    assert_eq!(block_on(directory.detach(policy, id)), Err(DirectoryError::PolicyNotFound));
    for bad in ["", " web", "we\u{301}b"] {
        let refused = block_on(directory.create_account(bad.to_owned(), String::new()));
        assert!(matches!(refused, Err(DirectoryError::Invalid(_))), "{bad:?}");
    }
}

#[test]
fn pages_together_list_every_account_once() {
    let fixture = Fixture::new();
    let directory = fixture.open();
    let made: Vec<_> = (0..7).map(|number| create(&directory, &format!("account {number}")).0).collect();
    let (mut found, mut last) = (Vec::new(), None);
    loop {
        let page = directory.accounts(last, 3);
        assert!(page.len() <= 3);
        let Some(end) = page.last() else { break };
        last = Some(end.id);
        found.extend(page.into_iter().map(|account| account.id));
    }
    let mut made = made;
    made.sort_unstable();
    assert_eq!(found, made);
}

/// Regression: rights were not shared, so a thousand accounts with one large policy took a thousand times its memory.
#[test]
fn accounts_with_the_same_policies_share_their_rights() {
    let fixture = Fixture::new();
    let directory = fixture.open();
    let accounts: Vec<_> = (0..3).map(|number| create(&directory, &format!("account {number}"))).collect();
    let policies = ["a", "b"]
        .map(|key| add_policy(&directory, "allow", "s3:GetObject", &format!("bucket:photos/{key}")));
    for (order, (id, _)) in accounts.iter().enumerate() {
        block_on(directory.attach(policies[order % 2], *id)).unwrap();
        block_on(directory.attach(policies[(order + 1) % 2], *id)).unwrap();
    }
    let rights = |directory: &Arc<Directory>| {
        let executor = executor(directory);
        let of = |(_, made): &(AccountId, NewCredential)| {
            let found = executor.find(&made.info.access_key, fixture.now()).unwrap();
            assert!(may(&found, Action::GetObject, "photos", "a"));
            match found.principal {
                Principal::Account(account) => Arc::clone(&account.rights),
                Principal::Root | Principal::Anonymous => panic!("no account"),
            }
        };
        accounts.iter().map(of).collect::<Vec<_>>()
    };
    let shared = rights(&directory);
    assert!(shared.iter().all(|rights| Arc::ptr_eq(rights, &shared[0])));
    block_on(directory.detach(policies[1], accounts[0].0)).unwrap();
    let after = rights(&directory);
    assert!(!Arc::ptr_eq(&after[0], &after[1]) && Arc::ptr_eq(&after[1], &after[2]));
    drop(directory);
    let again = rights(&fixture.open());
    assert!(!Arc::ptr_eq(&again[0], &again[1]) && Arc::ptr_eq(&again[1], &again[2]));
}

/// Regression: a change without effect was written and recorded, and it emptied the cache of every core.
#[test]
fn changes_without_effect_are_reported_and_not_written() {
    let fixture = Fixture::new();
    let directory = fixture.open();
    let (id, made) = create(&directory, "web");
    let policy = add_policy(&directory, "allow", "s3:GetObject", "bucket:photos/*");
    let written = || fs::read(fixture.data()).unwrap();
    let twice = |change: &dyn Fn() -> Outcome| {
        assert_eq!(change(), Outcome::Changed);
        let before = written();
        assert_eq!(change(), Outcome::Unchanged);
        assert!(before == written(), "nothing was committed");
    };
    twice(&|| block_on(directory.attach(policy, id)).unwrap());
    twice(&|| block_on(directory.detach(policy, id)).unwrap());
    for enabled in [false, true] {
        twice(&|| block_on(directory.set_credential_enabled(id, made.info.id, enabled)).unwrap().1);
        twice(&|| block_on(directory.set_account_enabled(id, enabled)).unwrap().1);
    }
}

/// Regression: a page counted only entries, so 128 accounts with ten thousand policies each were copied at once, under the
/// lock.
#[test]
fn pages_count_the_parts_of_entries_and_are_never_empty() {
    let fixture = Fixture::new();
    let directory = fixture.open();
    let (first, _) = create(&directory, "first");
    for _ in 0..4 {
        block_on(directory.rotate(first)).unwrap();
    }
    create(&directory, "second");
    let policy = add_policy(&directory, "allow", "s3:GetObject", "bucket:photos/*");
    add_policy(&directory, "allow", "s3:GetObject", "bucket:photos/*");
    // An account has its credentials as parts; a policy has its resource and the account that it is attached to.
    for (parts_max, accounts) in [(1, 1), (7, 1), (8, 2)] {
        assert_eq!(directory.accounts(None, parts_max).len(), accounts, "{parts_max}");
    }
    assert_eq!(directory.policies(None, 4).len(), 2);
    block_on(directory.attach(policy, first)).unwrap();
    assert_eq!((directory.policies(None, 4).len(), directory.policies(None, 5).len()), (1, 2));
}

#[test]
fn deleting_an_account_deletes_its_credentials_and_bindings() {
    let fixture = Fixture::new();
    let directory = fixture.open();
    let (id, made) = create(&directory, "web");
    let policy = add_policy(&directory, "allow", "s3:GetObject", "bucket:photos/*");
    block_on(directory.attach(policy, id)).unwrap();
    block_on(directory.delete_account(id)).unwrap();
    let check = |directory: &Arc<Directory>| {
        assert!(
            directory.accounts(None, usize::MAX).is_empty()
                && directory.policy(policy).unwrap().attached_to.is_empty()
        );
        assert!(executor(directory).find(&made.info.access_key, fixture.now()).is_none());
    };
    check(&directory);
    drop(directory);
    check(&fixture.open());
}

#[test]
fn management_tokens_are_found_by_exact_text_until_they_expire() {
    let fixture = Fixture::new();
    let directory = fixture.open();
    let create = |name: &str, role, seconds| block_on(directory.create_token(name.to_owned(), role, seconds));
    let lasting = create("ops", Role::StorageAdmin, None).unwrap();
    let short = create("look", Role::Auditor, Some(10)).unwrap();
    assert_eq!(directory.find_token(lasting.token.expose()), Some(lasting.info.clone()));
    assert_eq!(directory.find_token(short.token.expose()).unwrap().role, Role::Auditor);
    let other = format!("{}x", lasting.token.expose());
    for wrong in ["", "cairn_mt_", &other, &lasting.token.expose()[1..]] {
        assert_eq!(directory.find_token(wrong), None);
    }
    fixture.advance(10);
    assert_eq!(directory.find_token(short.token.expose()), None);
    assert!(matches!(create("x", Role::Auditor, Some(0)), Err(DirectoryError::Invalid(_))));
    directory.close();
    drop(directory);
    let directory = fixture.open();
    assert_eq!(directory.find_token(short.token.expose()), None);
    assert!(directory.find_token(lasting.token.expose()).is_some());
    block_on(directory.delete_token(lasting.info.id)).unwrap();
    assert_eq!(directory.find_token(lasting.token.expose()), None);
    assert_eq!(block_on(directory.delete_token(lasting.info.id)), Err(DirectoryError::TokenNotFound));
}

#[test]
fn secrets_are_not_in_the_data_file_or_debug_output() {
    let fixture = Fixture::new();
    let directory = fixture.open();
    let (id, made) = create(&directory, "web");
    let temporary = block_on(directory.create_temporary(id, 600)).unwrap();
    let token = block_on(directory.create_token("ops".to_owned(), Role::Auditor, None)).unwrap();
    let found = executor(&directory).find(&made.info.access_key, fixture.now()).unwrap();
    let shown = format!(
        "{made:?}{temporary:?}{token:?}{found:?}{:?}{:?}",
        directory.accounts(None, usize::MAX),
        directory.tokens(None, usize::MAX)
    );
    directory.close();
    let bytes = fs::read(fixture.data()).unwrap();
    for secret in [&made.secret_key, &temporary.secret_key, &token.token] {
        let secret = secret.expose();
        assert!(!shown.contains(secret));
        assert!(!bytes.windows(secret.len()).any(|window| window == secret.as_bytes()));
    }
    let key = made.info.access_key.as_bytes();
    assert!(bytes.windows(key.len()).any(|window| window == key), "the search works");
}

#[test]
fn last_uses_survive_a_restart() {
    let fixture = Fixture::new();
    let directory = fixture.open();
    let (id, made) = create(&directory, "web");
    let executor = executor(&directory);
    let last_use = || directory.account(id).unwrap().credentials[0].last_used_at;
    let found = executor.find(&made.info.access_key, fixture.now()).unwrap();
    assert_eq!(last_use(), None, "a lookup is not a use: anyone can cause one");
    found.last_use.unwrap().record(Timestamp(NOW + 5));
    assert_eq!(last_use(), Some(Timestamp(NOW + 5)));
    directory.close();
    drop((executor, directory));
    let directory = fixture.open();
    assert_eq!(directory.account(id).unwrap().credentials[0].last_used_at, Some(Timestamp(NOW + 5)));
}

#[test]
fn damaged_or_foreign_directories_are_refused_and_not_changed() {
    let fixture = Fixture::new();
    let directory = fixture.open();
    assert!(!fixture.folder.path().join("unmade").exists());
    create(&directory, "web");
    drop(directory);
    let whole = fs::read(fixture.data()).unwrap();
    assert!(fixture.open_error(|options| options.store = [8; 16]).contains("belongs to another store"));
    let sealed = fixture.open_error(|options| options.master_key = b"another".to_vec().into());
    assert!(sealed.contains("table credentials"), "{sealed}");
    fs::write(fixture.data(), &whole[..16_384]).unwrap();
    assert!(fixture.open_error(|_| {}).contains("truncated"));
    fs::remove_file(fixture.data()).unwrap();
    let missing = fixture.open_error(|_| {});
    assert!(missing.contains("missing or empty") && missing.contains("unmade"), "{missing}");
    assert!(!fixture.data().exists(), "nothing was created in its place");
    fs::write(fixture.data(), &whole).unwrap();
    assert_eq!(fixture.open().accounts(None, usize::MAX).len(), 1);
}

/// A flipped bit must neither widen rights nor remove an entry.
#[test]
fn damaged_records_are_refused() {
    let fixture = Fixture::new();
    let directory = fixture.open();
    block_on(directory.create_policy(policy("deny", "s3:GetObject", "bucket:a-needle/*"))).unwrap();
    drop(directory);
    let mut bytes = fs::read(fixture.data()).unwrap();
    let needle = b"a-needle";
    let positions: Vec<_> =
        (0..bytes.len() - needle.len()).filter(|at| bytes[*at..].starts_with(needle)).collect();
    assert!(!positions.is_empty());
    positions.iter().for_each(|at| bytes[*at] ^= 1);
    fs::write(fixture.data(), bytes).unwrap();
    let refused = Directory::open(fixture.options()).map(drop).unwrap_err();
    assert!(refused.io_error().is_none(), "{refused}");
}

#[test]
fn a_closed_directory_can_be_read_but_not_changed() {
    let fixture = Fixture::new();
    let directory = fixture.open();
    let (_, made) = create(&directory, "web");
    directory.close();
    assert!(executor(&directory).find(&made.info.access_key, fixture.now()).is_some());
    let refused = block_on(directory.create_account("late".to_owned(), String::new()));
    assert_eq!(refused.unwrap_err(), DirectoryError::Store(StoreFailure::Closing));
    assert_eq!((directory.accounts(None, usize::MAX).len(), directory.health()), (1, Ok(())));
}

#[test]
fn access_of_an_account_has_its_policies_and_their_rights() {
    let fixture = Fixture::new();
    let directory = fixture.open();
    let (id, made) = create(&directory, "web");
    let mut attached: Vec<PolicyId> = ["photos", "music", "films"]
        .map(|bucket| add_policy(&directory, "allow", "s3:GetObject", &format!("bucket:{bucket}/*")))
        .into();
    // The order of the list. Ids that were made in one millisecond have any order.
    attached.sort();
    for policy in &attached {
        block_on(directory.attach(*policy, id)).unwrap();
    }
    add_policy(&directory, "allow", "s3:GetObject", "bucket:other/*");
    let access = directory.account_access(id).unwrap();
    assert!(access.enabled && &*access.name == "web");
    assert_eq!(access.policies.iter().map(|(id, _)| *id).collect::<Vec<_>>(), attached);
    assert!(access.rights.decide(Action::GetObject, Resource::Object("music", "k"), None).is_allowed());
    let mut paged = Vec::new();
    while let Some(policy) = directory.policies_of(id, paged.last().copied(), 1).first() {
        paged.push(policy.id);
    }
    assert_eq!(paged, attached);

    let temporary = block_on(directory.create_temporary(id, 60)).unwrap();
    let status = |made: &NewCredential| directory.credential_status(&made.info.access_key);
    assert_eq!(status(&made), Some((id, CredentialStatus::Valid)));
    assert_eq!(directory.credential_status("unknown"), None);
    fixture.advance(61);
    assert_eq!(status(&temporary), Some((id, CredentialStatus::Expired)));
    block_on(directory.set_credential_enabled(id, made.info.id, false)).unwrap();
    assert_eq!(status(&made), Some((id, CredentialStatus::Disabled)));
    block_on(directory.delete_account(id)).unwrap();
    assert!(directory.account_access(id).is_none() && directory.policies_of(id, None, 1).is_empty());
}
